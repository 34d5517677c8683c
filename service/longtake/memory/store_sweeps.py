"""The relay's and sweeper's side of the authority in memory: what is due, what was lost, who lives."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from longtake.contracts.signals import Outgoing
from longtake.errors import StoreRewound
from longtake.memory.store_commit import pointer_to
from longtake.memory.store_line import tell
from longtake.memory.store_publishing import dead_incarnations, room_of_pools, stalled_work, to_publish
from longtake.memory.store_session import MemoryDatabase, RowRefused, Session
from longtake.memory.store_waiting import (
    due_timers,
    due_times,
    lost_callbacks,
    lost_effects,
    lost_signals,
    open_effects,
)
from longtake.memory.tables import NEVER, DeadLetterRow, IncarnationRow, SuspectRow
from longtake.store import FORGOTTEN, EffectPointer, EndedLease, LostDoorbell, StalledWork, StoreIdentity

ALIVE_SECONDS = 15.0
"""How long an announcement holds."""


class MemorySweepStore:
    """Implements `SweepStore`."""

    def __init__(self, database: MemoryDatabase, *, incarnation: uuid.UUID, owner: str) -> None:
        self._database = database
        self._incarnation = incarnation
        self._owner = owner
        self._beats = 0

    async def identity(self) -> StoreIdentity:
        """Which store this is."""

        def read(session: Session) -> StoreIdentity:
            store = session.tables.store[0]
            return StoreIdentity(
                environment=store.environment,
                store_epoch=store.store_epoch,
                transport_epoch=store.transport_epoch,
                application=store.application,
                restoring=store.restoring,
            )

        return await self._database.run("store_read", read)

    async def due_pointers(
        self, *, limit: int, grace_seconds: float, oldest: Mapping[str, datetime | None], all_lost: bool
    ) -> list[EffectPointer]:
        """Mark and return pointers to publish now."""

        def write(session: Session) -> list[EffectPointer]:
            marked: list[EffectPointer] = []
            for effect in to_publish(session, grace_seconds, oldest, all_lost=all_lost)[:limit]:
                if not session.take("effect", effect.id):
                    continue
                mine = session.view.effects.own(effect.id)
                assert mine is not None, "it is open"
                if mine.published_at is not None and session.defences.generation_raised:
                    mine.generation += 1
                mine.published_at = session.now
                mine.incarnation = self._incarnation
                marked.append(pointer_to(mine))
            return marked

        return await self._database.run("pointers_due", write)

    async def room(self) -> dict[str, int]:
        """How many pointers each pool may have published more."""
        return await self._database.run("windows_read", room_of_pools)

    async def stalled_work(self, *, stall_seconds: float, limit: int) -> list[StalledWork]:
        """Work that nobody can take, and such work that somebody can take after all."""
        return await self._database.run(
            "work_stalled", lambda session: stalled_work(session, stall_seconds, limit)
        )

    async def tell(self, tenant: str, fact: Outgoing) -> None:
        """Write a fact for a run."""
        await self._database.run("signal_insert", lambda session: tell(session, tenant, fact))

    async def expire_leases(
        self, *, leases_max: int, authority_up_seconds: float, connected: bool
    ) -> list[EndedLease]:
        """End leases that ran out."""

        def write(session: Session) -> list[EndedLease]:
            now, defences = session.now, session.defences
            up_since = self._database.started_at
            trusted = not defences.trust_window or (
                connected and up_since <= now - timedelta(seconds=authority_up_seconds)
            )
            buried = {row.owner for row in session.tables.incarnations.values() if row.alive_until == NEVER}
            ended: list[EndedLease] = []
            for effect in sorted(open_effects(session, "leases_expire"), key=lambda effect: effect.id):
                if effect.state != "leased" or effect.lease_until is None or not defences.lease_expiry:
                    continue
                over = trusted and effect.lease_until <= now
                if not (over or effect.lease_owner in buried) or not session.take("effect", effect.id):
                    continue
                mine = session.view.effects.own(effect.id)
                assert mine is not None, "it is open"
                opened = mine.call_opened_at is not None and defences.call_opened_asks
                state = "expired" if opened or mine.leases >= leases_max else "queued"
                mine.state = state
                mine.generation += 1 if defences.generation_raised else 0
                mine.published_at = mine.lease_owner = mine.lease_until = None
                ended.append(
                    EndedLease(
                        id=mine.id,
                        run_id=mine.run_id,
                        state="expired" if state == "expired" else "queued",
                        traceparent=mine.traceparent,
                    )
                )
            return ended

        return await self._database.run("leases_expire", write)

    async def lost_doorbells(
        self, *, grace_seconds: float, limit: int, oldest: Sequence[datetime | None]
    ) -> list[LostDoorbell]:
        """What has waited for the dispatcher too long."""

        def read(session: Session) -> list[LostDoorbell]:
            return [
                *list(lost_effects(session, grace_seconds, oldest))[:limit],
                *list(lost_callbacks(session, grace_seconds))[:limit],
                *list(due_timers(session))[:limit],
                *list(lost_signals(session, grace_seconds))[:limit],
            ]

        return await self._database.run("doorbells_lost", read)

    async def next_due_seconds(self, *, grace_seconds: float) -> float | None:
        """Seconds until something is due; None when nothing is."""

        def read(session: Session) -> float | None:
            due = list(due_times(session, grace_seconds))
            return (min(due) - session.now).total_seconds() if due else None

        return await self._database.run("next_due", read)

    async def announce(
        self,
        *,
        roles: Sequence[str],
        pools: Sequence[str],
        activities: Sequence[str],
        slots: Sequence[int] = (),
    ) -> int:
        """Say that this process lives. Raises StoreRewound when the store has forgotten what it knew of it."""

        def write(session: Session) -> tuple[int, int]:
            epoch = session.tables.store[0].store_epoch
            until = session.now + timedelta(seconds=ALIVE_SECONDS)
            if (mine := session.view.incarnations.own(self._incarnation)) is not None:
                refuse_rewound(mine.beats, self._beats)
                mine.alive_until = until
                mine.beats += 1
                return epoch, mine.beats
            refuse_rewound(0, self._beats)
            if any(row.owner == self._owner for row in session.tables.incarnations.values()):
                raise RowRefused(f"incarnations: {self._owner} has announced itself as another")
            session.view.incarnations.put(
                self._incarnation,
                IncarnationRow(
                    owner=self._owner,
                    roles=tuple(roles),
                    pools=tuple(pools),
                    activities=tuple(activities),
                    alive_until=until,
                    slots=tuple(slots),
                ),
            )
            return epoch, 1

        epoch, self._beats = await self._database.run("incarnation_announce", write)
        return epoch

    async def has_command(self, tenant: str, actor: str, client_command_id: str) -> bool:
        """Whether the store knows the command."""

        def read(session: Session) -> bool:
            return session.view.commands.get((tenant, actor, client_command_id)) is not None

        return await self._database.run("command_receipt", read)

    async def retire(self) -> None:
        """Say that this process stops."""

        def write(session: Session) -> None:
            if (mine := session.view.incarnations.own(self._incarnation)) is not None:
                mine.alive_until = NEVER

        await self._database.run("incarnation_end", write)

    async def bury_others(self) -> list[str]:
        """Declare every other process dead; returns their owners."""

        def write(session: Session) -> list[str]:
            owners: list[str] = []
            for id_, row in session.tables.incarnations.items():
                if id_ == self._incarnation or row.alive_until == NEVER:
                    continue
                if (other := session.view.incarnations.own(id_)) is not None:
                    other.alive_until = NEVER
                    owners.append(other.owner)
            return owners

        return await self._database.run("incarnations_bury", write)

    async def uncopied_commands(self, limit: int) -> list[tuple[str, str, str, str, bytes, str | None]]:
        """HTTP commands that LT_COMMAND does not have: (tenant, actor, id, kind, body, traceparent)."""

        def read(session: Session) -> list[tuple[str, str, str, str, bytes, str | None]]:
            waiting = [row for row in session.tables.commands.values() if row.copied_at is None]
            waiting.sort(key=lambda row: row.accepted_at)
            return [
                (row.tenant, row.actor, row.client_command_id, row.kind, row.body, row.traceparent)
                for row in waiting[:limit]
            ]

        return await self._database.run("commands_uncopied", read)

    async def mark_copied(self, commands: Sequence[tuple[str, str, str]]) -> None:
        """LT_COMMAND has these now."""

        def write(session: Session) -> None:
            for key in commands:
                session.lock("command", *key)
            for key in commands:
                row = session.view.commands.get(key)
                if row is None or row.copied_at is not None:
                    continue
                if (mine := session.view.commands.own(key)) is not None:
                    mine.copied_at = session.now

        await self._database.run("commands_copied", write)

    async def copy_again(self, seconds: float) -> int:
        """LT_COMMAND has lost the commands of the last seconds; how many are to be copied once more."""

        def write(session: Session) -> int:
            since = session.now - timedelta(seconds=seconds)
            rows = session.tables.commands.items()
            lost = sorted(key for key, row in rows if row.copied_at is not None and row.accepted_at > since)
            for key in lost:
                if (mine := session.view.commands.own(key)) is not None:
                    mine.copied_at = None
            return len(lost)

        return await self._database.run("commands_copy_again", write)

    async def dead_letter(
        self,
        *,
        tenant: str | None,
        source: str,
        subject: str,
        reason: str,
        body: bytes,
        headers: Mapping[str, str],
    ) -> None:
        """Keep what no redelivery will cure."""

        def write(session: Session) -> None:
            session.view.dead_letters.append(
                DeadLetterRow(
                    tenant=tenant,
                    source=source,
                    subject=subject,
                    reason=reason,
                    body=body,
                    headers=dict(headers),
                    recorded_at=session.now,
                )
            )

        await self._database.run("dead_letters_insert", write)

    async def take_suspects(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Take messages in hand; how many processes died with each of them in theirs."""

        def write(session: Session) -> dict[bytes, int]:
            dead = dead_incarnations(session, session.now)
            deaths: dict[bytes, int] = {}
            for digest in digests:
                before = session.tables.suspects.get(digest)
                died = before is not None and before.holder != self._incarnation and before.holder in dead
                deaths[digest] = (before.deaths if before is not None else 0) + died
                session.view.suspects.put(digest, SuspectRow(holder=self._incarnation, deaths=deaths[digest]))
            return deaths

        return await self._database.run("suspects_take", write)

    async def stream_identities(self) -> dict[str, str]:
        """Streams as last seen."""
        return await self._database.run(
            "transport_identity_list", lambda session: dict(session.tables.transport_identity)
        )

    async def save_stream_identities(self, created: Mapping[str, str]) -> None:
        """Remember streams."""

        def write(session: Session) -> None:
            for stream, moment in created.items():
                session.view.transport_identity.put(stream, moment)

        await self._database.run("transport_identity_save", write)

    async def raise_transport_epoch(self) -> int:
        """Every pointer of the old epoch may be lost."""

        def write(session: Session) -> int:
            store = session.view.store.own(0)
            assert store is not None, "the store has its row"
            store.transport_epoch += 1
            return store.transport_epoch

        return await self._database.run("transport_epoch_raise", write)


def refuse_rewound(known: int, confirmed: int) -> None:
    """Raise StoreRewound when fewer announcements of a process are known than were confirmed to it (F70)."""
    if known < confirmed:
        raise StoreRewound(FORGOTTEN)
