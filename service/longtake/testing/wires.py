"""The transport of a simulated world: streams of hints with every unpleasant truth of the real ones, and its faults (4.1).

Streams live outside all processes; each process has a connection of its own, whose calls are port calls.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from longtake.contracts.ids import subject_token
from longtake.errors import TransportUnavailable
from longtake.ports import Delivery, OutgoingMessage, PublishResult
from longtake.testing.calls import Port
from longtake.testing.faults import Faults
from longtake.testing.world import Process, World

ACK_WAIT = {"LT_EFFECT": 10.0, "LT_CALLBACK": 30.0, "LT_COMMAND": 30.0}
WORK_QUEUES = frozenset({"LT_EFFECT", "LT_CALLBACK"})
DUPLICATE_WINDOW_SECONDS = 120.0
LISTEN_SECONDS = 60.0


class Message(msgspec.Struct, kw_only=True):
    """A message in a stream."""

    seq: int
    subject: str
    body: bytes
    headers: Mapping[str, str]
    message_id: str
    at: float
    stamped: datetime
    visible_at: float
    """Not delivered before: a nak's delay, or the ack wait of whoever has it."""
    deliveries: int = 0


class SeenStream(msgspec.Struct, frozen=True):
    """Which stream it is."""

    name: str
    created: datetime


class _Stream:
    def __init__(self, name: str, created: datetime) -> None:
        self.name = name
        self.created = created
        self.messages: dict[int, Message] = {}
        self.acked: set[int] = set()
        """Of a stream that keeps what is read: settled for its one consumer."""
        self.numbers = itertools.count(1)
        self.ids: dict[str, float] = {}


