"""The state of a small world: what is committed, what travels, what each worker holds, and what the provider did.

A state is never changed: the next one shares with it whatever stayed the same. Two states are one when they differ by
nothing but clocks, numbers that are only compared, and which of the two workers is which: moments are replaced by whether
they have come and in which order the others will, a fence by whether it is still the row's.
Leaves to others: what may happen in a state (exhaustive_moves.py).
"""

import hashlib
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.outcomes import Outcome
from longtake.memory.store_session import Snapshot
from longtake.memory.store_tables import TABLES, Tables
from longtake.memory.tables import EffectRow
from longtake.store import RunCommit
from longtake.testing.exhaustive_worlds import Budget

Work = tuple[uuid.UUID, int]
"""A pointer to an effect: its id and attempt."""
Look = tuple[Literal["effect", "inbox", "run"], uuid.UUID]
"""A pointer for the dispatcher."""
JobState = Literal["working", "done", "failed", "stopped"]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has claimed, and how far it is."""

    effect: ClaimedEffect
    stage: Literal["claimed", "open", "answered"] = "claimed"
    outcome: Outcome | None = None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider knows of one attempt."""

    step: str
    attempt: int
    state: JobState = "working"
    called: bool = False
    """It has called back about its end."""


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A dispatcher that has decided, and has not written yet."""

    commit: RunCommit
    looks: tuple[Look, ...]


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One state."""

    tables: Tables
    tx_id: int
    position: int
    clock: datetime
    work: frozenset[Work] = frozenset()
    looks: frozenset[Look] = frozenset()
    workers: tuple[Held | None, ...] = (None, None)
    jobs: tuple[Job, ...] = ()
    given: tuple[str, ...] = ()
    """Wishes that were granted, in the order of their names."""
    slow: Slow | None = None
    budget: Budget = Budget()

    @property
    def snapshot(self) -> Snapshot:
        """What a database is set back to."""
        return Snapshot(self.tables, self.tx_id, self.position)

    def effects(self) -> Iterator[EffectRow]:
        """Every open effect row."""
        tables = self.tables
        for ids in tables.open_effects.values():
            for id_ in ids:
                yield tables.effects[id_]

    def holds(self, held: Held) -> bool:
        """Whether the worker's lease is the one that stands."""
        row = self.tables.effects[held.effect.id]
        return row.state == "leased" and row.fence == held.effect.fence

    def is_orphan(self, row: EffectRow) -> bool:
        """Whether the row is leased to somebody who is gone."""
        return row.state == "leased" and not any(
            held is not None and held.effect.id == row.id and held.effect.fence == row.fence
            for held in self.workers
        )


def share(new: Tables, old: Tables) -> Tables:
    """Let the new tables keep the old dictionaries wherever nothing changed."""
    for name in (*TABLES, "open_effects", "open_inbox", "open_signals", "timers_by_run", "scopes_by_run"):
        before = getattr(old, name)
        if getattr(new, name) == before:
            setattr(new, name, before)
    for run_id, events in new.events.items():
        if (before := old.events.get(run_id)) is not None and len(before) == len(events):
            new.events[run_id] = before
    return new


class Canon:
    """Tells equal states. `run_form` gives what is the same of equal run states, by the head of its history."""

    def __init__(self, run_form: Callable[[Node], bytes]) -> None:
        self._run_form = run_form
        self._encoder = msgspec.msgpack.Encoder()

    def key(self, node: Node) -> int:
        """A number that equal states share."""
        return int.from_bytes(
            hashlib.blake2b(self._encoder.encode(self.form(node)), digest_size=12).digest(), "big"
        )

    def form(self, node: Node) -> list[Any]:
        """What makes the state what it is."""
        tables, now = node.tables, node.clock
        workers = sorted((_of_worker(node, held) for held in node.workers), key=repr)
        effects = [_of_effect(node, row) for row in tables.effects.values()]
        return [
            self._run_form(node),
            effects,
            _order(node),
            sorted((key, timer.due_at <= now) for (_, key), timer in tables.timers.items()),
            sorted((row.id.hex, row.status) for row in tables.inbox.values()),
            sorted((row.id.hex, row.settled_at is None) for row in tables.signals.values()),
            sorted((id_.hex, attempt) for id_, attempt in node.work),
            sorted((what, id_.hex) for what, id_ in node.looks),
            workers,
            [(job.step, job.attempt, job.state, job.called) for job in node.jobs],
            node.given,
            None if node.slow is None else _of_slow(node, node.slow),
            msgspec.structs.astuple(node.budget),
        ]


def _of_effect(node: Node, row: EffectRow) -> tuple[Any, ...]:
    if row.closed_at is not None:
        return row.id.hex, row.disposition, row.receipt is not None
    return (
        row.id.hex,
        row.state,
        row.not_before <= node.clock,
        row.deadline is None or row.deadline <= node.clock,
        row.published_at is not None,
        row.leases,
        row.call_opened_at is not None,
        row.receipt,
        row.lease_until is not None and row.lease_until <= node.clock,
        node.is_orphan(row),
    )


def _of_worker(node: Node, held: Held | None) -> tuple[Any, ...]:
    if held is None:
        return ()
    outcome = b"" if held.outcome is None else msgspec.json.encode(held.outcome)
    return held.effect.id.hex, held.stage, outcome, node.holds(held), held.effect.external_ref


def _of_slow(node: Node, slow: Slow) -> tuple[Any, ...]:
    run = node.tables.runs[slow.commit.run_id]
    types = [event.type for event in slow.commit.events]
    return (
        types,
        sorted((what, id_.hex) for what, id_ in slow.looks),
        slow.commit.expected_revision == run.revision,
    )


def _order(node: Node) -> list[list[str]]:
    """What will be due, in the order in which it will."""
    ranks: dict[datetime, list[str]] = {}
    for moment, what in coming(node):
        ranks.setdefault(moment, []).append(what)
    return [sorted(ranks[moment]) for moment in sorted(ranks)]


def coming(node: Node) -> Iterator[tuple[datetime, str]]:
    """Every moment that has not come yet and at which something will be otherwise."""
    now = node.clock
    for row in node.effects():
        if row.state == "queued" and row.not_before > now:
            yield row.not_before, f"due {row.id.hex}"
        if row.receipt is None and row.deadline is not None and row.deadline > now:
            yield row.deadline, f"late {row.id.hex}"
        if row.lease_until is not None and row.lease_until > now and node.is_orphan(row):
            yield row.lease_until, f"lapse {row.id.hex}"
    for (_, key), timer in node.tables.timers.items():
        if timer.due_at > now:
            yield timer.due_at, f"timer {key}"
