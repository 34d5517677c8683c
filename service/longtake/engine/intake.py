"""The intake: commands that producers published to LT_COMMAND take the same way as those posted over HTTP.

Commit first, then `ack_sync`. What cannot be read, and what is refused without being kept, stays as a dead letter and
is answered on the receipt subject, so nothing is lost without a word (T19).
"""

import asyncio
import random
from collections.abc import Awaitable

import msgspec
import structlog

from longtake.contracts.codec import to_json
from longtake.contracts.ids import is_name
from longtake.contracts.principal import Principal, Producers
from longtake.contracts.problems import Problem, problem
from longtake.crash_points import reach
from longtake.engine.admission import Admission
from longtake.engine.commands import read_command
from longtake.engine.relay import ACTOR_HEADER, COPIED_HEADER
from longtake.engine.suspects import sift
from longtake.errors import AuthorityUnavailable, PoisonMessage, Refused, TransportUnavailable
from longtake.lifecycle import LoopService
from longtake.ports import Delivery, Transport
from longtake.store import SweepStore
from longtake.telemetry.tracing import extract

COMMANDS_AT_ONCE_MAX = 16
FETCH_SECONDS = 5.0
AWAY_SECONDS = 0.5
RETRY_SECONDS_MAX = 2.0

log = structlog.get_logger("longtake.engine.intake")


class Intake(LoopService):
    """Reads LT_COMMAND until it is stopped."""

    def __init__(
        self,
        admission: Admission,
        transport: Transport,
        store: SweepStore,
        *,
        producers: Producers = Producers(),  # noqa: B008 - frozen
    ) -> None:
        super().__init__("intake", self._work)
        self._producers = producers
        self._admission = admission
        self._transport = transport
        self._store = store

    async def _work(self, stopping: asyncio.Event) -> None:
        subscription = await self._transport.commands()
        stop = asyncio.create_task(stopping.wait())
        try:
            while not stopping.is_set():
                fetching = asyncio.create_task(
                    subscription.fetch(limit=COMMANDS_AT_ONCE_MAX, wait_seconds=FETCH_SECONDS)
                )
                await asyncio.wait({fetching, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not fetching.done():
                    # A command that arrives now goes back with the subscription.
                    fetching.cancel()
                    await asyncio.gather(fetching, return_exceptions=True)
                    break
                try:
                    deliveries = fetching.result()
                except TransportUnavailable:
                    await asyncio.sleep(AWAY_SECONDS)
                    continue
                await self._take_all(deliveries)
        finally:
            stop.cancel()
            await subscription.close()

    async def _take_all(self, deliveries: list[Delivery]) -> None:
        try:
            safe, deadly = await sift(self._store, deliveries)
        except AuthorityUnavailable as error:
            log.warning("longtake.intake_delayed", reason=str(error))
            for delivery in deliveries:
                await _quietly(delivery.nak(delay_seconds=random.uniform(0.2, RETRY_SECONDS_MAX)))
            return
        async with asyncio.TaskGroup() as group:
            for delivery, deadliness in deadly:
                group.create_task(self._bury(delivery, deadliness))
            for delivery in safe:
                group.create_task(self._take(delivery))

    async def _bury(self, delivery: Delivery, error: PoisonMessage) -> None:
        """Keep it unread: whoever tried to read it ended."""
        log.error("longtake.dead_letter", subject=delivery.subject, reason=error.reason)
        try:
            await self._store.dead_letter(
                tenant=delivery.subject.split(".")[3],
                source="intake",
                subject=delivery.subject,
                reason=f"poison: {error.reason}",
                body=delivery.body,
                headers=delivery.headers,
            )
            await delivery.term()
        except (AuthorityUnavailable, TransportUnavailable) as away:
            log.warning("longtake.intake_unsettled", reason=str(away))

    async def _take(self, delivery: Delivery) -> None:
        try:
            await self.take(delivery)
        except AuthorityUnavailable as error:
            log.warning("longtake.intake_delayed", reason=str(error))
            await _quietly(delivery.nak(delay_seconds=random.uniform(0.2, RETRY_SECONDS_MAX)))
        except TransportUnavailable as error:
            log.warning("longtake.intake_unsettled", reason=str(error))

    async def take(self, delivery: Delivery) -> None:
        """Admit one message and settle it. Raises AuthorityUnavailable, TransportUnavailable; it comes again then."""
        if COPIED_HEADER in delivery.headers:
            # The relay's copy of an HTTP command: kept in the stream for a restore, admitted already.
            await delivery.ack()
            return
        reach("pulled.before_decode")
        tenant = delivery.subject.split(".")[3]
        principal = Principal(tenant=tenant, actor=delivery.headers.get(ACTOR_HEADER, "nats"))
        try:
            if not self._producers.include(principal):
                # What was allowed when it was published need not be so any more (T10).
                raise Refused(
                    problem(
                        "forbidden",
                        f"{principal.actor!r} of {tenant!r} may not send commands over the streams.",
                    )
                )
            command = read_command(delivery.body, key=None)
            answer = await self._admission.admit(
                principal, command, channel="nats", traceparent=extract(delivery.headers)
            )
        except Refused as refusal:
            if refusal.problem.retry_after_seconds is not None:
                # Not the message is wrong but the moment.
                raise AuthorityUnavailable(refusal.problem.detail) from refusal
            await self._refuse(delivery, tenant, refusal.problem)
            return
        except (AuthorityUnavailable, TransportUnavailable):
            raise
        except Exception as error:
            # One command that breaks us must not end the intake for all others, nor come again for ever (F56).
            log.exception("longtake.intake_broke", subject=delivery.subject)
            broke = problem("internal", f"Admission broke: {type(error).__name__}: {error}.")
            await self._refuse(delivery, tenant, broke)
            return
        reach("committed.before_ack")
        receipt = to_json(answer.receipt)
        await self._transport.publish_receipt(
            tenant=tenant, command_id=answer.receipt.command_id, receipt=receipt
        )
        await delivery.ack(sync=True)
        reach("acked")

    async def _refuse(self, delivery: Delivery, tenant: str, refusal: Problem) -> None:
        log.error(
            "longtake.command_refused", subject=delivery.subject, problem=refusal.slug, detail=refusal.detail
        )
        await self._store.dead_letter(
            tenant=tenant,
            source="intake",
            subject=delivery.subject,
            reason=f"{refusal.slug}: {refusal.detail}",
            body=delivery.body,
            headers=delivery.headers,
        )
        id_ = _id_of(delivery)
        if id_ is not None:
            await self._transport.publish_receipt(tenant=tenant, command_id=id_, receipt=to_json(refusal))
        await delivery.term()


class _Named(msgspec.Struct):
    client_command_id: str | None = None


def _id_of(delivery: Delivery) -> str | None:
    """The producer's id of a command that was not taken: its own, else that of the message; None when neither is a name."""
    try:
        named = msgspec.json.decode(delivery.body, type=_Named).client_command_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        named = None
    found = named if named is not None else delivery.headers.get("Nats-Msg-Id")
    return found if found is not None and is_name(found) else None


async def _quietly(settling: Awaitable[None]) -> None:
    try:
        await settling
    except TransportUnavailable:
        return
