"""The stream of events: each once, in order, from wherever the client was, and never in the way of a stop."""

import asyncio

from kit.promises import promise
from kit.shop import Shop
from longtake.client import Client


async def _frames(
    shop: Shop, run_id: str, *, after: str = "", last: str | None = None, stop_at: int | None = None
):
    headers = {"Last-Event-ID": last} if last else {}
    frames, frame = [], {}
    async with shop.http.stream(
        "GET", f"/v1/runs/{run_id}/events/stream{after}", headers=headers
    ) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        async for line in response.aiter_lines():
            if line:
                name, _, value = line.partition(": ")
                frame[name] = value
            elif "event" in frame:
                frames.append(frame)
                frame = {}
                if len(frames) == stop_at:
                    break
    return frames


async def test_every_event_comes_once_in_order_and_the_last_frame_says_the_end(shop):
    run_id = await shop.start("stream")

    frames = await _frames(shop, run_id)

    seqs = [int(frame["id"].removeprefix("e1-")) for frame in frames[:-1]]
    assert seqs == list(range(1, len(seqs) + 1))
    assert (frames[0]["event"], frames[-2]["event"], frames[-1]["event"]) == (
        "run_accepted",
        "run_completed",
        "end",
    )
    assert frames[-1]["id"] == frames[-2]["id"]


@promise("G05")
async def test_a_client_goes_on_after_the_last_frame_it_saw(shop):
    """Broken off after two frames, gone on by Last-Event-ID or ?after=: nothing twice, nothing missing."""
    run_id = await shop.start("resume", "gate@1")
    seen = await _frames(shop, run_id, stop_at=2)
    shop.app.gate.set()

    rest = await _frames(shop, run_id, last=seen[-1]["id"])
    same = await _frames(shop, run_id, after="?after=2")

    ids = [frame["id"] for frame in seen + rest[:-1]]
    assert ids == [f"e1-{seq}" for seq in range(1, len(ids) + 1)]
    assert rest == same


async def test_a_place_of_another_epoch_starts_again_and_says_so(shop):
    run_id = await shop.finished("epoch")

    frames = await _frames(shop, run_id, last="e7-3")

    assert [frame["event"] for frame in frames[:2]] == ["reset", "run_accepted"]


async def test_who_has_seen_the_end_is_told_not_to_come_again(shop):
    run_id = await shop.finished("ended")
    last = (await _frames(shop, run_id))[-1]["id"]

    response = await shop.http.get(f"/v1/runs/{run_id}/events/stream", headers={"Last-Event-ID": last})

    assert (response.status_code, response.content) == (204, b"")


async def test_a_stop_ends_open_streams_promptly(counter):
    """A stream that waits for events does not keep the process: its connection ends with the server."""
    run_id = await counter.start("waits")
    begun = asyncio.Event()

    async def listen() -> int:
        lines = 0
        async with counter.http.stream("GET", f"/v1/runs/{run_id}/events/stream") as response:
            async for _ in response.aiter_lines():
                lines += 1
                begun.set()
        return lines

    listening = asyncio.create_task(listen())
    await asyncio.wait_for(begun.wait(), 10)

    async with asyncio.timeout(4):
        await counter.process.api_server.stop()
        assert await listening > 0


@promise("G06")
async def test_the_client_follows_a_run_across_a_broken_connection(shop):
    """The server goes and comes back on its port; the client sees every event once."""
    run_id = await shop.start("client", "gate@1")
    key = shop.http.headers["authorization"].removeprefix("Bearer ")
    seen = []
    async with Client(shop.url, key) as client:
        async for event in client.stream(run_id):
            seen.append(event.seq)
            if len(seen) == 2:
                # What a proxy's timeout does to a stream.
                for connection in list(shop.process.api_server._server.server_state.connections):
                    connection.transport.abort()
                shop.app.gate.set()
        summary = await client.wait(run_id, seconds=10)

    assert seen == list(range(1, summary.revision + 1))
