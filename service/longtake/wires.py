"""Wires: the transport and doorbell of a process, of JetStream or of none (floor 6).

Leaves to others: everything that uses them (bootstrap.py).
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import asyncpg
import msgspec

from longtake.engine.hints import CALLBACK_PARTS, pack_factor
from longtake.engine.store_guard import StoreGuard
from longtake.engine.streams import StreamGuard
from longtake.jetstream.connection import Connection, ConnectionOptions
from longtake.jetstream.doorbell import NatsDoorbell
from longtake.jetstream.memory import JetStreamMemory
from longtake.jetstream.readiness import StreamsReady
from longtake.jetstream.services import CommandServices, Handler
from longtake.jetstream.topology import topology_of
from longtake.jetstream.transport import JetStreamTransport
from longtake.lifecycle import Service
from longtake.polling import PollingTransport
from longtake.ports import Doorbell, OldestMessage, Transport
from longtake.postgres.doorbell import PostgresDoorbell
from longtake.postgres.waiting import PostgresWaitingStore
from longtake.store import SweepStore


class AnyTransport(Transport, OldestMessage, Protocol):
    """What roles use of a transport."""


class Wires(msgspec.Struct, kw_only=True):
    """The transport of one process with what belongs to it."""

    transport: AnyTransport
    doorbell: Doorbell
    services: list[Service]
    """In the order of their start: roles begin after them."""
    health: Callable[[], str]
    """For people: up, down, or off."""
    connection: Connection | None = None

    def requests(self, *, command: Handler, summary: Handler) -> list[Service]:
        """What answers requests over NATS; nothing without one."""
        if self.connection is None:
            return []
        return [CommandServices(self.connection, command=command, summary=summary)]


def wires_of(
    kind: str,
    *,
    idle_seconds: float,
    redelivery_seconds: float,
    postgres: Mapping[str, Any],
    nats_url: str,
    nats_token: str | None,
    pool: asyncpg.Pool,
    sweep: SweepStore,
    store_epoch: int,
) -> Wires:
    """The wires of a kind: jetstream, or off."""
    if kind == "off":
        return _off(idle_seconds, postgres, pool, store_epoch)
    connection = Connection(ConnectionOptions(servers=(nats_url,), role="longtake", token=nats_token or None))
    guard = StreamGuard(sweep)
    transport = JetStreamTransport(
        connection,
        settings=topology_of(redelivery_seconds),
        on_topology=guard.seen,
        on_behind=guard.behind,
    )
    doorbell = NatsDoorbell(connection)
    guard.doorbell = doorbell
    ready = StoreGuard(StreamsReady(transport), JetStreamMemory(connection), sweep)
    return Wires(
        transport=transport,
        doorbell=doorbell,
        services=[transport, ready, doorbell],
        health=lambda: "up" if connection.is_linked else "down",
        connection=connection,
    )


def _off(idle_seconds: float, postgres: Mapping[str, Any], pool: asyncpg.Pool, store_epoch: int) -> Wires:
    doorbell = PostgresDoorbell(postgres)
    transport = PollingTransport(
        PostgresWaitingStore(pool),
        doorbell,
        store_epoch=store_epoch,
        parts=CALLBACK_PARTS,
        pack=pack_factor,
        patience=lambda: doorbell.patience(idle_seconds),
    )
    return Wires(transport=transport, doorbell=doorbell, services=[doorbell], health=lambda: "off")
