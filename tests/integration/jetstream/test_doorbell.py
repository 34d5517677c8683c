"""Doorbells wake sleepers here and elsewhere, and losing one is no error."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from nats.aio.client import Client

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import barrier, begun
from longtake.doorbells import HORIZON_SECONDS, NAMES_MAX
from longtake.jetstream import Connection, ConnectionOptions, NatsDoorbell


@pytest_asyncio.fixture
async def houses(server: LoneNats) -> AsyncIterator[tuple[NatsDoorbell, NatsDoorbell]]:
    """Two processes' doorbells."""
    connections = [
        Connection(ConnectionOptions(servers=(server.url,), role=role)) for role in ("relay", "worker")
    ]
    bells = [NatsDoorbell(connection) for connection in connections]
    for connection, bell in zip(connections, bells, strict=True):
        await connection.start()
        assert await connection.wait_linked(5)
        await bell.start()
        await barrier(connection.client)
    yield bells[0], bells[1]
    for connection, bell in zip(connections, bells, strict=True):
        await bell.stop()
        await bell.stop()
        await connection.stop()


async def test_a_ring_wakes_who_waits_in_this_process_without_any_server() -> None:
    bell = NatsDoorbell()
    await bell.start()
    waiting = await begun(bell.wait("relay", timeout_seconds=30))
    bell.ring("relay")

    assert await waiting
    await bell.stop()


async def test_everybody_who_waits_is_woken() -> None:
    bell = NatsDoorbell()
    waiting = [await begun(bell.wait("relay", timeout_seconds=30)) for _ in range(3)]
    bell.ring("relay")

    assert [await one for one in waiting] == [True, True, True]


async def test_a_ring_before_the_wait_is_kept_and_many_are_one() -> None:
    bell = NatsDoorbell()
    bell.ring("relay")
    bell.ring("relay")

    assert await bell.wait("relay", timeout_seconds=0.01)
    assert not await bell.wait("relay", timeout_seconds=0.01)


async def test_another_name_wakes_nobody() -> None:
    bell = NatsDoorbell()
    bell.ring("callback.1")

    assert not await bell.wait("callback.2", timeout_seconds=0.02)


async def test_a_ring_reaches_other_processes(houses: tuple[NatsDoorbell, NatsDoorbell]) -> None:
    here, there = houses
    here.ring("callback.3")

    assert await there.wait("callback.3", timeout_seconds=5)


async def test_ones_own_ring_comes_back_no_second_time(
    houses: tuple[NatsDoorbell, NatsDoorbell], bystander: Client
) -> None:
    here, there = houses
    here.ring("relay")
    assert await here.wait("relay", timeout_seconds=5)
    assert await there.wait("relay", timeout_seconds=5)
    # The other one answers, and its ring was published after ours: ours would have come back by now.
    there.ring("answer")
    assert await here.wait("answer", timeout_seconds=5)

    assert not await here.wait("relay", timeout_seconds=0.01)


async def test_many_rings_before_the_sender_runs_are_one_message(
    houses: tuple[NatsDoorbell, NatsDoorbell], bystander: Client
) -> None:
    here, there = houses
    heard = await bystander.subscribe("longtake.v1.doorbell.>")
    await barrier(bystander)
    for _ in range(1000):
        here.ring("relay")
    here.ring("last")
    assert await there.wait("last", timeout_seconds=5)
    await barrier(bystander)

    assert heard.pending_msgs == 2


async def test_a_ring_for_later_wakes_then_and_the_earliest_wins() -> None:
    bell = NatsDoorbell()
    now = datetime.now(UTC)
    bell.ring("timers", due_at=now + timedelta(seconds=20))
    bell.ring("timers", due_at=now + timedelta(seconds=0.2))
    bell.ring("timers", due_at=now + timedelta(seconds=10))

    assert not await bell.wait("timers", timeout_seconds=0.05)
    assert await bell.wait("timers", timeout_seconds=5)
    await bell.stop()


async def test_a_ring_for_later_travels_with_its_time(houses: tuple[NatsDoorbell, NatsDoorbell]) -> None:
    here, there = houses
    here.ring("timers", due_at=datetime.now(UTC) + timedelta(seconds=0.3))
    here.ring("now")
    assert await there.wait("now", timeout_seconds=5)

    assert not await there.wait("timers", timeout_seconds=0.01)
    assert await there.wait("timers", timeout_seconds=5)


async def test_a_ring_in_the_past_is_now_and_one_beyond_the_horizon_is_nothing() -> None:
    bell = NatsDoorbell()
    bell.ring("timers", due_at=datetime.now(UTC) - timedelta(seconds=1))
    bell.ring("far", due_at=datetime.now(UTC) + timedelta(seconds=HORIZON_SECONDS + 5))

    assert await bell.wait("timers", timeout_seconds=0)
    assert not await bell.wait("far", timeout_seconds=0.02)


async def test_without_a_link_a_ring_is_lost_elsewhere_and_heard_here(proxy: TcpProxy) -> None:
    connection = Connection(ConnectionOptions(servers=(f"nats://127.0.0.1:{proxy.port}",), role="relay"))
    bell = NatsDoorbell(connection)
    proxy.refuse()
    await connection.start()
    await bell.start()
    bell.ring("relay")

    assert await bell.wait("relay", timeout_seconds=1)
    await bell.stop()
    await connection.stop()


async def test_a_doorbell_listens_again_after_its_connection_was_lost(
    proxy: TcpProxy, bystander: Client
) -> None:
    connection = Connection(
        ConnectionOptions(servers=(f"nats://127.0.0.1:{proxy.port}",), role="relay", reconnect_seconds=0.05)
    )
    bell = NatsDoorbell(connection)
    await connection.start()
    await bell.start()
    assert await connection.wait_linked(5)
    proxy.cut()
    await eventually(lambda: connection.links == 2, "there is a new link")
    await barrier(connection.client)
    await bystander.publish("longtake.v1.doorbell.relay", b"other|")

    assert await bell.wait("relay", timeout_seconds=5)
    await bell.stop()
    await connection.stop()


@pytest.mark.parametrize("body", [b"", b"x", b"x|", b"x|never", b"x|99999999999999999999", b"\xff\xfe|1"])
async def test_a_strange_message_is_a_ring_or_nothing_and_no_error(
    houses: tuple[NatsDoorbell, NatsDoorbell], bystander: Client, body: bytes
) -> None:
    here, _ = houses
    await bystander.publish("longtake.v1.doorbell.relay", body)

    assert await here.wait("relay", timeout_seconds=5)


@pytest.mark.parametrize("name", ["", "a b", "a..b", "*", ">", "a.b.c.d.e", "relay\n", "ü"])
async def test_a_name_that_cannot_be_a_subject_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be called"):
        NatsDoorbell().ring(name)


async def test_the_number_of_names_is_bounded() -> None:
    bell = NatsDoorbell()
    for number in range(NAMES_MAX):
        bell.ring(f"n{number}")
    bell.ring("one-more")

    with pytest.raises(ValueError, match="small set"):
        await bell.wait("one-more", timeout_seconds=0)
