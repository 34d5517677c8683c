"""A reader of all events goes by (transaction, id) and stops below the oldest open transaction (`reliability.md` 6, point 16; F38).

The reader by id alone is the control: it skips what was numbered early and committed late, for ever.
"""

import asyncio
import random

import asyncpg

from kit.probe import eventually
from kit.servers import Database

WRITERS = 32
TRANSACTIONS = 12
ROLLED_BACK = 0.2

TABLE = """
create table facts (
    id bigint generated always as identity primary key,
    tx_id xid8 not null default pg_current_xact_id(),
    name text not null unique
)
"""
# Named `tx`: "order by tx_id" would mean a column of the answer before one of the table, and text sorts 999 after 1000.
BY_PAIR = """
select tx_id::text as tx, id, name from facts
where (tx_id, id) > ($1::text::xid8, $2) and tx_id < pg_snapshot_xmin(pg_current_snapshot())
order by tx_id, id limit 200
"""
BY_ID = "select id, name from facts where id > $1 order by id limit 200"


class ByPair:
    """The reader as it should be."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._cursor: tuple[str, int] = ("0", 0)
        self.seen: list[str] = []

    async def read(self) -> None:
        for row in await self._connection.fetch(BY_PAIR, *self._cursor):
            self._cursor = (row["tx"], row["id"])
            self.seen.append(row["name"])


class ById:
    """The reader that everybody writes first."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._cursor = 0
        self.seen: list[str] = []

    async def read(self) -> None:
        for row in await self._connection.fetch(BY_ID, self._cursor):
            self._cursor = row["id"]
            self.seen.append(row["name"])


async def test_what_is_numbered_early_and_committed_late_is_seen_by_pair_and_lost_by_id(
    bare_database: Database,
) -> None:
    early, late, reader = [await bare_database.connect() for _ in range(3)]
    await reader.execute(TABLE)
    by_pair, by_id = ByPair(reader), ById(reader)
    transaction = early.transaction()
    await transaction.start()
    await early.execute("insert into facts (name) values ('early')")
    await late.execute("insert into facts (name) values ('late')")
    for follower in (by_pair, by_id):
        await follower.read()
    assert (by_pair.seen, by_id.seen) == ([], ["late"])
    await transaction.commit()
    for follower in (by_pair, by_id):
        await follower.read()

    assert (by_pair.seen, by_id.seen) == (["early", "late"], ["late"])


async def test_under_32_writers_with_rollbacks_each_committed_fact_is_seen_once(
    bare_database: Database,
) -> None:
    reader = await bare_database.connect()
    await reader.execute(TABLE)
    follower = ByPair(reader)
    committed: set[str] = set()

    async def write(number: int) -> None:
        rng = random.Random(number)
        connection = await bare_database.connect()
        for turn in range(TRANSACTIONS):
            name = f"{number}-{turn}"
            transaction = connection.transaction()
            await transaction.start()
            await connection.execute("insert into facts (name) values ($1)", name)
            # The time between taking a number and committing it, spent on the server.
            await connection.execute("select pg_sleep($1)", rng.uniform(0, 0.02))
            if rng.random() < ROLLED_BACK:
                await transaction.rollback()
            else:
                await transaction.commit()
                committed.add(name)

    writing = asyncio.gather(*(write(number) for number in range(WRITERS)))
    while not writing.done():
        await follower.read()
    await writing

    async def caught_up() -> bool:
        await follower.read()
        return len(follower.seen) >= len(committed)

    await eventually(caught_up, "the reader has seen everything")
    assert len(follower.seen) == len(set(follower.seen))
    assert set(follower.seen) == committed
    assert len(committed) > WRITERS * TRANSACTIONS / 2
