"""Growth: a plan with the frozen fragments that were added to it (P15). The fold, and whoever shows a plan, use it.

Leaves to others: judging a fragment (expanding.py).
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from longtake.workflow.plan import Plan, plan_document, read_plan
from longtake.workflow.step import Step


def grow(plan: Plan, fragment: Iterable[dict[str, Any]]) -> Plan:
    """The plan with a recorded fragment at its end."""
    return plan.with_steps(msgspec.convert(item, Step) for item in fragment)


def grown_document(document: bytes, fragments: Iterable[Iterable[dict[str, Any]]]) -> bytes:
    """The stored form of a plan with all its fragments, in the order of their events."""
    given = tuple(fragments)
    if not given:
        return document
    plan = read_plan(document)
    for fragment in given:
        plan = grow(plan, fragment)
    return plan_document(plan)
