"""One stream of the broker in memory: stored messages, the ids it remembers, its limits, its birth.

Leaves to others: who is given what (broker_consumer.py), faults, undoing and naming (broker.py).
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from longtake.memory.broker_habits import Habits
from longtake.memory.broker_rules import StreamRules

_RECORD_BYTES: Final = 30
"""What the real server's files add to each message, besides its subject, headers and body."""
_HEADER_BYTES: Final = 14
_LENGTH_BYTES: Final = 4


class Stored(msgspec.Struct):
    """A message as it lies in a stream."""

    sequence: int
    subject: str
    body: bytes
    headers: Mapping[str, str]
    message_id: str
    at: datetime
    size: int


class BrokerAck(msgspec.Struct, frozen=True):
    """What the broker answers to a publication; `code` and `detail` are those of its refusal."""

    stream: str = ""
    sequence: int = 0
    duplicate: bool = False
    code: int = 0
    detail: str = ""

    @property
    def is_refusal(self) -> bool:
        """Whether nothing was stored, now or before."""
        return self.code != 0


class StreamBirth(msgspec.Struct, frozen=True):
    """Which stream it is: one that was deleted and made again has the name but not the birth."""

    name: str
    created: datetime


class StreamState(msgspec.Struct, frozen=True):
    """What a stream says about itself."""

    messages: int
    first_sequence: int
    last_sequence: int
    born: datetime


WRONG_STREAM: Final = BrokerAck(code=10060, detail="expected stream does not match")
TOO_LARGE: Final = BrokerAck(code=10054, detail="message size exceeds maximum allowed")
FULL: Final = BrokerAck(code=10077, detail="maximum bytes exceeded")


class MemoryStream:
    """A stream. It takes messages, knows their ids for a while and gives the oldest of a subject."""

    def __init__(self, rules: StreamRules, born: datetime, habits: Habits) -> None:
        self.rules = rules
        self.born = born
        self.last_sequence = 0
        self.bytes = 0
        self.messages: dict[int, Stored] = {}
        self.by_subject: dict[str, dict[int, Stored]] = {}
        self.ids: dict[str, tuple[datetime, int]] = {}
        self._habits = habits
        self._window = timedelta(seconds=rules.duplicate_window_seconds)
        self._age = None if rules.age_seconds_max is None else timedelta(seconds=rules.age_seconds_max)

    @property
    def is_work_queue(self) -> bool:
        """Whether what is acknowledged goes away."""
        return self.rules.retention == "work_queue"

    def state(self) -> StreamState:
        """Count it."""
        first = min(self.messages, default=self.last_sequence + 1)
        return StreamState(len(self.messages), first, self.last_sequence, self.born)

    def refusal(self, body: bytes, headers: Mapping[str, str], expected: str | None) -> BrokerAck | None:
        """What is wrong with a message before anybody looks at its id."""
        habits, rules = self._habits, self.rules
        if expected is not None and expected != rules.name and habits.stream_expected:
            return WRONG_STREAM
        if rules.message_bytes_max is not None and habits.size_bounded:
            size = len(body) + (header_bytes(headers) if habits.headers_weigh else 0)
            if size > rules.message_bytes_max:
                return TOO_LARGE
        return None

    def known(self, message_id: str, now: datetime) -> BrokerAck | None:
        """The answer to an id that was met within the window."""
        if not message_id or not self._habits.swallow_duplicates:
            return None
        met = self.ids.get(message_id)
        if met is None or (now - met[0] >= self._window and self._habits.window_ends):
            return None
        if not self._habits.window_fixed:
            self.ids[message_id] = (now, met[1])
        if not self._habits.swallow_after_ack and met[1] not in self.messages:
            return None
        return BrokerAck(self.rules.name, met[1], duplicate=True)

    def room_for(self, size: int) -> bool:
        """Whether a message of this size fits; a stream that is wrongly kind makes room instead."""
        bytes_max = self.rules.bytes_max
        if bytes_max is None or self.bytes + size <= bytes_max:
            return True
        if self._habits.discard_new:
            return False
        while self.messages and self.bytes + size > bytes_max:
            self.remove(next(iter(self.messages)))
        return True

    def store(
        self, subject: str, body: bytes, headers: Mapping[str, str], message_id: str, now: datetime
    ) -> Stored:
        """Take a message under the next sequence number."""
        self.last_sequence += 1
        sequence = self.last_sequence
        stored = Stored(
            sequence, subject, body, headers, message_id, now, stored_bytes(subject, body, headers)
        )
        self.put(stored)
        if message_id:
            self.ids[message_id] = (now, sequence)
            if len(self.ids) > 4096:
                self._forget_old_ids(now)
        return stored

    def put(self, stored: Stored) -> None:
        """Lay a message where it belongs, new or given back by an undoing."""
        self.messages[stored.sequence] = stored
        self.by_subject.setdefault(stored.subject, {})[stored.sequence] = stored
        self.bytes += stored.size

    def remove(self, sequence: int) -> Stored | None:
        """Take a message out."""
        stored = self.messages.pop(sequence, None)
        if stored is not None:
            del self.by_subject[stored.subject][sequence]
            self.bytes -= stored.size
        return stored

    def oldest(self, subject: str) -> Stored | None:
        """The first message of a subject that is still there."""
        found = self.by_subject.get(subject)
        return next(iter(found.values())) if found else None

    def aged(self, now: datetime) -> list[int]:
        """Sequences whose messages are too old to be there."""
        if self._age is None or not self._habits.aged_out:
            return []
        found: list[int] = []
        for sequence, stored in self.messages.items():
            if now - stored.at < self._age:
                break
            found.append(sequence)
        return found

    def sort(self) -> None:
        """Bring messages back into their order after some were put back."""
        self.messages = dict(sorted(self.messages.items()))
        self.by_subject = {
            subject: dict(sorted(found.items())) for subject, found in self.by_subject.items() if found
        }

    def restart(self) -> None:
        """Remember only what can be read from the stored messages: ids of acknowledged ones are gone (F06)."""
        kept = {
            stored.message_id: (stored.at, stored.sequence)
            for stored in self.messages.values()
            if stored.message_id
        }
        if self._habits.restart_forgets_acked_ids:
            self.ids = kept
        if not self._habits.restart_keeps_stored_ids:
            self.ids = {name: met for name, met in self.ids.items() if name not in kept}

    def _forget_old_ids(self, now: datetime) -> None:
        if self._habits.window_ends:
            self.ids = {name: met for name, met in self.ids.items() if now - met[0] < self._window}


def header_bytes(headers: Mapping[str, str]) -> int:
    """What headers weigh on the wire."""
    if not headers:
        return 0
    return _HEADER_BYTES + sum(len(name) + len(value) + 4 for name, value in headers.items())


def stored_bytes(subject: str, body: bytes, headers: Mapping[str, str]) -> int:
    """What a message weighs in the stream's files."""
    weight = header_bytes(headers)
    return _RECORD_BYTES + len(subject) + len(body) + (weight + _LENGTH_BYTES if weight else 0)
