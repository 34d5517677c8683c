"""Servers and connections die, loudly and silently, and work goes on."""

import asyncio

import nats
import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import POOL, QUICK_PULL, Told, ack_all, begun, pointer, pointers, take
from longtake.errors import TransportUnavailable
from longtake.jetstream import Connection, ConnectionOptions, JetStreamTransport
from longtake.jetstream.topology import LT_EFFECT, effect_consumer
from longtake.jetstream.watchdog import WatchdogOptions, watch
from longtake.telemetry.logs import LogSettings, configure_logging

# An INFO line that is no JSON: the parser raises something that nats-py's read loop does not expect.
KILLS_THE_READ_LOOP = b"INFO {\r\n"


async def test_a_server_that_was_killed_and_came_back_is_used_again(
    transport: JetStreamTransport, told: Told, server: LoneNats
) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(20))
    await take(subscription, 5)
    await server.kill()
    assert await transport.connection.wait_lost(5)
    with pytest.raises(TransportUnavailable):
        await transport.publisher.publish([pointer()])
    with pytest.raises(TransportUnavailable):
        await subscription.fetch(limit=1, wait_seconds=1)
    await server.start()
    assert await transport.connection.wait_linked(10)
    bodies: set[bytes] = set()

    async def all_back() -> bool:
        for delivery in await subscription.fetch(limit=32, wait_seconds=0.2):
            bodies.add(delivery.body)
            await delivery.ack()
        return len(bodies) >= 15

    await eventually(all_back, "what was not taken before the kill arrives after it")
    (stored,) = await transport.publisher.publish([pointer(b"new")])
    assert stored.state == "stored"
    assert len(told.identities) == 1


async def test_a_server_that_came_back_without_its_memory_is_noticed(
    transport: JetStreamTransport, told: Told, server: LoneNats
) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(3))
    await server.kill()
    server.forget()
    await server.start()
    await eventually(lambda: len(told.identities) == 2, "the store is told that the streams are new")
    await transport.publisher.publish([pointer(b"published again")])

    assert await ack_all(await take(subscription, 1)) == [b"published again"]


