"""The laws of money for 200 paid steps at once, whatever their workers say, and wherever a process dies (H46 to H48).

A process that dies before its commit has decided nothing: its decision is thrown away and the run is folded anew. One that
dies after it has decided, and does not know: the same fact is told again. An account book of its own, which knows nothing
of the reducer, is held to the laws after every event.
"""

import random
import uuid
from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kit.plans import FAST
from kit.promises import promise
from longtake.contracts.effects import EffectIntent
from longtake.contracts.events import Charged, Event, Refunded
from longtake.contracts.outcomes import (
    Cancelled,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Submitted,
    Succeeded,
    Unknown,
)
from longtake.contracts.signals import CancelRun, OutcomeReported, ProvideInput, RetryRun, Signal, TimerFired
from longtake.workflow import money
from longtake.workflow.decision import Decision
from longtake.workflow.plan import Plan, Step, compile_plan, group
from longtake.workflow.reducer import accept, decide
from longtake.workflow.script import FACTS, START
from longtake.workflow.state import dump, fold, initial

STEPS = 200
TURNS_MAX = 5000

GOOD = (Succeeded(), Submitted(external_ref="job"))
BAD: tuple[Outcome, ...] = (
    Failed(error_class="transient", message="m", provider_cost=1), Failed(error_class="auth", message="m"),
    Unknown(evidence="e"), NotFound(evidence="e"), Impossible(evidence="e"), Cancelled(answer="stopped"),
    Cancelled(answer="too_late"), Cancelled(answer="unknown"),
)  # fmt: skip


