"""Commands: the intent of a client, deduplicated by (tenant, actor, client command id) and canonical hash.

Leaves to others: deciding (workflow/), storing (admission), and where the idempotency key stood in the request (edge).
"""

import hashlib
from typing import Annotated, Any, Literal

import msgspec

from longtake.contracts.codec import canonical
from longtake.contracts.command_table import CommandKind
from longtake.contracts.problems import Problem
from longtake.contracts.summary import Summary

COMMAND_BYTES_MAX = 256 * 1024
"""Limit of one encoded command (reliability.md 5.2)."""

PROJECT_CHARACTERS_MAX = 256

CommandStatus = Literal[
    "accepted", "attached", "scheduled", "running", "applied", "completed", "failed", "cancelled", "superseded",
    "rejected",
]  # fmt: skip


class Attachment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored object that a command refers to."""

    object_key: str
    sha256: str


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command as it travels in a body, over HTTP and NATS alike."""

    kind: CommandKind
    project: Annotated[str, msgspec.Meta(min_length=1, max_length=PROJECT_CHARACTERS_MAX)]
    conversation: str | None = None
    text: str | None = None
    targets: tuple[str, ...] = ()
    """What the command is about: one run id, for the kinds that need a run."""
    payload: dict[str, Any] = {}
    """By kind; contracts/command_table.py has the shapes."""
    attachments: tuple[Attachment, ...] = ()

    client_command_id: str | None = None
    """Idempotency key. Over HTTP the Idempotency-Key header may carry it instead; both must agree."""
    expected_revision: int | None = None
    """Revision the client saw (P3), for the kinds that act on a run that may move."""

    def intent_hash(self) -> str:
        """SHA-256 over exactly kind, project, conversation, text, targets, payload, attachments (G17)."""
        body = {
            "kind": self.kind,
            "project": self.project,
            "conversation": self.conversation,
            "text": self.text,
            "targets": list(self.targets),
            "payload": self.payload,
            "attachments": [msgspec.to_builtins(item) for item in self.attachments],
        }
        return hashlib.sha256(canonical(body)).hexdigest()


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The durable answer to a command, the same for every repeat (P23)."""

    command_id: str
    kind: CommandKind
    status: CommandStatus
    run_id: str | None = None
    revision: int | None = None
    summary: Summary | None = None
    problem: Problem | None = None


class CommandRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command as its row tells it."""

    command_id: str
    kind: CommandKind
    project: str
    status: CommandStatus
    intent_hash: str
    accepted_at: str
    run_id: str | None = None
    receipt: Receipt | None = None
