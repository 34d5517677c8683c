"""Streams and consumers are what the code says, however often and by whomever it is said."""

import asyncio

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import RetentionPolicy
from nats.js.errors import APIError, NotFoundError

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.transports import POOL, Told, ack_all, pointer, take
from longtake.errors import ConfigurationError
from longtake.jetstream import JetStreamTransport, TopologySettings, ensure_topology
from longtake.jetstream.topology import (
    CALLBACK_PARTS,
    LT_CALLBACK,
    LT_COMMAND,
    LT_EFFECT,
    callback_consumer,
    consumer_config,
    effect_consumer,
    ensure_consumer,
)


async def test_the_streams_are_declared_with_the_limits_of_the_design(bystander: Client) -> None:
    js = bystander.jetstream()
    identities = await ensure_topology(js, [POOL])
    command = (await js.stream_info(LT_COMMAND)).config
    effect = (await js.stream_info(LT_EFFECT)).config

    assert [identity.name for identity in identities] == [LT_COMMAND, LT_EFFECT, LT_CALLBACK]
    assert (command.retention, command.max_age, command.discard) == ("limits", 7 * 24 * 3600, "new")
    assert (effect.retention, effect.deny_purge, effect.duplicate_window) == ("workqueue", True, 120)
    for durable in ("commands", "effects_short", *(f"callback_{part}" for part in range(CALLBACK_PARTS))):
        stream, _ = consumer_config(TopologySettings(), durable)
        consumer = (await js.consumer_info(stream, durable)).config
        assert (consumer.ack_policy, consumer.max_deliver, consumer.backoff) == ("explicit", -1, None)


async def test_declaring_again_changes_nothing(bystander: Client) -> None:
    js = bystander.jetstream()
    first = await ensure_topology(js, [POOL])
    again = await ensure_topology(js, [POOL])

    assert first == again
    assert not await ensure_consumer(js, effect_consumer(POOL), TopologySettings())


async def test_many_processes_may_declare_at_once(server: LoneNats) -> None:
    clients = [await nats.connect(server.url) for _ in range(6)]
    found = await asyncio.gather(*(ensure_topology(client.jetstream(), [POOL]) for client in clients))
    await asyncio.gather(*(client.close() for client in clients))

    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "drift",
    [
        {"ack_wait": 99.0},
        {"max_ack_pending": 1},
        {"max_deliver": 3},
        {"max_deliver": 5, "backoff": [1.0, 2.0]},
        {"max_waiting": 7},
        {"headers_only": True},
    ],
)
async def test_a_consumer_that_was_changed_is_mended(bystander: Client, drift: dict[str, object]) -> None:
    js = bystander.jetstream()
    await ensure_topology(js, [POOL])
    durable = effect_consumer(POOL)
    _, right = consumer_config(TopologySettings(), durable)
    await js.delete_consumer(LT_EFFECT, durable)
    await js.add_consumer(LT_EFFECT, right.evolve(**drift))

    assert await ensure_consumer(js, durable, TopologySettings())
    assert not await ensure_consumer(js, durable, TopologySettings())
    for name in drift:
        found = (await js.consumer_info(LT_EFFECT, durable)).config
        assert (getattr(found, name) or None) == getattr(right, name)


async def test_a_stream_that_was_changed_is_mended_and_keeps_its_identity(bystander: Client) -> None:
    js = bystander.jetstream()
    before = await ensure_topology(js)
    config = (await js.stream_info(LT_EFFECT)).config
    await js.update_stream(config.evolve(max_bytes=1 << 20, max_age=500.0))

    assert before == await ensure_topology(js)
    mended = (await js.stream_info(LT_EFFECT)).config
    assert (mended.max_bytes, mended.max_age) == (TopologySettings().pointer_stream_bytes_max, 0)


async def test_a_stream_that_cannot_become_ours_is_named_with_a_remedy(bystander: Client) -> None:
    js = bystander.jetstream()
    await js.add_stream(name=LT_EFFECT, subjects=["longtake.v1.effect.*"], retention=RetentionPolicy.LIMITS)

    with pytest.raises(ConfigurationError, match="stream LT_EFFECT cannot be declared.*delete it"):
        await ensure_topology(js)


