"""Effects: asked for before they are done, claimed in order, applied once, paid once (I13 to I18, I25).

The provider's witness is the other end of the queue: what went in (effects) and what came out (requests).
"""

import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

import msgspec

from longtake.contracts.ids import provider_token_for
from longtake.contracts.summary import TERMINAL
from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.store import ClaimRow, EffectRow, EventRow
from longtake.testing.checking.witness import WitnessLine

WORK = ("execute", "poll", "reconcile")
IDLE_SECONDS = 60.0
"""How long work may lie about that nobody does, in a service that is at rest (I35)."""

Place = tuple[str, str, int]
"""Run, step, attempt."""


def check(evidence: Evidence) -> Iterator[Violation]:
    """Effects, claims and outcomes, then the witness."""
    store = evidence.store
    claims: dict[str, list[ClaimRow]] = {}
    for claim in store.claims:
        claims.setdefault(claim.effect, []).append(claim)
    yield from _claims(evidence, claims)
    yield from _rows(evidence)
    for run_id, events in store.histories().items():
        yield from _outcomes(run_id, events, claims)


def check_witness(evidence: Evidence) -> Iterator[Violation]:
    """The provider's side (total queue)."""
    places = {
        str(provider_token_for(uuid.UUID(effect.run), step=effect.step, attempt=effect.attempt)): (
            effect.run,
            effect.step,
            effect.attempt,
        )
        for effect in evidence.store.effects
    }
    charged: dict[str, list[WitnessLine]] = {}
    for line in evidence.witness:
        if line.key not in places and not evidence.restores:
            yield Violation(
                invariant="I13",
                what=f"the provider was asked to {line.kind} under {line.key}, which is no attempt of any effect",
                where=f"witness {line.t:.3f}",
            )
        if line.charged:
            charged.setdefault(line.key, []).append(line)
    jobs: dict[str, set[str]] = {}
    for line in evidence.witness:
        if line.job and line.kind != "callback":
            jobs.setdefault(line.key, set()).add(line.job)
    for key, lines in charged.items():
        if len(lines) > 1:
            yield Violation(
                invariant="I25",
                what=f"{_said(places.get(key), key)} was charged {len(lines)} times by the provider",
                where=f"witness {lines[1].t:.3f}",
                trace=tuple(
                    f"{line.t:.3f} {line.kind} job {line.job} credits {line.credits}" for line in lines
                ),
            )
    for key, found in jobs.items():
        if len(found) > 1:
            yield Violation(
                invariant="I18",
                what=f"{_said(places.get(key), key)} is at the provider as {len(found)} jobs",
                where=f"key {key}",
                trace=tuple(sorted(found)),
            )
    yield from _paid(evidence, {places[key]: lines[0] for key, lines in charged.items() if key in places})


def _said(place: Place | None, key: str) -> str:
    return key if place is None else f"{place[1]}/{place[2]} of run {place[0]}"


def _paid(evidence: Evidence, charged: dict[Place, WitnessLine]) -> Iterator[Violation]:
    """Each charge of the provider is one of a run that pays, and no attempt was given up unlooked-at (I25)."""
    histories = evidence.store.histories()
    prices = _prices(evidence)
    paying = {entry.run for entry in evidence.store.ledger if entry.kind == "charge"}
    by_step: dict[tuple[str, str], list[int]] = {}
    for (run_id, step, attempt), line in charged.items():
        by_step.setdefault((run_id, step), []).append(attempt)
        if prices.get((run_id, step), 0) > 0 and run_id not in paying:
            yield Violation(
                invariant="I25",
                what=f"{step}/{attempt} was charged by the provider, and the run has charged nothing",
                where=f"run {run_id}",
                trace=(f"witness {line.t:.3f} {line.kind} job {line.job} credits {line.credits}",),
            )
    for (run_id, step), attempts in by_step.items():
        for earlier, later in pairwise(sorted(attempts)):
            events = [
                event
                for event in histories.get(run_id, [])
                if event.body.get("step") == step and event.body.get("attempt") == earlier
            ]
            looked = any(
                event.type == "attempt_reconciled"
                or (event.type == "attempt_failed" and event.body.get("work"))
                for event in events
            )
            if not looked:
                yield Violation(
                    invariant="I25",
                    what=f"{step} was paid for on attempt {earlier} and again on {later}, and nobody had looked",
                    where=f"run {run_id}",
                    trace=tuple(f"seq {event.seq} {event.type}" for event in events),
                )


