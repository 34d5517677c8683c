"""What the authority in memory promises beyond the real one: no event loop, no clock, no chance, and faults on demand."""

import ast
import inspect
import uuid
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from contract.store.all_clauses import CLAUSES
from contract.store.bench import ALICE, MemoryBench
from contract.store.rows import begin, claim, command_of, commit_of, effect_of, new_run, receipt_of, run_id_of
from longtake import memory, store
from longtake.contracts.ids import fence_floor
from longtake.errors import AuthorityUnavailable, DecisionRefused, LockTimeout
from longtake.memory import Defences, ManualClock, MemoryAdmissionStore, MemoryDatabase

T = TypeVar("T")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waited for something")


def test_every_port_is_driven_without_an_event_loop() -> None:
    bench = MemoryBench()
    effect = effect_of()
    drive(begin(bench, effects=[effect]))
    assert len(drive(claim(bench, effect))) == 1
    assert drive(bench.decisions.commit([commit_of()])).committed == {run_id_of(1)}
    assert drive(bench.sweeper.expire_leases(leases_max=5, authority_up_seconds=0, connected=True)) == []


FAKES: dict[type, type] = {
    store.AdmissionStore: memory.MemoryAdmissionStore,
    store.AdmissionTransaction: memory.MemoryAdmission,
    store.AuditStore: memory.MemoryAuditStore,
    store.DecisionStore: memory.MemoryDecisionStore,
    store.EffectStore: memory.MemoryEffectStore,
    store.ErrandStore: memory.MemoryErrandStore,
    store.InboxStore: memory.MemoryInboxStore,
    store.LeaseKeeper: memory.MemoryLeaseKeeper,
    store.MoneyAuditStore: memory.MemoryMoneyAuditStore,
    store.PlanCheckStore: memory.MemoryPlanCheckStore,
    store.SweepStore: memory.MemorySweepStore,
}
NOT_OURS = {store.Planner, store.RestoreStore, store.TransportMemory, store.WaitingStore}
"""Protocols of the store's package that user code implements, those of a restore - the simulator rewinds by itself - and that
of a service without a broker, which the simulator always has."""


