"""`longtake run`: runs over HTTP - started, listed, shown, watched, cancelled, tried again."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
from cyclopts import App, Parameter

from longtake.cli.inputs import read_input
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import Server
from longtake.cli.process import run as run_async
from longtake.cli.watching import watch_run
from longtake.client import Accepted, Client, RunPage, StepNow
from longtake.contracts.summary import Summary

T = TypeVar("T")

app = App(name="run", help="Start, watch and control runs.")

ENDED_WELL = "completed"


@app.command
def start(
    workflow: str,
    *,
    input: Annotated[str, Parameter(help="A JSON file, or - for standard input")],
    project: Annotated[str, Parameter(help="The project the run belongs to")],
    id: Annotated[
        str | None, Parameter(help="Your id of this command; the same id again is the same run")
    ] = None,
    watch: Annotated[bool, Parameter(negative=(), help="Follow the run to its end")] = False,
    server: Server | None = None,
    json: Json = False,
) -> int:
    """Start `name@version` with an input."""
    given = read_input(input)

    async def work(client: Client) -> int:
        accepted = await client.start(workflow, given, project=project, command_id=id)
        _print_accepted(accepted, json)
        if watch and accepted.run_id is not None:
            return await _watched(client, accepted.run_id, json)
        return 0

    return _with(server, work)


@app.command(name="list")
def list_(
    *,
    project: str | None = None,
    status: str | None = None,
    workflow: str | None = None,
    limit: int = 50,
    cursor: str | None = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Runs, newest first."""

    async def work(client: Client) -> RunPage:
        return await client.runs(
            project=project, status=status, workflow=workflow, limit=limit, cursor=cursor
        )

    page = _with(server, work)
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
def show(run_id: str, *, server: Server | None = None, json: Json = False) -> None:
    """The summary of a run and its steps."""

    async def work(client: Client) -> tuple[Summary, list[StepNow]]:
        return await client.summary(run_id), await client.steps(run_id)

    summary, steps = _with(server, work)
    if json:
        print_json({"summary": summary, "steps": steps})
        return
    print_summary(summary)
    print_line("")
    print_table(
        ("step", "status", "attempt", "progress", "worker", "said"),
        (
            (
                step.key,
                step.status,
                f"{step.attempt}/{step.max_attempts}" if step.attempt else "",
                "" if step.progress is None else f"{step.progress} %",
                step.worker or "",
                step.error_message or step.external_ref or "",
            )
            for step in steps
        ),
        status_column=1,
    )


@app.command
def watch(run_id: str, *, server: Server | None = None, json: Json = False) -> int:
    """Follow a run to its end, event by event. Ends with 0 only when the run completed."""

    async def work(client: Client) -> int:
        return await _watched(client, run_id, json)

    return _with(server, work)


@app.command
def cancel(
    run_id: str,
    *,
    reason: str | None = None,
    revision: Annotated[
        int | None, Parameter(help="The revision you saw; the present one without it")
    ] = None,
    id: Annotated[str | None, Parameter(help="Your id of this command")] = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Cancel a run; what was paid for and not delivered is settled."""

    async def work(client: Client) -> Accepted:
        return await client.cancel(run_id, reason=reason, revision=revision, command_id=id)

    _print_accepted(_with(server, work), json)


@app.command
def retry(
    run_id: str,
    *,
    step: Annotated[str | None, Parameter(help="Only this step")] = None,
    accept_double_cost: Annotated[
        bool, Parameter(negative=(), help="A call whose outcome is not known may be paid twice")
    ] = False,
    revision: Annotated[
        int | None, Parameter(help="The revision you saw; the present one without it")
    ] = None,
    id: Annotated[str | None, Parameter(help="Your id of this command")] = None,
    server: Server | None = None,
    json: Json = False,
) -> None:
    """Go on with the blocked steps of a run."""

    async def work(client: Client) -> Accepted:
        return await client.retry(
            run_id, step=step, accept_double_cost=accept_double_cost, revision=revision, command_id=id
        )

    _print_accepted(_with(server, work), json)


def print_summary(summary: Summary) -> None:
    """A summary for people."""
    progress, cost = summary.progress, summary.cost
    print_line(f"run       {summary.run_id}  ({summary.workflow}@{summary.workflow_version})")
    print_line(f"status    {summary.status}, revision {summary.revision}: {summary.label}")
    print_line(f"progress  {progress.completed} of {progress.total} steps, {progress.percent} %")
    print_line(
        f"credits   {cost.charged_credits} charged, {cost.refunded_credits} refunded, {cost.quoted_credits} quoted"
    )
    for blocker in summary.blockers:
        print_line(f"blocked   {blocker.type}" + (f" at {blocker.step}" if blocker.step else ""))
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


def _print_accepted(accepted: Accepted, as_json: bool) -> None:
    if as_json:
        print_json(accepted)
        return
    again = " (as before)" if accepted.replayed else ""
    print_line(f"{accepted.kind} {accepted.command_id}: {accepted.status}{again}")
    if accepted.run_id is not None:
        print_line(f"run {accepted.run_id}")


def _with(server: Server | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client."""

    async def main() -> T:
        async with (server or Server()).client() as client:
            return await work(client)

    return run_async(main())
