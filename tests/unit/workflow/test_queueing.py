"""The line for scopes, and runs whose time has not come: who may begin, who is in the way, and what ends a wait."""

import random
import uuid
from datetime import timedelta

from kit.plans import free, one
from kit.promises import promise
from longtake.contracts.events import RunQueued
from longtake.contracts.signals import BeginRun, MakeRoom, SupersedeRun
from longtake.workflow.plan import Plan
from longtake.workflow.queueing import Obstacle, Waiting, grantable, obstacles, untold, verdict
from longtake.workflow.script import START, Script

A, B, C, D = (uuid.UUID(int=number) for number in range(1, 5))
LATER = START + timedelta(hours=1)


def waiting(run: uuid.UUID, *scopes: str, **fields: object) -> Waiting:
    return Waiting(run_id=run, scopes=scopes, **fields)  # type: ignore[arg-type]  # fields are those of Waiting


# --- the pure rules ----------------------------------------------------------------------------------------------------


def test_a_free_scope_goes_to_the_first_in_line() -> None:
    assert (A,) == grantable([waiting(A, "x"), waiting(B, "x")], {}, (), START)


def test_runs_that_want_different_scopes_begin_together() -> None:
    assert (A, B) == grantable([waiting(A, "x"), waiting(B, "y")], {}, (), START)


def test_nobody_overtakes_one_who_wants_the_same_scope() -> None:
    queue = [waiting(A, "x", "y"), waiting(B, "y"), waiting(C, "z")]

    assert (C,) == grantable(queue, {"x": D}, (), START)


def test_a_run_begins_when_all_it_takes_the_place_of_have_ended() -> None:
    queue = [waiting(A, waits_for=(D,))]

    assert () == grantable(queue, {}, {D}, START)
    assert (A,) == grantable(queue, {}, set(), START)


def test_a_run_whose_time_has_not_come_holds_nobody_up() -> None:
    queue = [waiting(A, "x", start_at=LATER), waiting(B, "x")]

    assert (B,) == grantable(queue, {}, (), START)
    assert (A,) == grantable(queue, {}, (), LATER)


def test_a_child_passes_those_who_may_wait_for_its_family() -> None:
    queue = [waiting(A, "x", "y"), waiting(B, "y", overtakes=True)]

    assert (B,) == grantable(queue, {"x": D}, (), START)


def test_whoever_is_in_the_way_is_named_holders_and_line_alike() -> None:
    found = obstacles(("x", "y"), {"x": A}, [waiting(B, "y"), waiting(C, "y", start_at=LATER)], START)

    assert (
        Obstacle(run_id=A, scope="x", holds=True),
        Obstacle(run_id=B, scope="y", holds=False),
    ) == found


def test_the_policy_decides_what_becomes_of_a_run_that_meets_others() -> None:
    met = (Obstacle(run_id=A, scope="x", holds=True),)

    assert ["reject", "queue", "queue", "begin"] == [
        verdict("reject", met, start_at=None, now=START),
        verdict("queue", met, start_at=None, now=START),
        verdict("supersede", met, start_at=None, now=START),
        verdict("reject", (), start_at=None, now=START),
    ]
    assert "queue" == verdict("reject", met, start_at=LATER, now=START)


@promise("H54")
def test_whatever_the_line_nobody_shares_a_scope_and_everybody_begins_in_the_end() -> None:
    """1,000 drawn lines, worked off with ends in any order."""
    for seed in range(1000):
        draw = random.Random(seed)
        line = [
            waiting(uuid.UUID(int=100 + n), *draw.sample("abcde", draw.randint(1, 3)))
            for n in range(draw.randint(1, 8))
        ]
        left, active, order = list(line), {}, []
        while left or active:
            held = {scope: run for run, run_ in active.items() for scope in run_.scopes}
            for run_id in grantable(left, held, active, START):
                run_ = next(item for item in left if item.run_id == run_id)
                assert not any(set(run_.scopes) & set(other.scopes) for other in active.values())
                left.remove(run_)
                active[run_id] = run_
                order.append(run_)
            assert active, "somebody can always go on"
            del active[draw.choice(list(active))]
        for earlier, later in ((a, b) for i, a in enumerate(line) for b in line[i + 1 :]):
            if set(earlier.scopes) & set(later.scopes):
                assert order.index(earlier) < order.index(later), "nobody was overtaken"


# --- the run -----------------------------------------------------------------------------------------------------------


def queued(plan: Plan | None = None, **fields: object) -> Script:
    script = Script(plan or one())
    script.accept(queued=RunQueued(**fields))  # type: ignore[arg-type]  # fields are those of RunQueued
    return script


def test_a_queued_run_does_nothing_and_costs_nothing_until_it_begins() -> None:
    script = queued(holders=(A,), scopes=("x",))

    assert ["run_accepted", "run_queued"] == script.events
    assert "accepted" == script.summary.status
    script.tell(BeginRun())
    assert ["run_accepted", "run_queued", "run_started", "charged", "steps_scheduled"] == script.events


def test_a_queued_run_says_what_it_waits_for() -> None:
    assert f"Waits for run {A} and 1 more" == queued(holders=(A, B)).summary.label
    assert "Begins at 2026-01-01T13:00:00+00:00" == queued(start_at=LATER).summary.label
    script = queued(holders=(A,))
    script.tell(BeginRun())
    assert "Making a" == script.summary.label


