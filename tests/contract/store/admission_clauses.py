"""Clauses of admission: commands kept once, answers, funds, scopes, locks."""

import asyncio
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec
import pytest

from contract.store.bench import ALICE, BOB, STRANGER, Bench
from contract.store.clauses import clause, instead, patched, without
from contract.store.rows import begin, command_of, commit_of, new_run, receipt_of, run_id_of
from longtake.contracts.principal import Principal
from longtake.errors import AuthorityUnavailable, DecisionRefused, LockTimeout
from longtake.memory import MemoryAdmission, MemoryAdmissionStore, MemorySweepStore


def _open(bench: Bench, principal: Principal = ALICE, channel: Any = "local") -> Any:
    return bench.admission.transaction(principal, channel=channel, traceparent=None)


async def _keep(bench: Bench, id: str = "c1", principal: Principal = ALICE, channel: Any = "local", intent: str = "h") -> bool:  # fmt: skip
    async with _open(bench, principal, channel) as transaction:
        return await transaction.insert_command(command_of(id), intent_hash=intent) is not None


class _Wrong(MemoryAdmissionStore):
    kind: type[MemoryAdmission] = MemoryAdmission

    def transaction(self, principal: Principal, *, channel: Any, traceparent: str | None) -> MemoryAdmission:
        return self.kind(
            self._database, principal, channel=channel, traceparent=traceparent, store_epoch=1,
            incarnation=self._incarnation,
        )  # fmt: skip


@clause(without("command_unique"))
async def a_command_id_is_kept_once(bench: Bench) -> None:
    assert await _keep(bench)
    assert not await _keep(bench)
    assert await bench.count("commands") == 1


class _OneActor(MemoryAdmissionStore):
    def transaction(self, principal: Principal, **options: Any) -> MemoryAdmission:
        return super().transaction(Principal(tenant=principal.tenant, actor="anybody"), **options)


@clause(instead(admission=_OneActor))
async def the_same_id_of_another_actor_is_another_command(bench: Bench) -> None:
    assert await _keep(bench, principal=ALICE)
    assert await _keep(bench, principal=BOB)


@clause(without("body_hash_kept"))
async def a_repeat_is_told_which_intent_its_id_stands_for(bench: Bench) -> None:
    await _keep(bench, intent="first")
    async with _open(bench) as transaction:
        await transaction.insert_command(command_of(), intent_hash="second")
        stored = await transaction.stored_answer("c1")
    assert stored is not None
    assert stored.intent_hash == "first"
    assert stored.receipt is None


class _CommitsAnyway(MemoryAdmission):
    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(None, None, None)


class _CommitsAnywayStore(_Wrong):
    kind = _CommitsAnyway


class _Interrupted(Exception):
    pass


@clause(instead(admission=_CommitsAnywayStore))
async def an_admission_that_breaks_off_leaves_nothing(bench: Bench) -> None:
    await bench.fund(10)
    with pytest.raises(_Interrupted):
        async with _open(bench) as transaction:
            now = await transaction.insert_command(command_of(), intent_hash="h")
            await transaction.lay_down(new_run(cap=4, scopes=["voice"]), command_id="c1", now=now)
            raise _Interrupted
    assert [await bench.count(table) for table in ("commands", "runs", "scopes", "holds", "plans")] == [0] * 5
    assert await bench.money() == (10, 0)


class _Hasty(MemoryAdmission):
    async def _run(self, statement: str, body: Any) -> Any:
        result = await super()._run(statement, body)
        self._session.view.merge()
        return result


class _HastyStore(_Wrong):
    kind = _Hasty


@clause(instead(admission=_HastyStore))
async def nobody_sees_an_admission_before_its_commit(bench: Bench) -> None:
    async with _open(bench, channel="http") as transaction:
        now = await transaction.insert_command(command_of(), intent_hash="h")
        assert now is not None
        await transaction.lay_down(new_run(), command_id="c1", now=now)
        await transaction.commit_run(commit_of(at=0), receipt_of(run_id=run_id_of(1)))
        assert await bench.sweeper.uncopied_commands(10) == []
        assert await bench.decisions.load({run_id_of(1): 0}) == []
        assert await bench.history(run_id_of(1)) == []
    assert len(await bench.sweeper.uncopied_commands(10)) == 1
    assert len(await bench.history(run_id_of(1))) == 1


