"""`longtake run steer|follow-up|fork`: runs that begin with one that is there."""

from typing import Annotated

from cyclopts import Parameter

from longtake.cli.fork_price import fork_price, print_fork
from longtake.cli.inputs import Input, Policy, read_input, read_policy
from longtake.cli.output import Json
from longtake.cli.place import Server
from longtake.cli.sending import CommandId, Revision, RunId, StartOptions, WorkflowName, send, with_client


def steer(
    run_id: RunId,
    *,
    input: Annotated[
        str | None, Parameter(help="A JSON file with the changed input, or -; the old one without it")
    ] = None,
    workflow: Annotated[str | None, Parameter(help="Another workflow, as name@version")] = None,
    policy: Policy = None,
    account: Annotated[str | None, Parameter(help="Another account that pays")] = None,
    max_credits: Annotated[
        int | None, Parameter(help="The most that you allow the successor to cost")
    ] = None,
    text: Annotated[str | None, Parameter(help="What the user said")] = None,
    revision: Revision = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Put a changed run in the place of an active one."""
    given = None if input is None else read_input(input)
    changed = None if policy is None else read_policy(policy)
    send(
        server,
        json,
        lambda client: client.steer(
            run_id,
            input=given,
            workflow=workflow,
            policy=changed,
            account=account,
            max_credits=max_credits,
            text=text,
            revision=revision,
            command_id=id,
        ),
    )


def follow_up(
    run_id: RunId,
    workflow: WorkflowName,
    *,
    input: Input,
    options: StartOptions | None = None,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Start `name@version` as a run that refers to an earlier one."""
    given = read_input(input)
    chosen = (options or StartOptions()).as_arguments()
    send(server, json, lambda client: client.follow_up(run_id, workflow, given, command_id=id, **chosen))


def fork(
    run_id: RunId,
    step: Annotated[str, Parameter(help="This step, and what follows from it, is done anew")],
    *,
    max_extra_credits: Annotated[
        int | None, Parameter(help="The most that you allow it to cost more")
    ] = None,
    account: Annotated[str | None, Parameter(help="Another account that pays")] = None,
    price: Annotated[
        bool, Parameter(name="--price", negative=(), help="Only say what it would cost; nothing is started")
    ] = False,
    id: CommandId = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Run an ended run again from a step on; what stands before it is taken over."""
    if price:
        print_fork(with_client(server, lambda client: fork_price(client, run_id, step)), as_json=json)
        return
    send(
        server,
        json,
        lambda client: client.fork(
            run_id, step, max_extra_credits=max_extra_credits, account=account, command_id=id
        ),
    )
