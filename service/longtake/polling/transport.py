"""The transport that carries nothing: whoever is rung, or has slept long enough, looks into Postgres.

A publication is a ring of the doorbell of its subject and no more, so that losing it costs what losing any hint costs. Workers
find what the relay has let through, so windows, priorities and fairness hold as ever (P12); dispatchers find what is not
decided. Commands come over HTTP alone, and stay uncopied until a broker is there again (P2).
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from longtake.contracts.ids import subject_token
from longtake.contracts.pointers import CallbackPointers, EffectPointers, encode_pointers
from longtake.polling.subscription import Found, PolledSubscription, Silence
from longtake.ports import Doorbell, OutgoingMessage, Publisher, PublishResult, Subscription
from longtake.store import EffectPointer, WaitingStore

SUBJECTS = "longtake.v1."
CARRIED = ("LT_EFFECT", "LT_CALLBACK")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""Nothing published is ever lost here: what was published stands in its table until somebody takes it."""


class BellPublisher:
    """The port `Publisher`: rings for whoever looks into the tables."""

    def __init__(self, doorbell: Doorbell) -> None:
        self._doorbell = doorbell

    async def publish(self, messages: Sequence[OutgoingMessage]) -> list[PublishResult]:
        """Ring once for each subject; what would have to be kept by a broker is refused."""
        for subject in {message.subject for message in messages if message.stream in CARRIED}:
            self._doorbell.ring(subject.removeprefix(SUBJECTS))
        return [
            PublishResult(state="stored")
            if message.stream in CARRIED
            else PublishResult(state="refused", detail="there is no broker (transport is off)")
            for message in messages
        ]


class PollingTransport:
    """The ports `Transport` and `OldestMessage`."""

    def __init__(
        self,
        store: WaitingStore,
        doorbell: Doorbell,
        *,
        store_epoch: int,
        parts: int,
        pack: Callable[[str], int],
        patience: Callable[[], float],
    ) -> None:
        """`parts` of the callbacks; `pack`: pointers a message of a pool; `patience`: seconds to sleep when nobody rings."""
        self._store = store
        self._doorbell = doorbell
        self._epoch = store_epoch
        self._parts = parts
        self._pack = pack
        self._patience = patience
        self._publisher = BellPublisher(doorbell)

    @property
    def publisher(self) -> Publisher:
        """Rings."""
        return self._publisher

    async def commands(self) -> Subscription:
        """Nobody can publish a command."""
        return Silence()

    async def effects(self, pool: str) -> Subscription:
        """What waits for the workers of a pool."""
        pack = self._pack(pool)

        async def look(limit: int) -> list[Found]:
            waiting = await self._store.waiting_effects(pool, limit=limit * pack)
            return [self._effects(waiting[at : at + pack]) for at in range(0, len(waiting), pack)]

        return self._subscription(f"effect.{subject_token(pool)}", look)

    async def callbacks(self, part: int) -> Subscription:
        """What the dispatcher of a part has not decided."""

        async def look(limit: int) -> list[Found]:
            waiting = await self._store.waiting_facts(part, parts=self._parts, limit=limit)
            found: dict[tuple[str, object], Found] = {}
            for fact in waiting:
                named = CallbackPointers(
                    epoch=self._epoch,
                    effects=(fact.id,) if fact.what == "effect" else (),
                    inbox=(fact.id,) if fact.what == "inbox" else (),
                    runs=(fact.run_id,) if fact.what == "run" else (),
                )
                found[fact.what, fact.id] = Found(
                    key=f"{fact.what}:{fact.id}", body=encode_pointers(named), traceparent=fact.traceparent
                )
            return list(found.values())

        return self._subscription(f"callback.{part}", look)

    async def publish_receipt(self, *, tenant: str, command_id: str, receipt: bytes) -> None:
        """Nobody could hear it."""

    async def oldest_effect(self, pool: str) -> datetime | None:
        """Whatever was published still stands."""
        return LONG_AGO

    async def oldest_callback(self, part: int) -> datetime | None:
        """The same of receipts."""
        return LONG_AGO

    def _effects(self, pointers: Sequence[EffectPointer]) -> Found:
        named = EffectPointers(
            epoch=self._epoch, effects=tuple((item.id, item.attempt, item.generation) for item in pointers)
        )
        key = ",".join(f"{item.id}:{item.attempt}" for item in pointers)
        return Found(key=key, body=encode_pointers(named), traceparent=pointers[0].traceparent)

    def _subscription(self, bell: str, look: Callable[[int], object]) -> Subscription:
        return PolledSubscription(
            bell,
            look,  # type: ignore[arg-type]  # both looks are coroutine functions
            doorbell=self._doorbell,
            patience=self._patience,
        )
