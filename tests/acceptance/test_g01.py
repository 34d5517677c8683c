"""G01, the incident that this service exists for: sixty-one paid jobs in one command, each of which fails once.

The service is a process of its own, the providers are another, the client is gone before it has read an answer. The
same again with a kill -9 in the middle.
"""

import asyncio
import time
import uuid
from collections import Counter
from contextlib import asynccontextmanager

import msgspec
import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.providers import ProviderBench
from longtake.cli.demo_crash import ENVIRONMENT
from longtake.cli.demo_service import DemoService
from longtake.cli.demo_verdict import creates_by_step
from longtake.cli.history import auditing
from longtake.cli.place import settings_of
from longtake.cli.up import DEV_ACTOR, DEV_TENANT
from longtake.contracts.ids import run_id_for
from videoads.providers.witness import accepted_creates, judge

SCENES = 30
JOBS = 2 * SCENES + 1
MAX_PARALLEL = 8
END_SECONDS_MAX = 85.0
ENDS = frozenset({"step_succeeded", "attempt_failed", "step_failed"})

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("whole-service")]


@asynccontextmanager
async def film_service(folder):
    """A running service and ill-tempered providers: every content fails once, each at its own time."""
    bench = ProviderBench(folder / "providers", arguments=("--size", "tiny", "--speed", "2"), real_media=True)
    await bench.start()
    await bench.order("fail", seconds=10, spread=True, once_per_content=True)
    service = DemoService(
        folder / "data",
        app="videoads:app",
        environment={**ENVIRONMENT, "VIDEOADS_PROVIDERS_DIR": str(folder / "providers")},
    )
    try:
        await service.start()
        yield service, bench
    finally:
        await service.stop()
        await bench.stop()


async def post_and_hang_up(service, client, command_id):
    """Send the command over a bare socket, never read a byte, and hang up once somebody else can see the run.

    Returns the run's id.
    """
    body = msgspec.json.encode(
        {
            "kind": "generation",
            "project": "film",
            "payload": {"workflow": "film.takes@1", "input": {"scenes": SCENES}},
        }
    )
    head = (
        f"POST /v1/commands HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {service.key}\r\nIdempotency-Key: {command_id}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    _, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(head.encode() + body)
    await writer.drain()
    run_id = str(run_id_for(tenant=DEV_TENANT, actor=DEV_ACTOR, client_command_id=command_id))

    async def seen():
        return any(run.run_id == run_id for run in (await client.runs()).runs)

    await eventually(seen, "the run of the client that does not read")
    # With the answer unread in its buffer this is a reset, not a farewell.
    writer.transport.abort()
    return run_id


def most_at_once(events):
    """The largest number of attempts between their beginning and their end, as the history tells it."""
    open_, most = set(), 0
    for event in events:
        fields = event.fields
        if event.type == "steps_scheduled":
            open_ |= {scheduled["step"] for scheduled in fields["steps"]}
        elif event.type in ENDS:
            open_.discard(fields["step"])
        most = max(most, len(open_))
    return most


async def film_is_whole(service, client, bench, run_id):
    """Everything that was bought is there, and nothing was bought for nothing."""
    summary = await client.wait(run_id, seconds=END_SECONDS_MAX)
    assert (summary.status, summary.progress.completed) == ("completed", JOBS)
    artifacts = await client.artifacts(run_id)
    assert len({artifact.step for artifact in artifacts}) == len(artifacts) == JOBS

    steps = await client.steps(run_id)
    creates = creates_by_step(run_id, [step.key for step in steps], accepted_creates(bench.witness()))
    assert dict.fromkeys((step.key for step in steps), 2) == dict(creates), (
        "each job: once in vain, once well"
    )

    verdict = judge(bench.witness())
    assert verdict.repeated == {}, "no attempt was bought twice"
    assert max(verdict.open_jobs_max.values()) <= MAX_PARALLEL, verdict.open_jobs_max
    async with auditing(settings_of(data_dir=service.data_dir)) as audit:
        assert await audit.verify(uuid.UUID(run_id)) == summary.revision
        assert await audit.prove(uuid.UUID(run_id), DEV_TENANT) == []
    ledger = await client.ledger(run_id)
    assert [entry.kind for entry in ledger.entries] == ["charge"]
    return steps


@promise("G01", "G53")
async def test_sixty_one_jobs_of_one_command_each_fail_once_and_end_well(tmp_path, capsys):
    """None touches another's: every step has exactly two attempts, and the client had gone before the answer."""
    async with film_service(tmp_path) as (service, bench), service.client() as client:
        begun = time.monotonic()
        run_id = await post_and_hang_up(service, client, "film-1")
        acceptance = time.monotonic() - begun

        steps = await film_is_whole(service, client, bench, run_id)

        assert Counter(step.attempt for step in steps) == {2: JOBS}
        history = await client.history(run_id)
        failures = [event.fields["step"] for event in history if "failed" in event.type]
        assert sorted(failures) == sorted(step.key for step in steps)
        assert most_at_once(history) == MAX_PARALLEL, "as many as allowed, and never more"
        with capsys.disabled():
            print(
                f"\n  61 jobs: accepted within {acceptance * 1000:.0f} ms, whole after {time.monotonic() - begun:.1f} s"
            )


@promise("G01", "G53")
async def test_the_same_film_is_whole_after_a_kill_in_the_middle(tmp_path, capsys):
    """kill -9 with a third of it done: nothing is bought twice, nothing is lost, one charge."""
    async with film_service(tmp_path) as (service, bench), service.client() as client:
        begun = time.monotonic()
        run_id = await post_and_hang_up(service, client, "film-2")

        async def a_third_is_done():
            return (await client.summary(run_id)).progress.completed >= JOBS // 3

        await eventually(a_third_is_done, "a third of the film", 60.0)
        await service.kill()
        away = await service.start()

        steps = await film_is_whole(service, client, bench, run_id)

        # A request that the kill caught before its first byte left is a lost attempt that nobody bought.
        assert {step.attempt for step in steps} <= {2, 3}
        with capsys.disabled():
            print(
                f"\n  61 jobs and a kill: back after {away:.1f} s, whole after {time.monotonic() - begun:.1f} s"
            )
