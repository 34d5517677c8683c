"""Request and reply over NATS micro: `longtake.v1.service.command` and `longtake.v1.service.summary`.

Handlers are the engine's; this module gives them requests, a span, and a place where errors end as problem details. nats.micro by
itself would answer the `repr` of an exception, which tells a stranger about our insides, and would take one request at a time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import Service, ServiceConfig

from longtake.contracts.problems import Problem, problem
from longtake.errors import AuthorityUnavailable, Refused, TransportUnavailable
from longtake.jetstream.connection import Connection
from longtake.telemetry import Span, extract, get_logger, span, trace_id_of
from longtake.telemetry.attributes import MESSAGING_DESTINATION, MESSAGING_SYSTEM, SPAN_SERVICE_REQUEST

log = get_logger(__name__)

COMMAND_SUBJECT: Final = "longtake.v1.service.command"
SUMMARY_SUBJECT: Final = "longtake.v1.service.summary"
IN_FLIGHT_MAX: Final = 64
RETRY_AFTER_SECONDS: Final = 5


class ServiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asked."""

    subject: str
    body: bytes
    headers: Mapping[str, str]
    traceparent: str | None
    """The context to hang work on: our own span's, else the caller's."""


Handler = Callable[[ServiceRequest], Awaitable[bytes]]
"""Returns the JSON of the answer. Refused carries the problem to answer instead."""


class CommandServices:
    """Answers commands and questions for summaries from `start` to `stop`."""

    def __init__(
        self, connection: Connection, *, command: Handler, summary: Handler, version: str = "0.1.0"
    ) -> None:
        self._connection = connection
        self._handlers: dict[str, tuple[str, Handler]] = {
            "command": (COMMAND_SUBJECT, command),
            "summary": (SUMMARY_SUBJECT, summary),
        }
        self._version = version
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._answering: set[asyncio.Task[None]] = set()
        self._client: Client | None = None
        self._service: Service | None = None

    async def start(self) -> None:
        """Answer from now on, over every new link too."""
        await self._connection.on_link(self._on_link)

    async def started(self) -> None:
        """Nothing to wait for: without a link there is nobody to answer."""

    async def stop(self) -> None:
        """Take no more requests and finish those at hand. May be called twice."""
        self._connection.off_link(self._on_link)
        service, self._service = self._service, None
        client, self._client = self._client, None
        if service is not None and client is not None and client.is_connected:
            try:
                await service.stop()
            except (NatsError, OSError) as error:
                log.debug("service.stop_failed", error=str(error))
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def _on_link(self, client: Client) -> None:
        if client is self._client:
            return
        config = ServiceConfig(
            name="longtake", version=self._version, description="Durable workflows: commands"
        )
        service = await add_service(client, config)
        for name, (subject, handler) in self._handlers.items():
            await service.add_endpoint(name=name, subject=subject, handler=self._taker(handler))
        self._client, self._service = client, service

    def _taker(self, handler: Handler) -> Callable[[Request], Awaitable[None]]:
        async def take(request: Request) -> None:
            # nats.micro waits for us before it takes the next request, so the work goes beside it, up to a bound.
            await self._slots.acquire()
            task = asyncio.create_task(self._answer(handler, request))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            task.add_done_callback(lambda _: self._slots.release())

        return take

    async def _answer(self, handler: Handler, request: Request) -> None:
        headers = request.headers or {}
        with span(
            SPAN_SERVICE_REQUEST,
            kind="server",
            parent=extract(headers),
            attributes={MESSAGING_SYSTEM: "nats", MESSAGING_DESTINATION: request.subject},
        ) as here:
            given = ServiceRequest(
                subject=request.subject, body=request.data, headers=headers, traceparent=here.traceparent
            )
            answer = await _handle(handler, given, here)
        try:
            if isinstance(answer, Problem):
                # The error headers are what tools of NATS read; the body is what our clients read.
                await request.respond_error(
                    str(answer.status),
                    answer.title,
                    data=msgspec.json.encode(answer),
                    headers={"Content-Type": "application/problem+json"},
                )
            else:
                await request.respond(answer, headers={"Content-Type": "application/json"})
        except (NatsError, OSError, ValueError) as error:
            # The caller asks again with the same command id and gets the stored receipt.
            log.warning("service.reply_lost", subject=request.subject, error=type(error).__name__)


async def _handle(handler: Handler, request: ServiceRequest, here: Span) -> bytes | Problem:
    try:
        return await handler(request)
    except Refused as refusal:
        found = refusal.problem
    except (AuthorityUnavailable, TransportUnavailable) as error:
        log.warning("service.unavailable", subject=request.subject, error=type(error).__name__)
        found = problem(
            "unavailable",
            "Nothing can be decided now; ask again with the same command id",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    except Exception:
        log.exception("service.handler_failed", subject=request.subject)
        found = problem(
            "internal", "The request could not be answered; the log has the reason under the trace id"
        )
    here.fail(found.slug)
    if found.trace_id is None and (trace_id := trace_id_of(here.traceparent)) is not None:
        found = msgspec.structs.replace(found, trace_id=trace_id)
    return found
