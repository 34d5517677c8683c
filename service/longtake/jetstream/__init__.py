"""NATS JetStream behind the ports: hints that may be lost, doubled, reordered or deleted at any moment.

A tour: connection.py keeps one client alive and watchdog.py says when it is dead; topology.py declares streams and consumers;
publisher.py and subscriber.py move messages, delivery.py settles them; doorbell.py wakes idle roles; services.py answers requests;
transport.py puts them together.
"""

from longtake.jetstream.connection import Connection, ConnectionOptions
from longtake.jetstream.delivery import settling
from longtake.jetstream.doorbell import NatsDoorbell
from longtake.jetstream.services import CommandServices, ServiceRequest
from longtake.jetstream.topology import StreamIdentity, TopologySettings, ensure_topology
from longtake.jetstream.transport import JetStreamTransport

__all__ = [
    "CommandServices",
    "Connection",
    "ConnectionOptions",
    "JetStreamTransport",
    "NatsDoorbell",
    "ServiceRequest",
    "StreamIdentity",
    "TopologySettings",
    "ensure_topology",
    "settling",
]
