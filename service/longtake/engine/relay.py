"""The relay: publishes what is due and what was lost, and copies HTTP commands to their stream (P2, P12, P16).

It marks a row first and publishes after: when it dies between the two, its incarnation is dead and the next relay
publishes the row at once. At most a fixed window of pointers is published a pass.
"""

import asyncio
from math import inf

import structlog

from longtake.contracts.ids import subject_token
from longtake.crash_points import reach
from longtake.engine.hints import Hints
from longtake.engine.pace import Pace
from longtake.engine.waking import DOORBELL_RELAY
from longtake.errors import AuthorityUnavailable, TransportUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import Doorbell, OldestMessage, OutgoingMessage, Publisher
from longtake.store import SweepStore

WINDOW = 512
ROOM_SECONDS = 0.02
"""Until the relay looks again whether there is room in a window, after it has published something."""
QUIET_PASSES_MAX = 5
"""Passes without anything to publish, each twice as late as the one before, until it waits for what is due."""
COMMANDS_PER_PASS_MAX = 256
COMMAND_STREAM = "LT_COMMAND"
COPIED_HEADER = "Longtake-Copied"
ACTOR_HEADER = "Longtake-Actor"

log = structlog.get_logger("longtake.engine.relay")


class Relay(LoopService):
    """The relay role of one process."""

    def __init__(
        self,
        store: SweepStore,
        hints: Hints,
        publisher: Publisher,
        oldest: OldestMessage,
        doorbell: Doorbell,
        *,
        pools: tuple[str, ...],
        pace: Pace,
    ) -> None:
        super().__init__("relay", self._work)
        self._store = store
        self._hints = hints
        self._publisher = publisher
        self._oldest = oldest
        self._doorbell = doorbell
        self._pools = pools
        self._pace = pace
        self._epoch: int | None = None
        self._published = 0
        self._quiet_passes = QUIET_PASSES_MAX

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                busy = await self.pass_once()
                seconds = 0.0 if busy else min(await self._pace.seconds(self._store), self._soon())
            except (AuthorityUnavailable, TransportUnavailable) as error:
                log.warning("longtake.relay_delayed", reason=str(error))
                seconds = self._pace.away_seconds
            if seconds > 0:
                await self._pace.sleep(self._doorbell, DOORBELL_RELAY, seconds, stopping)

    def _soon(self) -> float:
        """Where something was published, workers may have made room for more since: look again soon, then less soon."""
        self._quiet_passes = 0 if self._published else min(self._quiet_passes + 1, QUIET_PASSES_MAX)
        return inf if self._quiet_passes == QUIET_PASSES_MAX else ROOM_SECONDS * 2.0**self._quiet_passes

    async def pass_once(self) -> bool:
        """Publish one window; True when there may be more at once."""
        identity = await self._store.identity()
        all_lost = self._epoch is not None and identity.transport_epoch != self._epoch
        oldest = {pool: await self._oldest.oldest_effect(subject_token(pool)) for pool in self._pools}
        pointers = await self._store.due_pointers(
            limit=WINDOW, grace_seconds=self._pace.grace_seconds, oldest=oldest, all_lost=all_lost
        )
        self._epoch = identity.transport_epoch
        self._published = len(pointers)
        if pointers:
            reach("claimed.before_publish")
            await self._hints.effects(pointers)
            reach("mid_batch")
        copied = await self._copy_commands()
        return len(pointers) == WINDOW or copied == COMMANDS_PER_PASS_MAX

    async def _copy_commands(self) -> int:
        commands = await self._store.uncopied_commands(COMMANDS_PER_PASS_MAX)
        if not commands:
            return 0
        messages = [
            OutgoingMessage(
                subject=f"longtake.v1.command.{subject_token(tenant)}.{kind}",
                body=body,
                stream=COMMAND_STREAM,
                message_id=f"{tenant}-{actor}-{id_}",
                headers={
                    COPIED_HEADER: "1",
                    ACTOR_HEADER: actor,
                    **({"traceparent": trace} if trace else {}),
                },
            )
            for tenant, actor, id_, kind, body, trace in commands
        ]
        results = await self._publisher.publish(messages)
        done = [
            (tenant, actor, id_)
            for (tenant, actor, id_, *_), result in zip(commands, results, strict=True)
            if result.state in ("stored", "duplicate")
        ]
        if done:
            reach("puback.before_mark")
            await self._store.mark_copied(done)
        return len(done)
