"""The cap: paid steps that do not fit wait for a larger one, and nobody else waits with them (design.md 7, P8)."""

import pytest

from kit.plans import FAST
from kit.promises import promise
from longtake.contracts.signals import ProvideInput
from longtake.workflow.decision import Decision
from longtake.workflow.plan import Plan, Step
from longtake.workflow.script import Script


def paid(key: str, price: int = 5, **fields: object) -> Step:
    return Step(key, activity="a@1", **{"price": price, "retry": FAST, **fields})


def capped(*steps: Step, **fields: object) -> Script:
    """A run of which not everything fits under the cap: validation refuses such a plan, retries and expansions make it."""
    script = Script(Plan(billing="pay_as_you_go", steps=steps, **{"cost_cap": 10, **fields}))
    script.accept()
    return script


def allow(script: Script, step: str, cap: int | None, **fields: object) -> Decision:
    signal = ProvideInput(
        command_id="c-9",
        actor="ann",
        step=step,
        cap=cap,
        **{"expected_revision": script.state.revision, **fields},
    )
    return script.tell(signal)


@promise("H48")
def test_what_does_not_fit_waits_for_a_larger_cap_and_the_rest_goes_on() -> None:
    script = capped(paid("a"), paid("b", 7), paid("c"), paid("d", 0))

    assert ["queued", "needs_input", "queued", "queued"] == [step.status for step in script.state.steps]
    [blocker] = script.summary.blockers
    assert ("spend_cap", "b") == (blocker.type, blocker.step)
    assert {"price": "7", "net": "10", "cap": "10", "needed": "17"} == blocker.details
    assert "needs_input" == script.summary.status
    assert "provide_generation_input" in script.summary.available_actions
    assert "retry_generation" not in script.summary.available_actions


def test_steps_that_wait_for_the_cap_leave_their_slots_to_others() -> None:
    script = capped(paid("a", 20), paid("b", 20), paid("c", 0), max_parallel=1)

    assert "queued" == script.status("c")


@promise("H48", "H64")
def test_a_larger_cap_lets_everything_begin_that_fits_now() -> None:
    script = capped(paid("a"), paid("b", 7), paid("c"), paid("d", 30))
    decision = allow(script, "b", 17)

    assert 7 == decision.raise_hold_by
    assert (17, 17) == (script.state.cap, script.state.held)
    assert ["queued", "queued", "queued", "needs_input"] == [step.status for step in script.state.steps]
    assert ["cap_raised", "charged", "steps_scheduled"] == [event.TYPE for event in decision.events]


@pytest.mark.parametrize(
    ("cap", "message"),
    [(None, "is absent"), (16, "send at least 17"), (0, "send at least 17")],
)
def test_a_cap_that_does_not_let_the_step_begin_is_refused_and_nothing_changes(
    cap: int | None, message: str
) -> None:
    script = capped(paid("a"), paid("b", 7), paid("c"))
    decision = allow(script, "b", cap)

    assert decision.refusal is not None
    assert "/payload/cap" == decision.refusal.errors[0].pointer or cap is None
    assert (
        cap is None or message in f"{decision.refusal.errors[0].message} {decision.refusal.errors[0].remedy}"
    )
    assert () == decision.events
    assert 10 == script.state.cap


def test_a_step_that_waits_for_no_cap_takes_none() -> None:
    script = capped(paid("a"))

    assert allow(script, "a", 50).refusal is not None


def test_a_refund_makes_room_for_those_that_wait() -> None:
    script = capped(paid("a", 6, optional=True), paid("b", 6))
    assert "needs_input" == script.status("b")
    script.fail("a", "auth")

    assert "queued" == script.status("b")
    assert () == script.summary.blockers


def test_the_hold_bounds_a_run_whose_cap_is_larger_than_what_it_holds() -> None:
    """Insufficient funds can only be said at admission and at a cap raise, never inside the run (P8)."""
    script = capped(
        paid("a", optional=True, refund="none"), paid("b", depends_on=("go",)), Step("go", kind="wait", event="go"),
        cost_cap=100, hold="quote",
    )  # fmt: skip
    assert 10 == script.state.held
    script.fail("a", "auth")
    script.retry("a")

    assert "queued" == script.status("a")
    from longtake.contracts.signals import SendEvent

    script.tell(SendEvent(command_id="e", actor="ann", expected_revision=script.state.revision, name="go"))
    assert "needs_input" == script.status("b")
    assert "10" == script.summary.blockers[0].details["cap"]
    assert 90 == allow(script, "b", 100).raise_hold_by


def test_a_run_whose_steps_wait_for_the_cap_can_be_cancelled() -> None:
    script = capped(paid("a", 11))
    script.cancel()

    assert "cancelled" == script.state.ended
    assert [] == script.ledger


def test_while_the_run_is_paused_a_larger_cap_is_taken_and_nothing_begins() -> None:
    from longtake.contracts.signals import PauseRun, ResumeRun

    script = capped(paid("a", 11))
    script.tell(PauseRun(command_id="p", actor="ann", expected_revision=script.state.revision))
    assert allow(script, "a", 11).refusal is None
    assert [] == script.ledger
    script.tell(ResumeRun(command_id="r", actor="ann", expected_revision=script.state.revision))

    assert ["charge"] == [entry.kind for entry in script.ledger]


def test_a_larger_cap_asks_nothing_again_of_those_that_it_does_not_pay_for() -> None:
    """What does not fit stays where it is, under the blocker it has: it is not made ready and blocked once more."""
    script = capped(paid("a"), paid("b"), paid("c"), paid("d"))
    decision = allow(script, "c", 15)

    assert ["cap_raised", "charged", "steps_scheduled"] == [event.TYPE for event in decision.events]
    assert ("queued", "needs_input") == (script.status("c"), script.status("d"))
