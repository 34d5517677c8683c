"""Clauses of decisions: what is written together or not at all, and what is read before."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contract.store.bench import ALICE, INCARNATION, Bench
from contract.store.clauses import clause, instead, patched, without
from contract.store.rows import (
    artifact_of,
    begin,
    blocker_of,
    closing_of,
    commit_of,
    effect_of,
    entry_of,
    events_of,
    fact_of,
    one,
    report,
    run_id_of,
    step_of,
)
from longtake.contracts.outcomes import Succeeded
from longtake.contracts.signals import (
    CallbackArrived,
    ChildEnded,
    DeadlinePassed,
    OutcomeReported,
    Outgoing,
    PlanChecked,
    ReducerFailed,
    TimerFired,
)
from longtake.errors import DecisionRefused
from longtake.memory import MemoryDecisionStore, store_commit, store_decisions
from longtake.store import FactBatch
from longtake.workflow.decision import TimerIntent

FAR = timedelta(hours=1)


def _soon() -> datetime:
    """A moment that is later than now, on the wall and on the clock of the fake."""
    return datetime.now(UTC) + timedelta(days=3650)


def _nothing(*_: Any, **__: Any) -> None:
    return None


# --- the fence ---------------------------------------------------------------------------------------------------------


@clause(without("run_lock"))
async def a_decision_on_an_older_revision_is_left_out_and_the_others_are_written(bench: Bench) -> None:
    first, second = await begin(bench, 1), await begin(bench, 2)
    await bench.decisions.commit([commit_of(1)])
    result = await bench.decisions.commit([commit_of(2), commit_of(1)])
    assert result.committed == {second}
    assert [(await bench.run(id_)).revision for id_ in (first, second)] == [2, 2]
    assert [len(await bench.history(id_)) for id_ in (first, second)] == [2, 2]


@clause(without("unique_run_seq"))
async def two_events_of_a_run_never_have_the_same_seq(bench: Bench) -> None:
    run_id = await begin(bench)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(written=events_of(run_id, 0, 1))])
    assert [event.seq for event in await bench.history(run_id)] == [1]


@clause(patched("store_commit.check_rows", _nothing))
async def a_row_that_breaks_a_rule_takes_its_whole_batch_with_it(bench: Bench) -> None:
    await begin(bench, 1)
    await begin(bench, 2)
    good = commit_of(1, effects=[(effect_of(1), None)], steps=[step_of()])
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([good, commit_of(2, ledger=[(entry_of(2, amount=0), 2)])])
    assert (await bench.run(run_id_of(1))).revision == 1
    assert [await bench.count(table) for table in ("effects", "steps", "ledger_entries")] == [0, 0, 0]


@clause(instead(decisions=type("_Blind", (MemoryDecisionStore,), {
    "commit": lambda self, commits: MemoryDecisionStore.commit(self, commits[:1])})))  # fmt: skip
async def runs_of_a_batch_are_written_together_whatever_their_order(bench: Bench) -> None:
    ids = {await begin(bench, number) for number in (3, 1, 2)}
    result = await bench.decisions.commit([commit_of(number) for number in (2, 3, 1)])
    assert result.committed == ids
    assert len({event.writer for event in await bench.rows("events") if event.seq == 2}) == 1


@clause(instead(decisions=type("_Inventive", (MemoryDecisionStore,), {
    "commit": lambda self, commits: _all_committed(commits)})))  # fmt: skip
async def a_run_that_is_not_there_is_not_written(bench: Bench) -> None:
    assert (await bench.decisions.commit([commit_of(9)])).committed == frozenset()


async def _all_committed(commits: Any) -> Any:
    from longtake.store import CommitResult

    return CommitResult(committed=frozenset(commit.run_id for commit in commits), pointers=())


# --- effects -----------------------------------------------------------------------------------------------------------


@clause(without("torn_check"))
async def a_receipt_that_came_meanwhile_makes_an_expiry_be_decided_again(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence)
    expiry = commit_of(closings=[closing_of(effect, receipt=False, disposition="expired")])
    assert (await bench.decisions.commit([expiry])).committed == frozenset()
    assert (await bench.effect(effect.id)).closed_at is None
    settled = commit_of(closings=[closing_of(effect, receipt=True)])
    assert (await bench.decisions.commit([settled])).committed == {run_id}
    row = await bench.effect(effect.id)
    assert (row.state, row.disposition) == ("closed", "applied")


@clause(without("torn_check"))
async def a_receipt_that_is_not_there_makes_a_success_be_decided_again(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    applied = commit_of(closings=[closing_of(effect, receipt=True)])
    assert (await bench.decisions.commit([applied])).committed == frozenset()


def _torn_when_closed(session: Any, commits: Any) -> set[uuid.UUID]:
    return {commit.run_id for commit in commits for closing in commit.closings if closing.expect_receipt}


@clause(patched("store_commit.torn_runs", _torn_when_closed))
async def an_effect_that_is_closed_already_tears_nothing(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    first = commit_of(closings=[closing_of(effect, receipt=False, disposition="expired")])
    assert (await bench.decisions.commit([first])).committed == {run_id}
    again = commit_of(at=2, closings=[closing_of(effect, receipt=True)])
    assert (await bench.decisions.commit([again])).committed == {run_id}
    assert (await bench.effect(effect.id)).disposition == "expired"


@clause(without("outbox_in_transaction"))
async def new_effects_are_written_with_their_decision(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench)
    await bench.decisions.commit([commit_of(effects=[(effect, None)])])
    decided = next(event for event in await bench.rows("events") if event.seq == 2)
    assert (await bench.effect(effect.id)).writer == decided.writer


def _all_due(right: Any) -> Any:
    def write(session: Any, commit: Any, run: Any, written: Any, *rest: Any) -> None:
        right(session, commit, run, written, *rest)
        written.pointers[:] = [
            store_commit.pointer_to(session.view.effects.get(effect.id)) for effect, _ in commit.effects
        ]

    return write


@clause(patched("store_commit._write_new_effects", _all_due(store_commit._write_new_effects)))
async def only_effects_that_are_due_at_once_are_told_at_once(bench: Bench) -> None:
    now, later = effect_of(ordinal=1), effect_of(ordinal=2, kind="poll", not_before=_soon())
    await begin(bench)
    commit = commit_of(effects=[(now, None), (later, "job-7")], traceparent="00-abc")
    result = await bench.decisions.commit([commit])
    assert [(p.id, p.attempt, p.generation, p.pool, p.traceparent) for p in result.pointers] == [
        (now.id, 1, 1, "pool", "00-abc")
    ]
    first, second = await bench.effect(now.id), await bench.effect(later.id)
    assert (first.state, first.generation, first.incarnation) == ("queued", 1, INCARNATION)
    assert first.published_at is not None
    assert (second.published_at, second.external_ref) == (None, "job-7")


@clause(patched("store_commit.check_rows", _nothing))
async def an_effect_id_is_used_once(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(effects=[(effect, None)])])
    assert (await bench.run(run_id_of(1))).revision == 1


def _withdraws_all(right: Any) -> Any:
    def write(session: Any, commit: Any, written: Any, now: Any, incarnation: Any) -> None:
        right(session, commit, written, now, incarnation)
        written.withdrawn[:] = commit.withdrawn

    return write


@clause(patched("store_commit._write_open_effects", _withdraws_all(store_commit._write_open_effects)))
async def work_that_nobody_claimed_is_withdrawn_and_claimed_work_is_not(bench: Bench) -> None:
    idle, busy = effect_of(step="idle"), effect_of(step="busy")
    await begin(bench, effects=[idle, busy])
    await one(bench, busy)
    result = await bench.decisions.commit([commit_of(withdrawn=[idle.id, busy.id])])
    assert result.withdrawn == (idle.id,)
    assert (await bench.effect(busy.id)).state == "leased"
    row = await bench.effect(idle.id)
    assert (row.state, row.reporter, row.receipt) == ("reported", "dispatcher", b'{"outcome":"cancelled"}')
    signal = await fact_of(bench, idle)
    assert type(signal.outcome).__name__ == "Cancelled"


@clause(without("generation_raised"))
async def an_expedited_look_up_is_due_now_under_a_new_generation(bench: Bench) -> None:
    effect = effect_of(kind="poll", not_before=_soon())
    await begin(bench, effects=[effect])
    result = await bench.decisions.commit([commit_of(expedited=[effect.id])])
    assert [(pointer.id, pointer.generation) for pointer in result.pointers] == [(effect.id, 2)]
    assert (await bench.effect(effect.id)).published_at is not None
    again = await bench.decisions.commit([commit_of(at=2, expedited=[effect.id])])
    assert again.pointers == (), "it is due already"


# --- money -------------------------------------------------------------------------------------------------------------


@clause(without("ledger_unique"))
async def a_ledger_key_is_booked_once(bench: Bench) -> None:
    await begin(bench)
    await bench.decisions.commit([commit_of(ledger=[(entry_of(), 2)])])
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(at=2, ledger=[(entry_of(), 3)])])
    assert await bench.count("ledger_entries") == 1


@clause(without("refund_guard"))
async def a_refund_gives_back_what_a_charge_of_its_cycle_has_taken(bench: Bench) -> None:
    await begin(bench)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(ledger=[(entry_of(kind="refund", cycle=2), 2)])])
    both = [(entry_of(cycle=2), 2), (entry_of(kind="refund", cycle=2), 3)]
    assert (await bench.decisions.commit([commit_of(events=2, ledger=both)])).committed == {run_id_of(1)}
    assert await bench.count("ledger_entries") == 2


@clause(patched("store_rules._check_ledger", _nothing))
async def an_entry_says_under_its_key_whose_money_it_moves_and_where(bench: Bench) -> None:
    await begin(bench)
    for wrong in (
        entry_of(key="charge:anything"),
        entry_of(2),
        entry_of(debit="somebody else's"),
        entry_of(credit="main", debit="system:escrow"),
        entry_of(step=None),
    ):
        with pytest.raises(DecisionRefused):
            await bench.decisions.commit([commit_of(ledger=[(wrong, 2)])])
    prepaid = entry_of(step=None, cycle=None)
    assert (await bench.decisions.commit([commit_of(ledger=[(prepaid, 2)])])).committed == {run_id_of(1)}


@clause(without("refund_guard"))
async def refunds_never_exceed_charges(bench: Bench) -> None:
    await begin(bench)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(row={"charged": 3, "refunded": 4})])
    assert (await bench.run(run_id_of(1))).refunded == 0


@clause(without("refund_guard"))
async def the_net_never_exceeds_the_cap(bench: Bench) -> None:
    await bench.fund(10)
    await begin(bench, cap=5)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(row={"charged": 6, "cap": 5})])
    result = await bench.decisions.commit([commit_of(row={"charged": 6, "refunded": 1, "cap": 5})])
    assert result.committed == {run_id_of(1)}


def _keeps_cap(right: Any) -> Any:
    def write(run: Any, commit: Any, now: Any) -> None:
        cap = run.cap
        right(run, commit, now)
        run.cap = cap

    return write


@clause(patched("store_commit._write_run", _keeps_cap(store_commit._write_run)))
async def a_raised_cap_counts_in_the_decision_that_raises_it(bench: Bench) -> None:
    await begin(bench)
    result = await bench.decisions.commit([commit_of(row={"charged": 6, "cap": 8, "quoted": 7})])
    assert result.committed == {run_id_of(1)}
    run = await bench.run(run_id_of(1))
    assert (run.cap, run.quoted) == (8, 7)


@clause(patched("store_commit._release_hold", _nothing))
async def a_released_hold_takes_the_net_off_the_account_once(bench: Bench) -> None:
    await bench.fund(10)
    await begin(bench, cap=7)
    money = {"charged": 5, "refunded": 2, "cap": 7}
    await bench.decisions.commit([commit_of(row=money, hold_released=True)])
    assert await bench.money() == (7, 0)
    await bench.decisions.commit([commit_of(at=2, row=money, hold_released=True)])
    assert await bench.money() == (7, 0)
    assert (await bench.row("holds", run_id=run_id_of(1))).released_at is not None


@clause(without("account_covered", "refund_guard"))
async def an_account_never_owes(bench: Bench) -> None:
    await bench.fund(10)
    await begin(bench, cap=7)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(row={"charged": 11, "cap": 20}, hold_released=True)])
    assert await bench.money() == (10, 7)


# --- the other rows ----------------------------------------------------------------------------------------------------


@clause(patched("store_commit.check_rows", _nothing))
async def a_step_publishes_an_artifact_of_one_name_once(bench: Bench) -> None:
    await begin(bench)
    await bench.decisions.commit([commit_of(artifacts=[artifact_of()])])
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(at=2, artifacts=[artifact_of()])])
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(at=2, artifacts=[artifact_of("empty", size=0)])])
    assert await bench.count("artifacts") == 1


@clause(patched("store_rules._check_texts", _nothing))
async def a_text_with_a_nul_is_refused(bench: Bench) -> None:
    await begin(bench)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(steps=[step_of(error_message="a\x00b")])])
    assert await bench.count("steps") == 0


@clause(patched("store_commit.check_rows", _nothing))
async def a_number_beyond_its_column_is_refused(bench: Bench) -> None:
    await begin(bench)
    with pytest.raises(DecisionRefused):
        await bench.decisions.commit([commit_of(steps=[step_of(provider_cost=2**63)])])
    assert (await bench.run(run_id_of(1))).revision == 1


@clause(patched("store_commit._updated", lambda before, step: before))
async def a_step_has_one_row_with_its_newest_state(bench: Bench) -> None:
    await begin(bench)
    await bench.decisions.commit([commit_of(steps=[step_of(), step_of("t", ordinal=2)])])
    newer = step_of(status="succeeded", attempt=2, artifacts=("film",), updated_seq=3)
    await bench.decisions.commit([commit_of(at=2, steps=[newer])])
    row = await bench.row("steps", key="s")
    assert (row.status, row.attempt, list(row.artifacts), row.updated_seq) == ("succeeded", 2, ["film"], 3)
    assert await bench.count("steps") == 2


@clause(patched("store_commit.TimerRow", lambda tenant, due_at: _first_due(tenant)))
async def a_timer_is_armed_anew_and_taken_back(bench: Bench) -> None:
    await begin(bench)
    early, late = _soon(), _soon() + FAR
    timer = [TimerIntent(key="settlement", due_at=early), TimerIntent(key="run_deadline", due_at=early)]
    await bench.decisions.commit([commit_of(timers=timer)])
    moved = [TimerIntent(key="settlement", due_at=late)]
    await bench.decisions.commit([commit_of(at=2, timers=moved, timers_cancelled=["run_deadline"])])
    rows = await bench.rows("timers")
    assert [(row.key, row.due_at) for row in rows] == [("settlement", late)]


def _first_due(tenant: str) -> Any:
    from longtake.memory.tables import TimerRow

    return TimerRow(tenant=tenant, due_at=datetime(2026, 1, 1, tzinfo=UTC))


@clause(patched("store_tables._ScopePart.of", lambda self, run_id: []))
async def scopes_and_the_place_in_their_queue_are_freed_together(bench: Bench) -> None:
    run_id = await begin(bench, 1, scopes=["voice", "render"])
    await begin(bench, 2, scopes=["logo"])
    await bench.enqueue(run_id)
    await bench.decisions.commit([commit_of(1, scopes_released=True)])
    assert [row.scope for row in await bench.rows("scopes")] == ["logo"]
    assert await bench.count("scope_queue") == 0


@clause(patched("store_commit._tell_others", _nothing))
async def facts_for_other_runs_are_written_with_the_decision_once(bench: Bench) -> None:
    parent, child = await begin(bench, 1), await begin(bench, 2)
    fact = Outgoing(
        id=uuid.UUID(int=77), run_id=parent, kind="child_ended",
        payload={"step": "s", "attempt": 1, "child": str(child), "outcome": "completed"},
    )  # fmt: skip
    await bench.decisions.commit([commit_of(2, outgoing=[fact])])
    await bench.decisions.commit([commit_of(2, at=2, outgoing=[fact])])
    batch = await bench.decisions.facts(effects=[], inbox=[], runs=[parent])
    assert [f.signal for f in batch.facts] == [
        ChildEnded(signal_id=fact.id, step="s", attempt=1, child=child, outcome="completed")
    ]
    decided = next(e for e in await bench.rows("events") if e.run_id == child and e.seq == 2)
    signals = await bench.rows("signals")
    assert [signal.run_id for signal in signals] == [parent]
    assert decided.run_id == child
    await bench.decisions.commit([commit_of(1, signals=[fact.id])])
    assert (await bench.decisions.facts(effects=[], inbox=[], runs=[parent])).facts == ()


@clause(patched("store_commit.ERRANDS", frozenset()))
async def errands_of_admission_are_rows_of_their_own(bench: Bench) -> None:
    run_id = await begin(bench)
    errand = Outgoing(id=uuid.UUID(int=78), run_id=run_id, kind="scopes_freed", payload={"project": "film"})
    await bench.decisions.commit([commit_of(outgoing=[errand], traceparent="00-abc")])
    assert await bench.count("signals") == 0
    row = await bench.row("errands", id=errand.id)
    assert (row.kind, row.run_id, row.payload, row.traceparent) == (
        "scopes_freed", run_id, b'{"project":"film"}', "00-abc",
    )  # fmt: skip


class _SetsNothingAside(MemoryDecisionStore):
    async def set_aside(self, run_id: uuid.UUID) -> None:
        pass


@clause(instead(decisions=_SetsNothingAside))
async def a_run_that_is_set_aside_is_blocked_and_its_effects_say_nothing(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence)
    await bench.decisions.set_aside(run_id)
    run = await bench.run(run_id)
    assert (run.status, run.poisoned, run.blockers, run.revision) == (
        "blocked", True, ["history_unreadable"], 1,
    )  # fmt: skip
    assert await fact_of(bench, effect) is None


def _blockers_lost(right: Any) -> Any:
    def write(run: Any, commit: Any, now: Any) -> None:
        right(run, commit, now)
        run.blockers = ()

    return write


@clause(patched("store_commit._write_run", _blockers_lost(store_commit._write_run)))
async def the_projection_shows_status_blockers_and_plan_check(bench: Bench) -> None:
    run_id = await begin(bench)
    shown = {"status": "blocked", "blockers": (blocker_of("spend_cap"), blocker_of("plan_drift"))}
    await bench.decisions.commit([commit_of(row=shown, checked_application="build-2", poisoned=True)])
    run = await bench.run(run_id)
    assert (run.status, run.blockers, run.plan_checked, run.poisoned) == (
        "blocked", ["spend_cap", "plan_drift"], "build-2", True,
    )  # fmt: skip
    await bench.decisions.commit([commit_of(at=2)])
    assert (await bench.run(run_id)).plan_checked == "build-2", (
        "a decision that checks nothing changes nothing"
    )


# --- reading -----------------------------------------------------------------------------------------------------------


class _LoadsAll(MemoryDecisionStore):
    async def load(self, after: Any) -> Any:
        return await super().load(dict.fromkeys(after, 0))


@clause(instead(decisions=_LoadsAll))
async def a_run_is_loaded_from_where_the_reader_stands(bench: Bench) -> None:
    first, second = await begin(bench, 1), await begin(bench, 2)
    await bench.decisions.commit([commit_of(1, events=3)])
    runs = {run.run_id: run for run in await bench.decisions.load({first: 2, second: 0, run_id_of(9): 0})}
    assert set(runs) == {first, second}
    assert [event.seq for event in runs[first].events] == [3, 4]
    assert (runs[first].revision, runs[first].head_hash) == (4, (4).to_bytes(32, "big"))
    assert [event.seq for event in runs[second].events] == [1]


class _KnowsAll(MemoryDecisionStore):
    async def facts(self, **ids: Any) -> FactBatch:
        batch = await super().facts(**ids)
        return FactBatch(facts=batch.facts, known=frozenset(id_ for given in ids.values() for id_ in given))


@clause(instead(decisions=_KnowsAll))
async def pointers_to_nothing_are_told_from_those_to_nothing_new(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    nobody = [uuid.UUID(int=number) for number in (901, 902, 903)]
    batch = await bench.decisions.facts(
        effects=[effect.id, nobody[0]], inbox=[nobody[1]], runs=[run_id, nobody[2]]
    )
    assert batch.facts == ()
    assert batch.known == {effect.id, run_id}


def _deadline_first(right: Any) -> Any:
    def read(session: Any, effect: Any) -> Any:
        if effect.deadline is not None and effect.deadline <= session.now:
            return DeadlinePassed(
                effect_id=effect.id, step=effect.step, attempt=1, kind="execute", call_opened=False
            )
        return right(session, effect)

    return read


@clause(patched("store_decisions._of_effect", _deadline_first(store_decisions._of_effect)))
async def a_receipt_wins_over_a_deadline_that_has_passed(bench: Bench) -> None:
    answered, silent = effect_of(step="answered"), effect_of(step="silent")
    past = datetime(2020, 1, 1, tzinfo=UTC)
    late = [_with_deadline(answered, past), _with_deadline(silent, past)]
    run_id = await begin(bench, effects=late)
    claimed = await one(bench, answered)
    await bench.effects.open_call(effect_id=answered.id, fence=claimed.fence)
    await report(bench, answered, claimed.fence)
    signal = await fact_of(bench, answered)
    assert isinstance(signal, OutcomeReported)
    assert (signal.outcome, signal.owner, signal.fence) == (Succeeded(), "worker", claimed.fence)
    assert signal.claimed_at is not None
    assert signal.started_at is not None
    assert isinstance(await fact_of(bench, silent), DeadlinePassed)
    assert run_id == run_id_of(1)


def _with_deadline(effect: Any, deadline: datetime) -> Any:
    import msgspec

    return msgspec.structs.replace(effect, deadline=deadline)


@clause(patched("store_decisions._of_effect", lambda session, effect: None))
async def a_receipt_that_cannot_be_read_blocks_its_own_run(bench: Bench) -> None:
    effect = effect_of()
    await begin(bench, effects=[effect])
    claimed = await one(bench, effect)
    await report(bench, effect, claimed.fence, outcome=b'{"outcome":"of another planet"}')
    assert isinstance(await fact_of(bench, effect), ReducerFailed)


def _always_due(right: Any) -> Any:
    def read(session: Any, runs: Any) -> Any:
        for run_id in runs:
            for key in session.tables.timers_by_run.get(run_id, ()):
                run = session.tables.runs[run_id]
                yield store_decisions._fact(session, run, TimerFired(key=key), "timer", traceparent=None)

    return read


@clause(patched("store_decisions._run_facts", _always_due(None)))
async def a_timer_is_a_fact_when_it_is_due(bench: Bench) -> None:
    run_id = await begin(bench)
    due, later = datetime(2020, 1, 1, tzinfo=UTC), _soon()
    timers = [TimerIntent(key="settlement", due_at=due), TimerIntent(key="run_deadline", due_at=later)]
    await bench.decisions.commit([commit_of(timers=timers)])
    batch = await bench.decisions.facts(effects=[], inbox=[], runs=[run_id])
    assert [(f.signal, f.causation, f.traceparent, f.revision) for f in batch.facts] == [
        (TimerFired(key="settlement"), "timer:settlement", "00-t", 2)
    ]


@clause(
    patched("store_decisions.read_signal", lambda kind, id, payload: ReducerFailed(causation="", error=""))
)
async def a_plan_check_is_a_fact_until_a_decision_settles_it(bench: Bench) -> None:
    run_id = await begin(bench)
    id_ = uuid.UUID(int=55)
    payload = b'{"application":"build-2","drift":["steps/0/price","+3 credits"]}'
    for _ in range(2):
        await bench.plans.signal(
            id=id_, tenant=ALICE.tenant, run_id=run_id, kind="plan_checked", payload=payload
        )
    batch = await bench.decisions.facts(effects=[], inbox=[], runs=[run_id])
    assert [fact.signal for fact in batch.facts] == [
        PlanChecked(signal_id=id_, application="build-2", drift=("steps/0/price", "+3 credits"))
    ]
    await bench.decisions.commit([commit_of(signals=[id_])])
    assert (await bench.decisions.facts(effects=[], inbox=[], runs=[run_id])).facts == ()


@clause(patched("store_commit._settle", _nothing))
async def a_callback_is_a_fact_until_a_decision_settles_it(bench: Bench) -> None:
    run_id = await begin(bench)
    id_ = uuid.UUID(int=56)
    await bench.inbox.insert_callback(
        id=id_, tenant=ALICE.tenant, provider="acme", dedupe_key="k", run_id=run_id, step="s", attempt=1,
        external_ref="job", type="done", payload=b"{}", traceparent="00-cb",
    )  # fmt: skip
    arrived = CallbackArrived(inbox_id=id_, step="s", attempt=1, external_ref="job")
    by_id = await bench.decisions.facts(effects=[], inbox=[id_], runs=[])
    by_run = await bench.decisions.facts(effects=[], inbox=[], runs=[run_id])
    assert [fact.signal for fact in (*by_id.facts, *by_run.facts)] == [arrived, arrived]
    assert by_id.facts[0].traceparent == "00-cb"
    await bench.decisions.commit([commit_of(inbox=[(id_, "ignored", "stale attempt")])])
    row = await bench.row("inbox", id=id_)
    assert (row.status, row.reason) == ("ignored", "stale attempt")
    batch = await bench.decisions.facts(effects=[], inbox=[id_], runs=[run_id])
    assert batch.facts == ()
    assert id_ in batch.known
