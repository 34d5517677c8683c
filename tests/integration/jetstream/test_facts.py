"""What nats-server and nats-py really do: the facts that our design rests on.

Each of these is an unpleasant habit. When one of these tests fails, a habit has changed, and the defence beside it can be looked at
again; nothing is broken by that alone.
"""

import asyncio

import nats
import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout
from nats.js import JetStreamContext
from nats.js.errors import ServiceUnavailableError

from kit.lone_nats import LoneNats
from kit.transports import POOL
from longtake.jetstream import TopologySettings, ensure_topology
from longtake.jetstream.topology import LT_EFFECT, consumer_config, effect_consumer, effect_subject

SUBJECT = effect_subject(POOL)
DURABLE = effect_consumer(POOL)
HOLD = TopologySettings(effect_ack_wait_seconds=60.0)


async def declared(client: Client) -> JetStreamContext:
    js = client.jetstream()
    await ensure_topology(js, [POOL], HOLD)
    return js


async def pulled(js: JetStreamContext) -> JetStreamContext.PullSubscription:
    return await js.pull_subscribe_bind(DURABLE, LT_EFFECT)


async def test_an_ack_is_not_fenced_a_zombie_settles_the_copy_of_the_living(bystander: Client) -> None:
    """Finding 2. The defence: nothing depends on the message once the effect is claimed; the fence is in Postgres."""
    js = bystander.jetstream()
    await ensure_topology(js, [POOL], TopologySettings(effect_ack_wait_seconds=0.5))
    consumer = await pulled(js)
    await js.publish(SUBJECT, b"work")
    (zombie,) = await consumer.fetch(1, timeout=5)
    (living,) = await consumer.fetch(1, timeout=5)
    await zombie.ack_sync()
    info = await js.consumer_info(LT_EFFECT, DURABLE)

    assert living.metadata.num_delivered == 2
    assert (info.num_ack_pending, (await js.stream_info(LT_EFFECT)).state.messages) == (0, 0)


async def test_a_nak_is_not_fenced_a_zombie_causes_a_third_delivery(bystander: Client) -> None:
    """Finding 2. The defence is the same."""
    js = bystander.jetstream()
    await ensure_topology(js, [POOL], TopologySettings(effect_ack_wait_seconds=0.5))
    consumer = await pulled(js)
    await js.publish(SUBJECT, b"work")
    (zombie,) = await consumer.fetch(1, timeout=5)
    await consumer.fetch(1, timeout=5)
    await zombie.nak()
    (third,) = await consumer.fetch(1, timeout=0.4)

    assert third.metadata.num_delivered == 3


async def test_a_work_queue_forgets_acknowledged_ids_at_a_restart(server: LoneNats) -> None:
    """Finding 3a. The defence: claims compare and set, so a second delivery of done work does nothing."""
    client = await nats.connect(server.url)
    js = await declared(client)
    consumer = await pulled(js)
    await js.publish(SUBJECT, b"work", headers={"Nats-Msg-Id": "same"})
    (message,) = await consumer.fetch(1, timeout=5)
    await message.ack_sync()
    before = await js.publish(SUBJECT, b"work", headers={"Nats-Msg-Id": "same"})
    await client.close()
    await server.stop()
    await server.start()
    client = await nats.connect(server.url)
    after = await client.jetstream().publish(SUBJECT, b"work", headers={"Nats-Msg-Id": "same"})
    await client.close()

    assert (before.duplicate, after.duplicate) == (True, None)


async def test_a_repetition_with_the_same_id_is_swallowed_although_the_first_is_gone(
    bystander: Client,
) -> None:
    """Finding 3b. The defence: the message id carries the publish generation (test_publisher.py shows the cure)."""
    js = await declared(bystander)
    consumer = await pulled(js)
    await js.publish(SUBJECT, b"work", headers={"Nats-Msg-Id": "e1:1"})
    (message,) = await consumer.fetch(1, timeout=5)
    await message.ack_sync()
    again = await js.publish(SUBJECT, b"work", headers={"Nats-Msg-Id": "e1:1"})

    assert again.duplicate
    with pytest.raises(NatsTimeout):
        await consumer.fetch(1, timeout=0.3)


async def test_at_max_deliver_a_message_is_orphaned_in_the_stream(bystander: Client) -> None:
    """Finding 4. The defence: max_deliver is -1 and the decision about poison is ours."""
    js = await declared(bystander)
    _, config = consumer_config(HOLD, DURABLE)
    await js.delete_consumer(LT_EFFECT, DURABLE)
    await js.add_consumer(LT_EFFECT, config.evolve(max_deliver=1))
    consumer = await pulled(js)
    await js.publish(SUBJECT, b"work")
    (message,) = await consumer.fetch(1, timeout=5)
    await message.nak()

    with pytest.raises(NatsTimeout):
        await consumer.fetch(1, timeout=0.3)
    assert (await js.stream_info(LT_EFFECT)).state.messages == 1


async def test_backoff_adds_itself_to_a_delayed_nak(bystander: Client) -> None:
    """Finding 5. The defence: no backoff on any of our consumers."""
    js = await declared(bystander)
    _, config = consumer_config(HOLD, DURABLE)
    await js.delete_consumer(LT_EFFECT, DURABLE)
    await js.add_consumer(LT_EFFECT, config.evolve(backoff=[0.2, 1.2], ack_wait=None, max_deliver=9))
    consumer = await pulled(js)
    await js.publish(SUBJECT, b"work")
    await consumer.fetch(1, timeout=5)
    (second,) = await consumer.fetch(1, timeout=5)
    await second.nak(delay=0.2)

    with pytest.raises(NatsTimeout):
        await consumer.fetch(1, timeout=0.7)
    assert await consumer.fetch(1, timeout=5)


async def test_fetch_of_nats_py_takes_a_deleted_consumer_for_idleness_once(bystander: Client) -> None:
    """Finding 7. The defence: our own pull, which hears the 409 and looks at the consumer."""
    js = await declared(bystander)
    consumer = await pulled(js)
    other = await nats.connect(bystander.connected_url.geturl() if bystander.connected_url else "")

    async def first() -> None:
        with pytest.raises(NatsTimeout):
            await consumer.fetch(1, timeout=2)

    waiting = asyncio.create_task(first())
    await asyncio.wait((waiting,), timeout=0.1)
    await other.jetstream().delete_consumer(LT_EFFECT, DURABLE)
    await waiting
    with pytest.raises(ServiceUnavailableError):
        await consumer.fetch(1, timeout=1)
    await other.close()