async def _copies(bench: Bench, *, first_stands: bool) -> list[bool]:
    """Two copies of one command at once; the first holds its transaction open until the second waits."""
    kept = asyncio.Event()
    go_on = asyncio.Event()
    results: list[bool] = []

    async def first() -> None:
        try:
            async with _open(bench) as transaction:
                results.append(await transaction.insert_command(command_of(), intent_hash="h") is not None)
                await transaction.settle_command(receipt_of(status="rejected"))
                kept.set()
                await go_on.wait()
                if not first_stands:
                    raise _Interrupted
        except _Interrupted:
            pass

    async def second() -> None:
        await kept.wait()
        async with _open(bench) as transaction:
            new = await transaction.insert_command(command_of(), intent_hash="h") is not None
            assert go_on.is_set(), "the copy did not wait"
            results.append(new)

    async def release() -> None:
        await kept.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()

    await asyncio.gather(first(), second(), release())
    return results


@clause(without("command_unique"))
async def a_concurrent_copy_waits_for_the_first_and_then_finds_its_answer(bench: Bench) -> None:
    assert await _copies(bench, first_stands=True) == [True, False]
    async with _open(bench) as transaction:
        stored = await transaction.stored_answer("c1")
    assert stored is not None
    assert stored.receipt == receipt_of(status="rejected")


class _TakenAtOnce(MemoryAdmission):
    taken: ClassVar[set[str]] = set()

    async def insert_command(self, command: Any, *, intent_hash: str) -> datetime | None:
        if command.client_command_id in self.taken:
            return None
        self.taken.add(command.client_command_id)
        return await super().insert_command(command, intent_hash=intent_hash)


class _TakenAtOnceStore(_Wrong):
    kind = _TakenAtOnce


@clause(instead(admission=_TakenAtOnceStore))
async def a_copy_of_an_admission_that_broke_off_is_kept_itself(bench: Bench) -> None:
    assert await _copies(bench, first_stands=False) == [True, True]


@clause(without("account_covered"))
async def an_account_that_cannot_pay_lays_down_nothing(bench: Bench) -> None:
    await bench.fund(10)
    await begin(bench, 1, cap=7)
    async with _open(bench) as transaction:
        laid = await transaction.lay_down(new_run(2, cap=4), command_id="c2", now=datetime.now(UTC))
        funds = await transaction.funds("main")
        absent = await transaction.funds("nobody's")
    assert not laid
    assert (funds.balance, funds.held) == (10, 7)
    assert absent is None
    assert await bench.count("runs") == 1


class _Unheld(MemoryAdmission):
    async def lay_down(self, run: Any, **options: Any) -> bool:
        laid = await super().lay_down(run, **options)
        self._session.view.accounts.changed.clear()
        return laid


class _UnheldStore(_Wrong):
    kind = _Unheld


@clause(instead(admission=_UnheldStore))
async def the_cap_is_held_on_the_account_and_a_free_run_touches_none(bench: Bench) -> None:
    await begin(bench, 1)
    assert await bench.count("holds") == 0
    await bench.fund(10)
    run_id = await begin(bench, 2, cap=7)
    assert await bench.money() == (10, 7)
    assert (await bench.row("holds", run_id=run_id)).amount == 7


class _Generous(MemoryAdmission):
    async def raise_hold(self, run_id: Any, by: int) -> bool:
        await super().raise_hold(run_id, by)
        return True


class _GenerousStore(_Wrong):
    kind = _Generous


@clause(instead(admission=_GenerousStore))
async def a_hold_is_raised_as_far_as_the_account_can_pay(bench: Bench) -> None:
    await bench.fund(10)
    run_id, free = await begin(bench, 1, cap=4), await begin(bench, 2)
    async with _open(bench) as transaction:
        await transaction.lock_run(run_id)
        raised = [await transaction.raise_hold(run_id, by) for by in (3, 4)]
        raised += [await transaction.raise_hold(free, by) for by in (3, 1)]
    assert raised == [True, False, True, False]
    assert await bench.money() == (10, 10)
    assert {row.run_id: row.amount for row in await bench.rows("holds")} == {run_id: 7, free: 3}
    async with _open(bench, STRANGER) as transaction:
        assert not await transaction.raise_hold(run_id, 0)


