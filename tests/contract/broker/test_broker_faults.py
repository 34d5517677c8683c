"""The faults of the broker in memory: each can be drawn, by seed and by rate, and none is drawn when none was asked for."""

import random

import pytest

from contract.broker.ports import MemoryPorts, message, publish
from longtake.memory.broker import MemoryBroker
from longtake.memory.broker_faults import BrokerFaults, FaultRates, PublishFate, RandomFaults
from longtake.memory.broker_pull import Puller
from longtake.memory.broker_rules import ConsumerRules, StreamRules
from longtake.memory.clock import ManualClock

MESSAGES = 400
EVERY_RATE = FaultRates(
    publish_lie=0.1,
    publish_unknown_stored=0.1,
    publish_unknown_lost=0.1,
    publish_late=0.1,
    publish_refused=0.1,
    publish_doubled=0.1,
    deliver_lost=0.1,
    deliver_again=0.1,
    settle_lost=0.1,
    settle_late=0.1,
    ring_lost=0.5,
    reorder_window=5,
)


def broker_with(faults: BrokerFaults | None = None, **rules: int) -> tuple[ManualClock, MemoryBroker, Puller]:
    """A work queue with one consumer."""
    clock = ManualClock()
    broker = MemoryBroker(clock, faults=faults)
    broker.declare_stream(StreamRules(name="S", subject="S.*"))
    broker.declare_consumer(ConsumerRules(stream="S", durable="c", ack_wait_seconds=5, **rules))
    return clock, broker, Puller(broker, "S", "c")


def story(seed: int) -> list[tuple[int, int]]:
    """What is delivered, and how often, under every fault at once."""
    faults = RandomFaults(random.Random(seed), EVERY_RATE)
    clock, broker, puller = broker_with(faults)
    told: list[tuple[int, int]] = []
    for number in range(MESSAGES):
        broker.publish("S.a", b"x", message_id=str(number))
        for copy in puller.pull(3):
            told.append((copy.sequence, copy.count))
            broker.settle(copy, "ack")
        clock.advance(0.5)
    return told


def test_the_same_seed_tells_the_same_story_and_another_seed_another() -> None:
    assert story(1) == story(1) != story(2)


def test_every_fault_is_drawn_and_counted() -> None:
    faults = RandomFaults(random.Random(7), EVERY_RATE)
    _, broker, puller = broker_with(faults)
    for number in range(MESSAGES):
        broker.publish("S.a", b"x", message_id=str(number))
        for copy in puller.pull(1):
            broker.settle(copy, "ack")
    for _ in range(10):
        faults.loses_ring("relay")

    drawn = {f"{name.replace('_', '.', 1)}" for name in FaultRates.__struct_fields__[:-2]}
    assert set(faults.counts) == drawn | {"publish.reordered"}


def test_nothing_goes_wrong_without_faults_or_after_their_end() -> None:
    faults = RandomFaults(random.Random(7), EVERY_RATE)
    faults.stop()
    _, broker, puller = broker_with(faults)
    for number in range(MESSAGES):
        ack = broker.publish("S.a", b"x", message_id=str(number))
        assert ack is not None and (ack.sequence, ack.is_refusal) == (number + 1, False)
        (copy,) = puller.pull(1)
        assert broker.settle(copy, "ack")

    assert (broker.state("S").messages, broker.backlog(), faults.counts) == (0, {}, {})


@pytest.mark.parametrize(
    ("fate", "answered", "stored"),
    [
        (PublishFate("stored"), True, 1),
        (PublishFate("lie"), True, 0),
        (PublishFate("unknown_stored"), False, 1),
        (PublishFate("unknown_lost"), False, 0),
        (PublishFate("late", seconds=3), False, 0),
        (PublishFate("doubled"), True, 2),
    ],
    ids=lambda value: value.kind if isinstance(value, PublishFate) else str(value),
)
def test_each_fate_of_a_publication(fate: PublishFate, answered: bool, stored: int) -> None:
    clock, broker, _ = broker_with()
    broker.script(fate)

    assert (broker.publish("S.a", b"x", message_id="i") is not None) is answered
    assert broker.state("S").messages == stored
    clock.advance(3)
    assert broker.state("S").messages == (1 if fate.kind == "late" else stored)


