"""One bench, two brokers: what a clause says to a broker, said to nats-server through plain nats-py and to the one in memory.

Everything a clause does is confirmed before the next thing is done, and a pull ends as soon as something came. In memory time passes
only where the real bench would wait.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

import msgspec

from longtake.errors import ConfigurationError
from longtake.memory.broker import MemoryBroker
from longtake.memory.broker_consumer import ConsumerGone
from longtake.memory.broker_faults import PublishFate
from longtake.memory.broker_habits import Habits
from longtake.memory.broker_pull import Puller
from longtake.memory.broker_rules import ConsumerRules, StreamRules
from longtake.memory.broker_server import Copy
from longtake.memory.broker_stream import StreamState
from longtake.memory.clock import ManualClock

STREAM = "S"
DURABLE = "c"
ACK_WAIT = 0.4
"""Seconds; what the clauses about the end of an ack wait declare."""
SOON = 0.15
"""Seconds within which a thing that is to come at once has come, and one that is not has not."""
LONG = 5.0
"""Seconds to wait for a thing that must come."""

Settlement = Literal["ack", "nak", "term", "progress"]
Work = Callable[[], Awaitable[Any]]


class Answer(msgspec.Struct, frozen=True):
    """What a publication was told; a code other than 0 is a refusal."""

    sequence: int = 0
    duplicate: bool = False
    code: int = 0


class Gone(Exception):
    """A pull was answered with an error: the consumer is not there."""


class Denied(Exception):
    """The broker does not do that."""


class Held(msgspec.Struct, frozen=True):
    """A delivered message in somebody's hands."""

    body: str
    sequence: int
    count: int
    settle: Callable[[Settlement, float], Awaitable[None]]

    async def ack(self) -> None:
        await self.settle("ack", 0)

    async def nak(self, seconds: float = 0) -> None:
        await self.settle("nak", seconds)

    async def term(self) -> None:
        await self.settle("term", 0)

    async def progress(self) -> None:
        await self.settle("progress", 0)


class Bench(Protocol):
    """What a clause may do."""

    async def stream(self, name: str = STREAM, **rules: Any) -> datetime: ...
    async def consumer(self, durable: str = DURABLE, *, stream: str = STREAM, **rules: Any) -> None: ...
    async def publish(
        self, body: str = "x", *, subject: str = "S.a", id: str = "", expected: str = ""
    ) -> Answer: ...
    async def publish_unheard(self, body: str) -> None:
        """Publish, and lose the answer."""
        ...

    async def publish_buffered(self, body: str, between: Work) -> None:
        """Publish while the server is away into the buffer of a careless client; `between` runs before the buffer is sent."""
        ...

    async def pull(self, number: int = 1, *, seconds: float = LONG, durable: str = DURABLE) -> list[Held]: ...
    async def standing(self, work: Work) -> list[Held]:
        """Do something while a pull stands; what the pull brought."""
        ...

    async def state(self) -> StreamState: ...
    async def oldest(self, subject: str) -> str | None:
        """The body of the oldest message of a subject that is still stored."""
        ...

    async def purge(self, *, by_force: bool = True) -> None: ...
    async def delete_message(self, sequence: int) -> None: ...
    async def delete_stream(self) -> None: ...
    async def delete_consumer(self, durable: str = DURABLE) -> None: ...
    async def restart(self) -> None: ...
    async def kill(self) -> None:
        """End the server as a crash of its process would, and start it again."""
        ...

    async def power_loss_after(self, work: Work) -> None:
        """Do something, and lose power before any of it was synced."""
        ...

    async def pass_seconds(self, seconds: float) -> None: ...
    def elapsed(self) -> float: ...
    async def advisories(self) -> list[tuple[int, int]]:
        """Sequence and deliveries of every message that was told to be given no more."""
        ...


