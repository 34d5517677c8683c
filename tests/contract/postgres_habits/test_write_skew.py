"""Two who each find nothing and each insert (`reliability.md` 6, point 17): what isolation alone does, and what our row lock does.

The report of G2-item on a healthy Postgres 18.4 is searched for, not relied upon: nothing of ours rests on SERIALIZABLE.
"""

import asyncio
from typing import Literal

import asyncpg
import pytest

from kit.servers import Database

Way = Literal["read_committed", "serializable", "row_lock"]
ROUNDS = 150
TABLES = """
create table runs (id int primary key);
create table claims (run int not null, owner text not null, primary key (run, owner));
"""


async def claim(
    connection: asyncpg.Connection, run: int, owner: str, way: Way, both: asyncio.Barrier
) -> bool:
    """Insert a claim if there is none of anybody; whether it was committed."""
    isolation = "serializable" if way == "serializable" else "read_committed"
    try:
        async with connection.transaction(isolation=isolation):
            if way == "row_lock":
                await connection.execute("select from runs where id = $1 for update", run)
            found = await connection.fetchval("select count(*) from claims where run = $1", run)
            if way != "row_lock":
                await both.wait()
            if found:
                return False
            await connection.execute("insert into claims values ($1, $2) on conflict do nothing", run, owner)
    except asyncpg.SerializationError:
        return False
    return True


@pytest.mark.parametrize(
    ("way", "both_win"), [("read_committed", True), ("serializable", False), ("row_lock", False)]
)
async def test_two_who_find_nothing_both_win_only_without_a_lock(
    bare_database: Database, way: Way, both_win: bool
) -> None:
    one, other = await bare_database.connect(), await bare_database.connect()
    await one.execute(TABLES)
    await one.execute("insert into runs select generate_series(1, $1::int)", ROUNDS)
    skewed = 0
    for run in range(1, ROUNDS + 1):
        both = asyncio.Barrier(2)
        won = await asyncio.gather(claim(one, run, "one", way, both), claim(other, run, "other", way, both))
        assert any(won)
        skewed += all(won)

    assert skewed == (ROUNDS if both_win else 0)
