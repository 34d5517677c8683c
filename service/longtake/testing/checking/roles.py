"""Roles: what the authority told a worker or a dispatcher is what it holds (I1, I16, P1).

A role's `ok` is a commit it was told of: a claim it may work under, a receipt that is safe, a decision that stands.
"""

from collections.abc import Iterator
from typing import Any

from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.history import Call


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every call of a role that was answered ok since the store was last taken back."""
    store = evidence.store
    claims = {(claim.effect, claim.fence) for claim in store.claims}
    receipts = {effect.id for effect in store.effects if effect.receipt is not None}
    receipts |= {late.effect for late in store.late_receipts}
    revisions = {run.run: run.revision for run in store.runs}
    since = max(evidence.restores, default=0.0)
    for call in evidence.calls:
        if call.type != "ok" or call.begun < since:
            continue
        match call.f:
            case "claim":
                for made in _items(call.told):
                    if (made["id"], made["fence"]) not in claims:
                        yield _lost("I16", f"claim of {made['id']} under fence {made['fence']}", call)
            case "report":
                for pair in _items(call.told):
                    if pair[0] not in receipts:
                        yield _lost("P1", f"receipt of effect {pair[0]}", call)
            case "decide":
                yield from _decided(call, revisions)


def _decided(call: Call, revisions: dict[str, int]) -> Iterator[Violation]:
    """Each run that the commit names as written has at least these events."""
    told = call.told if isinstance(call.told, dict) else {}
    written = set(told.get("committed", ()))
    asked = call.asked[0] if isinstance(call.asked, list) and call.asked else []
    for commit in _items(asked):
        revision = commit["expected_revision"] + commit["events"]
        if commit["run_id"] in written and revisions.get(commit["run_id"], 0) < revision:
            yield _lost("I1", f"decision up to revision {revision} of run {commit['run_id']}", call)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _lost(invariant: str, what: str, call: Call) -> Violation:
    return Violation(
        invariant=invariant,
        what=f"the {what} was confirmed to {call.proc} and is not in the store",
        where=f"op {call.id}",
        trace=(str(call)[:300],),
    )
