"""The worker's side of the authority in memory: claim, open a call, report, put back, renew. Effects only (P6)."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from longtake.contracts.effects import Asks, ClaimedEffect, Report
from longtake.contracts.ids import fence_floor
from longtake.memory.store_session import MemoryDatabase, Session
from longtake.memory.tables import ClaimRow, EffectRow, LateReceiptRow
from longtake.store import EffectStore, LeaseKeeper

PLAN_DRIFT = "plan_drift"


class MemoryEffectStore:
    """Implements `EffectStore`."""

    def __init__(self, database: MemoryDatabase, *, store_epoch: int) -> None:
        self._database = database
        self._store_epoch = store_epoch
        self._fence_floor = fence_floor(store_epoch)

    async def claim(
        self,
        *,
        claim_id: uuid.UUID,
        effects: Sequence[tuple[uuid.UUID, int]],
        limit: int,
        owner: str,
        lease_seconds: int,
    ) -> list[ClaimedEffect]:
        """Lease up to `limit` of the effects; the same claim id gives the same leases again (P11)."""

        def write(session: Session) -> list[ClaimedEffect]:
            view, defences, now = session.view, session.defences, session.now
            again = [
                effect
                for id_ in dict.fromkeys(id_ for id_, _ in effects)
                if (effect := view.effects.get(id_)) is not None
                and effect.claim_id == claim_id
                and effect.state == "leased"
                and defences.claim_idempotent
            ]
            wanted = [
                effect.id
                for effect in self._claimable(session, effects, now)
                if session.take("effect", effect.id)
            ]
            taken: list[EffectRow] = []
            for place, id_ in enumerate(wanted):
                effect = view.effects.own(id_)
                assert effect is not None, "it is claimable"
                if place >= limit:
                    effect.generation += 1 if defences.generation_raised else 0
                    effect.published_at = None
                    continue
                effect.state = "leased"
                effect.claim_id = claim_id
                effect.lease_owner = owner
                effect.lease_until = now + timedelta(seconds=lease_seconds)
                floor = self._fence_floor if defences.fence_floor else 0
                if defences.claim_fence or effect.fence == 0:
                    effect.fence = max(effect.fence, floor) + 1
                effect.leases += 1
                effect.claimed_at = now
                effect.heartbeat_at = now
                view.claims.put((id_, effect.fence), _claim_row(effect, owner, claim_id, now))
                taken.append(effect)
            return [_claimed(session, effect, lease_seconds) for effect in [*taken, *again]]

        return await self._database.run("effects_claim", write)

    def _claimable(
        self, session: Session, effects: Sequence[tuple[uuid.UUID, int]], now: datetime
    ) -> list[EffectRow]:
        """What may be leased now, in the order in which rows are locked."""
        found: dict[uuid.UUID, EffectRow] = {}
        for id_, attempt in effects:
            effect = session.view.effects.get(id_)
            if (
                effect is not None
                and session.tables.store[0].store_epoch == self._store_epoch
                and _may_be_claimed(session, effect, attempt, now)
            ):
                found[id_] = effect
        return [found[id_] for id_ in sorted(found)] if len(found) > 1 else list(found.values())

    async def open_call(self, *, effect_id: uuid.UUID, fence: int) -> bool:
        """Mark that bytes are about to leave; False when the lease is not ours any more."""

        def write(session: Session) -> bool:
            now = session.now
            effect = session.view.effects.get(effect_id)
            if effect is None or not _held(session, effect, fence) or effect.lease_until is None:
                return False
            session.lock("effect", effect_id)
            if effect.lease_until <= now and session.defences.call_needs_lease:
                return False
            mine = session.view.effects.own(effect_id)
            assert mine is not None, "it was found"
            mine.call_opened_at = now
            return True

        return await self._database.run("call_open", write)

    async def report(self, reports: Sequence[Report]) -> list[tuple[uuid.UUID, uuid.UUID]]:
        """Store receipts; returns (effect id, run id) of those the dispatcher must look at."""
        ordered = sorted(reports, key=lambda report: report.effect_id)

        def write(session: Session) -> list[tuple[uuid.UUID, uuid.UUID]]:
            for report in ordered:
                if session.view.effects.get(report.effect_id) is not None:
                    session.lock("effect", report.effect_id)
            return [stored for report in ordered if (stored := _store_receipt(session, report)) is not None]

        return await self._database.run("receipts_store", write)

    async def put_back(
        self, *, effect_id: uuid.UUID, fence: int, delay_seconds: float, progress: int | None
    ) -> datetime | None:
        """Let the same row wait again; None when the lease is not ours any more."""

        def write(session: Session) -> datetime | None:
            effect = session.view.effects.get(effect_id)
            if effect is None or not _held(session, effect, fence):
                return None
            session.lock("effect", effect_id)
            mine = session.view.effects.own(effect_id)
            assert mine is not None, "it was found"
            _queue_again(session, mine)
            mine.not_before = session.now + timedelta(seconds=delay_seconds)
            mine.call_opened_at = None
            mine.leases = 0
            mine.progress = mine.progress if progress is None else progress
            return mine.not_before

        return await self._database.run("effects_put_back", write)

    async def release(self, *, leases: Sequence[tuple[uuid.UUID, int]], owner: str) -> None:
        """Give back work that has not begun."""

        def write(session: Session) -> None:
            ours = [
                id_
                for id_, fence in sorted(leases)
                if (effect := session.view.effects.get(id_)) is not None
                and _held(session, effect, fence)
                and effect.lease_owner == owner
                and effect.call_opened_at is None
            ]
            for id_ in ours:
                session.lock("effect", id_)
            for id_ in ours:
                mine = session.view.effects.own(id_)
                assert mine is not None, "it was found"
                _queue_again(session, mine)

        await self._database.run("leases_release", write)


class MemoryLeaseKeeper:
    """Implements `LeaseKeeper`."""

    def __init__(self, database: MemoryDatabase, *, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def renew(
        self, leases: Sequence[tuple[uuid.UUID, int, int]], progress: Mapping[uuid.UUID, int]
    ) -> set[uuid.UUID]:
        """Renew each of (effect, fence, seconds); returns the ids that are still ours. Raises AuthorityUnavailable."""

        def write(session: Session) -> set[uuid.UUID]:
            ours = [
                (id_, seconds)
                for id_, fence, seconds in sorted(leases)
                if (effect := session.view.effects.get(id_)) is not None
                and _held(session, effect, fence)
                and effect.lease_owner == self._owner
            ]
            for id_, _ in ours:
                session.lock("effect", id_)
            now = session.now
            for id_, seconds in ours:
                mine = session.view.effects.own(id_)
                assert mine is not None, "it was found"
                mine.lease_until = now + timedelta(seconds=seconds)
                mine.heartbeat_at = now
                mine.progress = progress.get(id_, mine.progress)
            return {id_ for id_, _ in ours}

        return await self._database.run("leases_renew", write)

    async def close(self) -> None:
        """There is no connection to let go."""


def _may_be_claimed(session: Session, effect: EffectRow, attempt: int, now: datetime) -> bool:
    defences = session.defences
    if effect.attempt != attempt and defences.claim_attempt:
        return False
    if effect.closed_at is not None or effect.receipt is not None and not defences.claim_state:
        return False
    if effect.state != "queued" and (defences.claim_state or effect.state != "leased"):
        return False
    if effect.not_before > now:
        return False
    return effect.kind != "execute" or not defences.plan_checked or _may_execute(session, effect.run_id)


def _may_execute(session: Session, run_id: uuid.UUID) -> bool:
    """Whether the run's plan is that of the deployed code, and compared with it (P15)."""
    run = session.view.runs.get(run_id)
    application = session.tables.store[0].application
    return (
        run is not None
        and (application is None or run.plan_checked == application)
        and PLAN_DRIFT not in run.blockers
    )


