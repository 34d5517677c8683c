"""`longtake run`: runs over HTTP - started, listed, shown, watched; and below the same name everything that controls them.

Leaves to others: controlling (run_control.py), and starting from a run that is there (run_successors.py).
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from longtake.cli.inputs import Input, read_input
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import Server
from longtake.cli.run_control import cancel, event, input_, pause, resume, retry
from longtake.cli.run_successors import follow_up, fork, steer
from longtake.cli.sending import CommandId, RunId, StartOptions, WorkflowName, print_accepted, with_client
from longtake.cli.watching import watch_run
from longtake.cli.ways_out import ways_out
from longtake.client import Client, RunPage, StepNow
from longtake.contracts.summary import Summary
from longtake.workflow.step import WORKED

StartKind = Literal["generation", "new_turn", "utility", "export"]

app = App(name="run", help="Start, watch and control runs.")
for control in (cancel, retry, pause, resume, event, steer, fork):
    app.command(control)
app.command(input_, name="input")
app.command(follow_up, name="follow-up")

ENDED_WELL = "completed"


@app.command
def start(
    workflow: WorkflowName,
    *,
    input: Input,
    project: Annotated[str, Parameter(help="The project the run belongs to")],
    kind: Annotated[StartKind, Parameter(help="What the run is to its conversation")] = "generation",
    options: StartOptions | None = None,
    id: CommandId = None,
    watch: Annotated[bool, Parameter(negative=(), help="Follow the run to its end")] = False,
    server: Server | None = None,
    json: Json = False,
) -> int:
    """Start `name@version` with an input."""
    given = read_input(input)
    chosen = (options or StartOptions()).as_arguments()

    async def work(client: Client) -> int:
        accepted = await client.start(workflow, given, project=project, kind=kind, command_id=id, **chosen)
        print_accepted(accepted, json)
        if watch and accepted.run_id is not None:
            return await _watched(client, accepted.run_id, json)
        return 0

    return with_client(server, work)


@app.command(name="list")
def list_(
    *,
    project: Annotated[str | None, Parameter(help="Only those of this project")] = None,
    status: Annotated[str | None, Parameter(help="Only those that stand like this")] = None,
    workflow: Annotated[str | None, Parameter(help="Only those of the workflow of this name")] = None,
    limit: Annotated[int, Parameter(help="How many at most")] = 50,
    cursor: Annotated[str | None, Parameter(help="Where the page before ended")] = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Runs, newest first."""

    async def work(client: Client) -> RunPage:
        return await client.runs(
            project=project, status=status, workflow=workflow, limit=limit, cursor=cursor
        )

    page = with_client(server, work)
    if json:
        print_json(page)
        return
    print_table(
        ("run", "workflow", "project", "status", "phase", "label", "credits", "accepted"),
        (
            (
                run.run_id,
                f"{run.workflow}@{run.workflow_version}",
                run.project,
                run.status,
                run.phase,
                run.label,
                run.charged - run.refunded,
                run.accepted_at.strftime("%Y-%m-%d %H:%M:%S"),
            )
            for run in page.runs
        ),
        status_column=3,
    )
    if page.next_cursor:
        print_line(f"\nmore: --cursor {page.next_cursor}")


@app.command
def show(run_id: RunId, *, server: Server | None = None, json: Json = False) -> None:
    """How a run stands, what it waits for and how to answer that, and its steps."""

    async def work(client: Client) -> tuple[Summary, list[StepNow]]:
        return await client.summary(run_id), await client.steps(run_id)

    summary, steps = with_client(server, work)
    if json:
        print_json({"summary": summary, "steps": steps})
        return
    print_summary(summary, steps)
    print_line("")
    print_table(
        ("step", "status", "attempt", "progress", "worker", "said"),
        (
            (
                step.key,
                step.status,
                f"{step.attempt}/{step.max_attempts}" if step.attempt and step.kind in WORKED else "",
                "" if step.progress is None else f"{step.progress} %",
                step.worker or "",
                step.error_message or step.external_ref or "",
            )
            for step in steps
        ),
        status_column=1,
    )


@app.command
def watch(run_id: RunId, *, server: Server | None = None, json: Json = False) -> int:
    """Follow a run to its end, event by event. Ends with 0 only when the run completed."""

    async def work(client: Client) -> int:
        return await _watched(client, run_id, json)

    return with_client(server, work)


def print_summary(summary: Summary, steps: Sequence[StepNow] = ()) -> None:
    """A summary for people; `steps` tell more of what it waits for."""
    progress, cost = summary.progress, summary.cost
    print_line(f"run       {summary.run_id}  ({summary.workflow}@{summary.workflow_version})")
    print_line(f"status    {summary.status}, revision {summary.revision}: {summary.label}")
    print_line(f"progress  {progress.completed} of {progress.total} steps, {progress.percent} %")
    print_line(
        f"credits   {cost.charged_credits} charged, {cost.refunded_credits} refunded, {cost.quoted_credits} quoted"
    )
    for way in ways_out(summary, steps):
        print_line(f"{way.word:<10}{way.what}")
        if way.command is not None:
            print_line(f"          {way.command}")
    if summary.available_actions:
        print_line(f"you may   {', '.join(summary.available_actions)}")
    if summary.failure is not msgspec.UNSET:
        print_line(f"failure   {summary.failure.message} ({summary.failure.origin}). {summary.failure.money}")


async def _watched(client: Client, run_id: str, as_json: bool) -> int:
    summary = await watch_run(client, run_id, as_json=as_json)
    if as_json:
        print_json(summary)
    else:
        print_line("")
        print_summary(summary)
    return 0 if summary.status == ENDED_WELL else 1
