"""API keys and accounts: what an operator sets up."""

import hashlib
import hmac
import secrets
from typing import Any

import asyncpg
import msgspec

from longtake.contracts.principal import Principal
from longtake.postgres.failures import repeated
from longtake.postgres.statements import statement

_PREFIX = "lt"


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key at the only moment its secret is known."""

    key_id: str
    text: str


class PostgresKeyStore:
    """Keys are `lt_<id>_<secret>`; the secret has 256 random bits and only its SHA-256 is kept."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def create(self, *, tenant: str, actor: str, roles: tuple[str, ...]) -> NewKey:
        """Make a key."""
        made = NewKey(key_id=secrets.token_hex(6), text="")
        secret = secrets.token_urlsafe(32)
        digest = hashlib.sha256(secret.encode()).hexdigest()
        await repeated(
            lambda: self._pool.execute(
                statement("key_insert"), made.key_id, tenant, actor, list(roles), digest
            )
        )
        return NewKey(key_id=made.key_id, text=f"{_PREFIX}_{made.key_id}_{secret}")

    async def principal(self, text: str) -> Principal | None:
        """Who holds this key; None when nobody does."""
        prefix, _, rest = text.partition("_")
        key_id, _, secret = rest.partition("_")
        if prefix != _PREFIX or not secret:
            return None
        row = await repeated(lambda: self._pool.fetchrow(statement("key_find"), key_id))
        digest = hashlib.sha256(secret.encode()).hexdigest()
        if row is None or not hmac.compare_digest(digest, row["secret_sha256"]):
            return None
        return Principal(tenant=row["tenant_id"], actor=row["actor"], roles=frozenset(row["roles"]))

    async def revoke(self, key_id: str) -> bool:
        """End a key; False when there is none alive."""
        return await repeated(lambda: self._pool.fetchval(statement("key_revoke"), key_id)) is not None

    async def list(self) -> list[dict[str, Any]]:
        """All keys, without secrets."""
        return [dict(row) for row in await repeated(lambda: self._pool.fetch(statement("keys_list")))]

    async def fund(self, *, tenant: str, account: str, credits: int) -> int:
        """Put credits on an account; returns its balance."""
        balance: int = await repeated(
            lambda: self._pool.fetchval(statement("account_fund"), tenant, account, credits)
        )
        return balance

    async def balance(self, *, tenant: str, account: str) -> tuple[int, int] | None:
        """(balance, held) of an account."""
        row = await repeated(lambda: self._pool.fetchrow(statement("account_read"), tenant, account))
        return None if row is None else (row["balance"], row["held"])
