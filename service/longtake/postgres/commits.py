"""The one statement that writes decisions, and the columns it takes (P21). Dispatcher and admission both use it."""

import uuid
from collections.abc import Sequence
from typing import Any

import asyncpg
import asyncpg.pool

from longtake.contracts.codec import to_json
from longtake.contracts.commands import Receipt
from longtake.contracts.ids import artifact_id_for
from longtake.contracts.principal import Principal
from longtake.postgres.statements import statement
from longtake.store import CommitResult, EffectPointer, RunCommit

_COMMIT = "decisions_commit"


async def commit_decisions(
    connection: asyncpg.Pool | asyncpg.pool.PoolConnectionProxy,
    commits: Sequence[RunCommit],
    *,
    store_epoch: int,
    incarnation: uuid.UUID,
    answer: tuple[Principal, Receipt] | None = None,
) -> CommitResult:
    """Write all runs of a batch in one statement; runs that moved meanwhile are left out.

    `answer` is stored with the one run of an admission.
    """
    ordered = sorted(commits, key=lambda commit: commit.run_id)
    columns, last = _columns(ordered, store_epoch=store_epoch, incarnation=incarnation)
    rows = await connection.fetch(
        statement(_COMMIT),
        *columns,
        *_answer_columns(answer),
        *last,
    )
    committed = frozenset(row["id"] for row in rows if row["what"] == "run")
    pointers = [
        EffectPointer(
            id=effect.id,
            attempt=effect.attempt,
            generation=1,
            pool=effect.pool,
            traceparent=commit.traceparent,
        )
        for commit in ordered
        if commit.run_id in committed
        for effect, _ in commit.effects
        if effect.not_before is None and effect.id not in commit.held_back
    ]
    pointers += [
        EffectPointer(
            id=row["id"],
            attempt=row["attempt"],
            generation=row["generation"],
            pool=row["pool"],
            traceparent=row["traceparent"],
        )
        for row in rows
        if row["what"] == "expedited"
    ]
    return CommitResult(
        committed=committed,
        pointers=tuple(pointers),
        withdrawn=tuple(row["id"] for row in rows if row["what"] == "withdrawn"),
    )


def _answer_columns(answer: tuple[Principal, Receipt] | None) -> tuple[Any, ...]:
    if answer is None:
        return (None,) * 5
    principal, receipt = answer
    return principal.tenant, principal.actor, receipt.command_id, receipt.status, to_json(receipt)


def _transposed(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def _columns(
    commits: list[RunCommit], *, store_epoch: int, incarnation: uuid.UUID
) -> tuple[list[Any], list[Any]]:
    """The columns before the answer to a command, and those after it."""
    runs: list[tuple[Any, ...]] = []
    events: list[tuple[Any, ...]] = []
    steps: list[tuple[Any, ...]] = []
    effects: list[tuple[Any, ...]] = []
    held_back: list[bool] = []
    closings: list[tuple[Any, ...]] = []
    ledger: list[tuple[Any, ...]] = []
    timers: list[tuple[Any, ...]] = []
    cancelled: list[tuple[Any, ...]] = []
    artifacts: list[tuple[Any, ...]] = []
    inbox: list[tuple[Any, ...]] = []
    signals: list[tuple[Any, ...]] = []
    withdrawn: list[tuple[Any, ...]] = []
    expedited: list[tuple[Any, ...]] = []
    outgoing: list[tuple[Any, ...]] = []
    amounts: list[tuple[Any, ...]] = []
    for n, commit in enumerate(commits, start=1):
        row = commit.row
        assert row is not None, "a finished commit has its projection"
        runs.append(
            (
                commit.run_id,
                commit.expected_revision,
                row.revision,
                commit.head_hash,
                row.status,
                row.phase,
                row.label,
                row.charged,
                row.refunded,
                ",".join(b.type for b in row.blockers),
                commit.poisoned,
                row.poll_at,
                row.summary,
                row.ended_at,
                commit.checked_application,
            )
        )
        events += [
            (n, e.seq, e.id, e.type, e.version, e.data, e.meta, e.recorded_at, e.hash) for e in commit.events
        ]
        steps += [
            (
                n,
                s.key,
                s.ordinal,
                s.attempt,
                s.max_attempts,
                s.status,
                s.phase,
                s.label,
                s.external_ref,
                s.error_class,
                s.error_message,
                s.provider_cost,
                ",".join(s.artifacts),
                s.started_at,
                s.updated_seq,
            )
            for s in commit.steps
        ]
        effects += [
            (
                n,
                e.id,
                e.step,
                e.attempt,
                e.kind,
                e.ordinal,
                e.activity,
                e.pool,
                e.priority,
                e.input,
                commit.traceparent,
                e.not_before,
                e.deadline,
                ref,
            )
            for e, ref in commit.effects
        ]
        held_back += [e.id in commit.held_back for e, _ in commit.effects]
        closings += [(n, c.id, c.disposition, c.expect_receipt) for c in commit.closings]
        ledger += [
            (n, e.key, e.kind, e.debit, e.credit, e.amount, e.step, e.cycle, seq) for e, seq in commit.ledger
        ]
        timers += [(n, t.key, t.due_at) for t in commit.timers]
        cancelled += [(n, key) for key in commit.timers_cancelled]
        artifacts += [
            (
                n,
                artifact_id_for(commit.run_id, step=p.step, name=p.artifact.name),
                p.step,
                p.attempt,
                p.artifact.name,
                p.artifact.kind,
                p.artifact.object_key,
                p.artifact.sha256,
                p.artifact.bytes,
                p.artifact.content_type,
            )
            for p in commit.artifacts
        ]
        inbox += [(n, id_, status, reason) for id_, status, reason in commit.inbox]
        signals += [(n, id_) for id_ in commit.signals]
        withdrawn += [(n, id_) for id_ in commit.withdrawn]
        expedited += [(n, id_) for id_ in commit.expedited]
        outgoing += [(n, o.id, o.run_id, o.kind, to_json(o.payload)) for o in commit.outgoing]
        amounts.append((row.quoted, row.cap, commit.traceparent))
    effect_columns = _transposed(effects, 14)
    last = [*_transposed(outgoing, 5), *_transposed(amounts, 3), held_back]
    columns = [
        *_transposed(runs, 15),
        *_transposed(events, 9),
        *_transposed(steps, 15),
        *effect_columns,
        incarnation,
        *_transposed(closings, 4),
        *_transposed(ledger, 9),
        *_transposed(timers, 3),
        *_transposed(cancelled, 2),
        *_transposed(artifacts, 10),
        *_transposed(inbox, 4),
        *_transposed(signals, 2),
        *_transposed(withdrawn, 2),
        *_transposed(expedited, 2),
        [n for n, commit in enumerate(commits, start=1) if commit.scopes_released],
        [n for n, commit in enumerate(commits, start=1) if commit.hold_released],
        store_epoch,
    ]
    return columns, last
