"""One durable pull consumer in memory: what waits, what was given and not settled, what comes again and when.

As on the real server the record of a given message is kept by its sequence alone. Who settles it is not asked: a late ack or nak of an
earlier delivery works on whatever is recorded now. Leaves to others: storing, faults, undoing (broker.py).
"""

import heapq
from bisect import insort
from collections import deque
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from longtake.errors import TransportUnavailable
from longtake.memory.broker_habits import Habits
from longtake.memory.broker_journal import Journal
from longtake.memory.broker_rules import ConsumerRules, subject_matches
from longtake.memory.broker_stream import MemoryStream, Stored

_AT_ONCE: Final = timedelta()


class Pending(msgspec.Struct):
    """A message that was given and not settled: until when, and how often it was given."""

    until: datetime
    count: int


class Orphan(msgspec.Struct, frozen=True):
    """An advisory: this message was given as often as allowed and is given no more."""

    stream: str
    durable: str
    sequence: int
    deliveries: int


class ConsumerGone(TransportUnavailable):
    """The consumer that is pulled from, or its stream, is not there."""


class MemoryConsumer:
    """A durable consumer with explicit acks."""

    def __init__(self, rules: ConsumerRules, stream: MemoryStream, habits: Habits, journal: Journal) -> None:
        self.rules = rules
        self.stream = stream
        self.ready: deque[int] = deque()
        self.pending: dict[int, Pending] = {}
        self.again: deque[int] = deque()
        self.held: list[tuple[datetime, int]] = []
        self.advisories: list[Orphan] = []
        self._due: list[tuple[datetime, int]] = []
        self._habits = habits
        self._journal = journal
        self._wait = timedelta(seconds=rules.ack_wait_seconds)
        self._backoff = tuple(timedelta(seconds=seconds) for seconds in rules.backoff_seconds)
        if self._backoff:
            self._wait = self._backoff[0]
        if habits.new_consumer_from_start and (stream.is_work_queue or habits.limits_replayed):
            self.ready.extend(
                sequence for sequence, stored in stream.messages.items() if self.wants(stored.subject)
            )

    def wants(self, subject: str) -> bool:
        """Whether messages of this subject are for this consumer."""
        return not self._habits.filter_kept or subject_matches(self.rules.subject, subject)

    def offer(self, sequence: int, ahead: int = 0) -> None:
        """A new message is there; it may have overtaken some."""
        if ahead:
            self.ready.insert(max(0, len(self.ready) - ahead), sequence)
        elif self._habits.order_kept:
            self.ready.append(sequence)
        else:
            self.ready.appendleft(sequence)

    def take(self, limit: int, now: datetime) -> list[tuple[Stored, int]]:
        """Give up to so many messages, those that come again first; each with the number of its delivery."""
        self._wake(now)
        if not self._habits.limit_kept:
            limit = 1 << 30
        given: list[tuple[Stored, int]] = []
        sources = (self._take_again, self._take_new)
        for source in sources if self._habits.redelivered_first else sources[::-1]:
            source(limit, now, given)
        return given

    def settle(self, sequence: int, count: int) -> bool:
        """Acked or terminated, by whoever. True when the message is to leave a work queue."""
        pending = self.pending.get(sequence)
        if pending is None:
            # It was given once, for somebody settles it: an orphan, and gone with this.
            return self._habits.orphan_ack_removes
        if pending.count != count and not self._habits.unfenced_ack:
            return False
        self._forget(sequence)
        return True

    def nak(self, sequence: int, count: int, delay: timedelta, now: datetime) -> None:
        """Given back, by whoever: available after the delay."""
        pending = self.pending.get(sequence)
        if pending is None:
            if self._habits.nak_after_ack_void or sequence not in self.stream.messages:
                return
            pending = self._record(sequence, Pending(now, count))
        if pending.count != count and not self._habits.unfenced_nak:
            return
        if delay > _AT_ONCE and self._habits.nak_delay_kept:
            if self._backoff and self._habits.backoff_added:
                delay += self._wait_of(pending.count) - self._wait
            self._record(sequence, Pending(now + delay, pending.count))
        elif self._habits.nak_at_once and sequence not in self.again:
            self.again.append(sequence)

    def progress(self, sequence: int, now: datetime) -> None:
        """Still at it: the ack wait starts anew."""
        pending = self.pending.get(sequence)
        if pending is not None and self._habits.progress_extends:
            count = pending.count if self._habits.progress_keeps_count else 0
            self._record(sequence, Pending(now + self._wait_of(pending.count), count))

    def hold(self, sequence: int, until: datetime) -> bool:
        """Keep a waiting message back; False when it does not wait."""
        if sequence not in self.ready:
            return False
        self.ready.remove(sequence)
        heapq.heappush(self.held, (until, sequence))
        return True

    def come_again(self, sequence: int) -> bool:
        """A message that was given is given once more, although nobody asked."""
        if sequence not in self.pending or sequence in self.again:
            return False
        self.again.append(sequence)
        return True

    def next_due(self) -> datetime | None:
        """When something comes by the passing of time alone."""
        while self._due and not self._is_due(*self._due[0]):
            heapq.heappop(self._due)
        moments = [heap[0][0] for heap in (self._due, self.held) if heap]
        return min(moments, default=None)

    def waiting(self) -> int:
        """How many messages could be given now or later."""
        return sum(sequence in self.stream.messages for sequence in (*self.ready, *self.pending)) + len(
            self.held
        )

    def restart(self) -> None:
        """The server was started again: who was given what is kept, and so are the ends of their waits."""
        if not self._habits.restart_keeps_pending:
            self.again.extend(sequence for sequence in self.pending if sequence not in self.again)

    def forget_counts(self) -> None:
        """Lose how often messages were delivered, as a consumer that is recovered from an older state does."""
        for sequence, pending in list(self.pending.items()):
            self._record(sequence, Pending(pending.until, 1))

    def sort(self) -> None:
        """After changes were taken back: bring what waits into its order and drop what is not there."""
        messages, pending = self.stream.messages, self.pending
        self.ready = deque(
            sequence for sequence in sorted({*self.ready}) if sequence in messages and sequence not in pending
        )
        self.again = deque(sequence for sequence in self.again if sequence in pending)
        self.held = [(until, sequence) for until, sequence in self.held if sequence in messages]
        heapq.heapify(self.held)

    def purge(self) -> None:
        """Nothing that was stored is there any more."""
        for sequence in list(self.pending):
            if sequence not in self.stream.messages:
                self._forget(sequence)
        self.ready.clear()
        self.held.clear()

    # --- giving -------------------------------------------------------------------------------------------------------

    def _take_again(self, limit: int, now: datetime, given: list[tuple[Stored, int]]) -> None:
        rules, habits = self.rules, self._habits
        while self.again and len(given) < limit:
            if not habits.redelivery_unbounded and len(self.pending) >= rules.ack_pending_max:
                return
            sequence = self.again.popleft()
            pending = self.pending.get(sequence)
            stored = self.stream.messages.get(sequence)
            if pending is None or stored is None:
                self._forget(sequence)
                continue
            count = pending.count + 1 if habits.deliveries_counted else 1
            if 0 < rules.max_deliver < count:
                self._orphan(sequence, pending.count)
                continue
            self._record(sequence, Pending(now + self._wait_of(count), count))
            given.append((stored, count))

    def _take_new(self, limit: int, now: datetime, given: list[tuple[Stored, int]]) -> None:
        ready, messages, bound = self.ready, self.stream.messages, self.rules.ack_pending_max
        while ready and len(given) < limit:
            if len(self.pending) >= bound and self._habits.pending_bounded:
                return
            sequence = ready.popleft()
            stored = messages.get(sequence)
            if stored is None:
                continue
            count = 1 if self._habits.new_consumer_counts_anew else 2
            self._record(sequence, Pending(now + self._wait, count))
            given.append((stored, count))

    def _orphan(self, sequence: int, deliveries: int) -> None:
        self._forget(sequence)
        if self._habits.orphan_told:
            self.advisories.append(Orphan(self.stream.rules.name, self.rules.durable, sequence, deliveries))
        if not self._habits.orphan_stays:
            self.stream.remove(sequence)

    def _wake(self, now: datetime) -> None:
        while self.held and self.held[0][0] <= now:
            self.ready.appendleft(heapq.heappop(self.held)[1])
        woken: list[int] = []
        while self._due and self._due[0][0] <= now:
            until, sequence = heapq.heappop(self._due)
            if self._habits.ack_wait_ends and self._is_due(until, sequence) and sequence not in woken:
                insort(woken, sequence)
        self.again.extend(woken)

    def _is_due(self, until: datetime, sequence: int) -> bool:
        pending = self.pending.get(sequence)
        return pending is not None and pending.until == until and sequence not in self.again

    def _wait_of(self, count: int) -> timedelta:
        if not self._backoff:
            return self._wait
        return self._backoff[min(count, len(self._backoff)) - 1]

    # --- recording ----------------------------------------------------------------------------------------------------

    def _record(self, sequence: int, pending: Pending) -> Pending:
        self._journal.note(partial(self._put_back, sequence, self.pending.get(sequence)))
        self.pending[sequence] = pending
        heapq.heappush(self._due, (pending.until, sequence))
        return pending

    def _forget(self, sequence: int) -> None:
        pending = self.pending.pop(sequence, None)
        if pending is not None:
            self._journal.note(partial(self._put_back, sequence, pending))
        if sequence in self.again:
            self.again.remove(sequence)

    def _put_back(self, sequence: int, pending: Pending | None) -> None:
        if not self._habits.power_loss_undoes_acks:
            return
        if pending is None:
            if self.pending.pop(sequence, None) is not None:
                self.ready.append(sequence)
        else:
            self.pending[sequence] = pending
            heapq.heappush(self._due, (pending.until, sequence))