class Book:
    """What ledger entries add up to."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.charged = self.refunded = 0
        self.cycles: Counter[tuple[str | None, int | None]] = Counter()
        self.keys: set[str] = set()

    def enter(self, event: Event) -> None:
        """Book one event; AssertionError when it breaks a law."""
        match event:
            case Charged():
                self.charged += event.amount
                self.cycles[event.step, event.cycle] += event.amount
            case Refunded():
                self.refunded += event.amount
                self.cycles[event.step, event.cycle] -= event.amount
                assert self.cycles[event.step, event.cycle] >= 0, (
                    f"{event.key} gives back more than was taken"
                )
            case _:
                self.cap = getattr(event, "cap", self.cap) if event.TYPE == "cap_raised" else self.cap
                return
        assert event.amount > 0
        assert event.key not in self.keys, f"{event.key} is booked twice"
        self.keys.add(event.key)
        assert 0 <= self.refunded <= self.charged, "charged >= refunded >= 0"
        assert self.charged - self.refunded <= self.cap, f"net is above the cap of {self.cap}"


class Play:
    """One run whose every turn is drawn from a seed."""

    def __init__(self, seed: int, billing: str) -> None:
        self.draw = random.Random(seed)
        steps = tuple(
            Step(
                f"s:{n}", activity="a@1", price=self.draw.randint(1, 9), retry=FAST, optional=self.draw.random() < 0.4,
                refund=self.draw.choice(("full", "full", "none")), group="g",
                on_exhausted=self.draw.choice((None, None, "fail")),
                on_ambiguous=self.draw.choice(("block", "retry")),
            )
            for n in range(STEPS)
        )  # fmt: skip
        total = sum(step.price for step in steps)
        cap = total if billing == "prepaid" else total * self.draw.randint(6, 12) // 10
        plan = Plan(billing=billing, cost_cap=cap, max_parallel=STEPS, steps=steps, groups=("g",))
        self.plan = compile_plan(
            plan.step("end", activity="a@1", depends_on=[group("g")], join="all_terminal")
        )
        self.now = START
        self.history: list[tuple[Event, datetime]] = []
        self.rows: dict[uuid.UUID, EffectIntent] = {}
        self.timers: dict[str, datetime] = {}
        self.book = Book(cap)
        self.run_id = uuid.uuid5(uuid.NAMESPACE_OID, str(seed))
        self.state = initial(self.run_id, "t", self.plan)
        self.keep(accept(self.state, FACTS, self.now))

    def keep(self, decision: Decision) -> None:
        """Commit: from here on it has happened."""
        for event in decision.events:
            self.book.enter(event)
            self.history.append((event, self.now))
        for closing in decision.closings:
            self.rows.pop(closing.id, None)
        self.rows.update((effect.id, effect) for effect in decision.effects)
        self.timers.update((timer.key, timer.due_at) for timer in decision.timers)
        for key in decision.timers_cancelled:
            self.timers.pop(key, None)
        assert (self.book.charged, self.book.refunded) == (self.state.charged, self.state.refunded)

    def die(self) -> None:
        """Everything in memory is gone; the history is what there is."""
        self.state = fold(self.run_id, "t", self.plan, self.history)

    def tell(self, signal: Signal) -> None:
        """Decide a fact, in a process that may die before or after it commits."""
        fate = self.draw.random()
        if fate < 0.02:
            decide(self.state, signal, self.now)
            self.die()
        self.keep(decide(self.state, signal, self.now))
        if fate > 0.98:
            before = dump(self.state)
            self.die()
            assert before == dump(self.state)
            self.keep(decide(self.state, signal, self.now))

    def turn(self) -> None:
        """Something happens."""
        self.now += timedelta(seconds=self.draw.choice((0, 1, 40)))
        due = [key for key, at in self.timers.items() if at <= self.now]
        if due:
            self.tell(TimerFired(key=self.draw.choice(due)))
            return
        chance, seen = self.draw.random(), self.state.revision
        blockers = {key: item.type for key, item in self.state.blockers.items()}
        if chance < 0.0004:
            self.tell(CancelRun(command_id=f"c{seen}", actor="a", expected_revision=seen))
        elif (chance < 0.15 or not self.rows) and "spend_cap" in blockers.values():
            step = next(key for key, why in blockers.items() if why == "spend_cap")
            cap = max(self.state.cap, self.book.charged - self.book.refunded) + self.draw.randint(9, 60)
            self.tell(
                ProvideInput(command_id=f"p{seen}", actor="a", expected_revision=seen, step=step, cap=cap)
            )
        elif chance < 0.2 or not self.rows:
            step = self.draw.choice([None, f"s:{self.draw.randrange(STEPS)}"])
            twice = self.draw.random() < 0.5
            self.tell(
                RetryRun(
                    command_id=f"r{seen}",
                    actor="a",
                    expected_revision=seen,
                    step=step,
                    accept_double_cost=twice,
                )
            )
        else:
            row = self.draw.choice(list(self.rows.values()))
            outcome = self.draw.choice(GOOD if self.draw.random() < 0.6 else BAD)
            self.tell(
                OutcomeReported(
                    effect_id=row.id, step=row.step, attempt=row.attempt, kind=row.kind, outcome=outcome
                )
            )

    def to_the_end(self) -> "Play":
        """Turn until the run has ended; a run that lasts too long is cancelled."""
        for _ in range(TURNS_MAX):
            if self.state.terminal:
                return self
            self.turn()
        self.tell(CancelRun(command_id="end", actor="a", expected_revision=self.state.revision))
        while not self.state.terminal:
            self.now = max(self.timers.values())
            self.tell(TimerFired(key="settlement"))
        return self


def unsettled(play: Play) -> list[str]:
    """Steps of an ended pay_as_you_go run whose price is not what their end says."""
    wrong = []
    for plan, step in zip(play.plan.steps, play.state.steps, strict=True):
        left = play.book.cycles[plan.key, step.cycle] if step.cycle else 0
        kept = step.late in ("succeeded", "too_late", "unsupported") or (
            step.late in ("unknown", "impossible") and plan.ambiguous_policy == "block"
        )
        due = plan.price if step.status == "succeeded" or kept or plan.refund == "none" else 0
        if step.cycle and left != due:
            wrong.append(f"{plan.key} is {step.status} ({step.late}), {left} is left of {plan.price}")
    return wrong


@promise("H46", "H47", "H48")
@pytest.mark.parametrize("billing", ["prepaid", "pay_as_you_go"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_the_laws_hold_after_every_event_of_two_hundred_paid_steps(billing: str, seed: int) -> None:
    play = Play(seed, billing).to_the_end()

    if billing == "pay_as_you_go":
        assert [] == unsettled(play)
    elif play.state.ended == "failed":
        assert play.book.charged == play.book.refunded
    assert dump(play.state) == dump(fold(play.run_id, "t", play.plan, play.history))


def test_the_seeds_reach_what_the_laws_are_about() -> None:
    """A property over runs in which nothing happens would prove nothing."""
    seen: Counter[str] = Counter()
    for seed in range(12):
        play = Play(seed, "pay_as_you_go").to_the_end()
        seen.update({event.TYPE for event, _ in play.history})
        seen.update({f"cycle {event.cycle}" for event, _ in play.history if isinstance(event, Charged)})

    assert {"charged", "refunded", "spend_cap_reached", "cap_raised", "step_blocked", "cycle 2"} <= set(seen)


def test_a_reducer_that_forgets_the_cap_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(money, "room", lambda state: 10**9)

    with pytest.raises(AssertionError, match="above the (cap|hold)"):
        for seed in range(20):
            Play(seed, "pay_as_you_go").to_the_end()


def test_a_reducer_that_forgets_which_cycle_it_gave_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(money, "refund_key", lambda state, step=None, cycle=None: f"refund:{step}")

    with pytest.raises(AssertionError, match="is booked twice"):
        for seed in range(20):
            Play(seed, "pay_as_you_go").to_the_end()


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([Charged(key="c", amount=5), Refunded(key="r", amount=6, reason="")], "more than was taken"),
        ([Charged(key="c", amount=11)], "above the cap"),
        ([Charged(key="c", amount=1), Charged(key="c", amount=1)], "booked twice"),
    ],
)
def test_the_book_refuses_what_breaks_a_law(events: list[Event], message: str) -> None:
    book = Book(cap=10)
    with pytest.raises(AssertionError, match=message):
        for event in events:
            book.enter(event)
