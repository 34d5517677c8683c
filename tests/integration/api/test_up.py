"""`longtake up` as people run it: a process of its own, killed servers, Ctrl-C, a second one, a dead parent."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from kit.probe import eventually
from kit.shop import assert_problem
from kit.up_app import GATE_VARIABLE
from longtake.client import Client
from longtake.embedded import running_pids
from longtake.embedded.process import alive

ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]


def _command(data_dir: Path, *more: str) -> list[str]:
    program = [sys.executable, "-m", "longtake", "up", "--json", "--port", "0", "--app", "kit.up_app:app"]
    return [*program, "--data-dir", str(data_dir), *more]


def _environ(data_dir: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LONGTAKE_")}
    paths = f"{ROOT / 'service'}{os.pathsep}{ROOT / 'tests'}"
    return {**kept, "PYTHONPATH": paths, GATE_VARIABLE: str(data_dir.parent / "gate")}


@asynccontextmanager
async def _up(
    data_dir: Path, prefix: tuple[str, ...] = ()
) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict]]:
    """A running `up` with what it said of itself; killed at the end if need be."""
    process = await asyncio.create_subprocess_exec(
        *prefix,
        *_command(data_dir),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environ(data_dir),
        cwd=data_dir.parent,
    )
    facts: dict = {}
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 90)
        assert line, (await process.stderr.read()).decode()
        facts = json.loads(line)
        yield process, facts
    finally:
        for pid in {process.pid, facts.get("pid", process.pid)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await process.wait()
        await eventually(lambda: not _servers_alive(data_dir), "the servers to follow their parent", 30)


def _servers_alive(data_dir: Path) -> list[int]:
    pids = running_pids(data_dir)
    return [pid for pid in (pids.postgres, pids.nats) if pid is not None and alive(pid)]


def _client(facts: dict) -> Client:
    return Client(facts["url"], Path(facts["key_file"]).read_text())


async def test_a_run_survives_the_death_of_both_servers_and_ctrl_c_leaves_nothing(tmp_path):
    """kill -9 of Postgres, then of nats-server: 503 with Retry-After meanwhile, the run goes on, no traceback."""
    data_dir = tmp_path / "data"
    async with _up(data_dir) as (process, facts), _client(facts) as client:
        assert Path(facts["key_file"]).stat().st_mode & 0o777 == 0o600
        started = await client.start("gate@1", {}, project="p1")
        await eventually(lambda: _holds(client, started.run_id), "the worker at the gate", 30)

        killed = running_pids(data_dir)
        os.kill(killed.postgres, signal.SIGKILL)
        refusal = await eventually(lambda: _refusal(facts), "a 503", 20)
        assert_problem(refusal, 503, "unavailable")
        assert int(refusal.headers["retry-after"]) >= 1
        assert (await client.ready(seconds=30)).postgres == "up"
        assert running_pids(data_dir).postgres != killed.postgres

        os.kill(killed.nats, signal.SIGKILL)
        await eventually(
            lambda: _nats_is_up(client, running_pids(data_dir).nats != killed.nats), "NATS again", 30
        )
        (tmp_path / "gate").touch()
        summary = await client.wait(started.run_id, seconds=60)
        assert summary.status == "completed"
        assert summary.progress.completed == 3

        process.send_signal(signal.SIGINT)
        said, complained = await asyncio.wait_for(process.communicate(), 40)
        assert process.returncode == 0, (said, complained)
        assert _servers_alive(data_dir) == []
        assert b"Traceback" not in complained
        assert not _tracebacks(data_dir)


async def test_a_second_up_says_who_holds_the_data_and_a_dead_parent_takes_everything_along(tmp_path):
    """The one who started it is SIGKILLed: nobody is told, and yet nothing stays behind."""
    data_dir = tmp_path / "data"
    shell = ("/bin/sh", "-c", '"$@" & wait', "sh")
    async with _up(data_dir, prefix=shell) as (parent, facts):
        second = await asyncio.create_subprocess_exec(
            *_command(data_dir),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environ(data_dir),
        )
        _, complained = await asyncio.wait_for(second.communicate(), 60)
        assert second.returncode == 1
        message = json.loads(complained.splitlines()[-1])["error"]
        assert f"in use by process {facts['pid']}" in message
        assert b"Traceback" not in complained

        parent.kill()
        await eventually(lambda: not alive(facts["pid"]), "the end of the orphan", 30)
        assert _servers_alive(data_dir) == []
        assert not (data_dir / "up.json").exists()


async def _holds(client: Client, run_id: str) -> bool:
    return any(step.key == "gate" and step.status == "running" for step in await client.steps(run_id))


async def _refusal(facts: dict) -> httpx2.Response | None:
    headers = {"Authorization": f"Bearer {Path(facts['key_file']).read_text()}"}
    async with httpx2.AsyncClient(
        base_url=facts["url"], trust_env=False, timeout=20, headers=headers
    ) as http:
        response = await http.get("/v1/runs")
    assert response.status_code in (200, 503), response.text
    return response if response.status_code == 503 else None


async def _nats_is_up(client: Client, restarted: bool) -> bool:
    return restarted and (await client.ready()).nats == "up"


def _tracebacks(data_dir: Path) -> list[str]:
    text = (data_dir / "log" / "longtake.log").read_text()
    return [line for line in text.splitlines() if '"exception"' in line or "Traceback" in line]
