"""What could not be published for want of a link is published when there is one, in order, once each."""

import asyncio

import pytest

from kit.probe import eventually
from longtake.engine.repeating import UNSAID_MAX, RepeatingPublisher
from longtake.errors import TransportUnavailable
from longtake.lifecycle import running
from longtake.ports import OutgoingMessage, PublishResult

STORED = PublishResult(state="stored")
UNKNOWN = PublishResult(state="unknown", detail="no acknowledgement in time")
REFUSED = PublishResult(state="refused", detail="full")


class Wire:
    """A publisher that may have no link, and answers what it is told to."""

    def __init__(self) -> None:
        self.linked = True
        self.answers: dict[str, PublishResult] = {}
        self.said: list[str] = []
        self.asked = 0

    async def publish(self, messages):
        self.asked += 1
        if not self.linked:
            raise TransportUnavailable("no link")
        self.said += [message.message_id for message in messages]
        return [self.answers.pop(message.message_id, STORED) for message in messages]


def message(id_: str) -> OutgoingMessage:
    return OutgoingMessage(
        subject="longtake.v1.effect.p", body=b"", stream="LT_EFFECT", message_id=id_, headers={}
    )


@pytest.fixture
def wire() -> Wire:
    return Wire()


async def test_what_found_no_link_is_said_when_there_is_one_and_then_no_more(wire):
    publisher = RepeatingPublisher(wire, repeat_seconds=0.001)
    wire.linked = False
    async with running(publisher):
        with pytest.raises(TransportUnavailable):
            await publisher.publish([message("a"), message("b")])
        with pytest.raises(TransportUnavailable):
            await publisher.publish([message("c"), message("a")])
        tried = wire.asked
        await eventually(lambda: wire.asked > tried, "a repetition without a link")
        assert wire.said == []
        wire.linked = True
        await eventually(lambda: wire.said, "a repetition with a link")
        asked = wire.asked
        await publisher.publish([message("d")])
    assert wire.said == ["a", "b", "c", "d"]
    assert wire.asked == asked + 1


async def test_only_what_has_no_answer_is_said_again(wire):
    """A refusal is an answer: the stream is full or not there, and others look after that."""
    wire.answers = {"lost": UNKNOWN, "full": REFUSED}
    publisher = RepeatingPublisher(wire, repeat_seconds=0.001)
    async with running(publisher):
        results = await publisher.publish([message("ok"), message("lost"), message("full")])
        assert [result.state for result in results] == ["stored", "unknown", "refused"]
        await eventually(lambda: len(wire.said) == 4, "the repetition")
        assert publisher.unsaid == 0
    assert wire.said == ["ok", "lost", "full", "lost"]


async def test_memory_is_bounded(wire):
    publisher = RepeatingPublisher(wire)
    wire.linked = False
    with pytest.raises(TransportUnavailable):
        await publisher.publish([message(str(number)) for number in range(UNSAID_MAX + 10)])
    with pytest.raises(TransportUnavailable):
        await publisher.publish([message("more")])
    assert publisher.unsaid == UNSAID_MAX


async def test_an_end_does_not_wait_for_a_link(wire):
    publisher = RepeatingPublisher(wire, repeat_seconds=3600)
    wire.linked = False
    await publisher.start()
    with pytest.raises(TransportUnavailable):
        await publisher.publish([message("a")])
    async with asyncio.timeout(5):
        await publisher.stop()
