"""No broker at all (G54, G10): workers and dispatchers find their work in Postgres, promptly, and nobody asks for NATS."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Self

import pytest

from kit.bench.cluster import Bench
from kit.bench.workload import Workload
from kit.counting import CountingPool
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import FUNDS, PRINCIPAL, ended, noop_app, runtime, start_run
from kit.up_app import GATE_VARIABLE
from longtake.client import Client
from longtake.embedded import running_pids
from longtake.postgres.pool import open_pool
from longtake.testing.checking import Verdict, judge, read_history, read_witness

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("transport-off")]

ROOT = Path(__file__).parents[2]
PROMPT_SHARE = 0.5
"""Of the longest sleep of an idle role: work that waits longer than this was found by chance, not because somebody rang."""
IDLE_SECONDS = 30.0


class Ear:
    """Where nats-server would be: counts who comes."""

    token = "unused"

    async def __aenter__(self) -> Self:
        self.callers = 0
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _hear(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.callers += 1
        writer.close()


@promise("G54", "G10")
async def test_a_run_ends_promptly_and_nobody_asks_for_a_broker(database, tmp_path):
    async with (
        Ear() as ear,
        runtime(
            database, ear, tmp_path, noop_app(), transport="off", idle_seconds=IDLE_SECONDS, lease_seconds=30
        ) as process,
    ):
        began = time.monotonic()
        for number in range(3):
            receipt = await start_run(process, f"quiet-{number}", input_={"steps": 5})
            summary = await ended(process, receipt.run_id, IDLE_SECONDS * PROMPT_SHARE)
            assert summary["status"] == "completed"
        print(f"three runs of five steps in a row without a broker: {time.monotonic() - began:.2f} s")
        assert ear.callers == 0


async def test_without_the_bells_work_waits_for_the_longest_sleep(database, tmp_path, monkeypatch):
    """The planted fault of the test above: the same service, deaf."""
    monkeypatch.setattr("longtake.polling.transport.BellPublisher.publish", _says_nothing)
    async with (
        Ear() as ear,
        runtime(
            database, ear, tmp_path, noop_app(), transport="off", idle_seconds=IDLE_SECONDS, lease_seconds=30
        ) as process,
    ):
        receipt = await start_run(process, "deaf", input_={"steps": 5})
        with pytest.raises(AssertionError, match="not within"):
            await ended(process, receipt.run_id, 3.0)


async def _says_nothing(self, messages):
    return []


async def test_with_a_broker_the_ear_would_be_asked(database, tmp_path):
    async with (
        Ear() as ear,
        runtime(database, ear, tmp_path, noop_app()),
    ):
        await eventually(lambda: ear.callers, "somebody to ask for NATS")


class Counted(CountingPool):
    """A pool of a process that counts its statements."""

    async def close(self) -> None:
        await self._pool.close()

    def terminate(self) -> None:
        self._pool.terminate()


async def test_an_idle_service_lets_postgres_rest(database, tmp_path, monkeypatch):
    """From one announcement of an idle process to the next but one: those of its announcements, its looks, and few more."""
    pools: list[Counted] = []

    async def opened(*arguments: Any, **options: Any) -> Counted:
        pools.append(Counted(await open_pool(*arguments, **options)))
        return pools[-1]

    monkeypatch.setattr("longtake.bootstrap.open_pool", opened)
    async with (
        Ear() as ear,
        runtime(
            database, ear, tmp_path, noop_app(), transport="off", idle_seconds=IDLE_SECONDS, lease_seconds=30
        ) as process,
    ):
        receipt = await start_run(process, "once", input_={"steps": 1})
        await ended(process, receipt.run_id)
        announce, beats = process.sweep.announce, []

        async def noted(**said: Any) -> int:
            beats.append(sum(pool.statements for pool in pools))
            return await announce(**said)

        monkeypatch.setattr(process.sweep, "announce", noted)
        await eventually(lambda: len(beats) == 4, "four announcements", 60)
    spent = beats[3] - beats[1]
    looks = len(noop_app().pools) + 4
    print(f"{spent} statements of an idle service between two announcements, {looks} subscriptions")
    # Each subscription looks when a fetch of five seconds begins, and once more when that ends; others sleep.
    assert spent <= 2 * (2 + 3 * looks), "two announcements, and the looks of each subscription"


async def _judged(bench: Bench) -> Verdict:
    verdict = judge(
        read_history(bench.history_dir),
        await bench.dump(),
        read_witness(bench.provider.witness),
        funded={(PRINCIPAL.tenant, "main"): FUNDS},
    )
    print(verdict.text())
    return verdict


@promise("G54")
async def test_switching_off_and_on_with_runs_in_flight_loses_nothing(tmp_path):
    """On, off and on again, a kill -9 in each time, one role switched after the other: for a while both live together."""
    runs = 60
    async with Bench.open(tmp_path / "bench", seed=1) as bench:
        workload = Workload(bench, runs=runs, shots=1, cuts=2)
        playing = asyncio.create_task(workload.play())
        for transport in ("off", "jetstream"):
            await eventually(
                lambda: sum(len(session.runs) for session in workload.sessions) > 5, "runs in flight", 60
            )
            bench.settings["transport"] = transport
            for half in ("-1", "-2"):
                # While half of the roles are switched the others are not: both live together.
                await asyncio.gather(
                    *(role.restart() for name, role in bench.roles.items() if name.endswith(half))
                )
            await bench.roles["worker-1"].kill()
            await bench.roles["dispatcher-1"].kill()
        workload.released.set()
        await asyncio.wait_for(playing, 120)
        await bench.settled(60)
        verdict = await _judged(bench)
        async with bench.connected() as connection:
            await eventually(lambda: _all_copied(connection), "the commands of that time in their stream", 60)
    assert verdict.ok, verdict.text()
    assert verdict.counters["runs"] == runs


async def _all_copied(connection) -> bool:
    left = "select count(*) from longtake.commands where copied_at is null"
    return not await connection.fetchval(left)


async def test_up_starts_no_nats_server(tmp_path):
    data_dir, gate = tmp_path / "data", tmp_path / "gate"
    gate.touch()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LONGTAKE_")}
    paths = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests")])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "longtake", "up", "--json", "--port", "0", "--app", "kit.up_app:app"),
        *("--transport", "off", "--data-dir", str(data_dir)),
        stdout=asyncio.subprocess.PIPE,
        env={**kept, "PYTHONPATH": paths, GATE_VARIABLE: str(gate)},
        cwd=tmp_path,
    )
    try:
        assert process.stdout is not None
        facts = json.loads(await asyncio.wait_for(process.stdout.readline(), 90))
        async with Client(facts["url"], Path(facts["key_file"]).read_text().strip()) as client:
            health = await client.ready()
            assert health.nats == "off"
            run = await client.start("gate@1", {}, project="p1", command_id="no-broker")
            assert (await client.wait(run.run_id, seconds=60)).status == "completed"
        assert running_pids(data_dir).nats is None
        assert not (data_dir / "nats").exists()
    finally:
        process.terminate()
        await process.wait()
