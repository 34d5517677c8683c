"""The Python client of a longtake over HTTP; public for producers and dashboards."""

from longtake.client.answers import (
    Accepted,
    Attempt,
    Claim,
    CommandNow,
    EventPage,
    EventSeen,
    Health,
    Ledger,
    LedgerEntry,
    PublishedArtifact,
    Run,
    RunPage,
    StepNow,
)
from longtake.client.client import Client
from longtake.client.download import DownloadDamaged
from longtake.client.errors import ProblemReceived, ServerUnreachable

__all__ = [
    "Accepted",
    "Attempt",
    "Claim",
    "Client",
    "CommandNow",
    "DownloadDamaged",
    "EventPage",
    "EventSeen",
    "Health",
    "Ledger",
    "LedgerEntry",
    "ProblemReceived",
    "PublishedArtifact",
    "Run",
    "RunPage",
    "ServerUnreachable",
    "StepNow",
]
