"""The broker's faults of the bench count themselves when they have really hit, and not otherwise."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from nats.aio.client import Client

from kit.bench import faults_broker
from kit.bench.faults_broker import HalfOpen, MadPublisher, RuinTopology
from kit.broker_ruin import (
    delete_consumers,
    delete_streams,
    pause_consumers,
    purge_streams,
    recreate_streams,
    reset_consumers,
)
from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import POOL, pointers
from longtake.jetstream import JetStreamTransport, ensure_topology


def bench_over(server: LoneNats, proxy: TcpProxy | None = None) -> Any:
    """As much of a bench as these faults touch."""
    servers = SimpleNamespace(nats_connect_kwargs=lambda: {"servers": [server.url]})
    return SimpleNamespace(servers=servers, nats_proxy=proxy, chance=random.Random(1))


@pytest.mark.parametrize(
    "way", [delete_streams, recreate_streams, delete_consumers, pause_consumers, reset_consumers]
)
async def test_a_ruin_counts_when_there_was_something_to_ruin(
    server: LoneNats, bystander: Client, way: Any
) -> None:
    fault = RuinTopology("N", "ruin", (way,))
    await fault.strike(bench_over(server))
    before = fault.struck
    await ensure_topology(bystander.jetstream(), [POOL])
    await fault.strike(bench_over(server))

    assert (before, fault.struck) == (0, 1)


async def test_a_purge_counts_when_messages_were_taken(
    server: LoneNats, transport: JetStreamTransport
) -> None:
    fault = RuinTopology("N", "purge", (purge_streams,))
    await fault.strike(bench_over(server))
    before = fault.struck
    await transport.publisher.publish(pointers(3))
    await fault.strike(bench_over(server))

    assert (before, fault.struck) == (0, 1)


async def test_a_half_open_link_counts_when_somebody_gave_it_up(
    server: LoneNats, proxy: TcpProxy, frail: JetStreamTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport of this test has a quick watchdog, and so a short fault is long enough."""
    fault, bench = HalfOpen(), bench_over(server, proxy)
    monkeypatch.setattr(faults_broker, "HALF_OPEN_SECONDS", 0.0)
    await fault.strike(bench)
    await fault.heal(bench)
    before = fault.struck
    monkeypatch.setattr(faults_broker, "HALF_OPEN_SECONDS", 3.0)
    await fault.strike(bench)
    await fault.heal(bench)
    assert await frail.connection.wait_linked(10)

    assert (before, fault.struck) == (0, 1)


async def test_a_mad_publisher_counts_what_it_published_again(
    server: LoneNats, transport: JetStreamTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, bench = MadPublisher(), bench_over(server)
    monkeypatch.setattr(faults_broker, "ECHOES_MIN", 0)
    await fault.strike(bench)
    before = fault.struck
    echo = fault._echo
    assert echo is not None
    await transport.publisher.publish(pointers(20))
    await eventually(lambda: echo.copies >= 60, "everything came again three times")
    await fault.heal(bench)

    assert before == 0
    assert echo.copies == 60
