"""Drift that an operator accepts: the run goes on with its own plan, and the word stands in its history (P15)."""

import uuid
from typing import Any

from kit.plans import one
from longtake.contracts.events import RunUnblocked
from longtake.contracts.signals import PlanChecked
from longtake.workflow.script import Script

DRIFT = ("/plan/steps/0/price", "the price rises from 5 to 6 credits")
WORD = "accepted by rosa: the new price is for new runs (application app-2)"


def tell(script: Script, *, drift: tuple[str, str] | None, accepted: str | None = None) -> Any:
    return script.tell(
        PlanChecked(signal_id=uuid.uuid4(), application="app-2", drift=drift, accepted=accepted)
    )


def drifted() -> Script:
    script = Script(one().step("b", activity="b@1", depends_on=["a"]))
    script.accept()
    tell(script, drift=DRIFT)
    script.succeed("a")
    assert ["plan_drift"] == [blocker.type for blocker in script.state.run_blockers]
    assert "pending" != script.state.steps[1].status != "queued"
    return script


def test_an_acceptance_hands_out_what_waited_and_keeps_who_and_why() -> None:
    script = drifted()

    decision = tell(script, drift=None, accepted=WORD)

    assert RunUnblocked(blocker="plan_drift", reason=WORD) == decision.events[0]
    assert ["run_unblocked", "steps_scheduled"] == [event.TYPE for event in decision.events]
    assert () == tuple(script.state.run_blockers)


def test_without_a_word_it_is_the_code_that_matches_again() -> None:
    """The other way out says so itself: nobody is named who did not speak."""
    decision = tell(drifted(), drift=None)

    assert "application app-2 builds the accepted plan" == decision.events[0].reason


def test_an_acceptance_told_twice_or_of_an_undrifted_run_is_ignored() -> None:
    script = drifted()
    tell(script, drift=None, accepted=WORD)
    revision = script.state.revision

    again = tell(script, drift=None, accepted=WORD)

    assert ((), "plan_unchanged") == (tuple(again.events), again.ignored.reason)
    assert revision == script.state.revision


def test_the_next_deployment_blocks_an_accepted_run_again() -> None:
    script = drifted()
    tell(script, drift=None, accepted=WORD)

    assert ["run_blocked"] == [event.TYPE for event in tell(script, drift=DRIFT).events]