def _prices(evidence: Evidence) -> dict[tuple[str, str], int]:
    """What each step of each run costs its payer, in credits; those of expansions too."""
    plans = {
        (plan.tenant, plan.fingerprint): msgspec.json.decode(plan.plan)["steps"]
        for plan in evidence.store.plans
    }
    steps = {run.run: list(plans.get((run.tenant, run.fingerprint), ())) for run in evidence.store.runs}
    for event in evidence.store.events:
        if event.type == "plan_expanded" and event.run in steps:
            steps[event.run] += event.body["steps"]
    return {(run, step["key"]): step.get("price", 0) for run, found in steps.items() for step in found}


def _claims(evidence: Evidence, claims: dict[str, list[ClaimRow]]) -> Iterator[Violation]:
    """I16: fences rise with every claim, and no two leases share one."""
    effects = {effect.id: effect for effect in evidence.store.effects}
    for effect_id, made in claims.items():
        for before, claim in pairwise(made):
            if claim.fence <= before.fence:
                yield Violation(
                    invariant="I16",
                    what=f"fence {claim.fence} was given after {before.fence}",
                    where=f"effect {effect_id}",
                    trace=(f"{before.owner} at {before.claimed_at}", f"{claim.owner} at {claim.claimed_at}"),
                )
        effect = effects.get(effect_id)
        if effect is None:
            yield Violation(
                invariant="I13",
                what=f"{made[0].step} was claimed without its effect",
                where=f"effect {effect_id}",
            )
        elif made[-1].fence > effect.fence:
            yield Violation(
                invariant="I16",
                what=f"the effect is at fence {effect.fence}, {made[-1].fence} was given out",
                where=f"effect {effect_id}",
            )


def _rows(evidence: Evidence) -> Iterator[Violation]:
    """I14 to I16 of rows: none is open without a reason, none is closed without one."""
    store = evidence.store
    runs = {run.run: run for run in store.runs}
    live: dict[tuple[str, str], list[EffectRow]] = {}
    ids: set[str] = set()
    for effect in store.effects:
        where = f"effect {effect.id}"
        if effect.id in ids:
            yield Violation(invariant="I18", what="the id is there twice", where=where)
        ids.add(effect.id)
        run = runs.get(effect.run)
        if effect.disposition in ("applied", "ignored") and effect.receipt is None:
            yield Violation(
                invariant="I15",
                what=f"{effect.step}/{effect.attempt} is {effect.disposition} without a receipt",
                where=where,
            )
        if effect.closed_at is not None:
            continue
        if effect.kind in WORK:
            live.setdefault((effect.run, effect.step), []).append(effect)
        if not evidence.settled or effect.run not in evidence.moving:
            continue
        if run is not None and run.status in TERMINAL and effect.kind != "cancel":
            yield Violation(
                invariant="I14",
                what=f"{effect.kind} of {effect.step}/{effect.attempt} is open, its run is {run.status}",
                where=where,
            )
        elif effect.state != "leased" and store.now - effect.not_before > timedelta(seconds=IDLE_SECONDS):
            yield Violation(
                invariant="I14",
                what=f"{effect.kind} of {effect.step}/{effect.attempt} is {effect.state} and due since {effect.not_before}",
                where=where,
            )
    for (run_id, step), effects in live.items():
        busy = [effect for effect in effects if effect.receipt is None]
        if len(busy) > 1:
            yield Violation(
                invariant="I16",
                what=f"{len(busy)} effects of {step} are under way at once",
                where=f"run {run_id}",
                trace=tuple(f"{e.kind}/{e.attempt} {e.state} fence {e.fence}" for e in busy),
            )


def _outcomes(
    run_id: str, events: Sequence[EventRow], claims: dict[str, list[ClaimRow]]
) -> Iterator[Violation]:
    """I15: a receipt becomes one event, under a fence that was given out."""
    used: dict[str, EventRow] = {}
    for event in events:
        work = event.body.get("work")
        if not work or event.type == "attempt_unknown":
            continue  # that the truth is open is no receipt: one may still come, and counts (P1)
        where = f"run {run_id} seq {event.seq}"
        before = used.get(work["effect_id"])
        if before is not None and before.tx != event.tx:
            yield Violation(
                invariant="I15",
                what=f"one receipt was applied as {before.type} and as {event.type}",
                where=where,
                trace=(f"seq {before.seq} {before.type}", f"seq {event.seq} {event.type}"),
            )
        used.setdefault(work["effect_id"], event)
        fence = work.get("fence")  # 0: of work that nobody had begun
        if fence and fence not in {claim.fence for claim in claims.get(work["effect_id"], ())}:
            yield Violation(
                invariant="I15",
                what=f"{event.type} was applied under fence {fence}, which nobody held",
                where=where,
            )
