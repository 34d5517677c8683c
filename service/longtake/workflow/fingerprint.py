"""Fingerprints: whether deployed code still builds the plan that was accepted, and what differs if not (P15)."""

import hashlib
from typing import Any

import msgspec

from longtake.contracts.codec import canonical, escape_pointer
from longtake.workflow.plan import Plan, quote

STEPS = "/plan/steps"


class PlanBasis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a plan's fingerprint is taken over."""

    plan: Plan
    policy: Any = None
    price_basis: Any = None


class FieldChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place where two plans differ; without `before` it is new, without `after` it is gone."""

    pointer: str
    """JSON pointer into plan, policy and price basis. Steps are known by their keys: one that is in both plans is named
    by its place in the first."""
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


def fingerprint(plan: Plan, policy: Any, price_basis: Any) -> str:
    """SHA-256 of the canonical form of plan, policy and price basis, as hex."""
    return hashlib.sha256(
        canonical(_document(PlanBasis(plan=plan, policy=policy, price_basis=price_basis)))
    ).hexdigest()


def differences(old: PlanBasis, new: PlanBasis) -> list[FieldChange]:
    """Every place that differs, in the sorted order of keys, so that the answer is the same everywhere."""
    found: list[FieldChange] = []
    _compare(_document(old), _document(new), "", found)
    return found


def explain_drift(old: PlanBasis | Plan, new: PlanBasis | Plan) -> tuple[str, str] | None:
    """(JSON pointer of the first field that differs, what it does to the price), or None when nothing does."""
    was = old if isinstance(old, PlanBasis) else PlanBasis(plan=old)
    now = new if isinstance(new, PlanBasis) else PlanBasis(plan=new)
    found = differences(was, now)
    return (found[0].pointer, price_effect(quote(was.plan), quote(now.plan))) if found else None


def price_effect(before: int, after: int) -> str:
    """What a change does to the quote, in words."""
    if before == after:
        return f"the price stays at {before} credits"
    verb = "rises" if after > before else "falls"
    return f"the price {verb} from {before} to {after} credits"


def _document(basis: PlanBasis) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(basis, str_keys=True)
    return plain


def _compare(old: Any, new: Any, pointer: str, found: list[FieldChange]) -> None:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            place = f"{pointer}/{escape_pointer(key)}"
            if key not in new:
                found.append(FieldChange(pointer=place, before=old[key]))
            elif key not in old:
                found.append(FieldChange(pointer=place, after=new[key]))
            else:
                _compare(old[key], new[key], place, found)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        if pointer == STEPS:
            _compare_steps(old, new, found)
        else:
            _compare_items(old, new, pointer, found)
    # 1 and True are equal in Python and differ in JSON.
    elif type(old) is not type(new) or old != new:
        found.append(FieldChange(pointer=pointer, before=old, after=new))


def _compare_items(old: Any, new: Any, pointer: str, found: list[FieldChange]) -> None:
    for index in range(max(len(old), len(new))):
        place = f"{pointer}/{index}"
        if index >= len(new):
            found.append(FieldChange(pointer=place, before=old[index]))
        elif index >= len(old):
            found.append(FieldChange(pointer=place, after=new[index]))
        else:
            _compare(old[index], new[index], place, found)


def _compare_steps(old: Any, new: Any, found: list[FieldChange]) -> None:
    """By key, for one more step at the front is one difference and not a plan full of them; then their order."""
    before = {step["key"]: (index, step) for index, step in enumerate(old)}
    after = {step["key"]: (index, step) for index, step in enumerate(new)}
    for key, (index, step) in before.items():
        if key in after:
            _compare(step, after[key][1], f"{STEPS}/{index}", found)
        else:
            found.append(FieldChange(pointer=f"{STEPS}/{index}", before=step))
    found += [
        FieldChange(pointer=f"{STEPS}/{index}", after=step)
        for key, (index, step) in after.items()
        if key not in before
    ]
    was = [key for key in before if key in after]
    is_ = [key for key in after if key in before]
    if was != is_:
        found.append(FieldChange(pointer=STEPS, before=was, after=is_))
