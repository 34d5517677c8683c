"""`longtake plan`: what a workflow would do with an input, what it would cost, and how that differs from another plan.

Made by the builders alone, without any server. Leaves to others: runs that are under way (plan_review.py).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from longtake.cli.inputs import read_input, read_policy
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import AppName, Config, settings_of
from longtake.cli.plan_review import accept, changes_rows, check
from longtake.errors import ConfigurationError, InvalidPlan
from longtake.store import PlannedRun
from longtake.worker.registry import App as Application
from longtake.worker.registry import load_app
from longtake.workflow.fingerprint import PlanBasis, differences, fingerprint, price_effect
from longtake.workflow.mermaid import mermaid
from longtake.workflow.plan import Step, quote, read_plan
from longtake.workflow.refs import GroupName, Reference, find_references

app = App(name="plan", help="Show, compare and check what workflows would do and cost.")
app.command(check)
app.command(accept)

InputFile = Annotated[str, Parameter(help="A JSON file, or - for standard input")]
Policy = Annotated[
    list[str] | None,
    Parameter(name="--policy", negative=(), help="A policy member as name=value; may be given again"),
]


@app.command
def show(
    workflow: str,
    *,
    input: InputFile,
    policy: Policy = None,
    price: Annotated[bool, Parameter(name="--price", negative=(), help="The quote alone")] = False,
    format: Annotated[Literal["table", "json", "mermaid"], Parameter(help="Form of the plan")] = "table",
    app: AppName = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Plan `name@version` for an input and print every step with its price. Nothing is started or paid."""
    application = load_app(settings_of(config=config, app=app).app)
    planned = application.plan(workflow, read_input(input), read_policy(policy or ()))
    as_json = json or format == "json"
    if price:
        _show_price(planned, as_json=as_json)
    elif as_json:
        print_json(_plan_file(planned))
    elif format == "mermaid":
        print_line(mermaid(planned.plan, {}).rstrip())
    else:
        _show_table(planned)


@app.command
def diff(
    workflow: str,
    *,
    input: InputFile,
    against: Annotated[
        str | None,
        Parameter(
            help="What it was: a file of `plan show --json`, or name@version; the version before without it"
        ),
    ] = None,
    policy: Policy = None,
    app: AppName = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Compare what `name@version` plans for an input with another plan: every difference, and what it does to the price.

    Ends with 0 when both are the same, with 1 when they differ, and with 2 when there was nothing to compare.
    """
    application = load_app(settings_of(config=config, app=app).app)
    members = read_policy(policy or ())
    given = read_input(input)
    planned = application.plan(workflow, given, members)
    after = _of_planned(planned)
    name, before = _baseline(application, planned, against, given, members)
    changes = differences(before, after)
    effect = price_effect(quote(before.plan), quote(after.plan))
    if json:
        print_json(
            {
                "same": not changes,
                "before": _side(name, before),
                "after": _side(f"{planned.workflow}@{planned.workflow_version}", after),
                "changes": changes,
                "price_effect": effect,
            }
        )
    elif changes:
        print_table(("where", "was", "is"), changes_rows(changes))
        print_line(f"\n{workflow} is not as {name} in {len(changes)} places; {effect}")
    else:
        print_line(f"{workflow} plans what {name} does; {effect}")
    return 1 if changes else 0


class _PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """What `plan show --json` printed."""

    workflow: str
    workflow_version: int
    price_list: str
    policy: Any
    plan: msgspec.Raw


def _plan_file(planned: PlannedRun) -> dict[str, Any]:
    return {
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


def _baseline(
    application: Application,
    planned: PlannedRun,
    against: str | None,
    given: Any,
    policy: Mapping[str, Any],
) -> tuple[str, PlanBasis]:
    """What the plan is compared with, under the name people gave it."""
    if against is None:
        earlier = [
            version
            for name, version in application.workflows
            if name == planned.workflow and version < planned.workflow_version
        ]
        if not earlier:
            raise ConfigurationError(
                f"{planned.workflow}@{planned.workflow_version} has no earlier version here; give --against "
                "a file of `longtake plan show --json`, or name@version"
            )
        against = f"{planned.workflow}@{max(earlier)}"
    elif Path(against).exists() or "@" not in against:
        return against, _read_plan_file(Path(against))
    return against, _of_planned(application.plan(against, given, policy))


def _read_plan_file(path: Path) -> PlanBasis:
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_PlanFile)
        return PlanBasis(
            plan=read_plan(bytes(stored.plan)), policy=stored.policy, price_basis=stored.price_list
        )
    except OSError as error:
        raise ConfigurationError(f"--against {path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, InvalidPlan) as error:
        raise ConfigurationError(
            f"--against {path} is no plan: {error}. Make it with `longtake plan show NAME@VERSION --input FILE --json`"
        ) from error


def _of_planned(planned: PlannedRun) -> PlanBasis:
    return PlanBasis(
        plan=planned.plan, policy=msgspec.json.decode(planned.policy), price_basis=planned.price_list
    )


def _side(name: str, basis: PlanBasis) -> dict[str, Any]:
    return {
        "name": name,
        "fingerprint": fingerprint(basis.plan, basis.policy, basis.price_basis),
        "price_list": basis.price_basis,
        "quoted_credits": quote(basis.plan),
    }


def _show_price(planned: PlannedRun, *, as_json: bool) -> None:
    """What the run is quoted at, step by step, before anything is started."""
    priced: Sequence[Step] = [step for step in planned.plan.steps if step.price]
    if as_json:
        print_json(
            {
                "workflow": planned.workflow,
                "workflow_version": planned.workflow_version,
                "price_list": planned.price_list,
                "quoted_credits": planned.quoted,
                "cap_credits": planned.cap,
                "billing": planned.plan.billing,
                "hold_credits": planned.quoted if planned.plan.hold == "quote" else planned.cap,
                "steps": [{"step": step.key, "credits": step.price} for step in priced],
            }
        )
        return
    if priced:
        print_table(("step", "credits"), ((step.key, step.price) for step in priced))
    print_line(_total(planned))


def _show_table(planned: PlannedRun) -> None:
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
    print_line(_total(planned))


def _total(planned: PlannedRun) -> str:
    when = "charged at the start" if planned.plan.billing == "prepaid" else "charged step by step"
    return (
        f"\n{planned.workflow}@{planned.workflow_version}: {len(planned.plan.steps)} steps, {planned.quoted} credits, "
        f"never more than {planned.cap} (price list {planned.price_list}), {when}"
    )


def _waits(step: Step) -> str:
    names: dict[str, None] = {}
    for wait in step.depends_on:
        names[f"all of {wait.group}" if isinstance(wait, GroupName) else str(wait)] = None
    for item in find_references(step.input):
        if isinstance(item, Reference):
            names[f"all of {item.group}" if item.group is not None else str(item.step)] = None
    return ", ".join(names)
