"""The shop, whole or without anybody who works."""

from collections.abc import AsyncIterator

import pytest_asyncio

from kit.shop import Shop, open_shop


@pytest_asyncio.fixture
async def shop(database, broker, tmp_path) -> AsyncIterator[Shop]:
    """Everything runs."""
    async with open_shop(database, broker, tmp_path) as opened:
        yield opened


@pytest_asyncio.fixture
async def counter(database, broker, tmp_path) -> AsyncIterator[Shop]:
    """The API alone: runs are accepted, nobody works at them."""
    async with open_shop(database, broker, tmp_path, roles=("api",)) as opened:
        yield opened
