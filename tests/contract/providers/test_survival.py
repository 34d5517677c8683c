"""The providers outlive kills, forget on order, keep their own counts, and never share a data directory."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from kit.promises import promise
from kit.providers import SERVICE, ProviderBench, WebhookReceiver
from videoads.providers.clips import ClipsClient
from videoads.providers.contract import Accepted, Completed, Found, Impossible, Rejected, Succeeded, Unknown
from videoads.providers.launch import find_providers, start_providers
from videoads.providers.render import RenderClient
from videoads.providers.synthetic.ledger import WitnessFile
from videoads.providers.witness import WitnessLine, judge, read_witness

SECRET = "whsec_" + "bG9uZ3Rha2UtdGVzdC1zZWNyZXQtMDAwMDAwMDAwMDE="
SHOT = {"prompt": "dawn", "frames": 24, "fps": 30, "width": 90, "height": 160, "seed": 1}
REQUESTS: dict[str, dict[str, Any]] = {
    "clips": {"shot": SHOT},
    "stills": {"shot": SHOT},
    "voice": {"speech": {"lines": ["words"]}},
    "music": {"plan": {"bars": 1}},
    "render": {"composition": {"title": "an ad"}, "media": {}},
}


@contextlib.asynccontextmanager
async def running(data: Path, *arguments: str) -> AsyncIterator[ProviderBench]:
    bench = ProviderBench(data, arguments=["--speed", "50", *arguments])
    await bench.start()
    try:
        yield bench
    finally:
        await bench.stop()


@pytest.mark.parametrize("style", list(REQUESTS))
async def test_a_kill_with_a_job_open_loses_nothing_and_repeats_nothing(
    style: str, own_bench: ProviderBench, own_clients: Any, soon: datetime
) -> None:
    await own_bench.order("stall", style=style)
    client = getattr(own_clients, style)
    async with asyncio.TaskGroup() as group:
        submit = group.create_task(client.submit(REQUESTS[style], "t-1", soon))
        await own_bench.wait(style=style, accepted=1)
        if style not in ("voice", "music"):
            await submit

        address = own_bench.base_url
        await own_bench.kill()
        await own_bench.start()

    assert own_bench.base_url == address
    assert isinstance(submit.result(), Unknown if style in ("voice", "music") else Accepted)
    found = await client.reconcile("t-1")
    assert isinstance(found, Found)
    await own_bench.release("t-1")
    await own_bench.wait(style=style, token="t-1", state="succeeded")
    assert isinstance(await client.poll(found.ref), Succeeded)
    verdict = judge(own_bench.witness())
    assert (verdict.accepted, verdict.repeated) == (1, {})
    assert (await own_bench.numbers(style))["accepted"] == 1


async def test_a_job_on_disk_whose_witness_line_was_cut_off_is_witnessed_at_the_restart(
    own_bench: ProviderBench, own_clients: Any, soon: datetime
) -> None:
    await own_clients.clips.submit(REQUESTS["clips"], "t-1", soon)
    await own_bench.kill()
    witness = own_bench.data / "witness.ndjson"
    witness.write_bytes(witness.read_bytes()[:-5])
    assert own_bench.witness() == []

    await own_bench.start()

    (line,) = own_bench.creates("t-1")
    assert line.accepted and line.note == "recovered after a kill"


async def test_the_witness_line_is_on_disk_although_the_answer_was_lost(
    own_bench: ProviderBench, own_clients: Any, soon: datetime
) -> None:
    """The line is read after a kill that follows the lost answer at once: it was not waiting in memory."""
    await own_bench.order("lose_response", style="clips")

    outcome = await own_clients.clips.submit(REQUESTS["clips"], "t-1", soon)
    await own_bench.kill()

    assert isinstance(outcome, Unknown)
    assert [line.accepted for line in own_bench.creates("t-1")] == [True]


async def test_a_recorded_line_has_been_written_and_synced_and_lines_share_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda file, raw: (calls.append("write"), write(file, raw[:100]))[1])
    monkeypatch.setattr(os, "fsync", lambda file: (calls.append("fsync"), fsync(file))[1])
    witness = WitnessFile(tmp_path / "witness.ndjson")
    lines = [
        WitnessLine(
            time="",
            provider="clips",
            request="create",
            token=f"t{number}",
            body_sha256="",
            accepted=True,
            cost=1,
            job="j",
            open_jobs=1,
        )
        for number in range(20)
    ]

    async with asyncio.TaskGroup() as group:
        recorded = [group.create_task(witness.record(line)) for line in lines]
        for task in recorded:
            task.add_done_callback(lambda _: calls.append("answered"))

    await witness.close()
    assert calls[0] == "write" and calls.index("fsync") < calls.index("answered")
    assert 1 <= calls.count("fsync") <= 3
    assert read_witness(tmp_path / "witness.ndjson") == lines


async def test_normal_webhooks_are_sometimes_early_sometimes_twice_and_mostly_neither(
    tmp_path: Path, receiver: WebhookReceiver, soon: datetime
) -> None:
    tokens = [f"token-{number}" for number in range(16)]
    async with running(tmp_path / "providers", "--profile", "normal") as bench:
        client = RenderClient(bench.base_url, secrets=[SECRET])
        webhook = {"url": receiver.url, "secret": SECRET}
        for token in tokens:
            await client.submit({**REQUESTS["render"], "webhook": webhook}, token, soon)
        webhooks = {job["token"]: job["webhook"] for job in await bench.control("GET", "jobs")}
        await client.close()

    early = {token for token, webhook in webhooks.items() if webhook.get("early")}
    twice = {token for token, webhook in webhooks.items() if webhook.get("copies") == 2}
    assert early and twice and not early & twice and len(early | twice) < len(tokens)


@pytest.mark.parametrize("style", list(REQUESTS))
async def test_an_amnesiac_provider_makes_reconcile_impossible(
    style: str, bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    client = getattr(clients, style)
    await client.submit(REQUESTS[style], bench.token(), soon)
    assert isinstance(await client.reconcile(bench.token()), Found)

    await bench.control("POST", "mode", {"amnesiac": [style]})

    assert isinstance(await client.reconcile(bench.token()), Impossible)


async def test_the_amnesiac_profile_offers_no_look_up_and_still_works(tmp_path: Path, soon: datetime) -> None:
    async with running(tmp_path / "providers", "--profile", "amnesiac") as bench:
        client = ClipsClient(bench.base_url)

        accepted = await client.submit(REQUESTS["clips"], "t-1", soon)
        await bench.wait(token="t-1", state="succeeded")

        assert isinstance(await client.reconcile("t-1"), Impossible)
        assert isinstance(accepted, Accepted) and isinstance(await client.poll(accepted.ref), Succeeded)
        await client.close()


async def test_each_content_fails_once_at_its_own_time_and_succeeds_when_repeated(
    bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("fail", style="stills", seconds=10.0, spread=True, once_per_content=True)
    shots = [{"shot": {**SHOT, "seed": seed}} for seed in range(12)]
    first = [await clients.stills.submit(shot, bench.token(f"{n}-1"), soon) for n, shot in enumerate(shots)]
    for number in range(len(shots)):
        await bench.wait(token=bench.token(f"{number}-1"), state="failed")

    second = [await clients.stills.submit(shot, bench.token(f"{n}-2"), soon) for n, shot in enumerate(shots)]

    for number in range(len(shots)):
        await bench.wait(token=bench.token(f"{number}-2"), state="succeeded")
    assert all(isinstance(outcome, Accepted) for outcome in first + second)
    verdict = judge(bench.witness(), group_of=lambda token: token.rpartition("-")[0])
    assert verdict.accepted == 24 and set(verdict.repeated.values()) == {2}
    assert verdict.open_jobs_max["stills"] <= 12


async def test_rules_survive_a_kill(own_bench: ProviderBench, own_clients: Any, soon: datetime) -> None:
    await own_bench.order("reject", error="auth", style="clips", nth=[2])
    assert isinstance(await own_clients.clips.submit(REQUESTS["clips"], "t-1", soon), Accepted)

    await own_bench.kill()
    await own_bench.start()

    assert isinstance(await own_clients.clips.submit(REQUESTS["clips"], "t-2", soon), Rejected)


async def test_a_client_that_hangs_up_does_not_stop_the_work(
    bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("stall", style="music")
    submit = asyncio.create_task(clients.music.submit(REQUESTS["music"], bench.token(), soon))
    await bench.wait(style="music", accepted=1)
    submit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submit

    await bench.release(bench.token())

    await bench.wait(style="music", token=bench.token(), state="succeeded")
    assert isinstance(await clients.music.reconcile(bench.token()), Found)


async def test_a_second_program_on_the_same_data_says_who_holds_it(own_bench: ProviderBench) -> None:
    assert own_bench.running is not None
    refused = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "videoads.providers.synthetic", "--data", str(own_bench.data)],
        env={**os.environ, "PYTHONPATH": str(SERVICE)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert refused.returncode == 1
    assert f"is used by process {own_bench.running.pid}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert await start_providers(own_bench.data) == own_bench.running


async def test_it_stops_when_told_and_goes_on_with_open_jobs_when_started_again(
    own_bench: ProviderBench, own_clients: Any, soon: datetime
) -> None:
    await own_bench.order("stall", style="clips")
    await own_clients.clips.submit(REQUESTS["clips"], "t-1", soon)
    assert own_bench.running is not None
    watcher = os.pidfd_open(own_bench.running.pid)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().add_reader(watcher, lambda: gone.done() or gone.set_result(None))

    await own_bench.control("POST", "stop")

    await asyncio.wait_for(gone, 20)
    asyncio.get_running_loop().remove_reader(watcher)
    os.close(watcher)
    assert await find_providers(own_bench.data) is None
    await own_bench.start()
    await own_bench.release("t-1")
    await own_bench.wait(token="t-1", state="succeeded")


async def test_it_ends_with_the_process_it_was_told_to_watch(tmp_path: Path) -> None:
    watched = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE
    )
    async with running(tmp_path / "providers", "--parent-pid", str(watched.pid)) as bench:
        assert bench.running is not None
        watcher = os.pidfd_open(bench.running.pid)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(watcher, lambda: gone.done() or gone.set_result(None))

        await watched.communicate(b"\n")

        await asyncio.wait_for(gone, 20)
        asyncio.get_running_loop().remove_reader(watcher)
        os.close(watcher)


async def test_it_leads_a_session_of_its_own(bench: ProviderBench) -> None:
    assert bench.running is not None
    assert os.getsid(bench.running.pid) != os.getsid(0)
    assert os.getpgid(bench.running.pid) != os.getpgid(0)


def test_the_program_imports_nothing_of_longtake_and_no_client() -> None:
    probe = (
        "import sys, videoads.providers.synthetic.__main__;"
        "print([m for m in sys.modules if m.split('.')[0] == 'longtake' or m in "
        "('videoads.providers.' + c for c in ('clips', 'held', 'render', 'webhooks', 'contract', 'exchange'))])"
    )
    seen = subprocess.run(
        [sys.executable, "-c", probe],
        env={**os.environ, "PYTHONPATH": str(SERVICE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert seen.stdout.strip() == "[]"


@promise("T18")
async def test_the_providers_own_count_of_open_jobs_is_in_every_witness_line(
    own_bench: ProviderBench, own_clients: Any, soon: datetime
) -> None:
    await own_bench.order("stall", style="clips")
    for number in range(3):
        await own_clients.clips.submit(REQUESTS["clips"], f"t-{number}", soon)

    creates = [line.open_jobs for line in own_bench.witness() if line.request == "create"]

    assert creates == [1, 2, 3]
    await own_bench.release("*")


async def test_held_sound_is_completed_when_its_stall_is_released(
    bench: ProviderBench, clients: Any, soon: datetime
) -> None:
    await bench.order("stall", style="voice")
    async with asyncio.TaskGroup() as group:
        submit = group.create_task(clients.voice.submit(REQUESTS["voice"], bench.token(), soon))
        await bench.wait(style="voice", open_jobs=1)
        assert not submit.done()
        await bench.release(bench.token())
    assert isinstance(submit.result(), Completed)