def test_a_lie_leaves_the_id_free() -> None:
    """The message is published again with the same id, and this time it is there."""
    _, broker, _ = broker_with()
    broker.script(PublishFate("lie"))
    broker.publish("S.a", b"x", message_id="i")
    ack = broker.publish("S.a", b"x", message_id="i")

    assert ack is not None and not ack.duplicate


def test_a_message_overtakes_so_many() -> None:
    _, broker, puller = broker_with()
    for body in (b"a", b"b", b"c"):
        broker.publish("S.a", body)
    broker.script(PublishFate("stored", ahead=2))
    broker.publish("S.a", b"d")

    assert [copy.body for copy in puller.pull(4)] == [b"a", b"d", b"b", b"c"]


def test_a_delivery_to_the_dead_comes_again_and_a_doubled_one_comes_twice() -> None:
    kinds = ["given", "again", "lost"]

    class Deliver(RandomFaults):
        def on_deliver(self, subject: str) -> str:  # type: ignore[override] # one of the three words
            return kinds.pop() if kinds else "given"

    clock, broker, puller = broker_with(Deliver(random.Random(0), FaultRates()))
    broker.publish("S.a", b"dead")
    broker.publish("S.a", b"twice")
    assert [copy.body for copy in puller.pull(2)] == [b"twice"]
    assert [(copy.body, copy.count) for copy in puller.pull(2)] == [(b"twice", 2)]
    clock.advance(5)

    assert [copy.body for copy in puller.pull(1)] == [b"dead"]


def test_verbs_lose_double_delay_shuffle_and_redeliver() -> None:
    clock, broker, puller = broker_with()
    for body in (b"a", b"b", b"c", b"d"):
        broker.publish("S.a", body)
    assert broker.delay("S", 1, 2)
    assert not broker.delay("S", 9, 2)
    held = puller.pull(1)
    assert held[0].body == b"b"
    assert broker.redeliver("S", held[0].sequence)
    assert [copy.count for copy in puller.pull(1)] == [2]
    clock.advance(2)
    assert puller.pull(1)[0].body == b"a"
    assert broker.duplicate("S", 3) == 5
    assert len(broker.lose("S", 2)) == 2
    broker.shuffle("S")

    assert broker.state("S").messages == 3


def test_counts_can_be_forgotten() -> None:
    """Finding 6: what is counted by the broker may begin anew, so nothing is decided by it."""
    clock, broker, puller = broker_with()
    broker.publish("S.a", b"x")
    puller.pull(1)
    clock.advance(5)
    assert puller.pull(1)[0].count == 2
    broker.forget_deliveries("S", "c")
    clock.advance(5)

    assert puller.pull(1)[0].count == 2


def test_a_stopped_broker_answers_nobody_and_comes_back() -> None:
    ports = MemoryPorts()
    ports.broker.stop()
    assert not ports.first.is_linked
    ports.broker.start()

    assert ports.first.is_linked


async def test_a_refusal_makes_the_transport_look_at_its_streams() -> None:
    ports = MemoryPorts()
    await ports.open()
    await ports.delete_stream()
    assert await publish(ports, "a") == ["refused"]
    assert ports.first.must_look
    assert await ports.first.look()

    assert await publish(ports, "b") == ["stored"]
    assert len(ports.told) == 2


def test_ports_can_be_driven_by_hand() -> None:
    """No event loop: a coroutine of the ports ends at its first step when there is something to give."""
    ports = MemoryPorts()

    def by_hand(work: object) -> object:
        try:
            work.send(None)  # type: ignore[attr-defined] # a coroutine
        except StopIteration as end:
            return end.value
        raise AssertionError("it waited")

    by_hand(ports.open())
    by_hand(ports.first.publisher.publish([message(id="i")]))
    subscription = by_hand(ports.first.effects("short"))
    (delivery,) = by_hand(subscription.fetch(limit=1, wait_seconds=1))  # type: ignore[attr-defined, misc] # a subscription
    by_hand(delivery.ack())

    assert ports.broker.backlog() == {}


@pytest.mark.parametrize("rates", [{"publish_lie": 1.1}, {"publish_lie": -0.1}, {"reorder_window": -1}])
def test_impossible_rates_are_refused(rates: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"rates|negative"):
        FaultRates(**rates)  # type: ignore[arg-type] # that is the point
