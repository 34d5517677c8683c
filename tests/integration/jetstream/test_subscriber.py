"""Taking messages: everything that was published arrives, whatever happens to the consumer, and nothing stays unsettled."""

import asyncio

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.promises import promise
from kit.transports import POOL, Told, ack_all, begun, pointer, pointers, take, transport_to
from longtake.errors import TransportUnavailable
from longtake.jetstream import JetStreamTransport, TopologySettings, settling
from longtake.jetstream.delivery import JetStreamDelivery, deliveries_of
from longtake.jetstream.subscriber import FETCH_MAX, PullOptions, PullSubscription
from longtake.jetstream.topology import LT_CALLBACK, LT_EFFECT, callback_subject, effect_consumer
from longtake.ports import OutgoingMessage

DURABLE = effect_consumer(POOL)


async def unacked(client: Client) -> int:
    """How many deliveries the server waits for."""
    return int((await client.jetstream().consumer_info(LT_EFFECT, DURABLE)).num_ack_pending or 0)


async def test_what_is_published_is_fetched_once_and_in_order(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(1000))
    bodies: list[bytes] = []
    while len(bodies) < 1000:
        bodies += await ack_all(await take(subscription, min(100, 1000 - len(bodies))))

    assert bodies == [str(number).encode() for number in range(1000)]
    assert await subscription.fetch(limit=10, wait_seconds=0.05) == []


async def test_an_empty_wait_ends_when_it_was_told_to(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    loop = asyncio.get_running_loop()
    await subscription.fetch(limit=1, wait_seconds=0)
    started = loop.time()

    assert await subscription.fetch(limit=256, wait_seconds=0.2) == []
    assert 0.2 <= loop.time() - started < 2.0


async def test_a_message_ends_a_wait_at_once(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    loop = asyncio.get_running_loop()
    waiting = asyncio.create_task(subscription.fetch(limit=256, wait_seconds=30))
    await transport.publisher.publish([pointer()])
    started = loop.time()
    bodies = await ack_all(await waiting)

    assert bodies == [b"pointer"]
    assert loop.time() - started < 2.0


@promise("T18")
async def test_no_more_is_taken_than_was_asked_for(transport: JetStreamTransport, bystander: Client) -> None:
    """A worker's free slots are the limit: what it cannot do stays with the server, for others."""
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(50))
    first = await take(subscription, 3)
    held_after_first = await unacked(bystander)
    await ack_all(first)
    second = await take(subscription, 2)
    await ack_all(second)

    assert (len(first), len(second)) == (3, 2)
    assert held_after_first == 3
    assert await unacked(bystander) <= 3


async def test_two_workers_share_a_pool_and_no_message_goes_to_both(
    transport: JetStreamTransport, server: LoneNats
) -> None:
    other = transport_to(server.url)
    await other.start()
    assert await other.wait_ready(10)
    one, two = await transport.effects(POOL), await other.effects(POOL)
    await transport.publisher.publish(pointers(40))
    bodies: list[bytes] = []
    while len(bodies) < 40:
        for subscription in (one, two):
            bodies += await ack_all(await subscription.fetch(limit=4, wait_seconds=0.2))
    await other.stop()

    assert sorted(bodies, key=int) == [str(number).encode() for number in range(40)]


async def test_what_nobody_acknowledges_comes_again(impatient: JetStreamTransport) -> None:
    subscription = await impatient.effects(POOL)
    await impatient.publisher.publish([pointer()])
    (first,) = await take(subscription, 1)
    (again,) = await take(subscription, 1)
    await again.ack()

    assert (first.body, again.body) == (b"pointer", b"pointer")
    assert (first.deliveries, again.deliveries) == (1, 2)


async def test_a_nak_with_a_delay_comes_back_after_it_and_not_before(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])
    (first,) = await take(subscription, 1)
    loop = asyncio.get_running_loop()
    await first.nak(delay_seconds=0.5)
    started = loop.time()
    (again,) = await take(subscription, 1)
    await again.ack()

    assert 0.4 < loop.time() - started < 5.0