class _HoldsCap(MemoryAdmission):
    async def lay_down(self, run: Any, **options: Any) -> bool:
        return await super().lay_down(msgspec.structs.replace(run, held=None), **options)


class _HoldsCapStore(_Wrong):
    kind = _HoldsCap


@clause(instead(admission=_HoldsCapStore))
async def a_run_may_hold_less_than_its_cap(bench: Bench) -> None:
    await bench.fund(10)
    async with _open(bench) as transaction:
        assert await transaction.lay_down(new_run(1, cap=99, held=6), command_id="c1", now=datetime.now(UTC))
    assert await bench.money() == (10, 6)
    assert (await bench.run(run_id_of(1))).cap == 99


@clause(without("tenant_checked"))
async def a_run_of_another_tenant_is_as_absent_as_none(bench: Bench) -> None:
    run_id = await begin(bench)
    async with _open(bench, STRANGER) as transaction:
        assert await transaction.lock_run(run_id) is None
    async with _open(bench, BOB) as transaction:
        assert await transaction.lock_run(run_id) is not None


class _Backwards(MemoryAdmission):
    async def held_scopes(self, project: str, scopes: Any) -> list[Any]:
        return (await super().held_scopes(project, scopes))[::-1]


class _BackwardsStore(_Wrong):
    kind = _Backwards


@clause(instead(admission=_BackwardsStore))
async def held_scopes_are_named_in_order_with_holder_and_phase(bench: Bench) -> None:
    run_id = await begin(bench, scopes=["voice", "render"])
    async with _open(bench) as transaction:
        held = await transaction.held_scopes("film", ["voice", "scene:1", "render"])
        elsewhere = await transaction.held_scopes("another project", ["voice"])
    assert [(h.scope, h.run_id, h.phase) for h in held] == [
        ("render", run_id, "shooting"),
        ("voice", run_id, "shooting"),
    ]
    assert elsewhere == []


@clause(without("scopes_unique"))
async def a_scope_has_one_holder_even_when_nobody_asked(bench: Bench) -> None:
    await begin(bench, 1, scopes=["voice"])
    with pytest.raises(DecisionRefused):
        await begin(bench, 2, scopes=["voice"])
    assert (await bench.row("scopes", scope="voice")).run_id == run_id_of(1)


async def _both_lock(bench: Bench, lock: Any) -> list[str]:
    """Two transactions take the same lock; the first holds it until the second must have tried."""
    order: list[str] = []
    locked = asyncio.Event()

    async def first() -> None:
        async with _open(bench) as transaction:
            await lock(transaction)
            order.append("first locks")
            locked.set()
            for _ in range(20):
                await asyncio.sleep(0)
            # A round trip, so that a real server has had time to give the lock away.
            await transaction.stored_answer("nothing")
            order.append("first ends")

    async def second() -> None:
        await locked.wait()
        async with _open(bench) as transaction:
            await lock(transaction)
            order.append("second locks")

    await asyncio.gather(first(), second())
    return order


@clause(patched("store_session.LockTimeout", AuthorityUnavailable))
async def what_another_holds_too_long_is_told_from_an_authority_that_is_away(bench: Bench) -> None:
    run_id = await begin(bench)

    async def locks(transaction: Any) -> None:
        await transaction.lock_run(run_id)

    async def inserts(transaction: Any) -> None:
        await transaction.insert_command(command_of("same"), intent_hash="h")

    async def asks_for_the_project(transaction: Any) -> None:
        await transaction.lock_project("film")

    async def waits_in_vain(take: Any) -> None:
        async with _open(bench) as holder:
            await take(holder)
            with pytest.raises(LockTimeout):
                async with _open(bench) as waiting:
                    await take(waiting)

    await asyncio.gather(*(waits_in_vain(take) for take in (locks, inserts, asks_for_the_project)))


@clause(without("project_lock"))
async def starts_in_one_project_come_one_after_the_other(bench: Bench) -> None:
    order = await _both_lock(bench, lambda transaction: transaction.lock_project("film"))
    assert order == ["first locks", "first ends", "second locks"]


