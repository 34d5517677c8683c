"""Steps, effects and the plan of a run: what is to be done, what is under way, and who did it."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar import Response, get

from longtake.api.answers import (
    AttemptAnswer,
    ClaimAnswer,
    EffectAnswer,
    Effects,
    PlanAnswer,
    StepAnswer,
    Steps,
)
from longtake.api.context import Api, Caller, Row
from longtake.api.parameters import choice, identifier
from longtake.api.problems import not_found
from longtake.workflow.mermaid import mermaid
from longtake.workflow.plan import Plan, Step, read_plan

MERMAID_MEDIA_TYPE = "text/vnd.mermaid"
LIVE = frozenset({"queued", "reconciling", "waiting_external"})
"""Step statuses that a live lease turns into `running`."""


@get("/v1/runs/{run_id:str}/steps")
async def get_steps(request: Caller, api: Api, run_id: str) -> Response[Steps]:
    """Every step of the plan with its attempts, claims, live worker and progress."""
    tenant, id_ = request.user.tenant, identifier(run_id, "run")
    frozen = await api.reads.plan(tenant, id_)
    if frozen is None:
        raise not_found(f"run {run_id}")
    rows = {row["key"]: row for row in await api.reads.steps(tenant, id_)}
    effects = await api.reads.effects(tenant, id_)
    claims = await api.reads.claims(tenant, id_)
    plan = read_plan(frozen["plan"])
    leases = _live_leases(effects, datetime.now(UTC))
    return Response(
        Steps(
            run_id=id_,
            steps=[
                _step(step, index, rows.get(step.key), leases.get(step.key), _attempts(step.key, claims))
                for index, step in enumerate(plan.steps)
            ],
        )
    )


@get("/v1/runs/{run_id:str}/effects")
async def get_effects(request: Caller, api: Api, run_id: str) -> Response[Effects]:
    """Every effect of the run with its evidence."""
    id_ = identifier(run_id, "run")
    if await api.reads.summary(request.user.tenant, id_) is None:
        raise not_found(f"run {run_id}")
    rows = await api.reads.effects(request.user.tenant, id_)
    return Response(Effects(run_id=id_, effects=[_effect(row) for row in rows]))


@get("/v1/runs/{run_id:str}/plan")
async def get_plan(request: Caller, api: Api, run_id: str) -> Response[Any]:
    """The frozen plan, as data or as a Mermaid picture coloured by status."""
    form = choice(request, "format", ("json", "mermaid")) or "json"
    tenant, id_ = request.user.tenant, identifier(run_id, "run")
    row = await api.reads.plan(tenant, id_)
    if row is None:
        raise not_found(f"run {run_id}")
    if form == "mermaid":
        statuses = await _statuses(api, tenant, id_, read_plan(row["plan"]))
        return Response(mermaid(read_plan(row["plan"]), statuses), media_type=MERMAID_MEDIA_TYPE)
    return Response(
        PlanAnswer(
            run_id=id_,
            workflow=row["workflow"],
            workflow_version=row["workflow_version"],
            fingerprint=row["fingerprint"],
            plan=msgspec.Raw(row["plan"]),
            input=msgspec.Raw(row["input"]),
            policy=msgspec.Raw(row["policy"]),
        )
    )


async def _statuses(api: Api, tenant: str, id_: uuid.UUID, plan: Plan) -> dict[str, str]:
    rows = {row["key"]: row["status"] for row in await api.reads.steps(tenant, id_)}
    leases = _live_leases(await api.reads.effects(tenant, id_), datetime.now(UTC))
    return {step.key: _status(rows.get(step.key, "pending"), leases.get(step.key)) for step in plan.steps}


def _live_leases(effects: Iterable[Row], now: datetime) -> dict[str, Row]:
    return {
        row["step"]: row
        for row in effects
        if row["state"] == "leased" and row["lease_until"] is not None and row["lease_until"] > now
    }


def _status(stored: str, lease: Row | None) -> str:
    return "running" if lease is not None and stored in LIVE else stored


def _attempts(key: str, claims: Iterable[Row]) -> list[AttemptAnswer]:
    found: dict[int, list[ClaimAnswer]] = {}
    for row in claims:
        if row["step"] == key:
            found.setdefault(row["attempt"], []).append(
                ClaimAnswer(
                    kind=row["kind"], owner=row["owner"], fence=row["fence"], claimed_at=row["claimed_at"]
                )
            )
    return [AttemptAnswer(attempt=number, claims=found[number]) for number in sorted(found)]


def _step(
    step: Step, index: int, row: Row | None, lease: Row | None, attempts: list[AttemptAnswer]
) -> StepAnswer:
    stored: Mapping[str, Any] = row if row is not None else {}
    return StepAnswer(
        key=step.key,
        ordinal=index,
        kind=step.kind,
        phase=step.phase,
        label=step.title,
        activity=step.activity,
        event=step.event,
        answer=step.answer,
        group=step.group,
        price=step.price,
        status=_status(stored.get("status", "pending"), lease),
        attempt=stored.get("attempt", 0),
        max_attempts=stored.get("max_attempts", step.retry.max_attempts),
        progress=None if lease is None else lease["progress"],
        worker=None if lease is None else lease["lease_owner"],
        external_ref=stored.get("external_ref"),
        error_class=stored.get("error_class"),
        error_message=stored.get("error_message"),
        provider_cost=stored.get("provider_cost"),
        artifacts=list(stored.get("artifacts") or ()),
        started_at=stored.get("started_at"),
        updated_seq=stored.get("updated_seq", 0),
        attempts=attempts,
    )


def _effect(row: Row) -> EffectAnswer:
    columns = {name: row[name] for name in EffectAnswer.__struct_fields__}
    columns["receipt"] = None if row["receipt"] is None else msgspec.Raw(row["receipt"])
    return EffectAnswer(**columns)


ROUTES = [get_steps, get_effects, get_plan]
