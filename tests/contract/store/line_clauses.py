"""Clauses of families and the line for scopes: successors, queues, errands of admission."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contract.store.admission_clauses import _open, _Wrong
from contract.store.bench import BOB, STRANGER, Bench
from contract.store.clauses import clause, instead, patched, without
from contract.store.rows import begin, command_of, commit_of, new_run, receipt_of, run_id_of
from longtake.contracts.signals import Outgoing
from longtake.errors import DecisionRefused
from longtake.memory import MemoryAdmission, MemoryErrandStore
from longtake.memory.store_line import active_runs
from longtake.workflow.queueing import Waiting

LATER = datetime.now(UTC) + timedelta(days=3650)
PAST = datetime(2020, 1, 1, tzinfo=UTC)


def _store_of(**methods: Any) -> Any:
    """An admission store whose transactions have these methods instead of the right ones."""
    kind = type("_WrongAdmission", (MemoryAdmission,), methods)
    return instead(admission=type("_WrongStore", (_Wrong,), {"kind": kind}))


async def _without_others(self: Any, commit: Any, receipt: Any, *, also: Any = ()) -> Any:
    return await MemoryAdmission.commit_run(self, commit, receipt)


@clause(_store_of(commit_run=_without_others))
async def a_successor_and_the_run_it_replaces_are_decided_together_and_the_answer_names_the_successor(
    bench: Bench,
) -> None:
    old = await begin(bench, 1)
    async with _open(bench) as transaction:
        now = await transaction.insert_command(command_of("steer"), intent_hash="h")
        assert now is not None
        assert await transaction.lock_run(old) is not None
        assert await transaction.lay_down(new_run(2), command_id="steer", now=now)
        new = run_id_of(2)
        result = await transaction.commit_run(
            commit_of(2, at=0), receipt_of("steer", new), also=[commit_of(1, row={"status": "cancelling"})]
        )
        assert result.committed == {old, new}
    assert (await bench.run(old)).status == "cancelling"
    command = await bench.row("commands", client_command_id="steer")
    assert (command.run_id, command.status) == (new, "running")


async def _answered_anyway(self: Any, commit: Any, receipt: Any, *, also: Any = ()) -> Any:
    result = await MemoryAdmission.commit_run(self, commit, receipt, also=also)
    await MemoryAdmission.settle_command(self, receipt)
    return result


@clause(_store_of(commit_run=_answered_anyway))
async def a_command_is_answered_when_all_of_its_decision_is_written(bench: Bench) -> None:
    stale, current = await begin(bench, 1), await begin(bench, 2)
    async with _open(bench) as transaction:
        await transaction.insert_command(command_of("late"), intent_hash="h")
        await transaction.lock_run(stale)
        await transaction.lock_run(current)
        receipt = receipt_of("late", current)
        assert (await transaction.commit_run(commit_of(1, at=0), receipt)).committed == frozenset()
        result = await transaction.commit_run(commit_of(2), receipt, also=[commit_of(1, at=0)])
        assert result.committed == {current}, "it is for admission to break off"
    assert (await bench.row("commands", client_command_id="late")).receipt is None


async def _unanswered(self: Any, commit: Any, receipt: Any, *, also: Any = ()) -> Any:
    return await MemoryAdmission.commit_run(
        self, commit, receipt or receipt_of("c1", commit.run_id), also=also
    )


@clause(_store_of(commit_run=_unanswered))
async def a_start_that_no_command_asked_for_answers_none(bench: Bench) -> None:
    async with _open(bench) as transaction:
        now = await transaction.insert_command(command_of(), intent_hash="h")
        assert now is not None
        await transaction.lay_down(new_run(), command_id="c1", now=now)
        await transaction.commit_run(commit_of(at=0), None)
    assert (await bench.run(run_id_of(1))).revision == 1
    assert (await bench.row("commands", client_command_id="c1")).receipt is None


async def _anybodys(self: Any, run_id: uuid.UUID) -> Any:
    run = self._session.view.runs.get(run_id)
    return None if run is None else await MemoryAdmission.origin(_AsOwner(self, run.tenant), run_id)


class _AsOwner:
    def __init__(self, admission: Any, tenant: str) -> None:
        self._principal = type("_P", (), {"tenant": tenant})
        self._run = admission._run


@clause(_store_of(origin=_anybodys))
async def what_a_run_was_made_from_is_told_to_its_tenant(bench: Bench) -> None:
    run_id = await begin(bench)
    async with _open(bench, BOB) as transaction:
        origin = await transaction.origin(run_id)
    assert (origin.project, origin.workflow, origin.workflow_version) == ("film", "w", 1)
    assert (origin.fingerprint, origin.plan, origin.account) == ("print-1", b"{}", "main")
    async with _open(bench, STRANGER) as transaction:
        assert await transaction.origin(run_id) is None


async def _unsorted(self: Any, project: str) -> Any:
    waiting, now = await MemoryAdmission.line(self, project)
    return waiting[::-1], now


@clause(_store_of(line=_unsorted))
async def the_line_of_a_project_is_in_the_order_of_acceptance(bench: Bench) -> None:
    first = Waiting(
        run_id=run_id_of(3), scopes=("voice", "render"), waits_for=(run_id_of(9),), start_at=LATER,
        supersedes=True, overtakes=True,
    )  # fmt: skip
    second = Waiting(run_id=run_id_of(2), scopes=())
    async with _open(bench) as transaction:
        assert (await transaction.line("film"))[0] == []
        await transaction.join_line("film", first)
        await transaction.join_line("film", second)
        await transaction.join_line("another project", Waiting(run_id=run_id_of(1), scopes=()))
        assert (await transaction.line("film"))[0] == [first, second], "it sees itself"
    async with _open(bench, STRANGER) as transaction:
        assert (await transaction.line("film"))[0] == []
    async with _open(bench) as transaction:
        await transaction.leave_line(first.run_id)
        waiting, now = await transaction.line("film")
    assert waiting == [second]
    assert now.tzinfo is not None


async def _keeps_place(self: Any, project: str, waiting: Waiting) -> None:
    before = self._session.view.scope_queue.get(waiting.run_id)
    await MemoryAdmission.grant_scopes(self, project, waiting)
    if before is not None:
        self._session.view.scope_queue.put(waiting.run_id, before)


@clause(_store_of(grant_scopes=_keeps_place))
async def whoever_gets_its_scopes_leaves_the_line(bench: Bench) -> None:
    run_id = await begin(bench, 1)
    waiting = Waiting(run_id=run_id, scopes=("render", "voice"))
    async with _open(bench) as transaction:
        await transaction.join_line("film", waiting)
    async with _open(bench) as transaction:
        await transaction.grant_scopes("film", waiting)
        held = await transaction.held_scopes("film", ["voice", "render"])
    assert [(h.scope, h.run_id) for h in held] == [("render", run_id), ("voice", run_id)]
    assert await bench.count("scope_queue") == 0


@clause(without("scopes_unique"))
async def scopes_that_somebody_holds_are_granted_to_nobody(bench: Bench) -> None:
    holder, waiting = await begin(bench, 1, scopes=["voice"]), await begin(bench, 2)
    with pytest.raises(DecisionRefused):
        async with _open(bench) as transaction:
            await transaction.grant_scopes("film", Waiting(run_id=waiting, scopes=("logo", "voice")))
    assert [(row.scope, row.run_id) for row in await bench.rows("scopes")] == [("voice", holder)]


def _all_active(session: Any, tenant: str, run_ids: Any) -> Any:
    return active_runs(session, tenant, run_ids) | frozenset(run_ids)


@clause(patched("store_line.active_runs", _all_active))
async def runs_that_have_ended_or_are_of_others_are_not_active(bench: Bench) -> None:
    active, ended = await begin(bench, 1), await begin(bench, 2)
    await bench.decisions.commit([commit_of(2, row={"ended_at": PAST, "status": "completed"})])
    async with _open(bench) as transaction:
        assert await transaction.active_runs([active, ended, run_id_of(9)]) == {active}
    async with _open(bench, STRANGER) as transaction:
        assert await transaction.active_runs([active]) == frozenset()


async def _waits_for_nobody(self: Any, run_id: uuid.UUID, runs: Any) -> None:
    return None


@clause(_store_of(wait_for=_waits_for_nobody))
async def a_run_in_line_that_tells_others_to_make_room_waits_until_they_have_ended(bench: Bench) -> None:
    """As long as it has told somebody in its way nothing, its project is one to look at."""
    holder = await begin(bench, 1, scopes=["voice"])
    first = Waiting(run_id=run_id_of(2), scopes=("voice",), supersedes=True)
    later = Waiting(run_id=run_id_of(3), scopes=("voice",), supersedes=True, start_at=LATER)
    patient = Waiting(run_id=run_id_of(4), scopes=("voice",))
    async with _open(bench) as transaction:
        await transaction.join_line("film", first)
        await transaction.join_line("film", later)
        await transaction.join_line("film", patient)
    assert await bench.errands.waiting_projects(10) == [("acme", "film")]
    async with _open(bench) as transaction:
        await transaction.wait_for(first.run_id, [holder])
        await transaction.wait_for(run_id_of(9), [holder])
        line, _ = await transaction.line("film")
    assert [waiting.waits_for for waiting in line] == [(holder,), (), ()]
    assert await bench.errands.waiting_projects(10) == []


# --- errands -----------------------------------------------------------------------------------------------------------


async def _ask(bench: Bench, number: int, *errands: Outgoing, at: int = 1) -> None:
    await bench.decisions.commit([commit_of(number, at=at, outgoing=list(errands), traceparent="00-abc")])


def _errand(number: int, kind: Any, run_id: uuid.UUID) -> Outgoing:
    return Outgoing(id=uuid.UUID(int=number), run_id=run_id, kind=kind, payload={"n": number})


class _Again(MemoryErrandStore):
    async def settle_errands(self, ids: Any, reason: str) -> None:
        pass


@clause(instead(errands=_Again))
async def errands_come_oldest_first_until_they_are_settled(bench: Bench) -> None:
    run_id = await begin(bench, 1)
    await _ask(bench, 1, _errand(52, "start_child", run_id_of(7)))
    await bench.pass_seconds(5)
    await _ask(bench, 1, _errand(51, "scopes_freed", run_id), at=2)
    found = await bench.errands.open_errands(10)
    assert [(e.id.int, e.kind, e.run_id, e.tenant) for e in found] == [
        (52, "start_child", run_id_of(7), "acme"),
        (51, "scopes_freed", run_id, "acme"),
    ]
    assert (found[0].payload, found[0].traceparent, found[0].parent_closed) == (b'{"n":52}', "00-abc", False)
    assert len(await bench.errands.open_errands(1)) == 1
    await bench.errands.settle_errands([found[0].id, uuid.UUID(int=999)], "started")
    assert [e.id.int for e in await bench.errands.open_errands(10)] == [51]
    assert (await bench.row("errands", id=found[0].id)).reason == "started"


class _Blind(MemoryErrandStore):
    async def open_errands(self, limit: int) -> Any:
        import msgspec

        found = await super().open_errands(limit)
        return [msgspec.structs.replace(errand, parent_closed=False) for errand in found]


@clause(instead(errands=_Blind))
async def a_child_whose_parent_has_closed_is_no_longer_wanted(bench: Bench) -> None:
    await begin(bench, 1)
    child = run_id_of(7)
    closed = Outgoing(id=uuid.UUID(int=60), run_id=child, kind="parent_closed", payload={})
    await _ask(bench, 1, _errand(61, "start_child", child), _errand(62, "start_due", child), closed)
    found = {e.id.int: e.parent_closed for e in await bench.errands.open_errands(10)}
    assert found == {61: True, 62: False}


class _Twice(MemoryErrandStore):
    async def answer_errand(self, errand: Any, reason: str, answer: Outgoing) -> None:
        await super().answer_errand(errand, reason, answer)
        from longtake.memory.store_line import tell

        await self._database.run("wrong", lambda session: tell(session, errand.tenant, answer))


@clause(instead(errands=_Twice))
async def an_errand_is_answered_by_a_fact_once(bench: Bench) -> None:
    parent = await begin(bench, 1)
    await _ask(bench, 1, _errand(70, "start_child", run_id_of(7)))
    (errand,) = await bench.errands.open_errands(10)
    answers = [
        Outgoing(id=uuid.UUID(int=number), run_id=parent, kind="child_refused", payload={"n": number})
        for number in (71, 72)
    ]
    for answer in answers:
        await bench.errands.answer_errand(errand, "refused", answer)
    assert [(row.id.int, row.kind, row.payload) for row in await bench.rows("signals")] == [
        (71, "child_refused", b'{"n":71}')
    ]
    assert await bench.errands.open_errands(10) == []


@clause(patched("store_line._may_move", lambda session, row: True))
async def a_project_is_looked_at_when_somebody_in_line_may_begin(bench: Bench) -> None:
    holder = await begin(bench, 1, scopes=["voice"])
    awaited = await begin(bench, 2)
    lines = {
        "film": Waiting(run_id=run_id_of(11), scopes=("voice",)),
        "waits": Waiting(run_id=run_id_of(12), scopes=(), waits_for=(awaited, run_id_of(99))),
        "early": Waiting(run_id=run_id_of(13), scopes=(), start_at=LATER),
        "free": Waiting(run_id=run_id_of(14), scopes=("voice",), start_at=PAST),
    }
    async with _open(bench) as transaction:
        for project, waiting in lines.items():
            await transaction.join_line(project, waiting)
    assert await bench.errands.waiting_projects(10) == [("acme", "free")]
    ended = {"ended_at": PAST, "status": "completed"}
    await bench.decisions.commit([commit_of(1, row=ended, scopes_released=True), commit_of(2, row=ended)])
    assert await bench.errands.waiting_projects(10) == [
        ("acme", "film"), ("acme", "waits"), ("acme", "free"),
    ]  # fmt: skip
    assert await bench.errands.waiting_projects(1) == [("acme", "film")]
    assert holder == run_id_of(1)
