"""Following a run: server-sent events read frame by frame, with the place kept across broken connections."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import msgspec

from longtake.client.answers import EventSeen
from longtake.client.errors import ProblemReceived, ServerUnreachable
from longtake.client.http import BUSY, PAUSE_SECONDS_MAX, Wire, token

RECONNECTS_IN_A_ROW_MAX = 60
"""Tries without one frame in between, before the server counts as gone."""

_events = msgspec.json.Decoder(EventSeen)


class Frame(msgspec.Struct, frozen=True):
    """One frame of a stream."""

    id: str | None
    event: str
    data: str


async def follow(wire: Wire, run_id: str, *, after: int) -> AsyncIterator[EventSeen]:
    """Every event after a seq, once, until the run's end."""
    place: str | None = None
    fails, pause = 0, 0.1
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": place} if place else {})}
        try:
            path = f"/v1/runs/{token(run_id)}/events/stream" + ("" if place else f"?after={after}")
            async with wire.streaming("GET", path, headers=headers, endless=True) as response:
                if response.status_code == 204:
                    return
                async for frame in frames(response.aiter_lines()):
                    fails, pause = 0, 0.1
                    place = frame.id or place
                    if frame.event == "end":
                        return
                    if frame.event != "reset" and frame.data:
                        event = _events.decode(frame.data)
                        if event.seq > after:
                            after = event.seq
                            yield event
        except httpx2.TransportError as error:
            fails += 1
            if fails > RECONNECTS_IN_A_ROW_MAX:
                raise ServerUnreachable(wire.url, str(error) or type(error).__name__) from error
        except ProblemReceived as refused:
            fails += 1
            if refused.problem.slug not in BUSY or fails > RECONNECTS_IN_A_ROW_MAX:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, PAUSE_SECONDS_MAX)


async def frames(lines: AsyncIterator[str]) -> AsyncIterator[Frame]:
    """Frames of a stream of lines; comments and half frames are left out."""
    id_: str | None = None
    event, data = "message", list[str]()
    async for line in lines:
        line = line.rstrip("\r\n")
        if not line:
            if data:
                yield Frame(id_, event, "\n".join(data))
            event, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                id_ = value
            case "event":
                event = value
            case "data":
                data.append(value)
            case _:
                pass
