"""Clauses of answers that lie undecided when a command ends their effects: they are decided in its transaction (P1)."""

from collections.abc import Sequence
from typing import Any

from contract.store.bench import ALICE, Bench
from contract.store.clauses import clause, instead
from contract.store.rows import begin, closing_of, command_of, commit_of, effect_of, one, receipt_of, report
from longtake.contracts.principal import Principal
from longtake.memory import MemoryAdmission, MemoryAdmissionStore


def _store_of(**methods: Any) -> type[MemoryAdmissionStore]:
    """An admission store whose transactions have these methods instead."""
    kind = type("_WrongAdmission", (MemoryAdmission,), methods)

    class _WrongStore(MemoryAdmissionStore):
        def transaction(self, principal: Principal, *, channel: Any, traceparent: str | None) -> Any:
            return kind(
                self._database, principal, channel=channel, traceparent=traceparent, store_epoch=1,
                incarnation=self._incarnation,
            )  # fmt: skip

    return _WrongStore


async def _deaf(self: Any, effects: Sequence[Any]) -> list[Any]:
    return []


@clause(instead(admission=_store_of(answers=_deaf)))
async def a_command_reads_what_was_answered_to_the_work_that_it_ends(bench: Bench) -> None:
    answered, silent = effect_of(), effect_of(step="t")
    await begin(bench, effects=[answered, silent])
    await report(bench, answered, (await one(bench, answered)).fence)
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
        facts = await transaction.answers([answered.id, silent.id])
    assert [fact.signal.effect_id for fact in facts] == [answered.id]


async def _answers_only(self: Any, commit: Any, receipt: Any, *, also: Sequence[Any] = ()) -> Any:
    if receipt is None:
        return await MemoryAdmission.commit_run(self, commit, receipt, also=also)
    result = await MemoryAdmission.commit_run(self, commit_of(at=9), receipt)
    return result


@clause(instead(admission=_store_of(commit_run=_answers_only)))
async def answers_and_a_command_are_decided_one_after_the_other_and_stand_together(bench: Bench) -> None:
    effect = effect_of()
    run_id = await begin(bench, effects=[effect])
    await report(bench, effect, (await one(bench, effect)).fence)
    async with bench.admission.transaction(ALICE, channel="local", traceparent=None) as transaction:
        assert await transaction.insert_command(command_of("c2"), intent_hash="h") is not None
        await transaction.lock_run(run_id)
        blind = await transaction.commit_run(commit_of(closings=[closing_of(effect, receipt=False)]), None)
        assert blind.committed == frozenset()
        heard = await transaction.commit_run(commit_of(closings=[closing_of(effect, receipt=True)]), None)
        told = await transaction.commit_run(commit_of(at=2), receipt_of("c2", run_id))
    assert heard.committed == told.committed == {run_id}
    assert (await bench.run(run_id)).revision == 3
    assert (await bench.effect(effect.id)).disposition == "applied"
