"""`longtake run cancel|retry|pause|resume|input|event`: what is done with a run that is there."""

from typing import Annotated

from cyclopts import Parameter

from longtake.cli.inputs import read_object
from longtake.cli.output import Json
from longtake.cli.place import Server
from longtake.cli.sending import CommandId, Revision, RunId, send


def cancel(
    run_id: RunId,
    *,
    reason: Annotated[str | None, Parameter(help="Why, for the history")] = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Stop a run: no new work begins, and what was paid for and not delivered is settled."""
    send(
        server,
        json,
        lambda client: client.cancel(run_id, reason=reason, revision=revision, command_id=id),
    )


def retry(
    run_id: RunId,
    *,
    step: Annotated[str | None, Parameter(help="Only this step")] = None,
    accept_double_cost: Annotated[
        bool, Parameter(negative=(), help="A call whose outcome is not known may be paid twice")
    ] = False,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Go on with what is blocked, or try a failed optional step once more."""
    send(
        server,
        json,
        lambda client: client.retry(
            run_id, step=step, accept_double_cost=accept_double_cost, revision=revision, command_id=id
        ),
    )


def pause(
    run_id: RunId,
    *,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Let a run begin nothing new; what is under way is still collected."""
    send(server, json, lambda client: client.pause(run_id, revision=revision, command_id=id))


def resume(
    run_id: RunId,
    *,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Go on with a paused run; its times are extended by the pause."""
    send(server, json, lambda client: client.resume(run_id, revision=revision, command_id=id))


def input_(
    run_id: RunId,
    step: Annotated[str, Parameter(help="The step that asks")],
    *,
    answer: Annotated[str | None, Parameter(help="A JSON file with the answer, or -")] = None,
    cap: Annotated[int | None, Parameter(help="The new cap of the run, in credits")] = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Answer a step that needs input: with what it asks for, or with a larger cap."""
    given = None if answer is None else read_object(answer, option="--answer")
    send(
        server,
        json,
        lambda client: client.provide_input(
            run_id, step, answer=given, cap=cap, revision=revision, command_id=id
        ),
    )


def event(
    run_id: RunId,
    name: Annotated[str, Parameter(help="The name of the event")],
    *,
    payload: Annotated[str | None, Parameter(help="A JSON file with what the event says, or -")] = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Send a run the event that one of its steps waits for, or will wait for."""
    given = None if payload is None else read_object(payload, option="--payload")
    send(
        server,
        json,
        lambda client: client.send_event(run_id, name, given, revision=revision, command_id=id),
    )