@clause(without("run_lock"))
async def commands_to_one_run_come_one_after_the_other(bench: Bench) -> None:
    run_id = await begin(bench)
    order = await _both_lock(bench, lambda transaction: transaction.lock_run(run_id))
    assert order == ["first locks", "first ends", "second locks"]


@clause(without("run_lock"))
async def a_dispatcher_skips_a_run_that_a_command_holds(bench: Bench) -> None:
    run_id = await begin(bench)
    async with _open(bench) as transaction:
        assert await transaction.lock_run(run_id) is not None
        result = await bench.decisions.commit([commit_of()])
    assert result.committed == frozenset()
    assert (await bench.run(run_id)).revision == 1
    assert (await bench.decisions.commit([commit_of()])).committed == {run_id}


@clause(instead(admission=type("_Late", (_Wrong,), {"kind": type("_L", (MemoryAdmission,), {
    "lock_run": lambda self, run_id: _unchecked(MemoryAdmission.lock_run(self, run_id))})})))  # fmt: skip
async def a_locked_run_comes_with_its_events_and_its_plan_check(bench: Bench) -> None:
    run_id = await begin(bench)
    await bench.plans.deploy("build-2")
    async with _open(bench) as transaction:
        loaded, _, checked, application = await transaction.lock_run(run_id)
    assert (checked, application) == ("build-1", "build-2")
    assert [event.seq for event in loaded.events] == [1]
    assert loaded.events[0].data == b'{ "n":1}', "exact bytes"
    assert (loaded.revision, loaded.correlation, loaded.actor) == (1, "c1", "alice")


async def _unchecked(locked: Any) -> Any:
    loaded, now, _, application = await locked
    return loaded, now, application, application


class _Unanswered(MemoryAdmission):
    async def commit_run(self, commit: Any, receipt: Any) -> Any:
        return await super().commit_run(commit, receipt_of("somebody else's"))


class _UnansweredStore(_Wrong):
    kind = _Unanswered


@clause(instead(admission=_UnansweredStore))
async def a_decision_and_the_answer_to_its_command_are_one_write(bench: Bench) -> None:
    run_id = await begin(bench)
    command = await bench.row("commands", client_command_id="c1")
    (event,) = await bench.rows("events")
    assert (command.status, command.run_id) == ("running", run_id)
    assert command.writer == event.writer
    async with _open(bench) as transaction:
        stored = await transaction.stored_answer("c1")
    assert stored is not None
    assert stored.receipt == receipt_of(run_id=run_id)


class _NeverCopied(MemorySweepStore):
    async def mark_copied(self, commands: Any) -> None:
        pass


@clause(instead(sweeps=_NeverCopied))
async def commands_of_the_api_are_copied_to_the_stream_once(bench: Bench) -> None:
    await _keep(bench, "heard", channel="nats")
    await _keep(bench, "asked", channel="http")
    waiting = await bench.sweeper.uncopied_commands(10)
    assert [(row[0], row[1], row[2], row[3]) for row in waiting] == [("acme", "alice", "asked", "generation")]
    await bench.sweeper.mark_copied([("acme", "alice", "asked")])
    assert await bench.sweeper.uncopied_commands(10) == []


class _LosesForEver(MemorySweepStore):
    async def copy_again(self, seconds: float) -> int:
        return 0


@clause(instead(sweeps=_LosesForEver))
async def commands_that_their_stream_has_lost_are_copied_again(bench: Bench) -> None:
    await _keep(bench, "heard", channel="nats")
    await bench.pass_seconds(60)
    assert await bench.sweeper.copy_again(30.0) == 0
    assert await bench.sweeper.uncopied_commands(10) == []
    assert await bench.sweeper.copy_again(90.0) == 1
    assert [row[2] for row in await bench.sweeper.uncopied_commands(10)] == ["heard"]
    assert await bench.sweeper.copy_again(90.0) == 0


@clause(without("unique_run_seq", "run_lock"))
async def a_command_that_decides_on_an_old_revision_is_not_written(bench: Bench) -> None:
    await begin(bench)
    await bench.decisions.commit([commit_of(at=1)])
    async with _open(bench) as transaction:
        result = await transaction.commit_run(commit_of(at=1), receipt_of())
    assert result.committed == frozenset()
    assert [event.seq for event in await bench.history(run_id_of(1))] == [1, 2]
