"""`longtake plan`: what a workflow would do with an input and what it would cost, by its builder alone."""

from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from longtake.cli.inputs import read_input
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import AppName, Config, settings_of
from longtake.worker.registry import load_app
from longtake.workflow.mermaid import mermaid
from longtake.workflow.plan import Step
from longtake.workflow.refs import GroupName, Reference, find_references

app = App(name="plan", help="Show what a workflow would do and cost, without any server.")


@app.command
def show(
    workflow: str,
    *,
    input: Annotated[str, Parameter(help="A JSON file, or - for standard input")],
    format: Annotated[Literal["table", "json", "mermaid"], Parameter(help="Form of the plan")] = "table",
    app: AppName = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Plan `name@version` for an input and print every step with its price. Nothing is started or paid."""
    planned = load_app(settings_of(config=config, app=app).app).plan(workflow, read_input(input), {})
    if json or format == "json":
        print_json(
            {
                "workflow": planned.workflow,
                "workflow_version": planned.workflow_version,
                "fingerprint": planned.fingerprint,
                "price_list": planned.price_list,
                "quoted_credits": planned.quoted,
                "cap_credits": planned.cap,
                "scopes": list(planned.scopes),
                "policy": msgspec.Raw(planned.policy),
                "plan": msgspec.Raw(planned.plan_document),
            }
        )
        return
    if format == "mermaid":
        print_line(mermaid(planned.plan, {}).rstrip())
        return
    print_table(
        ("step", "phase", "activity", "waits for", "tries", "credits"),
        (
            (
                step.key,
                step.phase,
                step.activity,
                _waits(step),
                step.retry.max_attempts,
                step.price or "-",
            )
            for step in planned.plan.steps
        ),
    )
    print_line(
        f"\n{planned.workflow}@{planned.workflow_version}: {len(planned.plan.steps)} steps, {planned.quoted} credits, "
        f"never more than {planned.cap} (price list {planned.price_list})"
    )


def _waits(step: Step) -> str:
    names: dict[str, None] = {}
    for wait in step.depends_on:
        names[f"all of {wait.group}" if isinstance(wait, GroupName) else str(wait)] = None
    for item in find_references(step.input):
        if isinstance(item, Reference):
            names[f"all of {item.group}" if item.group is not None else str(item.step)] = None
    return ", ".join(names)
