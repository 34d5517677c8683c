"""`longtake plan check` and `plan accept`: the runs under way beside the code that is about to be deployed (P15).

`check` foretells, and changes nothing; the service's own plan check asks the same question. `accept` is the operator's
word that a run may go on with the plan it was accepted with although the code would build another.
"""

import getpass
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from longtake.cli.authority import authority
from longtake.cli.captured import CapturedRun, captured_files, read_captured
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import AppName, Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.contracts.codec import to_json
from longtake.engine.plan_check import plan_signal_id
from longtake.engine.plan_comparison import PlanComparison, compare_plan
from longtake.errors import ConfigurationError, LongtakeError
from longtake.postgres.plan_reviews import PostgresPlanReviews, price_list_of
from longtake.settings import Settings
from longtake.store import UncheckedRun
from longtake.worker.registry import load_app
from longtake.workflow.fingerprint import FieldChange

VALUE_CHARACTERS = 60
"""How much of a value a table shows; --json has it all."""
REASON_CHARACTERS_MAX = 300


class AcceptanceRefused(LongtakeError):
    """There is no drift of that run to accept."""


class _Review(msgspec.Struct, kw_only=True):
    """What a deployment would do to the runs under way."""

    same: int = 0
    unclaimed: int = 0
    ended: int = 0
    """Captured runs that had ended; they are not compared."""
    blocking: list[tuple[UncheckedRun, PlanComparison]] = []

    @property
    def active(self) -> int:
        return self.same + self.unclaimed + len(self.blocking)


