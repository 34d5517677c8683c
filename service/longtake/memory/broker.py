"""JetStream in one process, with its unpleasant truths: streams, durable pull consumers, and everything that may befall them.

What clients do is in broker_server.py, and the ports are put on top in transport.py. Here is what happens to brokers: restarts, power
losses, deletions, and single messages that are lost, doubled, held back or mixed up. Time comes from a clock and chance from a
generator, both given; nothing here awaits. The contract suite holds it to the real server.
"""

from collections import deque
from datetime import datetime, timedelta

from longtake.errors import ConfigurationError
from longtake.memory.broker_consumer import Orphan
from longtake.memory.broker_faults import PublishFate
from longtake.memory.broker_server import BrokerServer


class MemoryBroker(BrokerServer):
    """One server, at the mercy of its operators and its disk."""

    # --- the server ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Nobody can reach it until `start`."""
        self.is_up = False

    def start(self) -> None:
        """It is there again, with what its disk kept; all connections are new."""
        self.is_up = True
        self.links += 1
        if not self.habits.restart_keeps_messages:
            for name in self.streams:
                self._purge(name)
        for stream in self.streams.values():
            stream.restart()
            if not stream.is_work_queue and not self.habits.limits_remember_acked_ids:
                open_ = {
                    sequence
                    for found in self._consumers_of(stream)
                    for sequence in (*found.ready, *found.pending)
                }
                stream.ids = {name: met for name, met in stream.ids.items() if met[1] in open_}
        for consumer in self.consumers.values():
            consumer.restart()
        for name in self.streams:
            self._tell(name)

    def restart(self) -> None:
        """Stopped and started: connections are lost, and so are ids of messages that are not stored any more."""
        self.stop()
        self.start()

    def power_loss(self, seconds: float) -> None:
        """Everything of the last seconds, at most two minutes, was never written: publications, deliveries, settlements."""
        self._catch_up()
        self.journal.take_back(seconds)
        for stream in self.streams.values():
            stream.sort()
        for consumer in self.consumers.values():
            consumer.sort()
        self.restart()

    def delete_stream(self, name: str) -> None:
        """It is gone with its consumers and everything it knew. Whoever declares it again makes another one."""
        stream = self.streams.pop(name)
        self._last_sequences[name] = stream.last_sequence
        self._old_ids[name] = stream.ids
        if self.habits.deleted_takes_consumers:
            self.consumers = {key: found for key, found in self.consumers.items() if key[0] != name}
        self._forget_routes()

    def purge(self, name: str, *, by_force: bool = True) -> int:
        """Empty a stream; the number of messages that were in it. Its rules may deny that, but not to the disk."""
        if self.streams[name].rules.deny_purge and not by_force and self.habits.purge_denied:
            raise ConfigurationError(f"stream {name} denies purging")
        return self._purge(name)

    def delete_consumer(self, stream: str, durable: str) -> None:
        """It is gone with what it knew of deliveries; the messages stay."""
        del self.consumers[stream, durable]
        self._forget_routes()

    def delete_message(self, stream: str, sequence: int) -> bool:
        """Take one message out; False when it was not there."""
        if not self.habits.deleted_message_skipped:
            return sequence in self.streams[stream].messages
        return self._remove(self.streams[stream], sequence)

    def script(self, *fates: PublishFate) -> None:
        """Decide what happens to the next publications, before chance is asked."""
        self._scripted.extend(fates)

    def lose(self, stream: str, number: int = 1) -> list[int]:
        """Lose so many acknowledged messages, chosen by chance; their sequences."""
        there = list(self.streams[stream].messages)
        lost = sorted(self._rng.sample(there, min(number, len(there))))
        for sequence in lost:
            self._remove(self.streams[stream], sequence)
        return lost

    def duplicate(self, stream: str, sequence: int) -> int:
        """Store a copy of a message once more, as a careless bridge would; its sequence."""
        stored = self.streams[stream].messages[sequence]
        return self.store(stored.subject, stored.body, "", None, stored.headers).sequence

    def redeliver(self, stream: str, sequence: int) -> bool:
        """Give a message that somebody holds to somebody else as well; False when nobody holds it."""
        found = [consumer.come_again(sequence) for consumer in self._consumers_of(self.streams[stream])]
        self._tell(stream)
        return any(found)

    def delay(self, stream: str, sequence: int, seconds: float) -> bool:
        """Keep a waiting message back for so long; False when it does not wait."""
        until = self._now() + timedelta(seconds=seconds)
        found = [consumer.hold(sequence, until) for consumer in self._consumers_of(self.streams[stream])]
        return any(found)

    def shuffle(self, stream: str) -> None:
        """Give what waits in another order."""
        for consumer in self._consumers_of(self.streams[stream]):
            waiting = list(consumer.ready)
            self._rng.shuffle(waiting)
            consumer.ready = deque(waiting)

    def forget_deliveries(self, stream: str, durable: str) -> None:
        """Lose how often messages were delivered; counts begin anew (finding 6)."""
        self.consumers[stream, durable].forget_counts()

    # --- looking ------------------------------------------------------------------------------------------------------

    def advisories(self) -> list[Orphan]:
        """What was told of messages that are given no more, by all consumers that are there."""
        return [orphan for consumer in self.consumers.values() for orphan in consumer.advisories]

    def next_due(self) -> datetime | None:
        """When something happens by the passing of time alone; None when nothing does."""
        moments = [due for consumer in self.consumers.values() if (due := consumer.next_due()) is not None]
        if self._later:
            moments.append(self._later[0][0])
        return min(moments, default=None)

    def backlog(self) -> dict[str, int]:
        """How many messages wait or are held, by durable; those without any are left out."""
        self._catch_up()
        counts = {rules[1]: consumer.waiting() for rules, consumer in self.consumers.items()}
        return {durable: number for durable, number in counts.items() if number}
