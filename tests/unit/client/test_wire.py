"""The client's patience and its reading of frames."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from longtake.client import ProblemReceived, ServerUnreachable
from longtake.client.http import Wire
from longtake.client.stream import frames
from longtake.contracts.codec import to_json
from longtake.contracts.problems import problem


def _wire(*answers: object, patience_seconds: float = 5.0) -> tuple[Wire, list[httpx2.Request]]:
    """A wire whose server gives these answers in turn; an exception is raised."""
    seen: list[httpx2.Request] = []
    left = list(answers)

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return given

    wire = Wire("http://127.0.0.1:1", "k", patience_seconds=patience_seconds)
    wire._http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url=wire.url)
    return wire, seen


def _refusal(slug: str) -> httpx2.Response:
    found = problem(slug, "said")
    return httpx2.Response(found.status, content=to_json(found))


async def test_a_server_that_is_away_for_a_moment_is_asked_again():
    wire, seen = _wire(_refusal("unavailable"), httpx2.ConnectError("refused"), httpx2.Response(200, json={}))

    assert (await wire.request("GET", "/x")).status_code == 200
    assert len(seen) == 3


async def test_a_refusal_is_not_repeated_and_keeps_its_problem():
    wire, seen = _wire(_refusal("stale-revision"))

    with pytest.raises(ProblemReceived) as refused:
        await wire.request("GET", "/x")

    assert (refused.value.problem.status, refused.value.problem.slug, len(seen)) == (412, "stale-revision", 1)


async def test_without_patience_the_first_silence_is_told_with_the_address():
    wire, _ = _wire(httpx2.ConnectError("refused"), patience_seconds=0)

    with pytest.raises(ServerUnreachable, match="127.0.0.1:1"):
        await wire.request("GET", "/x")


async def test_an_answer_of_somebody_else_is_said_to_be_one():
    wire, _ = _wire(httpx2.Response(418, text="<html>"))

    with pytest.raises(ProblemReceived, match="is it a longtake") as refused:
        await wire.request("GET", "/x")
    assert refused.value.problem.status == 418


async def test_frames_are_read_with_ids_comments_and_several_lines_of_data():
    lines = [
        "retry: 3000",
        "",
        ": still here",
        "",
        "id: e1-1",
        "event: a",
        "data: x",
        "data: y",
        "",
        "data: z",
        "",
        "event: half",
    ]

    async def stream() -> AsyncIterator[str]:
        for line in lines:
            yield line

    read = [frame async for frame in frames(stream())]

    assert [(frame.id, frame.event, frame.data) for frame in read] == [
        ("e1-1", "a", "x\ny"),
        ("e1-1", "message", "z"),
    ]