def _methods(kind: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in vars(kind).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


def _missing(port: type, fake: type) -> list[str]:
    """Methods of a port that its fake lacks, or takes in another form."""
    ours = {name: found for base in reversed(fake.__mro__) for name, found in _methods(base).items()}
    return [f"{fake.__name__}.{name}" for name, wanted in _methods(port).items() if ours.get(name) != wanted]


def test_every_port_of_the_store_has_its_fake() -> None:
    """A port that grows makes this red until its fake has grown too."""
    ports = {kind for kind in vars(store).values() if getattr(kind, "_is_protocol", False)}
    assert ports - NOT_OURS == set(FAKES)
    assert [] == [fault for port, fake in FAKES.items() for fault in _missing(port, fake)]
    assert _missing(store.LeaseKeeper, memory.MemoryInboxStore) == [
        "MemoryInboxStore.renew", "MemoryInboxStore.close",
    ]  # fmt: skip


def _impurities(tree: ast.AST) -> list[str]:
    """Imports of an event loop, a clock or chance; `asyncio` stands in LoopHooks, which an event loop alone uses."""
    found = []
    for node in ast.walk(tree):
        names = [n.name for n in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [
            name for name in names if name.split(".")[0] in ("asyncio", "random", "time", "os", "secrets")
        ]
        if isinstance(node, ast.Attribute) and node.attr in ("uuid4", "uuid1", "utcnow", "today"):
            found.append(node.attr)
    return found


def test_the_stores_know_no_loop_no_clock_and_no_chance() -> None:
    folder = Path(inspect.getfile(memory)).parent
    files = sorted(folder.glob("store_*.py")) + [folder / "tables.py", folder / "clock.py"]
    assert [] == [
        f"{file.name}: {name}" for file in files for name in _impurities(ast.parse(file.read_text()))
    ]
    assert _impurities(ast.parse("import random\nfrom time import sleep\nuuid.uuid4()")) == [
        "random", "time", "uuid4",
    ]  # fmt: skip


def test_every_defence_that_can_be_off_is_missed_by_a_clause() -> None:
    """A switch that no clause notices would be a switch of nothing."""
    noticed: set[str] = set()
    for clause in CLAUSES:
        with clause.wrong() as wrong:
            off = msgspec.structs.asdict(wrong.database.defences)
        noticed |= {name for name, is_up in off.items() if not is_up}
    assert noticed == set(Defences.__struct_fields__)


class _Waits:
    """Hooks that suspend, so that a scheduler gets the word."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def wait(self, reason: str) -> None:
        self.reasons.append(reason)
        await _Once()


class _Once:
    def __await__(self) -> Any:
        yield


async def _hold(database: MemoryDatabase, run_id: uuid.UUID) -> None:
    store = MemoryAdmissionStore(database, store_epoch=1, incarnation=uuid.UUID(int=1))
    async with store.transaction(ALICE, channel="local", traceparent=None) as transaction:
        await transaction.lock_run(run_id)
        await _Once()
        await transaction.commit_run(commit_of(), receipt_of())


def test_whoever_meets_a_lock_gives_the_word_to_the_scheduler_and_goes_on_when_it_is_free() -> None:
    bench = MemoryBench()
    run_id = drive(begin(bench))
    hooks = bench.database.hooks = _Waits()
    first, second = _hold(bench.database, run_id), _hold(bench.database, run_id)
    first.send(None)
    second.send(None)
    second.send(None)
    assert hooks.reasons == ["run_lock: run", "run_lock: run"]
    with pytest.raises(StopIteration):
        first.send(None)
    second.send(None)
    with pytest.raises(StopIteration):
        second.send(None)
    assert bench.database.tables.runs[run_id].revision == 2, "the second found its revision taken"


def test_a_wait_that_outlasts_the_lock_timeout_of_the_given_clock_ends() -> None:
    bench = MemoryBench()
    run_id = drive(begin(bench))
    bench.database.hooks = _Waits()
    first, second = _hold(bench.database, run_id), _hold(bench.database, run_id)
    first.send(None)
    second.send(None)
    bench.clock.advance(1)
    with pytest.raises(LockTimeout):
        second.send(None)
    first.close()


def test_a_process_that_dies_in_an_admission_leaves_neither_rows_nor_locks() -> None:
    bench = MemoryBench()
    run_id = drive(begin(bench))
    dying = _hold(bench.database, run_id)
    dying.send(None)
    assert bench.database.locks
    dying.close()
    assert not bench.database.locks
    assert drive(bench.decisions.commit([commit_of()])).committed == {run_id}


def test_a_restore_goes_back_in_time_and_its_fences_are_above_those_of_the_lost_past() -> None:
    bench = MemoryBench()
    effect = effect_of()
    run_id = drive(begin(bench, effects=[effect]))
    past = bench.database.snapshot()
    (lost,) = drive(claim(bench, effect))
    drive(bench.decisions.commit([commit_of()]))
    bench.database.restore(past)
    assert bench.database.raise_store_epoch() == 2
    assert bench.database.tables.runs[run_id].revision == 1
    store = bench.effects_of_epoch(bench.database.store_epoch)
    (claimed,) = drive(
        store.claim(claim_id=uuid.UUID(int=9), effects=[(effect.id, 1)], limit=1, owner="w", lease_seconds=30)
    )
    assert claimed.fence > max(lost.fence, fence_floor(2))
    bench.database.restore(past)
    assert bench.database.tables.effects[effect.id].fence == 0, "a snapshot is not worn out by its use"


def test_a_snapshot_is_not_touched_by_what_happens_afterwards() -> None:
    bench = MemoryBench()
    effect = effect_of()
    drive(begin(bench, effects=[effect], scopes=["voice"]))
    past = bench.database.snapshot()
    before = [repr(vars(past.tables)[name]) for name in sorted(vars(past.tables))]
    drive(claim(bench, effect))
    drive(bench.decisions.commit([commit_of(scopes_released=True, row={"status": "paused"})]))
    assert before == [repr(vars(past.tables)[name]) for name in sorted(vars(past.tables))]


@pytest.mark.parametrize("statement", ["decisions_commit", "effects_claim", "pointers_due"])
def test_a_conflict_is_as_if_somebody_else_held_every_row(statement: str) -> None:
    bench = MemoryBench()
    effect = effect_of()
    drive(begin(bench, effects=[effect]))
    bench.strike(statement, "conflict")
    asked: dict[str, Any] = {
        "decisions_commit": lambda: drive(bench.decisions.commit([commit_of()])).committed,
        "effects_claim": lambda: drive(claim(bench, effect)),
        "pointers_due": lambda: drive(
            bench.sweeper.due_pointers(limit=9, grace_seconds=1, oldest={}, all_lost=True)
        ),
    }
    assert not asked[statement]()
    assert asked[statement](), "the next time nobody is in the way"


def test_a_refusal_can_be_asked_for() -> None:
    bench = MemoryBench()
    drive(begin(bench))
    bench.strike("decisions_commit", "refused")
    with pytest.raises(DecisionRefused):
        drive(bench.decisions.commit([commit_of()]))
    assert drive(bench.decisions.commit([commit_of()])).committed == {run_id_of(1)}


async def _start(bench: MemoryBench) -> None:
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
        now = await transaction.insert_command(command_of(), intent_hash="h")
        assert now is not None
        await transaction.lay_down(new_run(), command_id="c1", now=now)
        await transaction.commit_run(commit_of(at=0), receipt_of(run_id=run_id_of(1)))


@pytest.mark.parametrize(
    ("statement", "how", "stands"),
    [
        ("commit", "executed_and_lost", True),
        ("commit", "not_executed", False),
        ("run_admit", "not_executed", False),
        ("decisions_commit", "executed_and_lost", False),
    ],
)
def test_an_admission_that_nobody_answered_stands_only_when_its_commit_did(
    statement: str, how: Any, stands: bool
) -> None:
    bench = MemoryBench()
    bench.strike(statement, how)
    with pytest.raises(AuthorityUnavailable):
        drive(_start(bench))
    assert bool(bench.database.tables.runs) == bool(bench.database.tables.commands) == stands
    assert not bench.database.locks


class _Hiding:
    def strike(self, statement: str) -> None:
        return None

    def hides(self, statement: str, run_id: uuid.UUID) -> bool:
        return statement == "doorbells_lost" and run_id == run_id_of(1)


def test_a_reader_of_many_runs_can_be_a_moment_behind_with_one() -> None:
    bench = MemoryBench()
    past = bench.clock.now()
    for number in (1, 2):
        drive(begin(bench, number, effects=[effect_of(number, deadline=past)]))
    bench.database.faults = _Hiding()
    bells = drive(bench.sweeper.lost_doorbells(grace_seconds=1, limit=9, oldest=[None]))
    assert [bell.run_id for bell in bells] == [run_id_of(2)]


def test_effects_that_are_written_after_their_decision_are_lost_by_a_crash_in_between() -> None:
    """The ablation that the outbox in the transaction is for."""
    bench = MemoryBench(Defences(outbox_in_transaction=False))
    drive(begin(bench))
    bench.database.hooks = _Waits()
    dying = bench.decisions.commit([commit_of(effects=[(effect_of(), None)])])
    dying.send(None)  # type: ignore[attr-defined]  # a coroutine, as every port method is
    dying.close()  # type: ignore[attr-defined]  # as above
    assert bench.database.tables.runs[run_id_of(1)].revision == 2
    assert not bench.database.tables.effects


def test_the_same_calls_leave_the_same_rows() -> None:
    def world() -> str:
        bench = MemoryBench()
        for number in (3, 1, 2):
            drive(begin(bench, number, effects=[effect_of(number, step=step) for step in "cab"]))
        drive(claim(bench, *(effect_of(number, step=step) for number in (2, 1) for step in "bca"), limit=4))
        return repr(vars(bench.database.tables))

    assert world() == world()


def test_the_clock_is_the_one_that_is_given() -> None:
    clock = ManualClock()
    database = MemoryDatabase(clock)
    clock.advance(-5)
    assert database.begin().now == clock.now() < database.started_at
