"""The relay's and sweeper's side of the authority: what is due, what was lost, who lives."""

import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime

import asyncpg

from longtake.contracts.codec import to_json
from longtake.contracts.signals import Outgoing
from longtake.errors import MigrationError, StoreRewound
from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement
from longtake.store import (
    FORGOTTEN,
    WINDOW_FACTOR,
    WINDOW_MIN,
    EffectPointer,
    EndedLease,
    LostDoorbell,
    StalledWork,
    StoreIdentity,
)

ALIVE_SECONDS = 15.0
"""How long an announcement holds; processes announce themselves three times as often."""


class PostgresSweepStore:
    """Implements `SweepStore`."""

    def __init__(self, pool: asyncpg.Pool, *, incarnation: uuid.UUID, owner: str) -> None:
        self._pool = pool
        self._incarnation = incarnation
        self._owner = owner
        self._beats = 0

    async def identity(self) -> StoreIdentity:
        """Which store this is."""
        return await read_identity(self._pool)

    async def due_pointers(
        self, *, limit: int, grace_seconds: float, oldest: Mapping[str, datetime | None], all_lost: bool
    ) -> list[EffectPointer]:
        """Mark and return pointers to publish now."""
        rows = await repeated(
            lambda: self._pool.fetch(
                statement("pointers_due"),
                limit,
                self._incarnation,
                grace_seconds,
                list(oldest),
                list(oldest.values()),
                all_lost,
                WINDOW_MIN,
                WINDOW_FACTOR,
            )
        )
        return [
            EffectPointer(
                id=row["id"],
                attempt=row["attempt"],
                generation=row["generation"],
                pool=row["pool"],
                traceparent=row["traceparent"],
            )
            for row in rows
        ]

    async def room(self) -> dict[str, int]:
        """How many pointers each pool may have published more."""
        rows = await repeated(lambda: self._pool.fetch(statement("windows_read"), WINDOW_MIN, WINDOW_FACTOR))
        return {row["pool"]: row["room"] for row in rows}

    async def stalled_work(self, *, stall_seconds: float, limit: int) -> list[StalledWork]:
        """Work that nobody can take, and such work that somebody can take after all."""
        rows = await repeated(lambda: self._pool.fetch(statement("work_stalled"), stall_seconds, limit))
        return [StalledWork(**row) for row in rows]

    async def tell(self, tenant: str, fact: Outgoing) -> None:
        """Write a fact for a run."""
        await repeated(
            lambda: self._pool.execute(
                statement("signal_insert"), fact.id, tenant, fact.run_id, fact.kind, to_json(fact.payload)
            )
        )

    async def expire_leases(
        self, *, leases_max: int, authority_up_seconds: float, connected: bool
    ) -> list[EndedLease]:
        """End leases that ran out."""
        rows = await repeated(
            lambda: self._pool.fetch(statement("leases_expire"), leases_max, authority_up_seconds, connected)
        )
        return [EndedLease(**row) for row in rows]

    async def lost_doorbells(
        self, *, grace_seconds: float, limit: int, oldest: Sequence[datetime | None]
    ) -> list[LostDoorbell]:
        """What has waited for the dispatcher too long."""
        rows = await repeated(
            lambda: self._pool.fetch(statement("doorbells_lost"), grace_seconds, limit, list(oldest))
        )
        return [LostDoorbell(**row) for row in rows]

    async def next_due_seconds(self, *, grace_seconds: float) -> float | None:
        """Seconds until something is due; None when nothing is."""
        return await repeated(lambda: self._pool.fetchval(statement("next_due"), grace_seconds))

    async def announce(
        self,
        *,
        roles: Sequence[str],
        pools: Sequence[str],
        activities: Sequence[str],
        slots: Sequence[int] = (),
    ) -> int:
        """Say that this process lives. Raises StoreRewound when the store has forgotten what it knew of it."""
        row = await repeated(
            lambda: self._pool.fetchrow(
                statement("incarnation_announce"),
                self._incarnation,
                self._owner,
                list(roles),
                list(pools),
                list(activities),
                socket.gethostname(),
                os.getpid(),
                ALIVE_SECONDS,
                list(slots),
                self._beats,
            )
        )
        assert row is not None, "an insert that returns its row"
        if row["forgotten"]:
            raise StoreRewound(FORGOTTEN)
        self._beats = row["beats"]
        epoch: int = row["epoch"]
        return epoch

    async def has_command(self, tenant: str, actor: str, client_command_id: str) -> bool:
        """Whether the store knows the command."""
        row = await repeated(
            lambda: self._pool.fetchrow(statement("command_receipt"), tenant, actor, client_command_id)
        )
        return row is not None

    async def retire(self) -> None:
        """Say that this process stops."""
        await repeated(lambda: self._pool.execute(statement("incarnation_end"), self._incarnation))

    async def bury_others(self) -> list[str]:
        """Declare every other process dead; returns their owners."""
        rows = await repeated(lambda: self._pool.fetch(statement("incarnations_bury"), self._incarnation))
        return [row["owner"] for row in rows]

    async def uncopied_commands(self, limit: int) -> list[tuple[str, str, str, str, bytes, str | None]]:
        """HTTP commands that LT_COMMAND does not have: (tenant, actor, id, kind, body, traceparent)."""
        rows = await repeated(lambda: self._pool.fetch(statement("commands_uncopied"), limit))
        return [tuple(row) for row in rows]

    async def mark_copied(self, commands: Sequence[tuple[str, str, str]]) -> None:
        """LT_COMMAND has these now."""
        await repeated(
            lambda: self._pool.execute(
                statement("commands_copied"),
                [c[0] for c in commands],
                [c[1] for c in commands],
                [c[2] for c in commands],
            )
        )

    async def copy_again(self, seconds: float) -> int:
        """LT_COMMAND has lost the commands of the last seconds; how many are to be copied once more."""
        return len(await repeated(lambda: self._pool.fetch(statement("commands_copy_again"), seconds)))

    async def dead_letter(
        self,
        *,
        tenant: str | None,
        source: str,
        subject: str,
        reason: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> None:
        """Keep what no redelivery will cure."""
        await repeated(
            lambda: self._pool.execute(
                statement("dead_letters_insert"),
                tenant,
                source,
                subject,
                reason,
                body,
                to_json(dict(headers)),
            )
        )

    async def take_suspects(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Take messages in hand; how many processes died with each of them in theirs."""
        rows = await repeated(
            lambda: self._pool.fetch(statement("suspects_take"), list(digests), self._incarnation)
        )
        return {bytes(row["digest"]): row["deaths"] for row in rows}

    async def stream_identities(self) -> dict[str, str]:
        """Streams as last seen."""
        rows = await repeated(lambda: self._pool.fetch(statement("transport_identity_list")))
        return {row["stream"]: row["created"] for row in rows}

    async def save_stream_identities(self, created: Mapping[str, str]) -> None:
        """Remember streams."""
        await repeated(
            lambda: self._pool.execute(
                statement("transport_identity_save"), list(created), list(created.values())
            )
        )

    async def raise_transport_epoch(self) -> int:
        """Every pointer of the old epoch may be lost."""
        epoch: int = await repeated(lambda: self._pool.fetchval(statement("transport_epoch_raise")))
        return epoch


async def read_identity(pool: asyncpg.Pool | asyncpg.Connection) -> StoreIdentity:
    """Which store a pool leads to. Raises AuthorityUnavailable."""
    row = await repeated(lambda: pool.fetchrow(statement("store_read")))
    if row is None:
        raise MigrationError("the table longtake.store is empty: run `longtake migrate`")
    return StoreIdentity(
        environment=row["environment"],
        store_epoch=row["store_epoch"],
        transport_epoch=row["transport_epoch"],
        application=row["application"],
        restoring=row["restoring"],
    )