def check(
    *,
    database: Annotated[
        str | None, Parameter(help="URL of the store (LONGTAKE_POSTGRES_URL, else the data directory's)")
    ] = None,
    histories: Annotated[
        Path | None, Parameter(help="A folder of captured runs in the place of a store")
    ] = None,
    app: AppName = None,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Build the plans of all active runs with this code and say which runs a deployment would block. Writes nothing.

    Ends with 0 when it would block none, with 1 when it would block some, and with 2 when that could not be found out.
    """
    if database is not None and histories is not None:
        raise ConfigurationError("--database and --histories are two places to look; give one of them")
    settings = settings_of(config=config, app=app, data_dir=data_dir, postgres_url=database)
    application = load_app(settings.app)

    async def work() -> _Review:
        review = _Review()
        source = _stored(settings) if histories is None else _captured(histories, review)
        async with source as runs:
            async for item in runs:
                _judge(review, item, compare_plan(application, item))
        return review

    review = run(work())
    if json:
        print_json(_document(review, application.application))
    else:
        _print(review)
    return 1 if review.blocking else 0


def accept(
    run_id: str,
    *,
    reason: Annotated[str, Parameter(help="Why the run may go on; it is kept in its history")],
    actor: Annotated[
        str | None, Parameter(help="Who says so; the name you are logged in as without it")
    ] = None,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Let a run that is blocked by plan drift go on with the plan it was accepted with, under the code deployed now.

    The next deployment is compared with its plan again.
    """
    if not 0 < len(reason.strip()) <= REASON_CHARACTERS_MAX:
        raise ConfigurationError(
            f"--reason has {len(reason.strip())} characters; say why in 1 to {REASON_CHARACTERS_MAX}"
        )
    try:
        id_ = uuid.UUID(run_id)
    except ValueError as error:
        raise AcceptanceRefused(
            f"{run_id!r} is no run id; `longtake run list --status blocked` names them"
        ) from error
    application = run(_accept(settings_of(config=config, data_dir=data_dir), id_, actor or _login(), reason))
    if json:
        print_json({"run_id": str(id_), "application": application, "reason": reason})
    else:
        print_line(f"run {id_} goes on with its accepted plan under application {application[:12]}")


def changes_rows(changes: Iterable[FieldChange]) -> list[tuple[str, str, str]]:
    """Rows of a table: where, what was, what is."""
    return [(change.pointer, _brief(change.before), _brief(change.after)) for change in changes]


async def _accept(settings: Settings, run_id: uuid.UUID, actor: str, reason: str) -> str:
    async with authority(settings) as pool:
        reviews = PostgresPlanReviews(pool)
        found = await reviews.drifted_run(run_id)
        if found is None:
            raise AcceptanceRefused(f"there is no run {run_id} in this store; `longtake run list` names them")
        if found.ended or not found.drift_blocked:
            raise AcceptanceRefused(
                f"run {run_id} is {found.status} and not blocked by plan drift; there is nothing to accept"
            )
        assert found.application is not None, "a run is blocked by drift of a deployed application"
        said = f"accepted by {actor}: {reason.strip()} (application {found.application[:12]})"
        await reviews.signal(
            id=plan_signal_id(run_id, f"accept {found.application}", found.revision),
            tenant=found.tenant,
            run_id=run_id,
            kind="plan_checked",
            payload=to_json({"application": found.application, "drift": None, "accepted": said}),
        )
        return found.application


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise ConfigurationError("nobody is logged in here; say who accepts with --actor") from error


@asynccontextmanager
async def _stored(settings: Settings) -> AsyncIterator[AsyncIterator[UncheckedRun]]:
    async with authority(settings) as pool:
        yield PostgresPlanReviews(pool).active_runs()


@asynccontextmanager
async def _captured(folder: Path, review: _Review) -> AsyncIterator[AsyncIterator[UncheckedRun]]:
    async def runs() -> AsyncIterator[UncheckedRun]:
        for path in captured_files(folder):
            captured = read_captured(path)
            if captured.active:
                yield _unchecked(captured)
            else:
                review.ended += 1

    yield runs()


def _unchecked(captured: CapturedRun) -> UncheckedRun:
    first = captured.events[0] if captured.events else None
    return UncheckedRun(
        run_id=captured.run_id,
        tenant=captured.tenant,
        workflow=captured.workflow,
        workflow_version=captured.workflow_version,
        fingerprint=captured.fingerprint,
        plan=captured.plan,
        input=captured.input,
        policy=captured.policy,
        drift_blocked="plan_drift" in captured.run["blockers"],
        revision=len(captured.events),
        price_list=None if first is None else price_list_of(first.type, first.version, first.data),
    )


def _judge(review: _Review, run: UncheckedRun, comparison: PlanComparison) -> None:
    if not comparison.claimed:
        review.unclaimed += 1
    elif comparison.drift is None:
        review.same += 1
    else:
        review.blocking.append((run, comparison))


def _print(review: _Review) -> None:
    for of, comparison in review.blocking:
        already = ", as it is now" if of.drift_blocked else ""
        print_line(
            f"run {of.run_id} of {of.workflow}@{of.workflow_version} would block{already}: {comparison.price_effect}"
        )
        for place in comparison.refusals:
            print_line(f"  {place.pointer}: {place.message}. {place.remedy}")
        if comparison.changes:
            print_table(
                ("  where", "was", "is"), ((f"  {w}", b, a) for w, b, a in changes_rows(comparison.changes))
            )
    parts = [f"{len(review.blocking)} would block", f"{review.same} would go on"]
    if review.unclaimed:
        parts.append(f"{review.unclaimed} are of workflows that this code does not have")
    ended = f" ({review.ended} captured runs had ended)" if review.ended else ""
    runs = "run" if review.active == 1 else "runs"
    print_line(f"{review.active} active {runs}: {', '.join(parts)}{ended}")


def _document(review: _Review, application: str) -> dict[str, Any]:
    return {
        "application": application,
        "active": review.active,
        "same": review.same,
        "unclaimed": review.unclaimed,
        "blocking": [
            {
                "run_id": str(run.run_id),
                "tenant": run.tenant,
                "workflow": run.workflow,
                "workflow_version": run.workflow_version,
                "blocked_already": run.drift_blocked,
                "changes": comparison.changes,
                "refusals": comparison.refusals,
                "price_effect": comparison.price_effect,
            }
            for run, comparison in review.blocking
        ],
    }


def _brief(value: Any) -> str:
    if value is msgspec.UNSET:
        return "-"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "…"