class Wires:
    """All streams, and what goes wrong with them."""

    def __init__(self, world: World, faults: Faults, pools: Sequence[str]) -> None:
        self._world = world
        self._faults = faults
        self.pools = tuple(pools)
        self.receipts: dict[tuple[str, str], bytes] = {}
        """Receipts that were told to fire-and-forget producers."""
        self.settled_strays: list[bytes] = []
        """Bodies of messages that name nothing and that somebody acked or terminated."""
        self._births = itertools.count()
        self._streams = {name: self._born(name) for name in ACK_WAIT}

    def _born(self, name: str) -> _Stream:
        return _Stream(name, self._world.now() + timedelta(microseconds=next(self._births)))

    def connect(self, process: Process) -> "Connection":
        """The connection of one process."""
        return Connection(self, process, self._faults)

    # --- storms -------------------------------------------------------------------------------------------------------

    def power_loss(self, seconds: float) -> None:
        """Everything of the last seconds is gone, acknowledged or not; what was settled then is back."""
        since = self._world.monotonic() - seconds
        for stream in self._streams.values():
            for seq in [seq for seq, message in stream.messages.items() if message.at >= since]:
                del stream.messages[seq]
        self.restart()

    def restart(self) -> None:
        """The server restarts: what was delivered comes again, and ids of settled messages are forgotten."""
        for stream in self._streams.values():
            stream.ids = {message.message_id: message.at for message in stream.messages.values()}
            for message in stream.messages.values():
                message.visible_at = min(message.visible_at, self._world.monotonic())
        self._tell_all()

    def _tell_all(self) -> None:
        """Every consumer looks."""
        for stream in self._streams.values():
            for subject in {message.subject for message in stream.messages.values()}:
                self._world.sound(_sound_of(stream.name, subject))

    def delete_stream(self, name: str) -> None:
        """Deleted, and made again empty."""
        self._streams[name] = self._born(name)

    def purge_stream(self, name: str) -> None:
        """Emptied; it is still the same stream."""
        self._streams[name].messages.clear()

    def delete_consumer(self, share: float) -> None:
        """A consumer is deleted and made again: what it had delivered comes at once."""
        name = list(self._streams)[int(share * len(self._streams))]
        for message in self._streams[name].messages.values():
            message.visible_at = min(message.visible_at, self._world.monotonic())
        self._tell_all()

    def calm(self) -> None:
        """Nothing is held back any more."""
        self._tell_all()

    def backlog(self) -> str:
        """What waits to be taken; empty when nothing does."""
        for stream in self._streams.values():
            waiting = [seq for seq in stream.messages if seq not in stream.acked]
            if waiting:
                return f"{len(waiting)} messages wait in {stream.name}"
        return ""

    # --- messages -----------------------------------------------------------------------------------------------------

    async def inject(self, message: OutgoingMessage) -> None:
        """Publish from outside of any process."""
        await self._world.pause("producer.publish")
        if not self._faults.is_away("transport", self._world.now_us):
            self.store(message)

    def store(self, outgoing: OutgoingMessage) -> PublishResult:
        """Take one message as the server does, with its faults."""
        world, faults = self._world, self._faults
        stream, now = self._streams[outgoing.stream], world.monotonic()
        told = stream.ids.get(outgoing.message_id)
        if told is not None and now - told < DUPLICATE_WINDOW_SECONDS:
            return PublishResult(state="duplicate")
        stream.ids[outgoing.message_id] = now
        copies = 2 if faults.happens("duplicate", outgoing.stream) else 1
        if faults.happens("loss", outgoing.stream):
            copies = 0
        for _ in range(copies):
            visible = now
            if faults.happens("delay", outgoing.stream):
                visible += faults.number("delay", 0.1, 20)
            message = Message(
                seq=next(stream.numbers),
                subject=outgoing.subject,
                body=outgoing.body,
                headers={**outgoing.headers, "Nats-Msg-Id": outgoing.message_id},
                message_id=outgoing.message_id,
                at=now,
                stamped=world.now(),
                visible_at=visible,
            )
            stream.messages[message.seq] = message
            self._tell(stream, message)
        if faults.happens("publish_lost_answer", outgoing.stream):
            return PublishResult(state="unknown", detail="no answer in time")
        return PublishResult(state="stored")

    def _tell(self, stream: _Stream, message: Message) -> None:
        """Wake the consumer of a message when it can be delivered, if it then still waits."""
        world, due = self._world, message.visible_at

        def look() -> None:
            if stream.messages.get(message.seq) is message and message.seq not in stream.acked and message.visible_at == due:
                world.sound(_sound_of(stream.name, message.subject))

        if due <= world.monotonic():
            look()
        else:
            world.later(due - world.monotonic(), look)

    def ready(self, name: str, subject: str, limit: int) -> list[Message]:
        """Messages that can be delivered now; delivering starts their ack wait."""
        stream, now = self._streams[name], self._world.monotonic()
        found = [
            message
            for message in stream.messages.values()
            if message.visible_at <= now and message.seq not in stream.acked and _matches(subject, message.subject)
        ]
        if len(found) > 1 and self._faults.happens("reorder", name):
            self._world.random.shuffle(found)
        for message in found[:limit]:
            message.deliveries += 1
            message.visible_at = now + ACK_WAIT[name]
            self._tell(stream, message)
        return found[:limit]

    def settle(self, name: str, seq: int) -> None:
        """Acked or terminated, by whoever: nothing fences it."""
        stream = self._streams[name]
        message = stream.messages.get(seq)
        if message is not None and message.message_id.startswith("stray-") and name != "LT_EFFECT":
            self.settled_strays.append(message.body)
        if name in WORK_QUEUES:
            stream.messages.pop(seq, None)
        else:
            stream.acked.add(seq)

    def delay(self, name: str, seq: int, seconds: float) -> None:
        """Nakked, by whoever."""
        message = self._streams[name].messages.get(seq)
        if message is not None:
            message.visible_at = self._world.monotonic() + seconds
            self._tell(self._streams[name], message)

    def oldest(self, name: str, subject: str) -> datetime | None:
        """Time of the oldest message that is still there."""
        return min(
            (message.stamped for message in self._streams[name].messages.values() if _matches(subject, message.subject)),
            default=None,
        )

    def streams(self) -> list[SeenStream]:
        """The streams as they are now."""
        return [SeenStream(stream.name, stream.created) for stream in self._streams.values()]


def _sound_of(stream: str, subject: str) -> str:
    return "stream.LT_COMMAND" if stream == "LT_COMMAND" else f"stream.{subject}"


def _matches(pattern: str, subject: str) -> bool:
    return subject.startswith(pattern[:-1]) if pattern.endswith(">") else pattern == subject


class Connection:
    """What one process has of the transport; every call is a port call."""

    def __init__(self, wires: Wires, process: Process, faults: Faults) -> None:
        def port(name: str, thing: Any) -> Any:
            return Port(process, name, thing, faults, away=TransportUnavailable, outage="transport")

        self.publisher = port("publisher", _Publisher(wires))
        self.oldest = port("oldest", _Oldest(wires))
        self.transport = _Transport(wires, process, port)
        self.streams: Callable[[], Any] = port("topology", _Topology(wires)).streams


