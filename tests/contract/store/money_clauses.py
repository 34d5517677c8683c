"""Clauses of the auditor's question about money: which laws are broken, and by which run."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from contract.store.bench import Bench
from contract.store.clauses import clause, instead, patched
from contract.store.rows import begin, commit_of, entry_of, event_of, run_id_of
from longtake.memory import MemoryMoneyAuditStore

PAY_AS_YOU_GO = b'{"billing":"pay_as_you_go","steps":[{"key":"s","price":3},{"key":"free","price":0}]}'
PAST = datetime(2020, 1, 1, tzinfo=UTC)


async def _laws(bench: Bench, run_id: uuid.UUID | None = None) -> list[tuple[str, uuid.UUID | None]]:
    return [(found.law, found.run_id) for found in await bench.money_laws.money_violations(run_id)]


def _silent(self: Any) -> Iterator[Any]:
    return iter(())


def _told(number: int, seq: int, entry: Any) -> Any:
    data = msgspec.json.encode({"key": entry.key, "amount": entry.amount, "step": entry.step})
    return event_of(run_id_of(number), seq, "charged" if entry.kind == "charge" else "refunded", data)


def _work(number: int, seq: int, *steps: str) -> Any:
    data = msgspec.json.encode({"steps": [{"step": step} for step in steps]})
    return event_of(run_id_of(number), seq, "steps_scheduled", data)


async def _paid(bench: Bench, *, together: bool = True) -> uuid.UUID:
    """A run that pays for a step as it should: entry, event and work in one decision."""
    await bench.fund(10)
    run_id = await begin(bench, cap=5, plan=PAY_AS_YOU_GO)
    entry = entry_of()
    events = [_told(1, 2, entry), _work(1, 3, "s", "free")]
    row = {"charged": 3, "cap": 5}
    if together:
        await bench.decisions.commit([commit_of(written=events, events=2, ledger=[(entry, 2)], row=row)])
    else:
        await bench.decisions.commit([commit_of(written=events[:1], ledger=[(entry, 2)], row=row)])
        await bench.decisions.commit([commit_of(at=2, written=events[1:], row=row)])
    return run_id


def _suspicious(self: Any) -> Iterator[Any]:
    yield "cycle_opens_with_its_work", "always"


@clause(patched("store_money._Books._cycles", _suspicious))
async def a_run_that_pays_as_it_should_breaks_no_law(bench: Bench) -> None:
    run_id = await _paid(bench)
    assert await _laws(bench) == await _laws(bench, run_id) == []
    refund = entry_of(kind="refund")
    await bench.decisions.commit([
        commit_of(
            at=3, written=[_told(1, 4, refund)], ledger=[(refund, 4)], hold_released=True,
            row={"charged": 3, "refunded": 3, "cap": 5, "ended_at": PAST, "status": "failed"},
        )
    ])  # fmt: skip
    assert await _laws(bench) == []


@clause(patched("store_money._Books._cycles", _silent))
async def work_that_is_not_written_with_its_charge_is_found(bench: Bench) -> None:
    run_id = await _paid(bench, together=False)
    assert await _laws(bench, run_id) == [("cycle_opens_with_its_work", run_id)]


@clause(patched("store_money._Books._cycles", _silent))
async def paid_work_without_an_open_cycle_is_found(bench: Bench) -> None:
    run_id = await begin(bench, plan=PAY_AS_YOU_GO)
    other = await begin(bench, 2)
    for number in (1, 2):
        await bench.decisions.commit([commit_of(number, written=[_work(number, 2, "s", "free")])])
    assert await _laws(bench) == [("cycle_opens_with_its_work", run_id)]
    assert await _laws(bench, other) == [], "its plan has no price for it"


@clause(patched("store_money._Books._told", _silent))
async def an_entry_that_no_event_tells_of_is_found_and_the_reverse(bench: Bench) -> None:
    await bench.fund(10)
    booked, told = await begin(bench, 1, cap=3), await begin(bench, 2, cap=3)
    paid = {"charged": 3, "cap": 3}
    await bench.decisions.commit([commit_of(1, ledger=[(entry_of(1), 2)], row=paid)])
    await bench.decisions.commit([commit_of(2, written=[_told(2, 2, entry_of(2))], row={"cap": 3})])
    assert await _laws(bench) == [("events_are_the_ledger", booked), ("events_are_the_ledger", told)]


@clause(patched("store_money._Books._sums", _silent))
async def sums_that_differ_from_the_ledger_are_found(bench: Bench) -> None:
    await bench.fund(10)
    wrong, above = await begin(bench, 1, cap=5), await begin(bench, 2, cap=5)
    await bench.decisions.commit([commit_of(1, row={"charged": 4, "cap": 5})])
    entry = entry_of(2, amount=6)
    await bench.decisions.commit([
        commit_of(2, written=[_told(2, 2, entry)], ledger=[(entry, 2)], row={"charged": 5, "cap": 5})
    ])  # fmt: skip
    assert await _laws(bench) == [
        ("net_is_the_ledgers", wrong), ("net_is_the_ledgers", above), ("net_within_cap", above),
    ]  # fmt: skip


@clause(patched("store_money._Books._held", _silent))
async def holds_that_do_not_cover_or_outlive_their_runs_are_found(bench: Bench) -> None:
    await bench.fund(20)
    outlived, lowered = await begin(bench, 1, cap=5), await begin(bench, 2, cap=5)
    ended = {"ended_at": PAST, "status": "completed", "cap": 5}
    await bench.decisions.commit([commit_of(1, row=ended), commit_of(2, row={"cap": 4})])
    assert await _laws(bench) == [("hold_ends_with_the_run", outlived), ("hold_covers_the_run", lowered)]


@clause(patched("store_money._of_accounts", lambda session: iter(())))
async def credits_that_are_promised_to_nobody_are_found(bench: Bench) -> None:
    await bench.fund(10)
    await begin(bench, cap=5)
    await bench.promise_to_nobody(2)
    assert await _laws(bench) == [("account_holds_are_the_runs", None)]
    assert await _laws(bench, run_id_of(1)) == [], "it is no law of a run"


class _LooksAtAll(MemoryMoneyAuditStore):
    async def recent_money_violations(self, seconds: float) -> Any:
        return await self.money_violations(None)


@clause(instead(money=_LooksAtAll))
async def only_runs_whose_money_moved_of_late_are_looked_at_when_that_is_asked(bench: Bench) -> None:
    await bench.fund(20)
    moved, still = await begin(bench, 1, cap=3), await begin(bench, 2, cap=3)
    paid = {"charged": 3, "cap": 3}
    await bench.decisions.commit([commit_of(1, ledger=[(entry_of(1), 2)], row=paid), commit_of(2, row=paid)])
    await bench.promise_to_nobody(1)
    accounts = ("account_holds_are_the_runs", None)
    recent = await bench.money_laws.recent_money_violations(3600)
    assert [(v.law, v.run_id) for v in recent] == [("events_are_the_ledger", moved), accounts]
    later = await bench.money_laws.recent_money_violations(-60)
    assert [(v.law, v.run_id) for v in later] == [accounts]
    assert ("net_is_the_ledgers", still) in await _laws(bench)
