"""The stream of a run's events (SSE): every event once, in order, from wherever the client was.

Nothing is buffered: a page is read when the one before was sent, so a slow client slows its own reading only. The
truth is polled, cheaply and ever less often while nothing happens; a place is `e<epoch>-<seq>`.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator

import structlog
from litestar import Response, get
from litestar.response import Stream

from longtake.api.context import Api, ApiContext, Caller, Row
from longtake.api.history import SEQ_MAX, event_answer
from longtake.api.parameters import identifier, integer
from longtake.api.problems import not_found
from longtake.contracts.codec import to_json
from longtake.contracts.summary import TERMINAL
from longtake.errors import AuthorityUnavailable

PAGE = 100
POLL_SECONDS_MIN = 0.1
POLL_SECONDS_MAX = 1.0
COMMENT_SECONDS = 15.0
RETRY_MILLISECONDS = 3000

log = structlog.get_logger("longtake.api.stream")


@get("/v1/runs/{run_id:str}/events/stream")
async def stream_events(request: Caller, api: Api, run_id: str) -> Response[None] | Stream:
    """Server-sent events after Last-Event-ID, or after `?after=`; 204 when the run has ended and all was told."""
    id_ = identifier(run_id, "run")
    row = await api.reads.summary(request.user.tenant, id_)
    if row is None:
        raise not_found(f"run {run_id}")
    after, reset = _place(request, row, api.store_epoch)
    if row["status"] in TERMINAL and after >= row["revision"]:
        return Response(None, status_code=204)
    return Stream(
        _frames(api, request.user.tenant, id_, after=after, reset=reset),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def place_id(store_epoch: int, seq: int) -> str:
    """The id of a frame."""
    return f"e{store_epoch}-{seq}"


def _place(request: Caller, row: Row, store_epoch: int) -> tuple[int, bool]:
    """Where to go on; a place of another epoch, or beyond the history, means to start again."""
    given = request.headers.get("last-event-id")
    if given is None or not given.strip():
        after = integer(request, "after", default=0, low=0, high=SEQ_MAX)
        return (after, False) if after <= row["revision"] else (0, True)
    epoch, _, seq = given.strip().removeprefix("e").partition("-")
    known = seq.isascii() and seq.isdigit() and len(seq) < 10 and epoch == str(store_epoch)
    if not known or int(seq) > row["revision"]:
        return 0, True
    return int(seq), False


async def _frames(
    api: ApiContext, tenant: str, run_id: uuid.UUID, *, after: int, reset: bool
) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    if reset:
        yield b"event: reset\ndata: {}\n\n"
    said, pause = time.monotonic(), POLL_SECONDS_MIN
    while not api.stopping.is_set():
        try:
            now = await api.reads.summary(tenant, run_id)
            rows = []
            if now is not None and now["revision"] > after:
                rows = list(await api.reads.events(tenant, run_id, after=after, limit=PAGE))
        except AuthorityUnavailable:
            # The client need not know: the place is kept and the stream goes on when the authority is back.
            log.warning("longtake.stream_waits", run_id=str(run_id))
            now, rows = {}, []
        if now is None:
            return
        for row in rows:
            yield _frame(
                place_id(api.store_epoch, row["seq"]), row["type"], to_json(event_answer(run_id, row))
            )
            after = row["seq"]
        if rows:
            said, pause = time.monotonic(), POLL_SECONDS_MIN
        if now and now["status"] in TERMINAL and after >= now["revision"]:
            yield _frame(place_id(api.store_epoch, after), "end", to_json({"status": now["status"]}))
            return
        if len(rows) == PAGE:
            continue
        if time.monotonic() - said >= COMMENT_SECONDS:
            said = time.monotonic()
            yield b": still here\n\n"
        if not rows:
            await _rest(api.stopping, pause)
            pause = min(pause * 1.5, POLL_SECONDS_MAX)


async def _rest(stopping: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return


def _frame(id_: str, event: str, data: bytes) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id_.encode(), event.encode(), data)


ROUTES = [stream_events]