async def test_a_nak_without_a_delay_comes_back_at_once(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])
    (first,) = await take(subscription, 1)
    await first.nak()
    (again,) = await take(subscription, 1)
    await again.ack()

    assert again.deliveries == 2


async def test_a_terminated_message_is_gone_from_the_work_queue(
    transport: JetStreamTransport, bystander: Client
) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])
    (poison,) = await take(subscription, 1)
    await poison.term()

    async def gone() -> bool:
        return (await bystander.jetstream().stream_info(LT_EFFECT)).state.messages == 0

    await eventually(gone, "the stream forgets the message")
    assert await subscription.fetch(limit=1, wait_seconds=0.1) == []


@promise("T17")
async def test_one_message_is_settled_without_the_others(impatient: JetStreamTransport) -> None:
    subscription = await impatient.effects(POOL)
    await impatient.publisher.publish(pointers(3))
    one, two, three = await take(subscription, 3)
    await ack_all([one, three])
    (again,) = await take(subscription, 1)
    await again.ack()

    assert again.body == two.body


async def test_an_ack_that_was_confirmed_is_done_before_it_returns(
    transport: JetStreamTransport, bystander: Client
) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])
    (delivery,) = await take(subscription, 1)
    await delivery.ack(sync=True)

    assert await unacked(bystander) == 0


async def test_an_ack_that_cannot_be_confirmed_says_so(
    transport: JetStreamTransport, bystander: Client
) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])
    (delivery,) = await take(subscription, 1)
    await bystander.jetstream().delete_stream(LT_EFFECT)

    with pytest.raises(TransportUnavailable, match="not confirmed"):
        await delivery.ack(sync=True)


async def test_a_second_settlement_is_a_mistake_that_shows(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])
    (delivery,) = await take(subscription, 1)
    await delivery.ack()

    with pytest.raises(RuntimeError, match="settled twice"):
        await delivery.nak()


class Interrupted(BaseException):
    """As a cancellation is: not an Exception."""


def own(deliveries: list[object]) -> list[JetStreamDelivery]:
    """The adapter's own deliveries, which know whether they are settled."""
    return [delivery for delivery in deliveries if isinstance(delivery, JetStreamDelivery)]


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, Interrupted])
async def test_the_guard_gives_back_what_an_error_left_unsettled(
    transport: JetStreamTransport, error: type[BaseException]
) -> None:
    """F15. Twice ten seconds of ack_wait are not what this test waits for."""
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(2))
    deliveries = own([*await take(subscription, 2)])
    with pytest.raises(error):
        async with settling(deliveries, delay_seconds=0):
            await deliveries[0].ack()
            raise error
    (again,) = await take(subscription, 1, seconds=5)
    await again.ack()

    assert again.body == deliveries[1].body


async def test_without_the_guard_the_message_stays_with_whoever_forgot_it(
    transport: JetStreamTransport, bystander: Client
) -> None:
    """The broken variant beside it."""
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(2))
    deliveries = own([*await take(subscription, 2)])
    with pytest.raises(ValueError, match="forgot"):
        await deliveries[0].ack()
        raise ValueError("forgot the second")

    assert await subscription.fetch(limit=1, wait_seconds=0.2) == []
    assert await unacked(bystander) == 1


async def test_closing_gives_back_at_once_what_was_taken_and_what_was_buffered(
    transport: JetStreamTransport, server: LoneNats
) -> None:
    other = transport_to(server.url)
    await other.start()
    assert await other.wait_ready(10)
    subscription = await other.effects(POOL)
    await transport.publisher.publish(pointers(10))
    held = await take(subscription, 4)
    await other.stop()
    mine = await transport.effects(POOL)
    taken = await take(mine, 10, seconds=5)

    assert len(held) == 4
    assert sorted(await ack_all(taken)) == [str(number).encode() for number in range(10)]


