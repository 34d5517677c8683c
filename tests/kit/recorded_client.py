"""A client that writes down what it asked for and what it was told, as the checker wants it (4.6)."""

from collections.abc import Awaitable
from typing import Any

import msgspec

from longtake.client import Client
from longtake.client.answers import Accepted
from longtake.client.errors import ProblemReceived, ServerUnreachable
from longtake.contracts.summary import Summary
from longtake.testing.checking import Recorder

UNDECIDED = frozenset({"command-in-progress", "unavailable", "internal"})
"""Refusals that say nothing of what becomes of the command."""


class RecordedClient:
    """One session of one client: one call at a time."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self.client = client
        self.recorder = recorder

    async def start(
        self, command_id: str, workflow: str, input_: Any, *, project: str = "p1", **asked: Any
    ) -> Accepted | None:
        """Start a run; None when it was refused or nobody knows. `asked`: more of what a client may ask for."""
        op = self.recorder.invoke("start", command_id, {"kind": "generation"})
        return await self._told(
            op, self.client.start(workflow, input_, project=project, command_id=command_id, **asked)
        )

    async def command(
        self, kind: Any, run_id: str, command_id: str, revision: int, *, project: str = "p1", **payload: Any
    ) -> Accepted | None:
        """Send a command about a run as it was at a revision."""
        asked = {"kind": kind, "id": command_id, "expected_revision": revision}
        op = self.recorder.invoke("command", run_id, asked)
        sent = self.client.command(
            kind,
            project=project,
            payload=payload,
            targets=(run_id,),
            expected_revision=revision,
            command_id=command_id,
        )
        return await self._told(op, sent)

    async def read(self, run_id: str) -> Summary | None:
        """Read a summary."""
        op = self.recorder.invoke("read", run_id)
        try:
            response = await self.client._wire.request("GET", f"/v1/runs/{run_id}/summary")
        except ProblemReceived as refusal:
            self.recorder.fail(op, {"problem": refusal.problem.slug})
            return None
        except ServerUnreachable:
            self.recorder.info(op)
            return None
        summary = msgspec.json.decode(response.content, type=Summary)
        epoch = int(response.headers["etag"].strip('W/"').partition("-")[0].removeprefix("e"))
        told = {
            "revision": summary.revision,
            "epoch": epoch,
            "status": summary.status,
            "actions": list(summary.available_actions),
        }
        self.recorder.ok(op, told)
        return summary

    async def _told(self, op: int, sent: Awaitable[Accepted]) -> Accepted | None:
        try:
            accepted = await sent
        except ProblemReceived as refusal:
            slug = refusal.problem.slug
            (self.recorder.info if slug in UNDECIDED else self.recorder.fail)(op, {"problem": slug})
            return None
        except ServerUnreachable:
            self.recorder.info(op)
            return None
        told = {"run_id": accepted.run_id, "revision": accepted.revision, "status": accepted.status}
        self.recorder.ok(op, told)
        return accepted
