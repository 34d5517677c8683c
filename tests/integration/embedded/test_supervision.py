"""Servers that die come back at the same address; a parent that dies takes them along; nothing is left behind."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import asyncpg
import nats
import pytest
import structlog

from kit.holder import holder
from kit.probe import eventually
from longtake.embedded import THROWAWAY, DataDirBusy, EmbeddedServers, running_pids
from longtake.embedded.process import alive, die_with_parent, spawn

RECOVERY_SECONDS_MAX = 5.0


async def _select_one(servers: EmbeddedServers) -> bool:
    try:
        connection = await asyncpg.connect(**servers.postgres_connect_kwargs())
    except (OSError, asyncpg.PostgresError):
        return False
    try:
        return bool(await connection.fetchval("select 1") == 1)
    finally:
        await connection.close()


async def test_a_killed_postgres_is_back_within_seconds_with_its_data(data_dir: Path) -> None:
    """kill -9 of the postmaster: same address, committed rows there, one warning each way, no traceback."""
    with structlog.testing.capture_logs() as logs:
        async with EmbeddedServers(data_dir) as servers:
            address = servers.postgres_dsn
            connection = await asyncpg.connect(address)
            await connection.execute("create table kept (n int); insert into kept values (7)")
            before = servers.pids.postgres
            assert before is not None

            os.kill(before, signal.SIGKILL)
            await eventually(lambda: servers.restarts["postgres"] == 1, "a restart", RECOVERY_SECONDS_MAX)
            await eventually(lambda: _select_one(servers), "postgres answers", RECOVERY_SECONDS_MAX)

            await eventually(lambda: logs[-1]["event"] == "longtake.embedded_server_restarted", "it is said")
            assert address == servers.postgres_dsn
            assert before != servers.pids.postgres
            again = await asyncpg.connect(address)
            assert 7 == await again.fetchval("select n from kept")
            await again.close()
            connection.terminate()

    said = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
    assert ["longtake.embedded_server_died", "longtake.embedded_server_restarted"] == said
    assert not [entry for entry in logs if "exc_info" in entry or entry["log_level"] == "error"]


async def test_a_killed_nats_is_back_at_its_port_with_its_streams(data_dir: Path) -> None:
    """kill -9 of nats-server: same port and token, stored messages there."""
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        address, before = servers.nats_url, servers.pids.nats
        assert before is not None
        client = await nats.connect(**servers.nats_connect_kwargs())
        await client.jetstream().add_stream(name="KEPT", subjects=["kept"])
        await client.jetstream().publish("kept", b"still here")
        await client.close()

        os.kill(before, signal.SIGKILL)
        await eventually(lambda: servers.pids.nats not in (None, before), "a restart", RECOVERY_SECONDS_MAX)

        assert address == servers.nats_url
        client = await nats.connect(
            **servers.nats_connect_kwargs(),
            allow_reconnect=True,
            max_reconnect_attempts=200,
            reconnect_time_wait=0.02,
        )
        info = await client.jetstream().stream_info("KEPT")
        await client.close()
        assert 1 == info.state.messages


async def test_a_server_killed_again_and_again_comes_back_each_time(data_dir: Path) -> None:
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        for turn in (1, 2, 3):
            pid = servers.pids.postgres
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await eventually(lambda turn=turn: servers.restarts["postgres"] == turn, f"restart {turn}")
            assert await eventually(lambda: _select_one(servers), "postgres answers")


async def test_no_server_outlives_a_parent_that_is_killed(data_dir: Path) -> None:
    """The parent gets SIGKILL and can clean nothing; the kernel tells the servers."""
    async with holder(data_dir) as (process, facts):
        pids = (facts["postgres"], facts["nats"])
        assert all(alive(pid) for pid in pids)

        process.kill()
        await process.wait()

        await eventually(lambda: not any(alive(pid) for pid in pids), "both servers gone", 10)


async def test_without_the_kernels_help_a_child_does_outlive_its_parent(tmp_path: Path) -> None:
    """The broken variant: what the test above would see if `die_with_parent` did nothing."""
    assert die_with_parent(), "this test is about Linux"
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['tail', '-f', '/dev/null'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    try:
        assert alive(child)
    finally:
        os.kill(child, signal.SIGKILL)


async def test_the_next_start_after_a_kill_finds_the_data_at_once(data_dir: Path) -> None:
    """Stale lock text, pid files and sockets of a killed holder are healed without being asked."""
    async with holder(data_dir) as (process, facts):
        process.kill()
        await process.wait()

    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert await _select_one(servers)
        assert facts["nats_url"] == servers.nats_url


async def test_a_second_holder_is_refused_and_told_who_holds_it(data_dir: Path) -> None:
    async with holder(data_dir) as (process, _):
        with pytest.raises(DataDirBusy) as refusal:
            await EmbeddedServers(data_dir, profile=THROWAWAY).start()

        assert process.pid == refusal.value.pid
        assert str(process.pid) in str(refusal.value)
        assert "holder.py" in str(refusal.value)


async def test_the_refused_one_disturbs_nobody_and_gets_in_later(data_dir: Path) -> None:
    second = EmbeddedServers(data_dir, profile=THROWAWAY)
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as first:
        with pytest.raises(DataDirBusy):
            await second.start()
        assert await _select_one(first)

    async with second:
        assert await _select_one(second)


async def test_an_orphan_that_still_runs_is_ended_before_the_next_start(data_dir: Path) -> None:
    """Where the kernel cannot help (macOS), servers of a killed parent may live on; the lock says they are nobody's."""
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert servers._postgres is not None and servers._nats is not None
        commands = [(servers._postgres.command(), "pg.log"), (servers._nats.command(), "nats.log")]
    orphans = [await spawn(command, data_dir / name) for command, name in commands]
    await eventually(
        lambda: (
            (running_pids(data_dir).postgres, running_pids(data_dir).nats) == tuple(o.pid for o in orphans)
        ),
        "both orphans wrote their pid files",
    )

    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert await _select_one(servers)
        assert not {orphan.pid for orphan in orphans} & {servers.pids.postgres, servers.pids.nats}
    await asyncio.wait_for(asyncio.gather(*(orphan.wait() for orphan in orphans)), 10)


