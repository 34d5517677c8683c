"""A laptop pointed at production: every way in asks for the name that is in the store before it writes anything (G50, G51)."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from kit.promises import promise
from kit.runtimes import noop_app, runtime, start_run
from longtake.cli.main import run_command
from longtake.errors import ConfigurationError

ROOT = Path(__file__).parents[3]
LINES = {
    "history": ("history", "verify"),
    "keys": ("keys", "create", "--tenant", "acme", "--actor", "a", "--fund", "5"),
    "projection": ("projection", "rebuild"),
    "migrate": ("migrate",),
    "migrate by another name": ("migrate", "--environment", "staging"),
}
REFUSAL = "this database belongs to the environment 'production'"


@pytest.fixture
async def production(database, monkeypatch, tmp_path, broker):
    """A store of that name, and somebody whose settings lead to it by mistake."""
    connection = await database.connect()
    await connection.execute("update longtake.store set environment = 'production'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    monkeypatch.setenv("LONGTAKE_NATS_URL", broker.url)
    monkeypatch.setenv("LONGTAKE_NATS_TOKEN", broker.token)
    monkeypatch.delenv("LONGTAKE_ENVIRONMENT", raising=False)
    return connection


async def _everything(connection) -> dict[str, str]:
    """A digest of each table."""
    names = await connection.fetch(
        "select table_name from information_schema.tables where table_schema = 'longtake' and table_type = 'BASE TABLE'"
    )
    return {
        row["table_name"]: await connection.fetchval(
            f"select md5(coalesce(string_agg(t::text, ',' order by t::text), '')) from longtake.{row['table_name']} t"
        )
        for row in names
    }


def _refused(code: int, err: str) -> None:
    assert code == 1
    assert REFUSAL in " ".join(err.split()) and "LONGTAKE_ENVIRONMENT=production" in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize("name", LINES)
@promise("G51")
async def test_a_line_of_another_environment_is_refused_and_writes_nothing(production, capsys, name):
    before = await _everything(production)

    code = await asyncio.to_thread(run_command, list(LINES[name]))

    _refused(code, capsys.readouterr().err)
    assert await _everything(production) == before


@pytest.mark.parametrize("command", ["up", "serve"])
@promise("G51")
async def test_a_service_of_another_environment_does_not_begin(production, tmp_path, command):
    before = await _everything(production)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "longtake", command, "--port", "0", "--data-dir", str(tmp_path / "data")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "service"), "LONGTAKE_APP": "videoads:app"},
    )
    _, err = await asyncio.wait_for(process.communicate(), 60)

    assert process.returncode is not None
    _refused(process.returncode, err.decode())
    assert await _everything(production) == before


@promise("G51", "G50")
async def test_a_worker_of_another_environment_claims_nothing_and_wakes_nobody(
    production, database, broker, tmp_path
):
    """G51. A developer's process shared the database of production, and its wake-ups started production's work."""
    named = {"environment": "production"}
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",), **named) as process:
        await start_run(process, "theirs")
        await process.hints.stop()
        client = (await broker.connect()).jetstream()
        before = await _everything(production)
        standing = {
            name: (await client.stream_info(name)).state.last_seq for name in ("LT_EFFECT", "LT_CALLBACK")
        }
        with pytest.raises(ConfigurationError, match=REFUSAL):
            async with runtime(database, broker, tmp_path / "laptop", noop_app()):
                """It never begins."""
        after = {
            name: (await client.stream_info(name)).state.last_seq for name in ("LT_EFFECT", "LT_CALLBACK")
        }
        assert await production.fetchval("select count(*) from longtake.effect_claims") == 0
        changed = {name for name, digest in (await _everything(production)).items() if digest != before[name]}

    assert changed <= {"incarnations"}, "nobody but the living process says that it lives"
    assert after == standing


async def test_half_of_a_shared_environment_is_refused(production, monkeypatch, capsys):
    """The store of many with a broker of one's own: hints would go to nobody."""
    monkeypatch.setenv("LONGTAKE_ENVIRONMENT", "production")
    monkeypatch.delenv("LONGTAKE_NATS_URL")

    code = await asyncio.to_thread(run_command, ["up"])

    told = capsys.readouterr().err
    assert code == 1 and "set both LONGTAKE_POSTGRES_URL and LONGTAKE_NATS_URL" in " ".join(told.split())


async def test_the_right_name_opens(production, monkeypatch, capsys):
    """The other side: what was refused above is done, and the digest sees it."""
    monkeypatch.setenv("LONGTAKE_ENVIRONMENT", "production")
    before = await _everything(production)

    code = await asyncio.to_thread(run_command, list(LINES["keys"]))

    assert (code, capsys.readouterr().err) == (0, "")
    assert await _everything(production) != before


async def test_a_store_is_named_once(bare_database, broker, tmp_path, monkeypatch, capsys):
    """A new one by whoever makes it; one in use only when somebody asks for it; and then never again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", bare_database.dsn)
    monkeypatch.delenv("LONGTAKE_ENVIRONMENT", raising=False)

    async def migrated(*arguments: str) -> int:
        return await asyncio.to_thread(run_command, ["migrate", *arguments])

    assert await migrated() == 0
    connection = await bare_database.connect()
    async with runtime(bare_database, broker, tmp_path / "one", noop_app(), roles=("api",)) as process:
        await start_run(process, "used")
    monkeypatch.setenv("LONGTAKE_ENVIRONMENT", "production")
    assert await migrated() == 1
    assert "belongs to the environment 'default'" in " ".join(capsys.readouterr().err.split())
    assert await connection.fetchval("select environment from longtake.store") == "default"

    assert await migrated("--environment", "production") == 0
    assert await connection.fetchval("select environment from longtake.store") == "production"
    assert await migrated() == 0
    assert await migrated("--environment", "staging") == 1
    assert await connection.fetchval("select environment from longtake.store") == "production"
