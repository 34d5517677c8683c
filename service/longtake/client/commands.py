"""Every command as a method: what a run is started with, and what is done with one (contracts/command_table.py).

A method that acts on a run takes the revision its caller saw; without one it reads the run and speaks of it as it is now.
Leaves to others: reading (client.py), the wire (http.py).
"""

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from longtake.client.answers import Accepted, Run
from longtake.client.http import Wire, token
from longtake.contracts.command_table import TABLE, CommandKind, OnConflict
from longtake.contracts.commands import Attachment, Command


class Commands:
    """Sends commands. Repeated while the server is away: the id of a command makes that safe."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def start(
        self,
        workflow: str,
        input: Any,
        *,
        project: str,
        kind: CommandKind = "generation",
        conversation: str | None = None,
        text: str | None = None,
        policy: Mapping[str, Any] | None = None,
        account: str | None = None,
        max_credits: int | None = None,
        start_at: datetime | None = None,
        on_conflict: OnConflict | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Start a run: a generation, or a new_turn, utility or export that the workflow declares."""
        payload = _start_payload(workflow, input, policy, account, max_credits, start_at, on_conflict)
        return await self.command(
            kind,
            project=project,
            conversation=conversation,
            text=text,
            payload=payload,
            command_id=command_id,
        )

    async def follow_up(
        self,
        run_id: str,
        workflow: str,
        input: Any,
        *,
        conversation: str | None = None,
        text: str | None = None,
        policy: Mapping[str, Any] | None = None,
        account: str | None = None,
        max_credits: int | None = None,
        start_at: datetime | None = None,
        on_conflict: OnConflict | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Start a run that refers to an earlier one, in its project."""
        return await self.command(
            "follow_up",
            project=(await self._of(run_id)).project,
            conversation=conversation,
            text=text,
            targets=(run_id,),
            payload=_start_payload(workflow, input, policy, account, max_credits, start_at, on_conflict),
            command_id=command_id,
        )

    async def steer(
        self,
        run_id: str,
        *,
        input: Any = None,
        workflow: str | None = None,
        policy: Mapping[str, Any] | None = None,
        account: str | None = None,
        max_credits: int | None = None,
        text: str | None = None,
        revision: int | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Put a successor in the place of an active run; what is not given is as it was."""
        changed = {"workflow": workflow, "input": input, "account": account, "max_credits": max_credits}
        payload = {name: value for name, value in changed.items() if value is not None}
        if policy is not None:
            payload["policy"] = dict(policy)
        return await self._control("steer", run_id, revision, payload, command_id, text=text)

    async def fork(
        self,
        run_id: str,
        step: str,
        *,
        max_extra_credits: int | None = None,
        account: str | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Run again from a step on, and take over what stands before it."""
        given = {"step": step, "max_extra_credits": max_extra_credits, "account": account}
        payload = {name: value for name, value in given.items() if value is not None}
        return await self._control("fork", run_id, None, payload, command_id)

    async def cancel(
        self,
        run_id: str,
        *,
        revision: int | None = None,
        reason: str | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Cancel a run; without a revision, as it is now."""
        payload = {"reason": reason} if reason is not None else {}
        return await self._control("cancel", run_id, revision, payload, command_id)

    async def retry(
        self,
        run_id: str,
        *,
        step: str | None = None,
        accept_double_cost: bool = False,
        revision: int | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Go on with blocked steps, or with one of them."""
        payload: dict[str, Any] = {}
        if step is not None:
            payload["step"] = step
        if accept_double_cost:
            payload["accept_double_cost"] = True
        return await self._control("retry", run_id, revision, payload, command_id)

    async def pause(
        self, run_id: str, *, revision: int | None = None, command_id: str | None = None
    ) -> Accepted:
        """Begin nothing new; what is under way is still collected."""
        return await self._control("pause", run_id, revision, {}, command_id)

    async def resume(
        self, run_id: str, *, revision: int | None = None, command_id: str | None = None
    ) -> Accepted:
        """Go on, with all times extended by the pause."""
        return await self._control("resume", run_id, revision, {}, command_id)

    async def provide_input(
        self,
        run_id: str,
        step: str,
        *,
        answer: Mapping[str, Any] | None = None,
        cap: int | None = None,
        revision: int | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Answer a step that needs input, or give it the larger cap it waits for."""
        payload: dict[str, Any] = {"step": step}
        if answer is not None:
            payload["answer"] = dict(answer)
        if cap is not None:
            payload["cap"] = cap
        return await self._control("provide_input", run_id, revision, payload, command_id)

    async def send_event(
        self,
        run_id: str,
        name: str,
        payload: Mapping[str, Any] | None = None,
        *,
        revision: int | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Send a named event; one that comes early is kept, and counts once."""
        body = {"name": name, "payload": dict(payload or {})}
        return await self._control("send_event", run_id, revision, body, command_id)

    async def command(
        self,
        kind: CommandKind,
        *,
        project: str,
        payload: Mapping[str, Any],
        conversation: str | None = None,
        text: str | None = None,
        targets: tuple[str, ...] = (),
        attachments: tuple[Attachment, ...] = (),
        expected_revision: int | None = None,
        command_id: str | None = None,
    ) -> Accepted:
        """Send any command."""
        command = Command(
            kind=kind,
            project=project,
            conversation=conversation,
            text=text,
            payload=dict(payload),
            targets=targets,
            attachments=attachments,
            expected_revision=expected_revision,
            client_command_id=command_id or uuid.uuid4().hex,
        )
        response = await self._wire.request(
            "POST",
            "/v1/commands",
            content=msgspec.json.encode(command),
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": str(command.client_command_id),
            },
        )
        accepted = msgspec.json.decode(response.content, type=Accepted)
        replayed = response.headers.get("idempotency-replayed") == "true"
        return msgspec.structs.replace(accepted, replayed=replayed)

    async def _control(
        self,
        kind: CommandKind,
        run_id: str,
        revision: int | None,
        payload: Mapping[str, Any],
        command_id: str | None,
        *,
        text: str | None = None,
    ) -> Accepted:
        run = await self._of(run_id)
        seen = run.revision if revision is None else revision
        return await self.command(
            kind,
            project=run.project,
            text=text,
            payload=payload,
            targets=(run.run_id,),
            expected_revision=seen if TABLE[kind].needs_revision else None,
            command_id=command_id,
        )

    async def _of(self, run_id: str) -> Run:
        response = await self._wire.request("GET", f"/v1/runs/{token(run_id)}", params=None)
        return msgspec.json.decode(response.content, type=Run)


def _start_payload(
    workflow: str,
    input: Any,
    policy: Mapping[str, Any] | None,
    account: str | None,
    max_credits: int | None,
    start_at: datetime | None,
    on_conflict: OnConflict | None,
) -> dict[str, Any]:
    payload: dict[str, Any] = {"workflow": workflow, "input": input}
    if policy:
        payload["policy"] = dict(policy)
    if start_at is not None:
        payload["start_at"] = start_at.isoformat()
    given = {"account": account, "max_credits": max_credits, "on_conflict": on_conflict}
    return payload | {name: value for name, value in given.items() if value is not None}