async def test_a_stranger_on_our_subjects_is_named_with_a_remedy(bystander: Client) -> None:
    js = bystander.jetstream()
    await js.add_stream(name="OTHER", subjects=["longtake.v1.effect.>"])

    with pytest.raises(ConfigurationError, match=r"longtake\.v1\.effect\.\*.*delete it"):
        await ensure_topology(js)


async def test_a_stream_that_was_made_anew_is_another_one(bystander: Client) -> None:
    js = bystander.jetstream()
    before = await ensure_topology(js)
    await js.delete_stream(LT_EFFECT)
    after = await ensure_topology(js)

    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]


async def test_nobody_purges_a_stream_by_accident(bystander: Client) -> None:
    js = bystander.jetstream()
    await ensure_topology(js)

    with pytest.raises(APIError, match="purge"):
        await js.purge_stream(LT_COMMAND)


@pytest.mark.parametrize("pool", ["", "a b", "a.*", ">", "x" * 65, "short\n"])
def test_a_pool_that_cannot_be_a_subject_is_refused(pool: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be part of a subject"):
        effect_consumer(pool)


@pytest.mark.parametrize("part", [-1, CALLBACK_PARTS])
def test_a_part_that_does_not_exist_is_refused(part: int) -> None:
    with pytest.raises(ConfigurationError, match="parts are 0 to 3"):
        callback_consumer(part)


def test_a_consumer_that_is_not_in_the_topology_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="no consumer is called"):
        consumer_config(TopologySettings(), "mine")


async def test_the_store_is_told_who_the_streams_are_and_told_again_when_they_are_new(
    transport: JetStreamTransport, told: Told, bystander: Client
) -> None:
    """F10: without this nobody would publish again what a deleted stream has lost."""
    (first,) = told.identities
    await bystander.jetstream().delete_stream(LT_CALLBACK)
    await eventually(lambda: len(told.identities) == 2, "the store is told of the new stream")
    second = told.identities[1]

    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False]


async def test_a_deleted_stream_is_refused_to_publishers_and_comes_back_by_itself(
    transport: JetStreamTransport, told: Told, bystander: Client
) -> None:
    js = bystander.jetstream()
    await js.delete_stream(LT_EFFECT)
    # Somebody else's stream takes our subjects meanwhile: the expected-stream header keeps our pointers out of it.
    await js.add_stream(name="OTHER", subjects=["longtake.v1.effect.*"])
    (refused,) = await transport.publisher.publish([pointer()])
    await js.delete_stream("OTHER")
    await eventually(lambda: len(told.identities) == 2, "the stream is declared again")
    subscription = await transport.effects(POOL)
    (stored,) = await transport.publisher.publish([pointer(b"after")])

    assert (refused.state, stored.state) == ("refused", "stored")
    assert "expected stream" in refused.detail
    assert await ack_all(await take(subscription, 1)) == [b"after"]


async def test_a_consumer_that_was_paused_goes_on(transport: JetStreamTransport, bystander: Client) -> None:
    js = bystander.jetstream()
    subscription = await transport.effects(POOL)
    assert await subscription.fetch(limit=1, wait_seconds=0.05) == []
    paused = await js.pause_consumer(LT_EFFECT, effect_consumer(POOL), "2099-01-01T00:00:00Z")
    await transport.publisher.publish([pointer()])

    assert paused.paused
    assert await ack_all(await take(subscription, 1)) == [b"pointer"]
    assert not await ensure_consumer(js, effect_consumer(POOL), TopologySettings())


async def test_a_declaration_does_not_resume_a_paused_consumer(bystander: Client) -> None:
    """Why `ensure_consumer` has a request for it."""
    js = bystander.jetstream()
    await ensure_topology(js, [POOL])
    await js.pause_consumer(LT_EFFECT, effect_consumer(POOL), "2099-01-01T00:00:00Z")
    _, right = consumer_config(TopologySettings(), effect_consumer(POOL))
    await js.add_consumer(LT_EFFECT, right)

    assert (await js.consumer_info(LT_EFFECT, effect_consumer(POOL))).paused


async def test_without_any_topology_the_consumer_is_not_found(bystander: Client) -> None:
    """The error on which a missing stream is told apart from a missing consumer."""
    with pytest.raises(NotFoundError):
        await ensure_consumer(bystander.jetstream(), "commands", TopologySettings())
