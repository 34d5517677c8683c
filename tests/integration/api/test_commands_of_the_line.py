"""The command line against a running longtake: what people type, what they read, and how it ends."""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from kit.shop import FUNDS, Shop
from longtake.cli.main import run_command
from longtake.cli.up import DEV_ACCOUNT, DEV_CREDITS, DEV_TENANT, ensure_dev_key
from longtake.client import Client
from longtake.contracts.envelope import GENESIS
from longtake.contracts.principal import Principal

ROOT = Path(__file__).parents[3]


@pytest.fixture
def line(monkeypatch, tmp_path, capsys, database):
    """Run a command in a thread, as it brings a loop of its own; returns code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)

    async def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def _at(shop: Shop, monkeypatch) -> None:
    monkeypatch.setenv("LONGTAKE_URL", shop.url)
    monkeypatch.setenv("LONGTAKE_KEY", shop.http.headers["authorization"].removeprefix("Bearer "))


async def test_a_run_is_started_watched_listed_and_shown(shop, line, monkeypatch, tmp_path):
    _at(shop, monkeypatch)
    (tmp_path / "in.json").write_text("{}")
    start = ("run", "start", "clip@1", "--input", "in.json", "--project", "p1", "--id", "one")

    code, out, _ = await line(*start, "--watch")
    assert code == 0
    assert "step succeeded make" in out and "run completed" in out and "5 charged" in out
    code, out, _ = await line(*start, "--json")
    accepted = json.loads(out)
    assert (code, accepted["replayed"]) == (0, True)
    run_id = accepted["run_id"]

    code, out, _ = await line("run", "list")
    assert code == 0 and run_id in out
    code, out, _ = await line("run", "show", run_id, "--json")
    shown = json.loads(out)
    assert (shown["summary"]["status"], shown["steps"][0]["status"]) == ("completed", "succeeded")
    code, _, err = await line("run", "cancel", run_id)
    assert code == 1 and "does not offer this action" in err and "Traceback" not in err
    code, _, err = await line("run", "show", "00000000-0000-0000-0000-000000000001")
    assert code == 1 and "There is no run" in err


async def test_a_run_that_did_not_complete_ends_the_watch_with_a_code(shop, line, monkeypatch):
    _at(shop, monkeypatch)
    run_id = await shop.start("gated", "gate@1")

    code, out, _ = await line("run", "cancel", run_id, "--reason", "changed my mind", "--json")
    assert code == 0, out
    shop.app.gate.set()
    code, out, _ = await line("run", "watch", run_id, "--json")

    assert code == 1
    assert json.loads(out.splitlines()[-1])["status"] == "cancelled"


async def test_a_history_is_shown_and_exported_with_its_exact_bytes(shop, line, tmp_path):
    run_id = await shop.finished("told")

    code, out, _ = await line("history", "show", run_id)
    assert code == 0 and "run_accepted" in out and "run_completed" in out
    code, _, _ = await line("history", "export", run_id, "--out", str(tmp_path / "h.ndjson"))
    lines = [json.loads(text) for text in (tmp_path / "h.ndjson").read_text().splitlines()]

    assert code == 0
    assert [event["seq"] for event in lines] == list(range(1, len(lines) + 1))
    assert all(event["hash"] != GENESIS.hex() for event in lines)
    code, _, err = await line("history", "show", "nonsense")
    assert code == 1 and "there is no run 'nonsense'" in err


async def test_keys_are_made_listed_and_revoked(counter, line, monkeypatch):
    code, out, _ = await line("keys", "create", "--tenant", "new", "--actor", "ann", "--fund", "12", "--json")
    made = json.loads(out)
    assert code == 0
    assert await counter.process.keys.balance(tenant="new", account="main") == (12, 0)
    async with Client(counter.url, made["key"]) as client:
        assert (await client.runs()).runs == []

    code, out, _ = await line("keys", "list")
    assert code == 0 and made["key_id"] in out and made["key"] not in out
    assert (await line("keys", "revoke", made["key_id"]))[0] == 0
    assert (await line("keys", "revoke", made["key_id"]))[0] == 1
    assert await counter.process.keys.principal(made["key"]) is None


async def test_the_development_key_is_made_once_and_its_account_funded_once(counter, tmp_path):
    path, fresh = await ensure_dev_key(counter.process, tmp_path)
    again = await ensure_dev_key(counter.process, tmp_path)

    assert fresh == path.read_text() and again == (path, None)
    assert path.stat().st_mode & 0o777 == 0o600
    assert await counter.process.keys.principal(fresh) == Principal(tenant=DEV_TENANT, actor="dev")
    assert await counter.process.keys.balance(tenant=DEV_TENANT, account=DEV_ACCOUNT) == (DEV_CREDITS, 0)
    # A key of another database in the same place is replaced, and the account keeps what it has.
    path.write_text("lt_of_another")
    _, fresh = await ensure_dev_key(counter.process, tmp_path)
    assert fresh is not None
    assert await counter.process.keys.balance(tenant=DEV_TENANT, account=DEV_ACCOUNT) == (DEV_CREDITS, 0)


async def test_migrations_are_applied_once(bare_database, line, monkeypatch):
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", bare_database.dsn)
    code, _, err = await line("history", "verify")
    assert code == 1 and "longtake migrate" in err

    first = await line("migrate", "--json")
    second = await line("migrate", "--json")

    assert first[0] == second[0] == 0
    assert json.loads(first[1])["applied"] == json.loads(first[1])["standing"]
    assert json.loads(second[1])["applied"] == []


@pytest.mark.timeout(150)
async def test_roles_apart_in_three_processes_finish_a_run_and_end_on_sigterm(
    database, broker, line, tmp_path
):
    """The API, the engine and a worker know each other only through Postgres and NATS."""
    _, out, _ = await line(
        "keys", "create", "--tenant", "acme", "--actor", "a", "--fund", str(FUNDS), "--json"
    )
    key = json.loads(out)["key"]
    (tmp_path / "gate").touch()
    environ = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'service'}{os.pathsep}{ROOT / 'tests'}",
        "LONGTAKE_POSTGRES_URL": database.dsn,
        "LONGTAKE_NATS_URL": broker.url,
        "LONGTAKE_NATS_TOKEN": broker.token,
        "LONGTAKE_TEST_GATE": str(tmp_path / "gate"),
    }
    async with AsyncExitStack() as stack:
        processes = []
        for role in ("dispatcher,relay,sweeper", "worker", "api"):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "longtake", "serve", "--json", "--role", role),
                *("--app", "kit.up_app:app", "--port", "0"),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environ,
            )
            stack.push_async_callback(_killed, process)
            processes.append(process)
        facts = [json.loads(await asyncio.wait_for(process.stdout.readline(), 60)) for process in processes]
        assert [fact["url"] is None for fact in facts] == [True, True, False]

        async with Client(facts[2]["url"], key) as client:
            started = await client.start("gate@1", {}, project="p1")
            assert (await client.wait(started.run_id, seconds=60)).status == "completed"

        for process in processes:
            process.send_signal(signal.SIGTERM)
        ended = await asyncio.gather(*(asyncio.wait_for(process.communicate(), 40) for process in processes))
        assert [process.returncode for process in processes] == [0, 0, 0], ended
        assert all(b"Traceback" not in complained for _, complained in ended)


async def _killed(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()
