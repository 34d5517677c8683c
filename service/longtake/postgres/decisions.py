"""The dispatcher's side of the authority: facts in, runs loaded, decisions out. Constant statements a batch."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import asyncpg
import msgspec

from longtake.contracts.outcomes import decode_outcome
from longtake.contracts.signals import (
    CallbackArrived,
    DeadlinePassed,
    LeaseExpired,
    OutcomeReported,
    ReducerFailed,
    Signal,
    TimerFired,
)
from longtake.errors import DecisionRefused
from longtake.postgres.commits import commit_decisions
from longtake.postgres.failures import REFUSED, repeated
from longtake.postgres.statements import statement
from longtake.store import CommitResult, Fact, FactBatch, LoadedEvent, LoadedRun, RunCommit, read_signal


class PostgresDecisionStore:
    """Implements `DecisionStore`."""

    def __init__(self, pool: asyncpg.Pool, *, store_epoch: int, incarnation: uuid.UUID) -> None:
        self._pool = pool
        self._store_epoch = store_epoch
        self._incarnation = incarnation

    async def facts(
        self, *, effects: Sequence[uuid.UUID], inbox: Sequence[uuid.UUID], runs: Sequence[uuid.UUID]
    ) -> FactBatch:
        """Read what lies behind pointers. Raises AuthorityUnavailable."""

        async def read() -> FactBatch:
            facts: list[Fact] = []
            known: set[uuid.UUID] = set()
            for row in await self._pool.fetch(statement("receipts_fetch"), list(effects)):
                known.add(row["id"])
                facts += effect_facts([row])
            if inbox or runs:
                for row in await self._pool.fetch(statement("inbox_fetch"), list(inbox), list(runs)):
                    known.add(row["id"])
                    signal = CallbackArrived(
                        inbox_id=row["id"],
                        step=row["step"],
                        attempt=row["attempt"],
                        external_ref=row["external_ref"],
                    )
                    facts.append(_fact(row, signal, f"inbox:{row['id']}"))
            if runs:
                for row in await self._pool.fetch(statement("timers_fetch"), list(runs)):
                    facts.append(_of_run(row))
            missing = len(set(effects) | set(inbox)) > len(known) or runs
            if missing:
                rows = await self._pool.fetch(statement("known_runs"), list(effects), list(inbox), list(runs))
                known.update(row["id"] for row in rows)
            return FactBatch(facts=tuple(facts), known=frozenset(known))

        return await repeated(read)

    async def load(self, after: Mapping[uuid.UUID, int]) -> list[LoadedRun]:
        """Load runs and their events after the given seqs: two statements. Raises AuthorityUnavailable."""
        ids = list(after)

        async def read() -> list[LoadedRun]:
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read"),
            ):
                rows = await connection.fetch(statement("runs_load"), ids)
                events = await connection.fetch(statement("events_load"), ids, [after[id_] for id_ in ids])
            by_run: dict[uuid.UUID, list[Any]] = {}
            for event in events:
                by_run.setdefault(event["run_id"], []).append(event)
            return [loaded_run(row, by_run.get(row["run_id"], [])) for row in rows]

        return await repeated(read)

    async def commit(self, commits: Sequence[RunCommit]) -> CommitResult:
        """Write a batch in one autocommit statement.

        Raises AuthorityUnavailable; then nothing is known of the batch, and reading its facts again tells. Raises
        DecisionRefused when some row of it breaks a rule of its table; then nothing of the batch was written.
        """
        try:
            return await repeated(
                lambda: commit_decisions(
                    self._pool, commits, store_epoch=self._store_epoch, incarnation=self._incarnation
                )
            )
        except REFUSED as error:
            raise DecisionRefused(f"{type(error).__name__}: {error}") from error

    async def set_aside(self, run_id: uuid.UUID) -> None:
        """Block a run that cannot be folded."""
        await repeated(lambda: self._pool.execute(statement("run_set_aside"), run_id))


def loaded_run(row: Any, events: Sequence[Any]) -> LoadedRun:
    """Make a LoadedRun of a run's row and its event rows."""
    return LoadedRun(
        run_id=row["run_id"],
        tenant=row["tenant_id"],
        revision=row["revision"],
        head_hash=row["head_hash"],
        actor=row["actor"],
        correlation=row["command_id"],
        plan=row["plan"],
        fingerprint=row["fingerprint"],
        events=tuple(
            LoadedEvent(e["seq"], e["type"], e["version"], e["data"], e["recorded_at"]) for e in events
        ),
    )


def effect_facts(rows: Iterable[Any]) -> list[Fact]:
    """The facts that lie on rows of effects, as `receipts_fetch` gives them."""
    told = ((row, _of_effect(row)) for row in rows)
    return [_fact(row, signal, f"effect:{row['id']}") for row, signal in told if signal is not None]


def _fact(row: Any, signal: Signal, causation: str) -> Fact:
    return Fact(
        run_id=row["run_id"],
        tenant=row["tenant_id"],
        signal=signal,
        causation=causation,
        traceparent=row.get("traceparent"),
        revision=row["revision"],
        plan_checked=row["plan_checked"],
        ended=row["ended"],
        application=row["application"],
        now=row["now"],
    )


def _of_effect(row: Any) -> Signal | None:
    if row["poisoned"]:
        return None
    common = {"effect_id": row["id"], "step": row["step"], "attempt": row["attempt"], "kind": row["kind"]}
    match row["fact"]:
        case "outcome":
            try:
                outcome = decode_outcome(row["receipt"])
            except msgspec.DecodeError as error:
                # Nobody stores such a receipt; one that is there anyway blocks its own run and no other (F56).
                return ReducerFailed(
                    causation=f"effect:{row['id']}", error=f"the receipt cannot be read: {error}"
                )
            return OutcomeReported(
                **common,
                outcome=outcome,
                owner=row["reporter"],
                fence=row["report_fence"],
                claimed_at=row["claimed_at"],
                started_at=row["call_opened_at"],
            )
        case "deadline":
            return DeadlinePassed(**common, call_opened=row["call_opened_at"] is not None)
        case "lease":
            return LeaseExpired(**common, call_opened=row["call_opened_at"] is not None, leases=row["leases"])
        case _:
            return None


def _of_run(row: Any) -> Fact:
    if row["source"] == "timer":
        return _fact(row, TimerFired(key=row["key"]), f"timer:{row['key']}")
    signal = read_signal(row["key"], row["signal_id"], row["payload"])
    return _fact(row, signal, f"signal:{row['signal_id']}")
