"""Pools of connections with the settings of reliability.md 5.1 and P16.

Nobody changes a session's state, so connections go back into the pool without a reset (it would be one more round
trip a statement).
"""

from collections.abc import Mapping
from typing import Any

import asyncpg

from longtake.postgres.failures import translated
from longtake.postgres.statements import statement

ENGINE_ROLE = "longtake_engine"

_SETTINGS = {
    "timezone": "UTC",
    "statement_timeout": "5s",
    "lock_timeout": "1s",
    "idle_in_transaction_session_timeout": "5s",
    # Plans cached on a fresh, empty table would stay bad for ever (P16).
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
}
_CLIENT_TIMEOUT_SECONDS = 8.0
_ACQUIRE_SECONDS = 2.0


class Connection(asyncpg.Connection):
    """A connection that needs no reset between uses."""

    def get_reset_query(self) -> str:
        """Nothing to reset: no session state is ever set."""
        return ""


def _as_bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


async def _prepare(connection: asyncpg.Connection) -> None:
    # json travels as the exact bytes that were stored: the chain is computed over them.
    await connection.set_type_codec(
        "json", schema="pg_catalog", encoder=_as_bytes, decoder=bytes, format="binary"
    )
    if await connection.fetchval(statement("engine_role_usable"), ENGINE_ROLE):
        await connection.execute(statement("engine_role_take"))


async def connect(address: Mapping[str, Any], *, heartbeat: bool = False) -> asyncpg.Connection:
    """Open one connection outside any pool. A heartbeat's may lose its last commit in a crash: that only shortens a
    lease (reliability.md 5.1)."""
    settings = dict(_SETTINGS)
    if heartbeat:
        settings["synchronous_commit"] = "off"
    with translated():
        connection = await asyncpg.connect(
            **address,
            server_settings=settings,
            command_timeout=_CLIENT_TIMEOUT_SECONDS,
            timeout=_ACQUIRE_SECONDS,
            connection_class=Connection,
        )
        await _prepare(connection)
    return connection


async def open_pool(address: Mapping[str, Any], *, size: int, name: str) -> asyncpg.Pool:
    """Open a pool; `name` is what pg_stat_activity shows."""
    with translated():
        return await asyncpg.create_pool(
            **address,
            min_size=1,
            max_size=size,
            server_settings={**_SETTINGS, "application_name": f"longtake {name}"},
            command_timeout=_CLIENT_TIMEOUT_SECONDS,
            timeout=_ACQUIRE_SECONDS,
            connection_class=Connection,
            init=_prepare,
            max_inactive_connection_lifetime=300.0,
        )