class MemoryBench:
    """The bench over the broker in memory."""

    def __init__(self, habits: Habits | None = None) -> None:
        self._clock = ManualClock()
        self._began = self._clock.now()
        self.broker = MemoryBroker(self._clock, habits=habits)
        self._pullers: dict[str, Puller] = {}

    async def stream(self, name: str = STREAM, **rules: Any) -> datetime:
        self._clock.advance(0.000001)
        rules.setdefault("subject", f"{name}.*")
        return self.broker.declare_stream(StreamRules(name=name, **rules)).created

    async def consumer(self, durable: str = DURABLE, *, stream: str = STREAM, **rules: Any) -> None:
        try:
            self.broker.declare_consumer(ConsumerRules(stream=stream, durable=durable, **rules))
        except ConfigurationError as error:
            raise Denied(str(error)) from error

    async def publish(
        self, body: str = "x", *, subject: str = "S.a", id: str = "", expected: str = ""
    ) -> Answer:
        ack = self.broker.publish(
            subject,
            body.encode(),
            message_id=id,
            expected_stream=expected or None,
            headers={"Nats-Msg-Id": id} if id else {},
        )
        assert ack is not None
        return Answer(ack.sequence, ack.duplicate, ack.code)

    async def publish_unheard(self, body: str) -> None:
        self.broker.script(PublishFate("unknown_stored"))
        assert self.broker.publish("S.a", body.encode()) is None

    async def publish_buffered(self, body: str, between: Work) -> None:
        self.broker.script(PublishFate("late", seconds=1))
        assert self.broker.publish("S.a", body.encode()) is None
        self.broker.restart()
        await between()
        self._clock.advance(1)

    async def pull(self, number: int = 1, *, seconds: float = LONG, durable: str = DURABLE) -> list[Held]:
        ends_at = self._clock.now() + timedelta(seconds=seconds)
        puller = self._pullers.setdefault(durable, Puller(self.broker, STREAM, durable))
        while True:
            try:
                copies = puller.pull(number)
            except ConsumerGone as error:
                raise Gone(str(error)) from error
            if copies:
                return [self._held(copy) for copy in copies]
            due = self.broker.next_due()
            if due is None or due > ends_at:
                self._clock.set(ends_at)
                return []
            self._clock.set(max(due, self._clock.now()))

    def _held(self, copy: Copy) -> Held:
        async def settle(how: Settlement, seconds: float) -> None:
            self.broker.settle(copy, how, seconds)

        return Held(copy.body.decode(), copy.sequence, copy.count, settle)

    async def standing(self, work: Work) -> list[Held]:
        assert not await self.pull(seconds=0)
        await work()
        return await self.pull(seconds=SOON)

    async def state(self) -> StreamState:
        return self.broker.state(STREAM)

    async def oldest(self, subject: str) -> str | None:
        if self.broker.oldest(STREAM, subject) is None:
            return None
        stored = self.broker.streams[STREAM].oldest(subject)
        assert stored is not None
        return stored.body.decode()

    async def purge(self, *, by_force: bool = True) -> None:
        try:
            self.broker.purge(STREAM, by_force=by_force)
        except ConfigurationError as error:
            raise Denied(str(error)) from error

    async def delete_message(self, sequence: int) -> None:
        self.broker.delete_message(STREAM, sequence)

    async def delete_stream(self) -> None:
        self.broker.delete_stream(STREAM)

    async def delete_consumer(self, durable: str = DURABLE) -> None:
        self.broker.delete_consumer(STREAM, durable)

    async def restart(self) -> None:
        self.broker.restart()

    async def kill(self) -> None:
        # A process that dies leaves its writes to the kernel: only a power loss takes them.
        self.broker.restart()

    async def power_loss_after(self, work: Work) -> None:
        synced = self._clock.now()
        self._clock.advance(0.001)
        await work()
        self.broker.power_loss((self._clock.now() - synced).total_seconds())

    async def pass_seconds(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def elapsed(self) -> float:
        return (self._clock.now() - self._began).total_seconds()

    async def advisories(self) -> list[tuple[int, int]]:
        return [(orphan.sequence, orphan.deliveries) for orphan in self.broker.advisories()]