async def test_a_cancelled_fetch_loses_nothing(transport: JetStreamTransport) -> None:
    """F25: what arrives between the cancellation and the next call is kept, a thousand times, and hardly anything comes twice."""
    subscription = await transport.effects(POOL)
    bodies: set[bytes] = set()
    twice = cancelled = 0
    await subscription.fetch(limit=1, wait_seconds=0)
    for turn in range(1_000):
        waiting = asyncio.create_task(subscription.fetch(limit=8, wait_seconds=5))
        await asyncio.sleep(0)
        if turn % 2:
            waiting.cancel()
        await transport.publisher.publish([pointer(str(len(bodies)).encode())])
        waiting.cancel()
        await asyncio.wait((waiting,))
        cancelled += waiting.cancelled()
        found = [] if waiting.cancelled() else waiting.result()
        found = found or await take(subscription, 1, seconds=5)
        twice += sum(delivery.deliveries > 1 for delivery in found)
        bodies |= set(await ack_all(found))

    assert bodies == {str(number).encode() for number in range(1_000)}
    assert cancelled >= 500
    assert twice <= 10


async def test_a_consumer_that_is_deleted_under_load_comes_back_and_everything_arrives(
    transport: JetStreamTransport, bystander: Client
) -> None:
    """F12."""
    subscription = await transport.effects(POOL)
    messages = pointers(600)
    wanted = {message.body for message in messages}
    await transport.publisher.publish(messages[:300])
    bodies = set(await ack_all(await take(subscription, 100)))
    await bystander.jetstream().delete_consumer(LT_EFFECT, DURABLE)
    await transport.publisher.publish(messages[300:])

    async def complete() -> bool:
        for delivery in await subscription.fetch(limit=64, wait_seconds=0.2):
            bodies.add(delivery.body)
            await delivery.ack()
        return bodies == wanted

    await eventually(complete, "every message arrives", 15)


async def test_a_consumer_that_is_deleted_while_we_wait_comes_back_within_the_wait(
    transport: JetStreamTransport, bystander: Client
) -> None:
    subscription = await transport.effects(POOL)
    await subscription.fetch(limit=4, wait_seconds=0.05)
    waiting = await begun(subscription.fetch(limit=4, wait_seconds=20))
    await bystander.jetstream().delete_consumer(LT_EFFECT, DURABLE)
    await transport.publisher.publish([pointer()])

    assert await ack_all(await waiting) == [b"pointer"]


async def test_a_stream_that_is_deleted_while_we_wait_comes_back(
    transport: JetStreamTransport, told: Told, bystander: Client
) -> None:
    """F10: its messages are gone, which is why the store is told."""
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(5))
    await take(subscription, 1)
    await bystander.jetstream().delete_stream(LT_EFFECT)

    async def again() -> list[bytes]:
        await transport.publisher.publish([pointer(b"published again")])
        found = await subscription.fetch(limit=4, wait_seconds=0.2)
        return [body for body in await ack_all(found) if body == b"published again"]

    assert await eventually(again, "messages flow again", 15)
    assert len(told.identities) == 2


async def test_the_consumer_of_a_pool_is_declared_by_its_first_fetch(
    transport: JetStreamTransport, bystander: Client
) -> None:
    js = bystander.jetstream()
    subscription = await transport.effects("renders.gpu")
    with pytest.raises(NotFoundError):
        await js.consumer_info(LT_EFFECT, "effects_renders_gpu")
    await subscription.fetch(limit=1, wait_seconds=0)

    assert (await js.consumer_info(LT_EFFECT, "effects_renders_gpu")).name == "effects_renders_gpu"


async def test_the_parts_of_callbacks_do_not_mix(transport: JetStreamTransport, bystander: Client) -> None:
    one, two = await transport.callbacks(0), await transport.callbacks(3)
    for part in (0, 3, 3):
        await bystander.jetstream().publish(f"longtake.v1.callback.{part}", str(part).encode())

    assert await ack_all(await take(two, 2)) == [b"3", b"3"]
    assert await ack_all(await take(one, 1)) == [b"0"]


