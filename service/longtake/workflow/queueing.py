"""Queueing: who may begin when several runs want the same scopes, and runs whose time has not come (H54 to H57).

A run takes all of its scopes at once or none, in the order in which runs were accepted, so nobody waits for a run that
waits for him. Leaves to others: the lock under which this is asked (admission and the starter), and the rows.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from longtake.contracts.command_table import OnConflict
from longtake.contracts.events import RunQueued, RunStarted
from longtake.contracts.ids import signal_id_for
from longtake.contracts.signals import BeginRun, MakeRoom, Outgoing
from longtake.workflow.charging import charge_at_beginning
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.run_state import RunState
from longtake.workflow.scheduling import advance

LINE_MAX = 1000
"""Runs in line in one project; one more is refused."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One queued run, as its row tells it."""

    run_id: uuid.UUID
    scopes: tuple[str, ...]
    waits_for: tuple[uuid.UUID, ...] = ()
    """Runs that must have ended before it begins, whatever they hold."""
    start_at: datetime | None = None
    supersedes: bool = False
    """Whoever holds a scope when its time has come is told to make room."""
    overtakes: bool = False
    """A child run waits for holders only: one in line may be waiting for its own family."""

    def is_due(self, now: datetime) -> bool:
        """Whether it is in line: before its time it neither begins nor holds anybody up."""
        return self.start_at is None or self.start_at <= now


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the way: it holds the scope, or stands in line for it since before."""

    run_id: uuid.UUID
    scope: str
    holds: bool


Verdict = Literal["begin", "queue", "reject"]


def obstacles(
    scopes: Sequence[str], held: Mapping[str, uuid.UUID], queue: Sequence[Waiting], now: datetime
) -> tuple[Obstacle, ...]:
    """Everybody who is before a new run, by scope: the holder, and those in line."""
    found: list[Obstacle] = []
    for scope in scopes:
        holder = held.get(scope)
        if holder is not None:
            found.append(Obstacle(run_id=holder, scope=scope, holds=True))
        found.extend(
            Obstacle(run_id=waiting.run_id, scope=scope, holds=False)
            for waiting in queue
            if scope in waiting.scopes and waiting.is_due(now)
        )
    return tuple(found)


def verdict(
    policy: OnConflict, in_the_way: Sequence[Obstacle], *, start_at: datetime | None, now: datetime
) -> Verdict:
    """What becomes of a new run. One with a time of its own is never refused for scopes: it gets in line then."""
    if start_at is not None and start_at > now:
        return "queue"
    if not in_the_way:
        return "begin"
    return "reject" if policy == "reject" else "queue"


def grantable(
    queue: Sequence[Waiting],
    held: Mapping[str, uuid.UUID],
    active: Collection[uuid.UUID],
    now: datetime,
) -> tuple[uuid.UUID, ...]:
    """Who may begin now, of a queue in the order of acceptance. Nobody overtakes one who wants the same scope."""
    taken, wanted = set(held), set[str]()
    begin: list[uuid.UUID] = []
    for waiting in queue:
        if not waiting.is_due(now):
            continue
        free = taken.isdisjoint(waiting.scopes) and (waiting.overtakes or wanted.isdisjoint(waiting.scopes))
        if free and not any(run in active for run in waiting.waits_for):
            begin.append(waiting.run_id)
            taken.update(waiting.scopes)
        else:
            wanted.update(waiting.scopes)
    return tuple(begin)


def untold(queue: Sequence[Waiting], held: Mapping[str, uuid.UUID], now: datetime) -> tuple[uuid.UUID, ...]:
    """Who in the line takes the place of others now that its time has come, and has not told all of them."""
    return tuple(
        waiting.run_id
        for waiting in queue
        if waiting.supersedes
        and waiting.is_due(now)
        and not {held[scope] for scope in waiting.scopes if scope in held} <= set(waiting.waits_for)
    )


def supersede_holders(draft: Draft, holders: Sequence[uuid.UUID]) -> None:
    """Tell the runs in the way to make room for this one (P10)."""
    state = draft.state
    for holder in holders:
        draft.send(
            Outgoing(
                id=signal_id_for(state.run_id, kind="supersede", about=str(holder)),
                run_id=holder,
                kind="supersede",
                payload={
                    "by_run": str(state.run_id),
                    "command_id": state.command_id,
                    "actor": state.actor,
                },
            )
        )


def on_begin(draft: Draft, signal: BeginRun) -> Decision:
    """The run has its scopes: it begins."""
    state = draft.state
    if state.queued is None:
        return draft.ignored("run_ended" if state.terminal else "not_queued")
    begin(draft)
    return draft.decision(command_status="running")


def on_make_room(draft: Draft, signal: MakeRoom) -> Decision:
    """The time of the run has come and others are in its way: its history names whom it supersedes, as theirs will."""
    state = draft.state
    if state.queued is None:
        return draft.ignored("run_ended" if state.terminal else "not_queued")
    new = tuple(holder for holder in signal.holders if holder not in state.supersedes)
    if not new:
        return draft.ignored("already_told")
    draft.record(RunQueued(holders=signal.holders, scopes=signal.scopes, supersedes=new))
    supersede_holders(draft, new)
    return draft.decision()


def on_start_due(draft: Draft) -> Decision:
    """The time of a queued run has come. What needs scopes is begun by admission, which alone gives them (P5)."""
    state = draft.state
    if state.queued is None:
        return draft.ignored("run_ended" if state.terminal else "not_queued")
    if state.queued.start_at is not None and state.queued.start_at > draft.now:
        return draft.ignored("timer_not_due")
    if needs_grant(state):
        draft.send(
            Outgoing(
                id=signal_id_for(state.run_id, kind="start_due", about=""),
                run_id=state.run_id,
                kind="start_due",
                payload={"project": state.project},
            )
        )
    else:
        begin(draft)
    return draft.decision()


def needs_grant(state: RunState) -> bool:
    """Whether a queued run begins by admission: it wants scopes, or waits for other runs."""
    return bool(state.plan.plan.scopes or (state.queued is not None and state.queued.holders))


def begin(draft: Draft) -> None:
    """Let a queued run begin: its price is taken with its first work (P9)."""
    draft.record(RunStarted())
    charge_at_beginning(draft)
    advance(draft)
