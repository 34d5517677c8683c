"""The fixtures that everyone's integration tests stand on keep what they promise."""

import asyncpg
import pytest
from nats.js.errors import NotFoundError

from kit.servers import Broker, Database, Servers


async def test_a_bare_database_is_empty_and_of_its_own(bare_database: Database, servers: Servers) -> None:
    connection = await bare_database.connect()
    await connection.execute("create table mine (n int)")

    assert bare_database.name == await connection.fetchval("select current_database()")
    other = await asyncpg.connect(servers.postgres_dsn)
    with pytest.raises(asyncpg.UndefinedTableError):
        await other.execute("select * from mine")
    await other.close()


async def test_a_bare_database_is_reached_by_its_url(bare_database: Database) -> None:
    connection = await asyncpg.connect(bare_database.dsn)

    assert bare_database.name == await connection.fetchval("select current_database()")
    await connection.close()


@pytest.mark.parametrize("turn", [1, 2])
async def test_a_broker_has_no_stream_of_an_earlier_test(broker: Broker, turn: int) -> None:
    stream = (await broker.connect()).jetstream()

    with pytest.raises(NotFoundError):
        await stream.stream_info("LEFT_BEHIND")
    await stream.add_stream(name="LEFT_BEHIND", subjects=["left.behind"])
    assert "LEFT_BEHIND" == (await stream.stream_info("LEFT_BEHIND")).config.name


async def test_a_database_has_our_tables_and_no_row(database: Database) -> None:
    connection = await database.connect()

    assert await connection.fetchval("select to_regclass('longtake.events') is not null")
    assert 0 == await connection.fetchval("select count(*) from longtake.events")
