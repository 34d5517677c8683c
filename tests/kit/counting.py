"""Counting statements: a pool that passes everything on and remembers how often it was asked."""

from contextlib import asynccontextmanager
from typing import Any

import asyncpg


class CountingPool:
    """Stands before an asyncpg pool; `statements` grows by one for each statement sent, transactions included."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self.statements = 0

    async def fetch(self, *arguments: Any) -> Any:
        self.statements += 1
        return await self._pool.fetch(*arguments)

    async def fetchrow(self, *arguments: Any) -> Any:
        self.statements += 1
        return await self._pool.fetchrow(*arguments)

    async def fetchval(self, *arguments: Any) -> Any:
        self.statements += 1
        return await self._pool.fetchval(*arguments)

    async def execute(self, *arguments: Any) -> Any:
        self.statements += 1
        return await self._pool.execute(*arguments)

    @asynccontextmanager
    async def acquire(self) -> Any:
        async with self._pool.acquire() as connection:

            def count(_record: Any) -> None:
                self.statements += 1

            connection.add_query_logger(count)
            try:
                yield connection
            finally:
                connection.remove_query_logger(count)
