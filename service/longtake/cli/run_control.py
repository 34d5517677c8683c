"""`longtake run cancel|retry|pause|resume|input|event`: what is done with a run that is there."""

from typing import Annotated

from cyclopts import Parameter

from longtake.cli.inputs import read_input
from longtake.cli.output import Json
from longtake.cli.place import Server
from longtake.cli.sending import CommandId, Revision, send


def cancel(
    run_id: str,
    *,
    reason: str | None = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Cancel a run; what was paid for and not delivered is settled."""
    send(
        server,
        json,
        lambda client: client.cancel(run_id, reason=reason, revision=revision, command_id=id),
    )


def retry(
    run_id: str,
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
    """Go on with the blocked steps of a run."""
    send(
        server,
        json,
        lambda client: client.retry(
            run_id, step=step, accept_double_cost=accept_double_cost, revision=revision, command_id=id
        ),
    )


def pause(
    run_id: str,
    *,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Begin nothing new; what is under way is still collected."""
    send(server, json, lambda client: client.pause(run_id, revision=revision, command_id=id))


def resume(
    run_id: str,
    *,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Go on with a paused run; its times are extended by the pause."""
    send(server, json, lambda client: client.resume(run_id, revision=revision, command_id=id))


def input_(
    run_id: str,
    step: str,
    *,
    answer: Annotated[str | None, Parameter(help="A JSON file with the answer, or -")] = None,
    cap: Annotated[int | None, Parameter(help="The new cap of the run, in credits")] = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Answer a step that needs input: with what it asks for, or with a larger cap."""
    given = None if answer is None else read_input(answer, option="--answer")
    send(
        server,
        json,
        lambda client: client.provide_input(
            run_id, step, answer=given, cap=cap, revision=revision, command_id=id
        ),
    )


def event(
    run_id: str,
    name: str,
    *,
    payload: Annotated[str | None, Parameter(help="A JSON file with what the event says, or -")] = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Send a run the event that one of its steps waits for, or will wait for."""
    given = None if payload is None else read_input(payload, option="--payload")
    send(
        server,
        json,
        lambda client: client.send_event(run_id, name, given, revision=revision, command_id=id),
    )