def test_a_second_beginning_is_ignored() -> None:
    script = queued(holders=(A,))
    script.tell(BeginRun())

    assert "not_queued" == script.tell(BeginRun()).ignored.reason  # type: ignore[union-attr]  # it is ignored


def test_a_queued_run_can_be_cancelled_and_then_never_begins() -> None:
    script = queued(Plan(scopes=("x",)).step("a", activity="a@1"), holders=(A,), scopes=("x",))
    decision = script.cancel()

    assert "cancelled" == script.summary.status
    assert decision.scopes_released, "its place in the line is given up with its scopes"
    assert ["scopes_freed"] == [fact.kind for fact in decision.outgoing], "whoever stood behind it may go on"
    assert script.tell(BeginRun()).ignored is not None


def test_a_run_with_a_time_begins_at_it() -> None:
    script = queued(free(), start_at=LATER)
    assert LATER == script.timers["start_at"]
    script.fire("start_at")

    assert "running" == script.summary.status
    assert LATER == script.state.started_at


def test_a_time_that_comes_too_early_is_no_time() -> None:
    script = queued(free(), start_at=LATER)
    early = script.timers.pop("start_at") - timedelta(seconds=1)
    script.now = early
    decision = script.fire("start_at")

    assert "timer_not_due" == decision.ignored.reason  # type: ignore[union-attr]  # it is ignored


def test_a_run_with_a_time_and_scopes_asks_admission_when_its_time_comes() -> None:
    script = queued(Plan(scopes=("x",)).step("a", activity="a@1"), start_at=LATER)
    decision = script.fire("start_at")

    assert ["start_due"] == [fact.kind for fact in decision.outgoing]
    assert "accepted" == script.summary.status


def test_a_run_that_takes_the_place_of_others_names_them_when_its_time_has_come() -> None:
    script = queued(Plan(scopes=("x",)).step("a", activity="a@1"), start_at=LATER)
    assert () == script.state.supersedes
    script.now = LATER
    decision = script.tell(MakeRoom(holders=(A, B), scopes=("x", "y")))

    assert ["run_accepted", "run_queued", "run_queued"] == script.events
    assert (A, B) == script.state.supersedes
    assert f"Waits for run {A} and 1 more" == script.summary.label
    assert [("supersede", A), ("supersede", B)] == [(fact.kind, fact.run_id) for fact in decision.outgoing]
    assert "start_at" not in script.timers, "its time has come; what it waits for now is others"


def test_whoever_was_told_to_make_room_is_told_once() -> None:
    script = queued(Plan(scopes=("x",)).step("a", activity="a@1"), start_at=LATER)
    script.now = LATER
    script.tell(MakeRoom(holders=(A,), scopes=("x",)))
    again = script.tell(MakeRoom(holders=(A,), scopes=("x",)))
    more = script.tell(MakeRoom(holders=(A, B), scopes=("x",)))
    script.tell(BeginRun())
    late = script.tell(MakeRoom(holders=(C,), scopes=("x",)))

    assert again.ignored is not None and "already_told" == again.ignored.reason
    assert [B] == [fact.run_id for fact in more.outgoing]
    assert late.ignored is not None and "not_queued" == late.ignored.reason
    assert (A, B) == script.state.supersedes


def test_only_those_whose_time_has_come_and_who_have_not_told_all_in_their_way_are_to_tell() -> None:
    line = [
        waiting(A, "x", supersedes=True, start_at=LATER),
        waiting(B, "x", "y", supersedes=True, waits_for=(D,)),
        waiting(C, "x"),
    ]

    assert () == untold(line, {"x": D}, START)
    assert (A,) == untold(line, {"x": D}, LATER)
    assert (A, B) == untold(line, {"x": D, "y": C}, LATER)
    assert () == untold(line, {"z": D}, LATER)


def test_the_deadline_counts_from_the_beginning() -> None:
    script = queued(Plan(deadline_seconds=60).step("a", activity="a@1"), start_at=LATER)
    assert "run_deadline" not in script.timers
    script.fire("start_at")

    assert LATER + timedelta(seconds=60) == script.timers["run_deadline"]


def test_a_superseded_run_keeps_its_scopes_until_it_has_ended_and_names_its_successor() -> None:
    script = Script(Plan(scopes=("x",)).step("a", activity="a@1", price=3))
    script.accept()
    first = script.tell(SupersedeRun(by_run=B, command_id="c-9", actor="bob", signal_id=uuid.uuid4()))
    assert not first.scopes_released
    last = script.succeed("a")

    assert "superseded" == script.summary.status
    assert last.scopes_released
    assert "scopes_freed" in [fact.kind for fact in last.outgoing]
    assert B == script.state.superseded_by


def test_a_cancelled_run_frees_its_scopes_at_once() -> None:
    script = Script(Plan(scopes=("x",)).step("a", activity="a@1", price=3))
    script.accept()

    decision = script.cancel()
    assert decision.scopes_released
    assert ["scopes_freed"] == [fact.kind for fact in decision.outgoing]
