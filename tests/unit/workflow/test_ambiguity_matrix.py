"""Nobody knows whether a paid call was taken: every way it can have been, every answer of the look-up, every time of it.

Eighteen cells, in both ways of billing, against a provider that writes down each job it takes. What holds in all of them:
no second job while the first may stand, at most one charge, and an end that says no more than is known.
"""

from typing import Literal

import msgspec
import pytest

from kit.plans import FAST, one
from kit.promises import promise
from longtake.contracts.outcomes import Impossible, NotFound, Outcome, Succeeded, Unknown
from longtake.contracts.signals import OutcomeReported
from longtake.workflow import outcomes, reconciling
from longtake.workflow.plan import Plan
from longtake.workflow.script import Script

Fate = Literal["response lost", "never arrived"]
Answer = Literal["found", "not found", "impossible"]
When = Literal["before the deadline", "after the deadline", "after a cancel"]

PRICE, DEADLINE = 5, 120
FATES: tuple[Fate, ...] = ("response lost", "never arrived")
ANSWERS: tuple[Answer, ...] = ("found", "not found", "impossible")
WHENS: tuple[When, ...] = ("before the deadline", "after the deadline", "after a cancel")
BILLINGS = ("prepaid", "pay_as_you_go")

ENDS: dict[tuple[When, Answer], str] = {
    ("before the deadline", "found"): "completed",
    ("before the deadline", "not found"): "completed",
    ("before the deadline", "impossible"): "completed",  # once a person has decided
    ("after the deadline", "found"): "failed",
    ("after the deadline", "not found"): "failed",
    ("after the deadline", "impossible"): "failed",
    ("after a cancel", "found"): "cancelled",
    ("after a cancel", "not found"): "cancelled",
    ("after a cancel", "impossible"): "cancelled",
}


class Provider:
    """Takes paid jobs. `witness` has one line for each that it took, `standing` the tokens of those it did not drop."""

    def __init__(self, fate: Fate, answer: Answer) -> None:
        self.fate, self.answer = fate, answer
        self.witness: list[str] = []
        self.standing: set[str] = set()
        self.calls = 0

    def submit(self, token: str) -> Outcome:
        """The first answer gets lost, or the request itself; later ones are answered."""
        self.calls += 1
        if self.calls > 1:
            self._take(token)
            return Succeeded(result={"url": "u"})
        if self.fate == "response lost":
            self._take(token)
        return Unknown(evidence="the connection broke after the request was sent")

    def look_up(self, token: str) -> Outcome:
        """What the books say of a token."""
        match self.answer:
            case "found":
                # A request that had not arrived when its answer was given up may still have been on its way.
                if token not in self.standing:
                    self._take(token)
                return Succeeded(result={"url": "u"})
            case "not found":
                # One that was taken and is not in the books was dropped by the provider before it began.
                self.standing.discard(token)
                return NotFound(evidence="no such token")
            case "impossible":
                return Impossible(evidence="no look-up by token")

    def _take(self, token: str) -> None:
        self.witness.append(token)
        self.standing.add(token)


