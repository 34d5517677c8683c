"""Somebody who owns the database changes a row or a byte: `prove` and `verify` name run and seq."""

import asyncio
import json

import pytest

from kit.shop import open_shop
from longtake.cli.main import run_command


@pytest.fixture
def longtake(database, monkeypatch, tmp_path, capsys):
    """Run a command over the test's database, in a thread as it brings a loop of its own."""
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    monkeypatch.chdir(tmp_path)

    async def run(*arguments: str) -> tuple[int, dict]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, [*arguments, "--json"])
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    return run


async def test_one_altered_row_and_one_altered_byte_are_named(database, broker, tmp_path, longtake):
    """Untouched, both are content; each change is found by the check that is for it."""
    async with open_shop(database, broker, tmp_path) as shop:
        run_id, other = await shop.finished("one"), await shop.finished("two")
        revision = (await shop.http.get(f"/v1/runs/{run_id}")).json()["revision"]
    owner = await database.connect()
    assert await longtake("history", "verify") == (0, {"runs": 2, "events": revision * 2, "broken": []})
    assert await longtake("projection", "prove") == (0, {"runs": 2, "differences": [], "broken": []})

    await owner.execute(
        "update longtake.steps set status = 'failed' where run_id = $1 and key = 'make'", run_id
    )
    code, told = await longtake("projection", "prove")
    assert code == 1
    assert [(d["run_id"], d["seq"], d["place"]) for d in told["differences"]] == [
        (run_id, revision, "steps[make].status")
    ]
    assert await longtake("projection", "rebuild", run_id) == (0, {"rebuilt": 1, "moving": []})
    assert (await longtake("projection", "prove", run_id))[0] == 0

    await owner.execute("alter table longtake.events disable trigger user")
    await owner.execute(
        "update longtake.events set data = replace(data::text, 'make', 'mace')::json where run_id = $1 and seq = 3",
        run_id,
    )
    code, told = await longtake("history", "verify")
    assert code == 1
    assert [(b["run_id"], b["seq"]) for b in told["broken"]] == [(run_id, 3)]
    assert (await longtake("history", "verify", other))[0] == 0

    # A fold that stumbles over the altered event says where, and goes on with the other runs.
    code, told = await longtake("projection", "prove")
    assert code == 1
    assert (told["runs"], told["differences"]) == (2, [])
    assert [(b["run_id"], b["seq"]) for b in told["broken"]] == [(run_id, 3)]
    assert "cannot be applied" in told["broken"][0]["reason"]


async def test_an_event_that_was_taken_out_is_missed(database, broker, tmp_path, longtake):
    """In the middle by its place, at the end by the run's revision."""
    async with open_shop(database, broker, tmp_path) as shop:
        run_id, other = await shop.finished("middle"), await shop.finished("tail")
    owner = await database.connect()
    await owner.execute("alter table longtake.events disable trigger user")
    await owner.execute("delete from longtake.events where run_id = $1 and seq = 2", run_id)
    await owner.execute(
        "delete from longtake.events e where run_id = $1 and seq = (select max(seq) from longtake.events where run_id = $1)",
        other,
    )

    code, told = await longtake("history", "verify")

    assert code == 1
    assert {b["run_id"] for b in told["broken"]} == {run_id, other}
    assert {b["seq"] for b in told["broken"] if b["run_id"] == run_id} == {2}
