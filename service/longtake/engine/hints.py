"""Hints: pointers packed into messages, and the doorbells beside them (P7, P11).

Whatever is lost here is found by relay and sweeper, so publishing never fails a caller: it is logged and counted.
"""

import asyncio
import uuid
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import structlog

from longtake.contracts.ids import callback_part, subject_token
from longtake.contracts.pointers import (
    POINTERS_PER_MESSAGE_MAX,
    CallbackPointers,
    EffectPointers,
    encode_pointers,
    message_id,
)
from longtake.crash_points import reach_unanswered
from longtake.errors import TransportUnavailable
from longtake.ports import OutgoingMessage, Publisher
from longtake.store import EffectPointer
from longtake.telemetry.attributes import BATCH_SIZE, SPAN_EFFECT_PUBLISH
from longtake.telemetry.tracing import current_traceparent, span, traces_of

EFFECT_STREAM = "LT_EFFECT"
CALLBACK_STREAM = "LT_CALLBACK"
CALLBACK_PARTS = 4

log = structlog.get_logger("longtake.engine.hints")

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None] | None"]
"""Begins a coroutine beside the caller."""


def in_loop(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Begin it as a task of the running event loop."""
    return asyncio.create_task(work, name="hints")


def pack_factor(pool: str) -> int:
    """How many effects one message of the pool carries: 64 for pools declared short, else 1 (P11)."""
    return POINTERS_PER_MESSAGE_MAX if pool == "short" or pool.startswith("short-") else 1


class Hints:
    """Publishes pointers of one process under the store's epoch. A `Service`, so that nothing is left unsaid at its end."""

    def __init__(self, publisher: Publisher, *, store_epoch: int, spawn: Spawn = in_loop) -> None:
        self._publisher = publisher
        self._epoch = store_epoch
        self._spawn = spawn
        self._is_flushing = False
        self._waiting_effects: list[EffectPointer] = []
        self._waiting_looks: list[tuple[uuid.UUID, uuid.UUID]] = []
        self._waiting_runs: dict[uuid.UUID, int] = {}
        self._flushing: asyncio.Task[None] | None = None

    def effects_soon(self, pointers: Iterable[EffectPointer]) -> None:
        """Publish without being waited for: what gathers while one publication is under way goes out together."""
        self._waiting_effects.extend(pointers)
        self._flush()

    def look_at_soon(self, effects: Iterable[tuple[uuid.UUID, uuid.UUID]]) -> None:
        """Ask the dispatcher to look at effects, without being waited for."""
        self._waiting_looks.extend(effects)
        self._flush()

    def runs_soon(self, signals: Iterable[tuple[uuid.UUID, uuid.UUID]]) -> None:
        """Ask the dispatcher to look at runs that have a new signal, (run id, signal id), without being waited for."""
        for run_id, signal_id in signals:
            self._waiting_runs[run_id] = int.from_bytes(signal_id.bytes[:7], "big")
        self._flush()

    @property
    def _has_waiting(self) -> bool:
        return bool(self._waiting_effects or self._waiting_looks or self._waiting_runs)

    def _flush(self) -> None:
        if not self._is_flushing and self._has_waiting:
            self._is_flushing = True
            self._flushing = self._spawn(self._publish_waiting())

    async def _publish_waiting(self) -> None:
        try:
            while self._has_waiting:
                pointers, self._waiting_effects = self._waiting_effects, []
                looks, self._waiting_looks = self._waiting_looks, []
                runs, self._waiting_runs = self._waiting_runs, {}
                # The salt is that of the signals: two of them about one run are two messages.
                salt = sum(runs.values()) % 2**63
                await self._publish_both(pointers, self._look_messages(effects=looks, runs=runs, salt=salt))
        finally:
            self._is_flushing = False
            self._flushing = None

    async def start(self) -> None:
        """Nothing to begin."""

    async def started(self) -> None:
        """Hints can be given at once."""

    async def stop(self) -> None:
        """See what was not waited for published."""
        if self._flushing is not None:
            await asyncio.wait([self._flushing])

    async def effects(self, pointers: Sequence[EffectPointer]) -> int:
        """Publish pointers to effects; returns how many messages were stored."""
        return await self._publish_both(pointers, [])

    async def _publish_both(self, pointers: Sequence[EffectPointer], looks: list[OutgoingMessage]) -> int:
        if not pointers:
            return await self._publish(looks)
        with span(
            SPAN_EFFECT_PUBLISH,
            kind="producer",
            links=traces_of(pointers),
            attributes={BATCH_SIZE: len(pointers)},
        ):
            return await self._publish([*self._effect_messages(pointers), *looks])

    async def look_at(
        self,
        *,
        effects: Iterable[tuple[uuid.UUID, uuid.UUID]] = (),
        inbox: Iterable[tuple[uuid.UUID, uuid.UUID]] = (),
        runs: Iterable[uuid.UUID] = (),
        salt: int = 0,
        traceparent: str | None = None,
    ) -> int:
        """Ask the dispatcher to look at rows: (id, run id) of effects and inbox rows, or whole runs.

        `salt` makes a repeated request another message, so that de-duplication does not swallow it.
        """
        return await self._publish(
            self._look_messages(effects=effects, inbox=inbox, runs=runs, salt=salt, traceparent=traceparent)
        )

    def _look_messages(
        self,
        *,
        effects: Iterable[tuple[uuid.UUID, uuid.UUID]] = (),
        inbox: Iterable[tuple[uuid.UUID, uuid.UUID]] = (),
        runs: Iterable[uuid.UUID] = (),
        salt: int = 0,
        traceparent: str | None = None,
    ) -> list[OutgoingMessage]:
        parts: dict[int, tuple[list[uuid.UUID], list[uuid.UUID], list[uuid.UUID]]] = {}
        for index, pairs in enumerate((effects, inbox, [(run, run) for run in runs])):
            for id_, run_id in pairs:
                parts.setdefault(callback_part(run_id, CALLBACK_PARTS), ([], [], []))[index].append(id_)
        messages = []
        traceparent = traceparent or current_traceparent()
        headers = {"traceparent": traceparent} if traceparent else {}
        for part, (effect_ids, inbox_ids, run_ids) in parts.items():
            for start in range(
                0, max(len(effect_ids), len(inbox_ids), len(run_ids)), POINTERS_PER_MESSAGE_MAX
            ):
                window = slice(start, start + POINTERS_PER_MESSAGE_MAX)
                body = encode_pointers(
                    CallbackPointers(
                        epoch=self._epoch,
                        effects=tuple(effect_ids[window]),
                        inbox=tuple(inbox_ids[window]),
                        runs=tuple(run_ids[window]),
                    )
                )
                messages.append(
                    OutgoingMessage(
                        subject=f"longtake.v1.callback.{part}",
                        body=body,
                        stream=CALLBACK_STREAM,
                        message_id=message_id(body, generation=salt),
                        headers=headers,
                    )
                )
        return messages

    def _effect_messages(self, pointers: Sequence[EffectPointer]) -> Iterable[OutgoingMessage]:
        pools: dict[str, list[EffectPointer]] = {}
        for pointer in pointers:
            pools.setdefault(pointer.pool, []).append(pointer)
        for pool, waiting in pools.items():
            factor = pack_factor(pool)
            for start in range(0, len(waiting), factor):
                packed = waiting[start : start + factor]
                body = encode_pointers(
                    EffectPointers(
                        epoch=self._epoch, effects=tuple((p.id, p.attempt, p.generation) for p in packed)
                    )
                )
                headers = {"traceparent": packed[0].traceparent} if packed[0].traceparent else {}
                yield OutgoingMessage(
                    subject=f"longtake.v1.effect.{subject_token(pool)}",
                    body=body,
                    stream=EFFECT_STREAM,
                    message_id=message_id(body),
                    headers=headers,
                )

    async def _publish(self, messages: list[OutgoingMessage]) -> int:
        if not messages:
            return 0
        try:
            results = await reach_unanswered("publish_sent.before_puback", self._publisher.publish(messages))
        except TransportUnavailable as error:
            log.warning("longtake.hints_delayed", messages=len(messages), reason=str(error))
            return 0
        stored = sum(1 for result in results if result.state in ("stored", "duplicate"))
        if stored < len(messages):
            log.warning("longtake.hints_unconfirmed", messages=len(messages), stored=stored)
        return stored
