"""script.revise@1: a turn of a conversation that rewrites the script: some members of the brief are said anew.

Free. The brief with its changes is the input of the next turn, and of short.generation@1.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from longtake import InvalidInput, Plan, ProblemError
from videoads.brief import BriefError, parse_brief

POLICY: dict[str, Any] = {}

REVISABLE = ("headline", "tagline", "style", "scenes", "narration", "closing", "seconds", "size", "colours")
"""What a turn may say anew; another product is another conversation."""


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief": ..., "changes": {...}}: members of the brief and what they are from this turn on."""
    brief = given.get("brief") if isinstance(given, dict) else None
    changes = given.get("changes") if isinstance(given, dict) else None
    if not isinstance(brief, dict):
        raise InvalidInput((ProblemError("/brief", "is missing", "give the brief as it stands"),))
    if not isinstance(changes, dict) or not changes:
        raise InvalidInput((ProblemError("/changes", "is empty", f"change one of {', '.join(REVISABLE)}"),))
    strange = [name for name in changes if name not in REVISABLE]
    if strange:
        raise InvalidInput(
            tuple(
                ProblemError(f"/changes/{name}", "cannot be revised", f"change one of {', '.join(REVISABLE)}")
                for name in strange
            )
        )
    revised = {**brief, **changes}
    try:
        parse_brief(msgspec.json.encode(revised), base=None)
    except BriefError as error:
        raise InvalidInput(
            tuple(ProblemError(_place(p.pointer, changes), p.message, p.remedy) for p in error.problems)
        ) from error
    return Plan(delivers="script.revise").step(
        "script.revise",
        activity="script.revise@1",
        phase="script",
        label="Rewriting the script",
        input={"brief": revised, "before": brief},
    )


def _place(pointer: str, changes: Mapping[str, Any]) -> str:
    member = pointer.split("/")[1] if "/" in pointer else ""
    return f"/changes{pointer}" if member in changes else f"/brief{pointer}"
