"""Capturing: a file says of a run exactly what the store says, and the same run gives the same bytes."""

import asyncio
import importlib.util
import json
import uuid
from pathlib import Path
from types import ModuleType

import pytest

from kit.deploying import deploy
from kit.runtimes import fund, runtime, start_run
from longtake.cli.captured import read_captured
from longtake.cli.main import run_command
from longtake.engine.audit import verify_history

TOOL = Path(__file__).parents[2] / "tools" / "capture_history.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("capture_history", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_a_captured_run_reads_as_the_store_has_it(
    database, broker, tmp_path, tool, monkeypatch, capsys
):
    """An active run, captured twice: equal bytes, its chain, its rows; and a check of the file finds what one of
    the store would."""
    async with runtime(
        database, broker, tmp_path, deploy(tmp_path, "captured_shop"), roles=("api",)
    ) as process:
        await fund(process)
        run_id = uuid.UUID((await start_run(process, "captured", "shop@1")).run_id)
        stored = await process.audit.fold(run_id, "acme")
    connection = await database.connect()
    folder = tmp_path / "captured"
    folder.mkdir()
    for name in ("run.jsonl", "run.jsonl.gz"):
        tool.write(folder / name, await tool.capture(connection, run_id, what="a run of the shop"))
    run = read_captured(folder / "run.jsonl")

    assert run == read_captured(folder / "run.jsonl.gz")
    packed = (folder / "run.jsonl.gz").read_bytes()
    tool.write(folder / "run.jsonl.gz", await tool.capture(connection, run_id, what="a run of the shop"))
    assert packed == (folder / "run.jsonl.gz").read_bytes()
    verify_history(run.events)
    assert (run.active, run.run_id, len(run.events)) == (True, run_id, stored.revision)
    assert [step["key"] for step in run.steps] == ["film", "voice"]
    assert [entry["amount"] for entry in run.ledger] == [5]
    (folder / "run.jsonl.gz").unlink()
    deploy(tmp_path, "captured_dearer", price=6)
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    check = ["plan", "check", "--histories", str(folder), "--json", "--app"]
    assert await asyncio.to_thread(run_command, [*check, "captured_shop:app"]) == 0
    capsys.readouterr()
    assert await asyncio.to_thread(run_command, [*check, "captured_dearer:app"]) == 1
    (blocking,) = json.loads(capsys.readouterr().out)["blocking"]
    assert blocking["changes"] == [{"pointer": "/plan/steps/0/price", "before": 5, "after": 6}]


async def test_a_run_that_is_not_there_is_not_captured(database, tool):
    with pytest.raises(LookupError, match="there is no run"):
        await tool.capture(await database.connect(), uuid.UUID(int=7), what="nothing")