class Cell:
    """One run of one paid step, driven through one cell of the matrix; every report is delivered twice."""

    def __init__(self, fate: Fate, answer: Answer, when: When, billing: str) -> None:
        self.fate, self.answer, self.when, self.billing = fate, answer, when, billing
        self.provider = Provider(fate, answer)
        self.open_calls = 0
        """Jobs that stood when another call was made."""
        self.script = Script(_billed(billing))
        self.script.accept()

    def play(self) -> "Cell":
        self._work("execute")
        assert self.script.status("a") == "reconciling"
        if self.when == "after the deadline":
            self.script.fire("run_deadline")
        elif self.when == "after a cancel":
            self.script.cancel()
        self._work("reconcile")
        self._work("execute")
        if self.script.status("a") == "blocked":
            self._decide()
        return self

    def _decide(self) -> None:
        """A person reads the provider's own books: what stands there is looked up again, what does not is made."""
        assert self.script.summary.blockers[0].type == "provider_outcome_unknown"
        if self.provider.standing:
            self.provider.answer = "found"
            self.script.retry("a")
        else:
            self.script.retry("a", accept_double_cost=True)
        self._work("reconcile")
        self._work("execute")

    def _work(self, kind: str) -> None:
        """Work on what is open of a kind, as a worker does."""
        for row in [item for item in self.script.rows.values() if item.kind == kind]:
            token = f"{row.step}:{row.attempt}"
            if kind == "execute":
                self.open_calls += len(self.provider.standing)
                outcome = self.provider.submit(token)
            else:
                outcome = self.provider.look_up(token)
            receipt = OutcomeReported(
                effect_id=row.id, step=row.step, attempt=row.attempt, kind=row.kind, outcome=outcome
            )
            self.script.wait(1).tell(receipt)
            assert self.script.tell(receipt).events == ()

    def check(self) -> None:
        """What holds in every cell."""
        script, state = self.script, self.script.state
        assert self.open_calls == 0 and len(self.provider.standing) <= 1, f"two jobs: {self.provider.witness}"
        charges = [entry for entry in script.ledger if entry.kind == "charge"]
        assert [PRICE] == [entry.amount for entry in charges], "one charge"
        assert state.ended == ENDS[self.when, self.answer]
        assert state.charged - state.refunded == self.net()
        assert not script.rows
        if state.ended == "completed":
            assert len(self.provider.standing) == 1, "completed, and nobody has done the work"
        if state.ended != "completed":
            late = [event.outcome for event, _ in script.history if event.TYPE == "late_outcome"]
            assert late == [{"found": "succeeded", "not found": "not_found"}.get(self.answer, self.answer)]

    def net(self) -> int:
        """What the user pays: for work that was done, or that nobody can say was not; a failed prepaid run pays nothing."""
        if self.when == "before the deadline":
            return PRICE
        if self.answer == "not found" or (self.when == "after the deadline" and self.billing == "prepaid"):
            return 0
        return PRICE

    def line(self) -> str:
        state = self.script.state
        return (
            f"{self.billing:14} {self.fate:14} {self.answer:11} {self.when:20} jobs {len(self.provider.standing)}"
            f"  calls {self.provider.calls}  net {state.charged - state.refunded}  {state.ended}"
        )


def _billed(billing: str) -> Plan:
    return msgspec.structs.replace(one(price=PRICE, retry=FAST), billing=billing, deadline_seconds=DEADLINE)


@promise("T21")
def test_one_job_one_charge_and_a_truthful_end_in_every_cell(capsys) -> None:
    lines = []
    for billing in BILLINGS:
        for fate in FATES:
            for answer in ANSWERS:
                for when in WHENS:
                    cell = Cell(fate, answer, when, billing).play()
                    lines.append(cell.line())
                    cell.check()
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert len(lines) == 2 * 18


@pytest.mark.parametrize("billing", BILLINGS)
def test_a_core_that_calls_again_while_the_truth_is_open_is_caught(monkeypatch, billing) -> None:
    """The broken variant: what cannot be told is taken for a failure, and the next attempt makes a second job."""

    def calls_again(draft, key, outcome, work) -> None:
        reconciling.fail(
            draft,
            key,
            reconciling.AttemptFailure(
                error_class="transient", origin="provider", message="m", retryable=True
            ),
            work,
        )

    monkeypatch.setattr(reconciling, "_decide_ambiguous", calls_again)
    cell = Cell("response lost", "impossible", "before the deadline", billing).play()

    with pytest.raises(AssertionError, match="two jobs"):
        cell.check()


def test_a_core_that_believes_a_lost_answer_to_be_a_failure_is_caught(monkeypatch) -> None:
    """The broken variant: no look-up at all; the call is made again at once."""

    def forgets(draft, key, evidence, work, **rest) -> None:
        reconciling.fail(
            draft,
            key,
            reconciling.AttemptFailure(
                error_class="transient", origin="provider", message=evidence, retryable=True
            ),
            work,
        )

    monkeypatch.setattr(outcomes, "look", forgets)
    cell = Cell("response lost", "found", "before the deadline", "prepaid")
    cell._work("execute")
    cell._work("execute")

    with pytest.raises(AssertionError, match="two jobs"):
        cell.check()
