"""What clients do with the broker in memory: declare, publish, pull, settle.

Leaves to others: what happens to the server itself (broker.py), and the ports on top of it (transport.py).
"""

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Literal

import msgspec

from longtake.errors import ConfigurationError
from longtake.memory.broker_consumer import ConsumerGone, MemoryConsumer
from longtake.memory.broker_faults import BrokerFaults, NoBrokerFaults, PublishFate
from longtake.memory.broker_habits import Habits
from longtake.memory.broker_journal import Journal
from longtake.memory.broker_rules import ConsumerRules, StreamRules, subject_matches, subjects_overlap
from longtake.memory.broker_stream import (
    FULL,
    BrokerAck,
    MemoryStream,
    Stored,
    StreamBirth,
    StreamState,
    stored_bytes,
)
from longtake.memory.clock import Clock

Settlement = Literal["ack", "nak", "term", "progress"]
NO_STREAM: Final = BrokerAck(code=503, detail="no stream takes this subject")
FAULTY_REFUSAL: Final = BrokerAck(code=10023, detail="insufficient resources")
_NO_HEADERS: Final[Mapping[str, str]] = {}


class Copy(msgspec.Struct, frozen=True):
    """One delivery of one message."""

    consumer: MemoryConsumer
    sequence: int
    subject: str
    body: bytes
    headers: Mapping[str, str]
    at: datetime
    count: int
    """The number of this delivery."""