def _asks(session: Session, run_id: uuid.UUID) -> Asks:
    """Whether the outside may know the run's calls from a past that a restore has lost (F70)."""
    store, run = session.tables.store[0], session.view.runs.get(run_id)
    if (
        store.ask_until is None
        or store.restored_at is None
        or run is None
        or run.accepted_at >= store.ask_until
    ):
        return "no"
    return "lost" if run.accepted_at < store.restored_at else "new"


def _held(session: Session, effect: EffectRow, fence: int) -> bool:
    """Whether the lease with this fence is the one that stands."""
    return effect.state == "leased" and (effect.fence == fence or not session.defences.fence_checked)


def _queue_again(session: Session, effect: EffectRow) -> None:
    effect.state = "queued"
    effect.generation += 1 if session.defences.generation_raised else 0
    effect.published_at = None
    effect.lease_owner = None
    effect.lease_until = None


def _store_receipt(session: Session, report: Report) -> tuple[uuid.UUID, uuid.UUID] | None:
    """The first receipt stands, a later one is kept apart; a copy of the first is nothing new (P1)."""
    view, defences, now = session.view, session.defences, session.now
    effect = view.effects.get(report.effect_id)
    if effect is None or (not defences.receipt_whatever_fence and effect.fence != report.fence):
        return None
    if effect.closed_at is not None and not defences.late_receipt_reopens:
        return None
    if effect.receipt is not None and defences.stored_receipt_first_wins:
        key = (report.effect_id, report.fence)
        copy = effect.report_fence == report.fence and effect.reporter == report.owner
        if not copy and view.late_receipts.get(key) is None:
            view.late_receipts.put(
                key,
                LateReceiptRow(
                    effect_id=report.effect_id,
                    fence=report.fence,
                    tenant=effect.tenant,
                    owner=report.owner,
                    receipt=report.outcome,
                    recorded_at=now,
                ),
            )
        return None
    mine = view.effects.own(report.effect_id)
    assert mine is not None, "it was found"
    mine.receipt = report.outcome
    mine.reporter = report.owner
    mine.report_fence = report.fence
    mine.report_traceparent = report.traceparent
    mine.reported_at = now
    mine.state = "reported"
    mine.closed_at = None
    mine.disposition = None
    return mine.id, mine.run_id


def _claim_row(effect: EffectRow, owner: str, claim_id: uuid.UUID, now: datetime) -> ClaimRow:
    return ClaimRow(
        effect_id=effect.id, fence=effect.fence, tenant=effect.tenant, run_id=effect.run_id, step=effect.step,
        attempt=effect.attempt, kind=effect.kind, owner=owner, claim_id=claim_id, claimed_at=now,
    )  # fmt: skip


def _claimed(session: Session, effect: EffectRow, lease_seconds: int) -> ClaimedEffect:
    return ClaimedEffect(
        id=effect.id,
        tenant=effect.tenant,
        run_id=effect.run_id,
        step=effect.step,
        attempt=effect.attempt,
        kind=effect.kind,
        activity=effect.activity,
        pool=effect.pool,
        input=effect.input,
        fence=effect.fence,
        lease_seconds=lease_seconds,
        traceparent=effect.traceparent,
        external_ref=effect.external_ref,
        call_opened_before=effect.call_opened_at is not None,
        asks=_asks(session, effect.run_id),
    )


def _typed(effects: MemoryEffectStore, keeper: MemoryLeaseKeeper) -> tuple[EffectStore, LeaseKeeper]:
    """Lets the type checker hold the fakes to their ports."""
    return effects, keeper
