"""What makes a client of NATS stop for good, and does not make ours: raising hooks, leaked messages, large batches (F15, F23, F24)."""

import asyncio
from pathlib import Path

from nats.aio.client import Client

from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import POOL, ack_all, pointer, pointers, take, transport_to
from longtake.jetstream import JetStreamTransport, TopologySettings
from longtake.jetstream.topology import LT_COMMAND, LT_EFFECT, command_subject, effect_consumer
from longtake.ports import OutgoingMessage

SERVICE = Path(__file__).parents[3] / "service" / "longtake"
LARGE_BYTES = 250_000


async def test_hooks_that_raise_end_neither_reconnection_nor_reading(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """F23, #204: a callback of nats-py that raised would end reconnection for ever. Ours are called behind a wall."""
    raised: list[str] = []

    async def link_hook(_client: Client) -> None:
        raised.append("link")
        raise RuntimeError("a bug in somebody's hook")

    def loss_hook() -> None:
        raised.append("loss")
        raise RuntimeError("a bug in somebody's hook")

    await frail.connection.on_link(link_hook)
    frail.connection.on_loss(loss_hook)
    subscription = await frail.effects(POOL)
    for turn in range(2):
        links = frail.connection.links
        proxy.cut()
        await eventually(lambda before=links: frail.connection.links > before, "there is a new link")
        await frail.publisher.publish([pointer(str(turn).encode())])
        assert await ack_all(await take(subscription, 1)) == [str(turn).encode()]

    assert set(raised) == {"link", "loss"}


async def test_messages_that_somebody_leaked_stall_a_consumer_no_longer_than_their_wait(
    server, bystander: Client
) -> None:
    """F15: with every place of the consumer taken by somebody who forgot them, they come again and the rest follows."""
    settings = TopologySettings(ack_pending_max=4, effect_ack_wait_seconds=0.5)
    transport = transport_to(server.url, settings=settings)
    await transport.start()
    assert await transport.wait_ready(10)
    subscription = await transport.effects(POOL)
    await subscription.fetch(limit=1, wait_seconds=0)
    await subscription.close()
    await transport.publisher.publish(pointers(20))
    leaking = await bystander.jetstream().pull_subscribe_bind(effect_consumer(POOL), LT_EFFECT)
    leaked = await leaking.fetch(4, timeout=5)
    stalled = await bystander.jetstream().consumer_info(LT_EFFECT, effect_consumer(POOL))
    mine = await transport.effects(POOL)
    bodies: set[bytes] = set()

    async def all_taken() -> bool:
        bodies.update(await ack_all(await mine.fetch(limit=16, wait_seconds=0.5)))
        return len(bodies) == 20

    await eventually(all_taken, "everything is taken")
    await transport.stop()

    assert (len(leaked), stalled.num_ack_pending) == (4, 4), "the consumer was full"


async def test_a_batch_of_the_largest_messages_is_not_dropped_by_the_client(
    transport: JetStreamTransport,
) -> None:
    """F24: nats-py drops what its queue cannot hold, in silence; ours takes each message out of it at once."""
    subscription = await transport.commands()
    await subscription.fetch(limit=1, wait_seconds=0)
    messages = [
        OutgoingMessage(
            subject=command_subject(tenant="t", kind="k"), body=b"%05d" % number + b"x" * LARGE_BYTES,
            stream=LT_COMMAND, message_id=f"large-{number}",
        )
        for number in range(120)
    ]  # fmt: skip
    results = await transport.publisher.publish(messages)
    taken = await take(subscription, len(messages))
    first = {delivery.body for delivery in taken if delivery.deliveries == 1}
    await ack_all(taken)

    assert {result.state for result in results} == {"stored"}
    assert first == {message.body for message in messages}, "each came at its first delivery"


def test_nothing_of_ours_listens_to_advisories() -> None:
    """F29: an advisory is a core message that may be lost; the look every few seconds is what is relied on."""
    sources = {path: path.read_text() for path in SERVICE.rglob("*.py")}
    assert len(sources) > 100
    assert [str(path) for path, text in sources.items() if "$JS.EVENT" in text] == []


async def test_a_reader_that_ends_by_a_strange_exception_leaves_nothing_behind(
    transport: JetStreamTransport, server
) -> None:
    """F15: whoever closes gives back, also when the reader was torn down by something that is no Exception."""
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(8))

    class Torn(BaseException):
        """Not an Exception."""

    async def reader() -> None:
        try:
            held = await take(subscription, 8)
            raise Torn(len(held))
        finally:
            await subscription.close()

    (error,) = await asyncio.gather(reader(), return_exceptions=True)
    again = await take(await transport.effects(POOL), 8)

    assert isinstance(error, Torn)
    assert len(await ack_all(again)) == 8