class _Publisher:
    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    async def publish(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        return [self._wires.store(message) for message in messages]


class _Oldest:
    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    async def oldest_effect(self, pool: str) -> datetime | None:
        return self._wires.oldest("LT_EFFECT", f"longtake.v1.effect.{pool}")

    async def oldest_callback(self, part: int) -> datetime | None:
        return self._wires.oldest("LT_CALLBACK", f"longtake.v1.callback.{part}")


class _Topology:
    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    async def streams(self) -> list[SeenStream]:
        return self._wires.streams()


class _Transport:
    """Implements `Transport`."""

    def __init__(self, wires: Wires, process: Process, port: Callable[[str, Any], Any]) -> None:
        self._wires = wires
        self._process = process
        self._port = port

    @property
    def publisher(self) -> Any:
        """Where messages go."""
        return self._port("publisher", _Publisher(self._wires))

    async def commands(self) -> Any:
        """The command consumer."""
        return self._subscription("LT_COMMAND", "longtake.v1.command.>")

    async def effects(self, pool: str) -> Any:
        """The consumer of a pool."""
        return self._subscription("LT_EFFECT", f"longtake.v1.effect.{subject_token(pool)}")

    async def callbacks(self, part: int) -> Any:
        """The consumer of a part."""
        return self._subscription("LT_CALLBACK", f"longtake.v1.callback.{part}")

    async def publish_receipt(self, *, tenant: str, command_id: str, receipt: bytes) -> None:
        """Tell a producer; lossy."""
        await self._process.world.pause("transport.receipt")
        self._wires.receipts[tenant, command_id] = receipt
        self._process.world.sound(f"receipt.{tenant}.{command_id}")

    def _subscription(self, stream: str, subject: str) -> Any:
        what = {"LT_COMMAND": "commands", "LT_EFFECT": "effect", "LT_CALLBACK": "callback"}[stream]
        return _Subscription(self._wires, self._process, self._port, f"subscription.{what}", stream, subject)


class _Subscription:
    def __init__(
        self, wires: Wires, process: Process, port: Callable[[str, Any], Any], name: str, stream: str, subject: str
    ) -> None:
        self._wires, self._process, self._port, self._name = wires, process, port, name
        self._stream, self._subject = stream, subject
        self._sounds = (f"stream.{stream if subject.endswith('>') else subject}",)
        self._fetch = port(name, _Fetching(wires, stream, subject)).fetch

    async def fetch(self, *, limit: int, wait_seconds: float) -> list[Delivery]:
        world = self._process.world
        found = await self._fetch(limit)
        if not found:
            # A real fetch comes back empty and is asked again at once; here it just goes on listening.
            await world.listen(*self._sounds, seconds=LISTEN_SECONDS)
            found = await self._fetch(limit)
        return [self._delivery(message) for message in found]

    def _delivery(self, message: Message) -> Delivery:
        made: Delivery = _Delivery(self._wires, self._process, self._name, self._stream, message)
        return made

    async def close(self) -> None:
        """Nothing is held."""


class _Fetching:
    def __init__(self, wires: Wires, stream: str, subject: str) -> None:
        self._wires, self._stream, self._subject = wires, stream, subject

    async def fetch(self, limit: int) -> list[Message]:
        return self._wires.ready(self._stream, self._subject, limit)


class _Delivery:
    """Implements `Delivery`; its settling is a port call too."""

    __slots__ = ("_message", "_name", "_process", "_stream", "_wires", "body", "headers", "subject")

    def __init__(self, wires: Wires, process: Process, name: str, stream: str, message: Message) -> None:
        self._wires, self._process, self._name, self._stream, self._message = wires, process, name, stream, message
        self.subject, self.body, self.headers = message.subject, message.body, message.headers

    @property
    def deliveries(self) -> int:
        return self._message.deliveries

    async def ack(self, *, sync: bool = False) -> None:
        await self._settle("ack", lambda: self._wires.settle(self._stream, self._message.seq))

    async def nak(self, *, delay_seconds: float = 0.0) -> None:
        await self._settle("nak", lambda: self._wires.delay(self._stream, self._message.seq, delay_seconds))

    async def term(self) -> None:
        await self._settle("term", lambda: self._wires.settle(self._stream, self._message.seq))

    async def _settle(self, verb: str, work: Callable[[], None]) -> None:
        faults, world = self._wires._faults, self._process.world
        place = f"{self._name}.{verb}"
        fault = faults.draw(place)
        await world.pause(place, fault or "")
        if faults.is_away("transport", world.now_us) or fault == "not_executed":
            raise TransportUnavailable(f"{place}: not connected")
        if fault == "crash_before":
            await world.die(place, seconds=faults.down_seconds(place))
        if not faults.happens("acked_but_lost", self._stream):
            work()
        if fault == "crash_after":
            await world.die(place, seconds=faults.down_seconds(place))