async def test_a_wait_is_ended_by_the_death_of_the_link_not_by_its_timeout(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    subscription = await frail.effects(POOL)
    await subscription.fetch(limit=1, wait_seconds=0)
    waiting = await begun(subscription.fetch(limit=1, wait_seconds=60))
    proxy.refuse()
    async with asyncio.timeout(5):
        with pytest.raises(TransportUnavailable):
            await waiting


async def test_after_every_cut_the_same_subscription_goes_on(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    subscription = await frail.effects(POOL)
    for turn in range(5):
        await frail.connection.wait_linked(5)
        await frail.publisher.publish([pointer(str(turn).encode())])
        assert await ack_all(await take(subscription, 1)) == [str(turn).encode()]
        links = frail.connection.links
        proxy.cut()
        await eventually(lambda before=links: frail.connection.links > before, "there is a new link")


async def test_a_half_open_connection_is_given_up_and_built_anew(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """F22. nats-py by itself would need two of its own pings, five seconds apart, and then might hang while it closes."""
    subscription = await frail.effects(POOL)
    await subscription.fetch(limit=1, wait_seconds=0)
    dead = frail.connection.client
    proxy.blackhole()
    assert await frail.connection.wait_lost(5)
    assert not await frail.connection.wait_linked(0.1)
    proxy.heal()
    assert await frail.connection.wait_linked(10)
    await frail.publisher.publish([pointer()])

    assert frail.connection.client is not dead
    assert await ack_all(await take(subscription, 1)) == [b"pointer"]


async def test_a_frozen_server_is_given_up_too(transport: JetStreamTransport, server: LoneNats) -> None:
    server.freeze()
    assert await transport.connection.wait_lost(5)
    server.thaw()
    assert await transport.connection.wait_linked(10)
    (result,) = await transport.publisher.publish([pointer()])

    assert result.state == "stored"


async def test_a_slow_wire_is_not_a_dead_one(frail: JetStreamTransport, proxy: TcpProxy) -> None:
    """The broken variant would be a watchdog that bites at the first delay."""
    subscription = await frail.effects(POOL)
    await subscription.fetch(limit=1, wait_seconds=0)
    client = frail.connection.client
    proxy.delay(0.05)
    for _ in range(5):
        await frail.publisher.publish([pointer()])
        await ack_all(await take(subscription, 1))

    assert frail.connection.client is client


async def test_a_pong_that_comes_too_late_does_not_kill_the_client(proxy: TcpProxy) -> None:
    """A slow answer is forgiven once; a cancelled ping would have made it deadly."""
    connection = Connection(
        ConnectionOptions(
            servers=(f"nats://127.0.0.1:{proxy.port}",),
            role="test",
            watchdog=WatchdogOptions(interval_seconds=0.2, answer_seconds=0.2),
        )
    )
    await connection.start()
    assert await connection.wait_linked(5)
    client = connection.client
    proxy.blackhole()
    await eventually(lambda: len(connection._pings) == 1, "a ping is under way")
    (ping,) = connection._pings
    await asyncio.wait((ping,), timeout=0.25)
    late = not ping.done()
    proxy.heal()
    await asyncio.wait((ping,), timeout=5)
    alive = await client.rtt(5)
    await connection.stop()

    assert late
    assert ping.done()
    assert alive > 0


async def test_a_cancelled_ping_makes_its_pong_deadly(proxy: TcpProxy) -> None:
    """The broken variant, and the habit of nats-py behind it."""
    client = await nats.connect(f"nats://127.0.0.1:{proxy.port}", allow_reconnect=False)
    proxy.blackhole()
    with pytest.raises(NatsTimeout):
        await client.rtt(0.05)  # type: ignore[arg-type] # annotated int, waited as a float
    proxy.heal()
    await eventually(
        lambda: client._reading_task is not None and client._reading_task.done(), "the read loop is dead"
    )

    assert client.is_connected
    await client.close()


async def test_a_dead_read_loop_is_noticed_and_the_connection_built_anew(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """F23, finding 8: the loop is dead and the client says that it is connected."""
    subscription = await frail.effects(POOL)
    await subscription.fetch(limit=1, wait_seconds=0)
    dead = frail.connection.client
    proxy.say_to_clients(KILLS_THE_READ_LOOP)
    assert await frail.connection.wait_lost(5)
    assert await frail.connection.wait_linked(10)
    await frail.publisher.publish([pointer()])

    assert frail.connection.client is not dead
    assert await ack_all(await take(subscription, 1)) == [b"pointer"]


async def test_without_a_watchdog_a_dead_read_loop_looks_connected_and_even_flushes(proxy: TcpProxy) -> None:
    """The broken variant: why the watchdog asks for a round trip and does not trust `flush`."""
    sleeping = WatchdogOptions(interval_seconds=3600)
    connection = Connection(
        ConnectionOptions(servers=(f"nats://127.0.0.1:{proxy.port}",), role="test", watchdog=sleeping)
    )
    await connection.start()
    assert await connection.wait_linked(5)
    client = connection.client
    proxy.say_to_clients(KILLS_THE_READ_LOOP)
    await eventually(
        lambda: client._reading_task is not None and client._reading_task.done(), "the loop is dead"
    )

    assert connection.is_linked
    await client.flush(1)
    with pytest.raises(Exception, match="timeout"):
        await client.rtt(1)
    await connection.stop()


async def test_the_watchdog_forgives_one_failure() -> None:
    answers = iter([False, True, False, False])
    asked: list[float] = []

    async def probe(seconds: float) -> None:
        asked.append(seconds)
        if not next(answers):
            raise TimeoutError("no answer")

    reason = await watch(probe, WatchdogOptions(interval_seconds=0, answer_seconds=0.5))

    assert (len(asked), reason) == (4, "TimeoutError: no answer")


async def test_stopping_is_quick_while_there_is_no_server(
    server: LoneNats, transport: JetStreamTransport
) -> None:
    await server.kill()
    await transport.connection.wait_lost(5)
    async with asyncio.timeout(5):
        await transport.stop()
        await transport.stop()


async def test_stopping_is_bounded_on_a_half_open_connection(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """Finding 9: `drain` would wait for thirty seconds."""
    subscription = await frail.effects(POOL)
    await frail.publisher.publish(pointers(10))
    await take(subscription, 3)
    proxy.blackhole()
    async with asyncio.timeout(8):
        await frail.stop()


async def test_a_server_that_is_away_is_said_once_and_without_a_traceback(
    server: LoneNats, tmp_path: object
) -> None:
    await server.kill()
    console = _Console()
    undo = configure_logging(LogSettings(), console=console)
    connection = Connection(
        ConnectionOptions(servers=(server.url,), role="test", connect_seconds=0.1, reconnect_seconds=0.02)
    )
    await connection.start()
    await eventually(lambda: "nats.connect_failed" in console.text, "the failure is told")
    assert not await connection.wait_linked(1.0)
    await connection.stop()
    undo()

    assert console.text.count("nats.connect_failed") == 1
    assert "Traceback" not in console.text


async def test_a_wrong_token_is_told_by_its_reason(tmp_path_factory: pytest.TempPathFactory) -> None:
    server = LoneNats(tmp_path_factory.mktemp("nats"), settings="authorization { token: right }")
    await server.start()
    console = _Console()
    undo = configure_logging(LogSettings(), console=console)
    wrong = Connection(
        ConnectionOptions(
            servers=(server.url,), role="test", token="wrong", connect_seconds=0.2, reconnect_seconds=0.05
        )
    )
    right = Connection(ConnectionOptions(servers=(server.url,), role="test", token="right"))
    await wrong.start()
    await right.start()
    linked = await right.wait_linked(5)
    await eventually(lambda: "Authorization Violation" in console.text, "the reason is told")
    await wrong.stop()
    await right.stop()
    undo()
    await server.kill()

    assert linked
    assert not wrong.is_linked


async def test_who_waits_for_a_link_never_finds_the_one_that_just_broke(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """A loop of "try, else wait for a link" must let the reconnection run; it was seen to spin for ever."""
    proxy.refuse()
    await eventually(lambda: not frail.connection.is_linked, "the client knows")
    with pytest.raises(TransportUnavailable):
        await frail.publisher.publish([pointer()])
    announced = await frail.connection.wait_linked(0)
    proxy.heal()

    assert not announced
    assert await frail.connection.wait_linked(5)


async def test_what_waits_for_an_answer_is_told_when_the_link_is_lost(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """Not five seconds later, when the request would time out."""
    proxy.blackhole()
    declaring = await begun(frail.declare())
    proxy.cut()
    async with asyncio.timeout(2):
        with pytest.raises(TransportUnavailable, match="lost"):
            await declaring


async def test_a_transport_rides_through_ten_cuts_under_load_and_loses_nothing(
    frail: JetStreamTransport, proxy: TcpProxy, bystander: Client
) -> None:
    """Every pointer is published until it is known to be stored, as the relay does, and taken at least once."""
    subscription = await frail.effects(POOL)
    stored: set[bytes] = set()
    seen: set[bytes] = set()
    wanted = {str(number).encode() for number in range(300)}

    async def publish() -> None:
        while missing := sorted(wanted - stored):
            batch = [pointer(body, message_id=f"p{body.decode()}") for body in missing[:20]]
            try:
                results = await frail.publisher.publish(batch)
            except TransportUnavailable:
                await frail.connection.wait_linked(1)
                continue
            stored.update(
                message.body
                for message, result in zip(batch, results, strict=True)
                if result.state in ("stored", "duplicate")
            )

    async def consume() -> None:
        while seen != wanted:
            try:
                found = await subscription.fetch(limit=16, wait_seconds=0.2)
            except TransportUnavailable:
                await frail.connection.wait_linked(1)
                continue
            for delivery in found:
                seen.add(delivery.body)
                await delivery.ack()

    async def disturb() -> None:
        for _ in range(10):
            reached = len(seen)
            links = frail.connection.links
            proxy.cut()
            await eventually(lambda before=links: frail.connection.links > before, "there is a new link")
            await eventually(
                lambda before=reached: len(seen) >= min(before + 5, len(wanted)),
                "messages flow between two cuts",
                30,
            )

    async with asyncio.timeout(60):
        await asyncio.gather(publish(), consume(), disturb())
    pending = await bystander.jetstream().consumer_info(LT_EFFECT, effect_consumer(POOL))

    assert seen == stored == wanted
    assert pending.num_pending == 0


def test_the_quick_settings_of_these_tests_keep_the_order_of_the_real_ones() -> None:
    """A heartbeat must fit twice into a request, or the server refuses it; ours in tests too."""
    assert QUICK_PULL.heartbeat_seconds * 2 <= QUICK_PULL.expires_seconds


class _Console:
    """A stream that is read while it is written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False