async def test_a_buffered_message_that_grew_old_is_left_to_the_server(server: LoneNats) -> None:
    """It is about to be delivered again, perhaps to somebody else; executing our copy too would be a double."""
    transport = transport_to(
        server.url,
        settings=TopologySettings(effect_ack_wait_seconds=1.0),
        pull=PullOptions(buffer_seconds=0.3, check_pause_seconds=0.05),
    )
    await transport.start()
    assert await transport.wait_ready(10)
    subscription = await transport.effects(POOL)
    await transport.publisher.publish(pointers(2))
    await subscription.fetch(limit=2, wait_seconds=0)
    await eventually(lambda: len(subscription._buffer) == 2, "both messages lie in the buffer")
    old = subscription._buffer[0]
    await eventually(lambda: asyncio.get_running_loop().time() - old.arrived_at > 0.3, "they grow old")
    taken = await take(subscription, 2)
    await transport.stop()

    assert [delivery.deliveries for delivery in taken] == [2, 2]


@pytest.mark.parametrize("limit", [0, -1, FETCH_MAX + 1])
async def test_a_limit_out_of_bounds_is_refused(transport: JetStreamTransport, limit: int) -> None:
    subscription = await transport.effects(POOL)

    with pytest.raises(ValueError, match=f"must be 1 to {FETCH_MAX}"):
        await subscription.fetch(limit=limit, wait_seconds=1)


async def test_two_callers_at_once_are_a_mistake_that_shows(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    waiting = await begun(subscription.fetch(limit=1, wait_seconds=5))
    with pytest.raises(RuntimeError, match="two callers"):
        await subscription.fetch(limit=1, wait_seconds=0)
    await subscription.close()

    with pytest.raises(TransportUnavailable, match="closed"):
        await waiting


async def test_a_role_that_starts_again_gets_a_subscription_of_its_own(transport: JetStreamTransport) -> None:
    """Not the closed one of its former life."""
    first = await transport.effects(POOL)
    await first.close()
    second = await transport.effects(POOL)
    await transport.publisher.publish([pointer()])

    assert await ack_all(await take(second, 1)) == [b"pointer"]


async def test_two_roles_of_one_process_share_a_consumer(transport: JetStreamTransport) -> None:
    one, two = await transport.callbacks(0), await transport.callbacks(0)
    waiting = await begun(one.fetch(limit=1, wait_seconds=10))
    also = await begun(two.fetch(limit=1, wait_seconds=10))
    await transport.publisher.publish(
        [
            OutgoingMessage(
                subject=callback_subject(0), body=body, message_id=body.decode(), stream=LT_CALLBACK
            )
            for body in (b"a", b"b")
        ]
    )
    bodies = await ack_all([*await waiting, *await also])

    assert sorted(bodies) == [b"a", b"b"]


async def test_a_closed_subscription_says_so(transport: JetStreamTransport) -> None:
    subscription: PullSubscription = await transport.effects(POOL)
    await subscription.close()
    await subscription.close()

    with pytest.raises(TransportUnavailable, match="closed"):
        await subscription.fetch(limit=1, wait_seconds=1)


@pytest.mark.parametrize(
    ("reply", "deliveries"),
    [
        ("$JS.ACK.LT_EFFECT.effects_short.3.10.12.1700000000000000000.5", 3),
        ("$JS.ACK._.ACCHASH.LT_EFFECT.effects_short.4.10.12.1700000000000000000.5", 4),
        ("$JS.ACK.hub.ACCHASH.LT_EFFECT.effects_short.5.10.12.1700000000000000000.5.RANDOM", 5),
        ("nonsense", 1),
    ],
)
def test_both_forms_of_the_ack_subject_are_read(reply: str, deliveries: int) -> None:
    """F30: the second form may come with a server update."""
    assert deliveries_of(reply) == deliveries