class BrokerServer:
    """The streams and consumers of one server, as its clients see them."""

    def __init__(
        self,
        clock: Clock,
        *,
        rng: random.Random | None = None,
        faults: BrokerFaults | None = None,
        habits: Habits | None = None,
        on_news: Callable[[str], None] | None = None,
    ) -> None:
        """`on_news` is told the name of each stream in which something may wait now, for sleepers to be woken."""
        self.faults: BrokerFaults = faults or NoBrokerFaults()
        self.habits = habits or Habits()
        self.streams: dict[str, MemoryStream] = {}
        self.consumers: dict[tuple[str, str], MemoryConsumer] = {}
        self.is_up = True
        self.links = 1
        """How often it was started; connections of earlier times are gone."""
        self._clock = clock
        self._rng = rng or random.Random(0)
        self._on_news = on_news
        self._births = 0
        self._scripted: deque[PublishFate] = deque()
        self._later: list[tuple[datetime, int, Callable[[], None]]] = []
        self._later_number = 0
        self.journal = Journal(clock)
        self._routes: dict[str, MemoryStream | None] = {}
        self._takers: dict[str, list[MemoryConsumer]] = {}
        self._last_sequences: dict[str, int] = {}
        self._old_ids: dict[str, dict[str, tuple[datetime, int]]] = {}

    # --- what clients do ----------------------------------------------------------------------------------------------

    def declare_stream(self, rules: StreamRules) -> StreamBirth:
        """Make a stream, or find it as it is."""
        found = self.streams.get(rules.name)
        if found is None or not self.habits.redeclared_is_same:
            self._births += self.habits.recreated_is_another or not self._births
            born = (
                self._now()
                if self.habits.recreated_is_another
                else datetime.min.replace(tzinfo=self._now().tzinfo)
            )
            found = MemoryStream(rules, born + timedelta(microseconds=self._births), self.habits)
            if not self.habits.recreated_from_one:
                found.last_sequence = self._last_sequences.get(rules.name, 0)
            if not self.habits.recreated_forgets_ids:
                found.ids = self._old_ids.get(rules.name, {})
            self.streams[rules.name] = found
            for consumer in self.consumers.values():
                if consumer.rules.stream == rules.name and not self.habits.deleted_takes_consumers:
                    consumer.stream = found
            self._forget_routes()
        return StreamBirth(rules.name, found.born)

    def declare_consumer(self, rules: ConsumerRules) -> bool:
        """Make a consumer; False when it was there. ConsumerGone without its stream."""
        stream = self.streams.get(rules.stream)
        if stream is None:
            raise ConsumerGone(f"{rules.durable}: there is no stream {rules.stream}")
        if (rules.stream, rules.durable) in self.consumers:
            return False
        if stream.is_work_queue and self.habits.work_queue_exclusive:
            for other in self._consumers_of(stream):
                if subjects_overlap(other.rules.subject, rules.subject):
                    raise ConfigurationError(
                        f"consumer {rules.durable!r} of work queue {rules.stream} would share messages with "
                        f"{other.rules.durable!r}; give it a subject of its own"
                    )
        self.consumers[rules.stream, rules.durable] = MemoryConsumer(rules, stream, self.habits, self.journal)
        self._forget_routes()
        return True

    def births(self) -> tuple[StreamBirth, ...]:
        """Who the streams are now."""
        return tuple(StreamBirth(name, stream.born) for name, stream in self.streams.items())

    def state(self, stream: str) -> StreamState:
        """What a stream says about itself."""
        self._catch_up()
        return self.streams[stream].state()

    def oldest(self, stream: str, subject: str) -> datetime | None:
        """When the oldest message of a subject that is still stored was stored. ConsumerGone without the stream."""
        self._catch_up()
        if stream not in self.streams:
            raise ConsumerGone(f"{stream}: stream not found")
        stored = self.streams[stream].oldest(subject)
        if stored is None:
            return None
        kinder = not self.habits.oldest_counts_pending and self._is_held(
            self.streams[stream], stored.sequence
        )
        return None if kinder else stored.at

    def publish(
        self,
        subject: str,
        body: bytes,
        *,
        message_id: str = "",
        expected_stream: str | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> BrokerAck | None:
        """Publish under the faults of the day; None when no answer comes."""
        self._catch_up()
        fate = self._scripted.popleft() if self._scripted else self.faults.on_publish(subject)
        message = (subject, body, message_id, expected_stream, headers)
        match fate.kind:
            case "stored":
                return self.store(*message, ahead=fate.ahead)
            case "lie":
                return self._lie(*message)
            case "unknown_stored":
                if self.habits.unheard_is_stored:
                    self.store(*message, ahead=fate.ahead)
                return None
            case "unknown_lost":
                return None
            case "late":
                self._do_later(fate.seconds, lambda: self._store_late(message))
                return None
            case "refused":
                return FAULTY_REFUSAL
            case "doubled":
                ack = self.store(*message, ahead=fate.ahead)
                if not ack.is_refusal and not ack.duplicate:
                    self.store(subject, body, "", None, headers)
                return ack

    def store(
        self,
        subject: str,
        body: bytes,
        message_id: str,
        expected_stream: str | None,
        headers: Mapping[str, str],
        *,
        ahead: int = 0,
    ) -> BrokerAck:
        """Take a message as the server does when nothing goes wrong."""
        stream = self._route(subject)
        if stream is None:
            return NO_STREAM
        now = self._now()
        refusal = stream.refusal(body, headers, expected_stream)
        if refusal is not None:
            if not self.habits.refused_forgotten and message_id:
                stream.ids[message_id] = (now, 0)
            return refusal
        self._age_out(stream, now)
        known = stream.known(message_id, now) if self.habits.duplicate_before_full else None
        if known is not None:
            return known
        if stream.rules.bytes_max is not None and not stream.room_for(stored_bytes(subject, body, headers)):
            return FULL
        known = stream.known(message_id, now)
        if known is not None:
            return known
        before = stream.ids.get(message_id)
        stored = stream.store(subject, body, headers, message_id, now)
        self.journal.note(partial(self._take_back_stored, stream, stored, before))
        for consumer in self._takers_of(subject, stream):
            consumer.offer(stored.sequence, ahead)
        self._tell(stream.rules.name)
        return BrokerAck(stream.rules.name, stored.sequence)

    def settle(self, copy: Copy, how: Settlement, delay_seconds: float = 0.0) -> bool:
        """An ack, nak or term under the faults of the day; False when nobody could confirm that it was heard."""
        self._catch_up()
        fate = self.faults.on_settle(copy.subject)
        if fate.kind == "heard":
            self._settle(copy, how, delay_seconds)
        elif fate.kind == "late":
            self._do_later(fate.seconds, lambda: self._settle(copy, how, delay_seconds))
        return fate.kind == "heard"

    # --- inside -------------------------------------------------------------------------------------------------------

    def take(self, consumer: MemoryConsumer, limit: int) -> list[Copy]:
        """Give messages of a consumer under the faults of the day."""
        self._catch_up()
        now = self._now()
        self._age_out(consumer.stream, now)
        copies: list[Copy] = []
        for stored, count in consumer.take(limit, now):
            kind = self.faults.on_deliver(stored.subject)
            if kind == "lost":
                continue
            if kind == "again":
                consumer.come_again(stored.sequence)
            copies.append(
                Copy(consumer, stored.sequence, stored.subject, stored.body, stored.headers, stored.at, count)
            )
        return copies

    def _settle(self, copy: Copy, how: Settlement, delay_seconds: float) -> None:
        consumer = copy.consumer
        key = (consumer.rules.stream, consumer.rules.durable)
        current = self.consumers.get(key)
        if current is None:
            return
        if current is not consumer and (
            copy.sequence not in current.pending or not self.habits.settled_by_name
        ):
            # A settlement knows only names and a sequence: it works on a consumer made anew, once that gave the message.
            return
        if how == "nak":
            current.nak(copy.sequence, copy.count, timedelta(seconds=delay_seconds), self._now())
            self._tell(key[0])
        elif how == "progress":
            current.progress(copy.sequence, self._now())
        elif how == "ack" or self.habits.term_ends:
            leaves = current.settle(copy.sequence, copy.count)
            stream = current.stream
            keeps = (
                self.habits.limits_keep if not stream.is_work_queue else not self.habits.work_queue_forgets
            )
            if leaves and not keeps:
                self._remove(stream, copy.sequence)

    def _lie(
        self, subject: str, body: bytes, message_id: str, expected: str | None, headers: Mapping[str, str]
    ) -> BrokerAck:
        stream = self._route(subject)
        if stream is None:
            return NO_STREAM
        refusal = stream.refusal(body, headers, expected) or stream.known(message_id, self._now())
        # Acknowledged, and lost before it was on the disk. The id is lost with it, for it lies nowhere else.
        return refusal or BrokerAck(stream.rules.name, stream.last_sequence + 1)

    def _store_late(self, message: tuple[str, bytes, str, str | None, Mapping[str, str]]) -> None:
        if self.is_up and self.habits.late_is_stored:
            self.store(*message)

    def _remove(self, stream: MemoryStream, sequence: int) -> bool:
        stored = stream.remove(sequence)
        if stored is not None:
            self.journal.note(partial(self._take_back_removed, stream, stored))
        return stored is not None

    def _purge(self, name: str) -> int:
        stream = self.streams[name]
        number = len(stream.messages)
        for sequence in list(stream.messages):
            if self.habits.purge_takes_held or not self._is_held(stream, sequence):
                self._remove(stream, sequence)
        for consumer in self._consumers_of(stream):
            consumer.purge()
        if not self.habits.purge_keeps_ids:
            stream.ids.clear()
        if not self.habits.purge_keeps_sequence:
            stream.last_sequence = 0
        return number

    def _age_out(self, stream: MemoryStream, now: datetime) -> None:
        for sequence in stream.aged(now):
            self._remove(stream, sequence)

    def _now(self) -> datetime:
        return self._clock.now()

    def _do_later(self, seconds: float, work: Callable[[], None]) -> None:
        self._later_number += 1
        heapq.heappush(self._later, (self._now() + timedelta(seconds=seconds), self._later_number, work))

    def _catch_up(self) -> None:
        while self._later and self._later[0][0] <= self._now():
            heapq.heappop(self._later)[2]()

    def _tell(self, stream: str) -> None:
        if self._on_news is not None:
            self._on_news(stream)

    def _consumers_of(self, stream: MemoryStream) -> list[MemoryConsumer]:
        return [consumer for consumer in self.consumers.values() if consumer.stream is stream]

    def _is_held(self, stream: MemoryStream, sequence: int) -> bool:
        return any(sequence in consumer.pending for consumer in self._consumers_of(stream))

    def _route(self, subject: str) -> MemoryStream | None:
        if subject not in self._routes:
            fitting = [
                stream
                for stream in self.streams.values()
                if subject_matches(stream.rules.subject, subject) or not self.habits.subject_needs_stream
            ]
            self._routes[subject] = fitting[0] if fitting else None
        return self._routes[subject]

    def _takers_of(self, subject: str, stream: MemoryStream) -> Sequence[MemoryConsumer]:
        takers = self._takers.get(subject)
        if takers is None:
            takers = [consumer for consumer in self._consumers_of(stream) if consumer.wants(subject)]
            self._takers[subject] = takers
        return takers

    def _forget_routes(self) -> None:
        self._routes.clear()
        self._takers.clear()

    # --- taking back --------------------------------------------------------------------------------------------------

    def _take_back_stored(
        self, stream: MemoryStream, stored: Stored, before: tuple[datetime, int] | None
    ) -> None:
        if not self.habits.power_loss_loses:
            return
        stream.remove(stored.sequence)
        if before is None:
            stream.ids.pop(stored.message_id, None)
        else:
            stream.ids[stored.message_id] = before
        if self.habits.power_loss_reuses_sequences:
            stream.last_sequence = stored.sequence - 1

    def _take_back_removed(self, stream: MemoryStream, stored: Stored) -> None:
        if self.habits.power_loss_undoes_acks:
            stream.put(stored)
