"""Clauses about the ports: what they raise, swallow, refuse, heal and leave unsaid. Each names the port that breaks it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from contract.broker.ports import ACK_WAIT, POOL, Ports, message, nothing_comes, publish, take
from longtake.errors import ConfigurationError, TransportUnavailable
from longtake.memory.broker_pull import Puller
from longtake.memory.broker_server import Copy
from longtake.memory.transport import (
    DUPLICATE,
    STORED,
    MemoryDelivery,
    MemoryPublisher,
    MemorySubscription,
    MemoryTransport,
)
from longtake.memory.transport_doorbell import MemoryDoorbell
from longtake.ports import OutgoingMessage, PublishResult

Body = Callable[[Ports], Awaitable[None]]
Wrong = Callable[[], AbstractContextManager[Any]]


class PortClause(msgspec.Struct, frozen=True):
    """One promise of the ports, named by its function, and the way to break it in memory."""

    name: str
    body: Body
    wrong: Wrong


PORT_CLAUSES: list[PortClause] = []


def broken(owner: type, name: str, replacement: Any) -> Wrong:
    """A port whose method does something else."""
    return lambda: patch.object(owner, name, replacement)


def clause(wrong: Wrong) -> Callable[[Body], Body]:
    """Add a clause."""

    def add(body: Body) -> Body:
        PORT_CLAUSES.append(PortClause(getattr(body, "__name__", ""), body, wrong))
        return body

    return add


async def _buffers(_publisher: MemoryPublisher, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
    return [STORED for _ in messages]


async def _says_nothing(_delivery: MemoryDelivery, **_options: Any) -> None:
    """A settlement that nobody hears and nobody misses."""


async def _raises(_delivery: MemoryDelivery, **_options: Any) -> None:
    raise TransportUnavailable("not connected")


async def _finds_nothing(_subscription: MemorySubscription, **_options: Any) -> list[Any]:
    return []


async def _closes_only(subscription: MemorySubscription) -> None:
    subscription._closed = True


async def _never_heals(_transport: MemoryTransport, durable: str) -> None:
    raise TransportUnavailable(f"{durable} is gone")


async def _not_there(*_arguments: Any) -> None:
    return None


async def _not_known(*_arguments: Any) -> bool:
    return False


def _takes_all(publisher: MemoryPublisher, sent: OutgoingMessage) -> PublishResult:
    publisher._transport.broker.publish(sent.subject, sent.body, expected_stream=sent.stream)
    return STORED


def _knows_all(_publisher: MemoryPublisher, _sent: OutgoingMessage) -> PublishResult:
    return DUPLICATE


@clause(broken(MemoryPublisher, "publish", _buffers))
async def publishing_while_cut_off_raises_and_buffers_nothing(ports: Ports) -> None:
    subscription = await ports.second.effects(POOL)
    await ports.cut()
    with pytest.raises(TransportUnavailable):
        await publish(ports, "a")
    await ports.heal()

    assert await nothing_comes(subscription)


@clause(broken(MemorySubscription, "fetch", _finds_nothing))
async def fetching_while_cut_off_raises(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await ports.cut()

    with pytest.raises(TransportUnavailable):
        await subscription.fetch(limit=1, wait_seconds=ACK_WAIT)


@clause(broken(MemoryDelivery, "ack", _says_nothing))
async def an_ack_that_must_be_confirmed_raises_while_cut_off(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    held = await take(subscription, 1)
    await ports.cut()

    with pytest.raises(TransportUnavailable):
        await held[0].ack(sync=True)


@clause(broken(MemoryDelivery, "ack", _raises))
async def a_plain_ack_is_lost_in_silence_and_the_message_comes_again(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    held = await take(subscription, 1)
    await ports.cut()
    await held[0].ack()
    await ports.heal()

    assert [again.body for again in await take(subscription, 1)] == [b"a"]


@clause(broken(MemoryDelivery, "ack", _says_nothing))
async def a_confirmed_ack_ends_it(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    await (await take(subscription, 1))[0].ack(sync=True)

    assert await nothing_comes(subscription, seconds=ACK_WAIT * 1.5)


@clause(broken(MemoryDelivery, "term", _says_nothing))
async def a_term_ends_it(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    await (await take(subscription, 1))[0].term()

    assert await nothing_comes(subscription, seconds=ACK_WAIT * 1.5)


@clause(broken(MemoryDelivery, "nak", _says_nothing))
async def a_nak_brings_it_back_at_once(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    await (await take(subscription, 1))[0].nak()

    assert not await nothing_comes(subscription, seconds=ACK_WAIT / 2)


@clause(broken(MemoryPublisher, "_publish", _takes_all))
async def a_body_that_is_too_large_is_refused_with_its_size(ports: Ports) -> None:
    results = await ports.first.publisher.publish([message(b"y" * 16_385, id="large"), message(id="small")])

    assert [result.state for result in results] == ["refused", "stored"]
    assert "16385 bytes" in results[0].detail


@clause(broken(MemoryPublisher, "_publish", _takes_all))
async def a_message_for_another_stream_is_refused(ports: Ports) -> None:
    results = await ports.first.publisher.publish(
        [
            message(id="wrong", stream="LT_CALLBACK"),
            message(id="nobody", subject="elsewhere"),
            message(id="ok"),
        ]
    )

    assert [result.state for result in results] == ["refused", "refused", "stored"]


@clause(broken(MemoryPublisher, "_publish", _takes_all))
async def a_repetition_is_called_a_duplicate(ports: Ports) -> None:
    assert await publish(ports, "a", "b", "a") == ["stored", "stored", "duplicate"]


@clause(broken(MemoryPublisher, "_publish", _knows_all))
async def what_is_published_arrives_with_its_headers_in_order(ports: Ports) -> None:
    subscription = await ports.second.effects(POOL)
    await publish(ports, "a", "b", "c")
    taken = await take(subscription, 3)

    assert [delivery.body for delivery in taken] == [b"a", b"b", b"c"]
    assert taken[0].headers["Nats-Msg-Id"] == "id-a"
    assert taken[0].headers["Nats-Expected-Stream"] == "LT_EFFECT"
    assert (taken[0].subject, taken[0].deliveries) == ("longtake.v1.effect.short", 1)


@clause(broken(MemoryTransport, "heal", _never_heals))
async def a_deleted_consumer_is_declared_again_and_gives_what_was_unsettled(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    await take(subscription, 1)
    await ports.delete_consumer()

    assert [again.body for again in await take(subscription, 1)] == [b"a"]


@clause(broken(MemoryTransport, "look", _not_known))
async def a_stream_made_anew_is_told_with_its_other_birth(ports: Ports) -> None:
    await ports.delete_stream()
    await ports.look()
    first, last = ({birth.name: birth.created for birth in told} for told in (ports.told[0], ports.told[-1]))

    assert [name for name in first if first[name] != last[name]] == ["LT_EFFECT"]
    assert await publish(ports, "a") == ["stored"]


@clause(broken(MemorySubscription, "close", _closes_only))
async def closing_gives_back_what_was_not_settled(ports: Ports) -> None:
    mine, others = await ports.first.effects(POOL), await ports.second.effects(POOL)
    await publish(ports, "a", "b")
    held = await take(mine, 2)
    await held[0].ack(sync=True)
    await mine.close()

    assert [back.body for back in await others.fetch(limit=2, wait_seconds=ACK_WAIT / 2)] == [b"b"]


@clause(broken(MemorySubscription, "close", _not_there))
async def a_closed_subscription_fetches_no_more(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await subscription.close()
    await subscription.close()

    with pytest.raises(TransportUnavailable):
        await subscription.fetch(limit=1, wait_seconds=1)


@clause(broken(MemoryDelivery, "nak", _says_nothing))
async def settling_twice_is_a_mistake(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    held = await take(subscription, 1)
    await held[0].ack()

    with pytest.raises(RuntimeError, match="twice"):
        await held[0].nak()


@clause(broken(MemorySubscription, "fetch", _finds_nothing))
async def a_limit_out_of_bounds_is_refused(ports: Ports) -> None:
    subscription = await ports.first.effects(POOL)

    for limit in (0, 513):
        with pytest.raises(ValueError, match=str(limit)):
            await subscription.fetch(limit=limit, wait_seconds=1)


@clause(broken(MemoryTransport, "oldest_effect", _not_there))
async def the_oldest_message_is_told_until_it_is_settled(ports: Ports) -> None:
    assert await ports.first.oldest_effect(POOL) is None
    subscription = await ports.first.effects(POOL)
    await publish(ports, "a")
    held = await take(subscription, 1)
    assert await ports.first.oldest_effect(POOL) is not None
    await held[0].ack(sync=True)

    assert await ports.first.oldest_effect(POOL) is None


@clause(broken(MemoryTransport, "oldest_callback", _not_there))
async def nothing_is_told_of_the_oldest_while_cut_off(ports: Ports) -> None:
    await ports.cut()

    with pytest.raises(TransportUnavailable):
        await ports.first.oldest_callback(0)


def _gives_everybody(puller: Puller, limit: int) -> list[Copy]:
    consumer = next(iter(puller._broker.consumers.values()))
    found = list(puller._broker.streams["LT_EFFECT"].messages.values())[:limit]
    return [Copy(consumer, one.sequence, one.subject, one.body, one.headers, one.at, 1) for one in found]


@clause(broken(Puller, "pull", _gives_everybody))
async def two_processes_share_the_work_of_a_pool(ports: Ports) -> None:
    mine, others = await ports.first.effects(POOL), await ports.second.effects(POOL)
    await publish(ports, "a", "b")
    taken = [*await take(mine, 1), *await take(others, 1)]

    assert sorted(delivery.body for delivery in taken) == [b"a", b"b"]


def _any_pool(_pool: str) -> str:
    return "effects_short"


@clause(lambda: patch("longtake.memory.transport.effect_consumer", _any_pool))
async def a_pool_that_cannot_be_a_subject_is_refused(ports: Ports) -> None:
    with pytest.raises(ConfigurationError, match="pool"):
        await ports.first.effects("no pool > at all")


def _deaf(*_arguments: Any, **_options: Any) -> None:
    """Nobody hears."""


@clause(broken(MemoryDoorbell, "_hear", _deaf))
async def a_bell_is_heard_in_its_own_process_and_in_others(ports: Ports) -> None:
    ports.bell.ring("relay")

    assert await ports.bell.wait("relay", timeout_seconds=1)
    assert await ports.other_bell.wait("relay", timeout_seconds=1)


@clause(broken(MemoryDoorbell, "_answer", lambda _bell, _name: True))
async def a_bell_rings_once(ports: Ports) -> None:
    ports.bell.ring("relay")
    assert await ports.bell.wait("relay", timeout_seconds=1)

    assert not await ports.bell.wait("relay", timeout_seconds=0.05)


@clause(broken(MemoryTransport, "is_linked", True))
async def others_do_not_hear_who_is_cut_off(ports: Ports) -> None:
    await ports.cut()
    ports.bell.ring("relay")

    assert await ports.bell.wait("relay", timeout_seconds=1)
    assert not await ports.heard("relay")


def _at_once(bell: MemoryDoorbell, name: str, _due_at: datetime | None) -> None:
    bell._rung_at[name] = datetime(2000, 1, 1, tzinfo=UTC)


@clause(broken(MemoryDoorbell, "_hear", _at_once))
async def a_bell_for_a_far_time_rings_nobody(ports: Ports) -> None:
    ports.bell.ring("relay", due_at=datetime(2999, 1, 1, tzinfo=UTC) + timedelta(seconds=1))

    assert not await ports.bell.wait("relay", timeout_seconds=0.05)


@clause(lambda: patch("longtake.memory.transport_doorbell._NAME", re.compile(".*")))
async def a_bell_without_a_proper_name_is_refused(ports: Ports) -> None:
    with pytest.raises(ValueError, match="doorbell"):
        ports.bell.ring("no name > at all")
