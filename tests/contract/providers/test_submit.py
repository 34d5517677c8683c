"""What each client says after a submit: accepted, completed, rejected, throttled, or honestly unknown."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kit.promises import promise
from kit.providers import ProviderBench
from videoads.providers.clips import ClipsClient
from videoads.providers.contract import (
    Accepted,
    Completed,
    ErrorClass,
    Failed,
    Fetched,
    FetchFailed,
    Found,
    Gone,
    NotFound,
    Pending,
    Rejected,
    Stopped,
    Succeeded,
    Throttled,
    TooLate,
    Unknown,
    Unsupported,
)

STYLES = ("clips", "stills", "voice", "music", "render")
HELD = ("voice", "music")
# Refusals for which a provider documents that nothing was begun; the rest of its 5xx leave that open.
CERTAIN = [
    ErrorClass.OVERLOADED,
    ErrorClass.TRANSIENT,
    ErrorClass.INVALID_INPUT,
    ErrorClass.MODERATION_INPUT,
    ErrorClass.QUOTA_EXHAUSTED,
    ErrorClass.AUTH,
    ErrorClass.NOT_FOUND,
]
UNCERTAIN = [ErrorClass.TIMEOUT, ErrorClass.PROVIDER_BUG, ErrorClass.BAD_OUTPUT, ErrorClass.UNKNOWN]
SIZE_MAX = 10_000_000


def request(style: str, words: str = "dawn over hills") -> dict[str, Any]:
    """A valid request of this style."""
    shot = {"prompt": words, "frames": 24, "fps": 30, "width": 90, "height": 160, "seed": 1}
    return {
        "clips": {"shot": shot},
        "stills": {"shot": shot},
        "voice": {"speech": {"lines": [words]}},
        "music": {"plan": {"bars": 1, "mood": words}},
        "render": {"composition": {"title": words}, "media": {}},
    }[style]


@pytest.mark.parametrize("style", STYLES)
@promise("H05")
async def test_a_submit_ends_in_media_whose_digest_is_the_announced_one(
    style: str, bench: ProviderBench, clients: Any, soon: datetime, tmp_path: Path
) -> None:
    client = getattr(clients, style)

    outcome = await client.submit(request(style), bench.token(), soon)

    assert isinstance(outcome, Completed if style in HELD else Accepted), outcome
    await bench.wait(style=style, token=bench.token(), state="succeeded")
    polled = await client.poll(outcome.ref)
    assert isinstance(polled, Succeeded) and polled.report["words"] == ["ä", "€"], polled
    fetched = await client.fetch(outcome.ref, tmp_path / "media", size_bytes_max=SIZE_MAX)
    assert isinstance(fetched, Fetched) and fetched.size_bytes == polled.size_bytes, fetched
    assert fetched.path.stat().st_size == fetched.size_bytes
    if isinstance(outcome, Completed):
        assert outcome.content == fetched.path.read_bytes()
        assert outcome.report == polled.report


@promise("T21")
@pytest.mark.parametrize("style", STYLES)
async def test_a_repeated_create_is_a_second_job_and_a_second_cost(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    client = getattr(clients, style)

    first = await client.submit(request(style), bench.token(), soon)
    second = await client.submit(request(style), bench.token(), soon)

    assert first.ref != second.ref
    lines = bench.creates(bench.token())
    assert [line.accepted for line in lines] == [True, True]
    assert (await bench.numbers(style))["cost"] == 2 * lines[0].cost > 0
    found = await client.reconcile(bench.token())
    assert isinstance(found, Found) and (found.ref, found.jobs) == (first.ref, 2)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("fault", ["lose_response", "garble_response", "server_error"])
async def test_an_accepted_job_whose_answer_is_spoilt_is_unknown_witnessed_and_found(
    style: str, fault: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order(fault, style=style)
    client = getattr(clients, style)

    outcome = await client.submit(request(style), bench.token(), soon)

    assert isinstance(outcome, Unknown), outcome
    (line,) = bench.creates(bench.token())
    assert line.accepted and line.cost > 0 and fault in line.note
    found = await client.reconcile(bench.token())
    assert isinstance(found, Found) and (found.ref, found.jobs) == (line.job, 1)
    await bench.wait(style=style, token=bench.token(), state="succeeded")
    assert isinstance(await client.poll(found.ref), Succeeded)


@pytest.mark.parametrize("style", STYLES)
async def test_a_lost_request_is_as_unknown_as_a_lost_answer_and_is_authoritatively_not_found(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("lose_request", style=style)
    client = getattr(clients, style)

    outcome = await client.submit(request(style), bench.token(), soon)

    assert isinstance(outcome, Unknown), outcome
    assert [line.accepted for line in bench.creates(bench.token())] == [False]
    not_found = await client.reconcile(bench.token())
    assert isinstance(not_found, NotFound) and not_found.authoritative


@pytest.mark.parametrize("style", STYLES)
async def test_a_refused_connection_is_rejected_with_nothing_sent(
    style: str, nobody: Any, soon: datetime
) -> None:
    client = getattr(nobody, style)

    outcome = await client.submit(request(style), "t-1", soon)

    assert isinstance(outcome, Rejected) and outcome.nothing_sent, outcome
    assert outcome.error is ErrorClass.TRANSIENT
    unanswered = await client.reconcile("t-1")
    assert isinstance(unanswered, NotFound) and not unanswered.authoritative
    assert isinstance(await client.poll("x"), Pending)


async def test_a_deadline_that_has_passed_sends_nothing(bench: ProviderBench, clients: Any) -> None:
    outcome = await clients.clips.submit(
        request("clips"), bench.token(), datetime.now(UTC) - timedelta(seconds=1)
    )

    assert isinstance(outcome, Rejected) and outcome.nothing_sent
    assert outcome.error is ErrorClass.TIMEOUT
    assert bench.witness() == []


@pytest.mark.parametrize("style", STYLES)
async def test_a_deadline_met_while_the_answer_is_held_is_unknown_and_found(
    style: str, bench: ProviderBench, clients: Any
) -> None:
    await bench.order("hold_response", style=style)
    client = getattr(clients, style)

    outcome = await client.submit(request(style), bench.token(), datetime.now(UTC) + timedelta(seconds=0.5))

    assert isinstance(outcome, Unknown), outcome
    assert isinstance(await client.reconcile(bench.token()), Found)


@pytest.mark.parametrize("style", STYLES)
async def test_a_429_is_throttled_until_the_time_asked_for_and_made_no_job(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("throttle", style=style, nth=[1], retry_after_seconds=7)
    client = getattr(clients, style)
    before = datetime.now(UTC)

    outcome = await client.submit(request(style), bench.token(), soon)

    assert isinstance(outcome, Throttled), outcome
    assert timedelta(seconds=6) < outcome.retry_at - before < timedelta(seconds=9)
    assert [line.accepted for line in bench.creates(bench.token())] == [False]
    assert isinstance(await client.submit(request(style), bench.token(), soon), Accepted | Completed)


async def test_slots_are_held_until_a_job_ends_and_the_next_create_is_throttled(
    bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("stall", style="voice")
    limit = 8
    async with asyncio.TaskGroup() as group:
        held = [
            group.create_task(clients.voice.submit(request("voice"), bench.token(number), soon))
            for number in range(limit)
        ]
        await bench.wait(style="voice", accepted=limit)

        outcome = await clients.voice.submit(request("voice"), bench.token("one-too-many"), soon)

        assert isinstance(outcome, Throttled), outcome
        await bench.release("*")
    assert all(isinstance(task.result(), Completed) for task in held)
    numbers = await bench.numbers("voice")
    assert (numbers["open_jobs"], numbers["open_jobs_max"]) == (0, limit)


@promise("H78")
@pytest.mark.parametrize("style", STYLES)
async def test_every_certain_refusal_becomes_its_class(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    client = getattr(clients, style)
    for error in CERTAIN:
        await bench.order("reject", error=error.value, style=style, token=bench.token(error))

        outcome = await client.submit(request(style), bench.token(error), soon)

        assert isinstance(outcome, Rejected) and outcome.error is error, (error, outcome)
        assert not outcome.nothing_sent


@pytest.mark.parametrize("style", STYLES)
async def test_a_server_error_that_promises_nothing_is_never_called_a_refusal(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    client = getattr(clients, style)
    for error in UNCERTAIN:
        await bench.order("reject", error=error.value, style=style, token=bench.token(error))

        outcome = await client.submit(request(style), bench.token(error), soon)

        assert isinstance(outcome, Unknown), (error, outcome)


@promise("H78")
@pytest.mark.parametrize("style", STYLES)
async def test_every_failure_of_a_job_becomes_its_class_and_costs_nothing(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    client = getattr(clients, style)
    for error in ErrorClass:
        token = bench.token(error)
        await bench.order("fail", error=error.value, style=style, token=token)

        outcome = await client.submit(request(style), token, soon)

        await bench.wait(style=style, token=token, state="failed")
        if style in HELD:
            assert isinstance(outcome, Rejected) and outcome.error is error, (error, outcome)
        failed = await client.poll(outcome.ref)
        assert isinstance(failed, Failed) and (failed.error, failed.cost) == (error, 0), (error, failed)


@pytest.mark.parametrize("style", STYLES)
async def test_a_request_the_maker_refuses_is_invalid_input_with_the_makers_words(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    client = getattr(clients, style)

    outcome = await client.submit(request(style, "unmakeable"), bench.token(), soon)

    await bench.wait(style=style, token=bench.token(), state="failed")
    failed = await client.poll(outcome.ref)
    assert isinstance(failed, Failed) and failed.error is ErrorClass.INVALID_INPUT
    assert failed.message == "/prompt: can not be drawn"


@promise("H02")
@pytest.mark.parametrize("style", STYLES)
async def test_a_success_without_bytes_is_bad_output_and_leaves_no_file(
    style: str, bench: ProviderBench, clients: Any, soon: datetime, tmp_path: Path
) -> None:
    await bench.order("empty", style=style)
    client = getattr(clients, style)

    outcome = await client.submit(request(style), bench.token(), soon)

    await bench.wait(style=style, token=bench.token(), state="succeeded")
    if style in HELD:
        assert isinstance(outcome, Rejected) and outcome.error is ErrorClass.BAD_OUTPUT, outcome
    fetched = await client.fetch(outcome.ref, tmp_path / "media", size_bytes_max=SIZE_MAX)
    assert isinstance(fetched, FetchFailed) and fetched.error is ErrorClass.BAD_OUTPUT
    assert list(tmp_path.glob("media*")) == []


async def test_media_larger_than_allowed_leaves_no_file(
    bench: ProviderBench, clients: Any, soon: datetime, tmp_path: Path
) -> None:
    outcome = await clients.clips.submit(request("clips"), bench.token(), soon)
    await bench.wait(token=bench.token(), state="succeeded")
    polled = await clients.clips.poll(outcome.ref)

    refused = await clients.clips.fetch(outcome.ref, tmp_path / "m", size_bytes_max=polled.size_bytes - 1)
    fetched = await clients.clips.fetch(outcome.ref, tmp_path / "n", size_bytes_max=polled.size_bytes)

    assert isinstance(refused, FetchFailed) and refused.error is ErrorClass.BAD_OUTPUT
    assert isinstance(fetched, Fetched)
    assert [path.name for path in tmp_path.glob("[mn]*")] == ["n"]


async def test_a_poll_carries_the_providers_hint_and_an_unknown_reference_is_gone(
    bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("stall", style="clips")
    outcome = await clients.clips.submit(request("clips"), bench.token(), soon)

    assert isinstance(outcome, Accepted) and outcome.poll_after_seconds == 0.3
    assert await clients.clips.poll(outcome.ref) == Pending(poll_after_seconds=0.3)
    for style in STYLES:
        assert isinstance(await getattr(clients, style).poll("no-such-job"), Gone)


async def test_cancel_stops_an_open_task_and_is_too_late_for_an_ended_one(
    bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("stall", style="clips", token=bench.token())
    open_task = await clients.clips.submit(request("clips"), bench.token(), soon)
    ended_task = await clients.clips.submit(request("clips"), bench.token(2), soon)
    await bench.wait(token=bench.token(2), state="succeeded")

    assert await clients.clips.cancel(open_task.ref) == Stopped(cost=0)
    assert isinstance(await clients.clips.cancel(ended_task.ref), TooLate)
    assert isinstance(await clients.voice.cancel("any"), Unsupported)
    cancelled = await clients.clips.poll(open_task.ref)
    assert isinstance(cancelled, Failed) and cancelled.error is ErrorClass.CANCELLED


@pytest.mark.parametrize("style", ["clips", "stills", "render"])
async def test_an_uploaded_input_may_be_named_and_an_unknown_one_is_refused(
    style: str, bench: ProviderBench, clients: Any, soon: datetime, tmp_path: Path
) -> None:
    client = getattr(clients, style)
    (tmp_path / "input").write_bytes(b"a picture")
    digest = await client.upload(tmp_path / "input")

    def with_input(sha256: str) -> dict[str, Any]:
        named = {"media": {"shot-1": sha256}} if style == "render" else {"product_picture_sha256": sha256}
        return {**request(style), **named}

    assert isinstance(await client.submit(with_input(digest), bench.token(), soon), Accepted)
    refused = await client.submit(with_input("0" * 64), bench.token(2), soon)
    assert isinstance(refused, Rejected) and "no such upload" in refused.message
    assert await client.upload(tmp_path / "input") == digest


@pytest.mark.parametrize("token", ["", "a" * 65, "a/b", "ä", "a b", "a\n"])
async def test_a_token_that_could_not_be_looked_up_is_refused_before_it_leaves(
    token: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    with pytest.raises(ValueError, match="a provider token is"):
        await clients.clips.submit(request("clips"), token, soon)
    assert bench.witness() == []


async def test_the_environments_proxy_is_never_asked(
    bench: ProviderBench, soon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client = ClipsClient(bench.base_url)

    outcome = await client.submit(request("clips"), bench.token(), soon)

    await client.close()
    assert isinstance(outcome, Accepted)
    async with httpx2.AsyncClient(base_url=bench.base_url) as obedient:
        with pytest.raises(httpx2.ConnectError):
            await obedient.get("/control/health")
