"""Fragments: the steps that an author's expander makes of a result, as data in the outcome (P15).

User code runs here and nowhere in the authority. It runs twice and must make the same both times; what it makes is judged
by the reducer. Leaves to others: judging and freezing (workflow/expanding.py).
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from longtake.contracts.codec import canonical
from longtake.contracts.outcomes import Failed, Outcome, Succeeded
from longtake.errors import UncanonicalValue
from longtake.workflow.plan import Step

Expander = Callable[[dict[str, Any]], Iterable[Step]]
"""Makes the steps of a fragment from the result of an activity; a pure function."""


def with_fragment(outcome: Outcome, expander: Expander | None) -> Outcome:
    """The outcome with the fragment that its result leads to, or a failure that says why there is none."""
    if expander is None or not isinstance(outcome, Succeeded):
        return outcome
    try:
        made, again = _made(outcome.result, expander), _made(outcome.result, expander)
        if canonical(made) != canonical(again):
            return _unfit("the expander is not pure: it makes other steps of the same result")
    except UncanonicalValue as error:
        return _unfit(f"the expander made what is not plain JSON at {error.pointer}: {error.message}")
    except Exception as error:  # noqa: BLE001 - whatever an author's code raises is an outcome, not our end
        return _unfit(f"the expander raised {type(error).__name__}: {error}"[:500])
    return msgspec.structs.replace(outcome, fragment=tuple(made))


def _made(result: dict[str, Any], expander: Expander) -> list[dict[str, Any]]:
    # A copy, so that an expander which writes into its argument is found out by its second run or harms nobody.
    given = msgspec.json.decode(msgspec.json.encode(result))
    steps = list(expander(given))
    strange = [step for step in steps if not isinstance(step, Step)]
    if strange:
        raise TypeError(f"it made a {type(strange[0]).__name__}, not a Step")
    return [msgspec.to_builtins(step, str_keys=True) for step in steps]


def _unfit(message: str) -> Outcome:
    return Failed(error_class="bad_output", origin="content", message=message)
