"""Fingerprints: whether deployed code still builds the plan that was accepted, and what differs if not (P15)."""

import hashlib
from typing import Any

import msgspec

from longtake.contracts.codec import canonical, escape_pointer
from longtake.workflow.plan import Plan, quote


class PlanBasis(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a plan's fingerprint is taken over."""

    plan: Plan
    policy: Any = None
    price_basis: Any = None


def fingerprint(plan: Plan, policy: Any, price_basis: Any) -> str:
    """SHA-256 of the canonical form of plan, policy and price basis, as hex."""
    return hashlib.sha256(
        canonical(_document(PlanBasis(plan=plan, policy=policy, price_basis=price_basis)))
    ).hexdigest()


def explain_drift(old: PlanBasis | Plan, new: PlanBasis | Plan) -> tuple[str, str] | None:
    """(JSON pointer of the first field that differs, what it does to the price), or None when nothing does."""
    was = old if isinstance(old, PlanBasis) else PlanBasis(plan=old)
    now = new if isinstance(new, PlanBasis) else PlanBasis(plan=new)
    pointer = _first_difference(_document(was), _document(now), "")
    if pointer is None:
        return None
    return pointer, _price_effect(quote(was.plan), quote(now.plan))


def _document(basis: PlanBasis) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(basis, str_keys=True)
    return plain


def _first_difference(old: Any, new: Any, pointer: str) -> str | None:
    """Depth first, in the sorted order of keys, so that the answer is the same everywhere."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            place = f"{pointer}/{escape_pointer(key)}"
            if (key in old) != (key in new):
                return place
            found = _first_difference(old[key], new[key], place)
            if found is not None:
                return found
        return None
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            found = _first_difference(before, after, f"{pointer}/{index}")
            if found is not None:
                return found
        return None if len(old) == len(new) else f"{pointer}/{min(len(old), len(new))}"
    # 1 and True are equal in Python and differ in JSON.
    return None if type(old) is type(new) and old == new else pointer


def _price_effect(before: int, after: int) -> str:
    if before == after:
        return f"the price stays at {before} credits"
    verb = "rises" if after > before else "falls"
    return f"the price {verb} from {before} to {after} credits"
