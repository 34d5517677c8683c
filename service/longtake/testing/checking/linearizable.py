"""Each run by itself: what clients asked and were told fits one order, and that order is the log's (I10, I11, P3).

The model of a run is its own track: at each revision a status, attempts, and actions with the revision from which they
have been offered without a break. A run also moves by itself, so a model's state may pass over events, but not over those
of a command in the history that was not placed yet. Reads see a revision as it was; commands are taken where the log
has them, and only if what their sender had seen still stood; refused ones must have had a reason.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec

from longtake.contracts.upcasters import decode_event
from longtake.testing.checking.found import Evidence, Unfollowable, Violation, followed
from longtake.testing.checking.history import CLIENT_KINDS, Call
from longtake.testing.checking.search import Search, linearize
from longtake.testing.checking.store import EventRow, PlanRow, RunRow
from longtake.testing.sessions import UNTARGETED
from longtake.workflow.plan import compile_document
from longtake.workflow.projection import run_row
from longtake.workflow.reducer import available_actions
from longtake.workflow.state import evolve, initial

CALLS_MAX = 200
"""Of one run; what was called after these is left out."""
PRINTED_MAX = 6


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one revision."""

    status: str
    since: Mapping[str, int] = {}
    """Offered actions, with the revision since when."""
    attempts: Mapping[str, int] = {}


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """A run from revision 0, at which it does not exist, to its last."""

    moments: Sequence[Moment]
    taken: Mapping[str, tuple[int, int]]
    """Client command ids with the first and last seq of their decision."""
    ours: frozenset[str]
    """Commands that the history knows: nothing passes over their events before they were placed."""

    @property
    def last(self) -> int:
        """The last revision."""
        return len(self.moments) - 1

    def reach(self, revision: int, wanted: int, *, by: str = "") -> bool:
        """Whether the run gets from a revision to another without a known command, or by this one alone."""
        if not revision <= wanted <= self.last:
            return False
        return not any(
            first <= wanted and last > revision and id_ in self.ours and id_ != by
            for id_, (first, last) in self.taken.items()
        )

    def step(self, revision: int, call: Call) -> int | None:
        """The model: the state is a revision."""
        if call.f == "read":
            return self._read(revision, call)
        if call.type == "fail":
            return self._refused(revision, call)
        return self._taken(revision, call)

    def _read(self, revision: int, call: Call) -> int | None:
        if call.type != "ok":
            return revision
        seen = call.said("revision")
        if not isinstance(seen, int) or not self.reach(revision, seen):
            return None
        moment = self.moments[seen]
        if call.said("status") not in (None, moment.status):
            return None
        actions = call.said("actions")
        if actions is not None and set(actions) != set(moment.since):
            return None
        attempts = call.said("attempts") or {}
        if any(moment.attempts.get(step, 0) != attempt for step, attempt in attempts.items()):
            return None
        return seen

    def _taken(self, revision: int, call: Call) -> int | None:
        place = self.taken.get(call.command)
        if place is None:
            # Taken without an event: a named event that was kept, a repeat.
            told = call.said("revision")
            if call.type != "ok" or not isinstance(told, int):
                return None
            return max(told, revision) if told <= revision or self.reach(revision, told) else None
        first, last = place
        if revision >= last:
            return revision if call.type == "ok" else None
        if not self.reach(revision, first - 1) or not self.stands(call, first - 1):
            return None
        told = call.said("revision")
        return None if isinstance(told, int) and told < last else last

    def stands(self, call: Call, revision: int) -> bool:
        """Whether what the sender saw still stood at a revision (P3)."""
        action = UNTARGETED.get(call.kind)
        expected = call.asked.get("expected_revision") if isinstance(call.asked, dict) else None
        if action is None or call.f == "start":
            return True
        since = self.moments[revision].since.get(action)
        return since is not None and (expected is None or since <= expected <= revision)

    def _refused(self, revision: int, call: Call) -> int | None:
        if call.command in self.taken and self.taken[call.command][1] > revision:
            return None
        if call.said("problem") not in ("stale-revision", "action-not-available"):
            return revision
        for later in range(revision, self.last + 1):
            if not self.reach(revision, later):
                return None
            if call.kind not in UNTARGETED or not self.stands(call, later):
                return later
        return None


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that somebody asked for something."""
    by_run: dict[str, list[Call]] = {}
    since = max(evidence.restores, default=0.0)
    for call in evidence.calls:
        if call.begun < since or call.type == "fail" and call.f in ("start", "read"):
            continue
        about = str(call.said("run_id") or "") if call.f == "start" else call.key
        if about and (call.f in ("start", "read", "command") or call.f in CLIENT_KINDS):
            by_run.setdefault(about, []).append(call)
    plans = {(plan.tenant, plan.fingerprint): plan for plan in evidence.store.plans}
    histories = evidence.store.histories()
    for run in evidence.store.runs:
        calls = by_run.get(run.run, [])
        evidence.passed_over += max(0, len(calls) - CALLS_MAX)
        calls = calls[:CALLS_MAX]
        if not calls:
            continue
        plan = plans.get((run.tenant, run.fingerprint))
        ours = frozenset(call.command for call in calls if call.command)
        if plan is None:
            continue
        try:
            track = followed(partial(track_of, run, plan, histories[run.run], ours))
        except Unfollowable:
            continue  # the auditor says so, with the place (folded.py)
        found = search(calls, track)
        evidence.passed_over += len(calls) if found.given_up else 0
        yield from _violations(run.run, calls, track, found)


def judge_run(run: str, calls: Sequence[Call], track: Track) -> list[Violation]:
    """Hold the calls about one run to its track."""
    return list(_violations(run, calls, track, search(calls, track)))


def search(calls: Sequence[Call], track: Track) -> Search:
    """Search for an order. Of calls without an end only those matter whose effect is in the log."""
    wanted = [call for call in calls if call.type != "info" or call.command in track.taken]
    return linearize(wanted, 0, track.step)


def _violations(run: str, calls: Sequence[Call], track: Track, found: Search) -> Iterator[Violation]:
    if found.order is not None or found.given_up:
        return
    stale = [
        call
        for call in calls
        if call.type == "ok"
        and (place := track.taken.get(call.command))
        and not track.stands(call, place[0] - 1)
    ]
    stuck = stale or found.stuck
    yield Violation(
        invariant="I11" if stale else "I10",
        what="a command was taken that its sender's revision does not bear"
        if stale
        else "no order of what clients were told is the run's",
        where=f"run {run}, op {stuck[0].id}" if stuck else f"run {run}",
        trace=(
            *(f"placed  {call}" for call in found.furthest[-PRINTED_MAX:]),
            *(f"cannot  {call}" for call in stuck[:PRINTED_MAX]),
        ),
    )


def track_of(run: RunRow, plan: PlanRow, events: Sequence[EventRow], ours: frozenset[str]) -> Track:
    """Fold a run into its track. Raises what the reducer raises for a history that is none."""
    state = initial(uuid.UUID(run.run), run.tenant, compile_document(plan.plan.encode()))
    moments = [Moment(status="")]
    taken: dict[str, tuple[int, int]] = {}
    since: dict[str, int] = {}
    for event in events:
        evolve(state, decode_event(event.type, event.version, event.data.encode()), at=event.recorded_at)
        kind, name = event.cause
        if kind == "command":
            taken[name] = (taken[name][0] if name in taken else event.seq, event.seq)
        since = {str(action): since.get(str(action), event.seq) for action in available_actions(state)}
        attempts = {
            step.key: known.attempt
            for step, known in zip(state.plan.steps, state.steps, strict=True)
            if known.attempt
        }
        moments.append(Moment(status=run_row(state).status, since=since, attempts=attempts))
    return Track(moments=moments, taken=taken, ours=ours)