async def test_a_pid_file_that_names_a_stranger_is_not_believed(data_dir: Path) -> None:
    """After a restart of a container, the number in a stale pid file belongs to somebody else: to us, here."""
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert servers._postgres is not None
        data = servers._postgres.data
    for path in (data / "postmaster.pid", data_dir / "postgres" / "run" / ".s.PGSQL.5432.lock"):
        path.write_text(f"{os.getpid()}\n{data}\n0\n5432\n\n\n\n")
    (data_dir / "nats" / "nats.pid").write_text(str(os.getpid()))

    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert await _select_one(servers)


async def test_stopping_twice_or_before_a_start_changes_nothing(data_dir: Path) -> None:
    servers = EmbeddedServers(data_dir, profile=THROWAWAY)
    await servers.stop()
    await servers.start()
    await servers.start()
    pids = servers.pids
    await servers.stop()
    await servers.stop()

    assert not any(alive(pid) for pid in (pids.postgres, pids.nats) if pid)


async def test_a_clean_stop_leaves_no_process_and_no_pid_file(data_dir: Path) -> None:
    async with holder(data_dir) as (process, facts):
        assert process.stdin is not None
        process.stdin.close()

        assert 0 == await asyncio.wait_for(process.wait(), 30)
        assert not alive(facts["postgres"]) and not alive(facts["nats"])
        assert running_pids(data_dir).postgres is None


async def test_a_start_that_is_cancelled_leaves_nothing_running(data_dir: Path) -> None:
    servers = EmbeddedServers(data_dir, profile=THROWAWAY)
    start = asyncio.create_task(servers.start())
    await eventually(lambda: any(vars(servers)["_keepers"]), "the start is under way")
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start

    async with EmbeddedServers(data_dir, profile=THROWAWAY) as again:
        assert await _select_one(again)
