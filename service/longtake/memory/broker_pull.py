"""One client's pulls from a durable consumer.

Leaves to others: waiting, and declaring a lost consumer again (transport.py).
"""

from longtake.memory.broker_consumer import ConsumerGone
from longtake.memory.broker_server import BrokerServer, Copy


class Puller:
    """One client's pulls. The pull that stands when its consumer is deleted looks like idleness; the next one is an error."""

    def __init__(self, broker: BrokerServer, stream: str, durable: str) -> None:
        self._broker = broker
        self._key = (stream, durable)
        self._stood = False

    def pull(self, limit: int) -> list[Copy]:
        """Take up to so many messages; ConsumerGone when there is nobody to take them from."""
        broker = self._broker
        consumer = broker.consumers.get(self._key)
        if consumer is not None:
            self._stood = True
            return broker.take(consumer, limit)
        if self._stood and broker.habits.deleted_looks_idle:
            self._stood = False
            return []
        if not broker.habits.deleted_raises_next:
            return []
        raise ConsumerGone(f"{self._key[1]}: consumer of {self._key[0]} not found")
