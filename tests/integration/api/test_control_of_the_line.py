"""Runs controlled from the command line: every verb of `longtake run`, for people and with --json for programs."""

import asyncio
import json

import pytest

from kit.promises import promise
from kit.studio import open_studio
from longtake.cli.main import run_command


@pytest.fixture
async def studio(database, broker, tmp_path):
    async with open_studio(database, broker, tmp_path) as opened:
        yield opened


@pytest.fixture
def line(monkeypatch, tmp_path, capsys, studio):
    """Run a command in a thread, as it brings a loop of its own; returns code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTAKE_URL", studio.client.url)
    monkeypatch.setenv("LONGTAKE_KEY", studio.key)

    async def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def written(tmp_path, name: str, value: object) -> str:
    (tmp_path / name).write_text(json.dumps(value))
    return name


@promise("W07", "W09", "H67")
async def test_a_run_is_started_paused_resumed_answered_and_released(studio, line, tmp_path):
    given = written(tmp_path, "in.json", {"of": "ad"})
    code, out, err = await line(
        "run", "start", "pick@1", "--input", given, "--project", "p1", "--id", "one", "--json"
    )
    assert code == 0, err
    run_id = json.loads(out)["run_id"]
    await studio.until(run_id, "needs_input")

    assert (await line("run", "pause", run_id))[0] == 0
    code, out, _ = await line("run", "show", run_id)
    assert "status    paused" in out and "input_required at choose" in out and "resume_generation" in out
    assert (await line("run", "resume", run_id, "--id", "go-on"))[:2] == (
        0,
        f"resume go-on: applied\nrun {run_id}\n",
    )
    wrong = written(tmp_path, "wrong.json", {"take": 9})
    code, _, err = await line("run", "input", run_id, "choose", "--answer", wrong)
    assert code == 1 and "/payload/answer/take" in err and "Traceback" not in err
    code, out, _ = await line(
        "run", "input", run_id, "choose", "--answer", written(tmp_path, "right.json", {"take": 2}), "--json"
    )
    assert (code, json.loads(out)["status"]) == (0, "applied")
    code, _, err = await line(
        "run", "event", run_id, "released", "--payload", written(tmp_path, "e.json", {"by": "ann"})
    )
    assert code == 0, err
    assert (await line("run", "watch", run_id))[0] == 0
    assert {"take": 2, "by": "ann"} == studio.app.done[-1]


async def test_a_run_is_steered_followed_and_forked(studio, line, tmp_path):
    old = await studio.start("chain@1", "old", n=1)
    changed = written(tmp_path, "changed.json", {"n": 2})

    code, out, err = await line("run", "steer", old, "--input", changed, "--policy", "speed=7", "--json")
    assert code == 0, err
    steered = json.loads(out)
    assert "scheduled" == steered["status"]
    studio.app.gate.set()
    assert "completed" == (await studio.client.wait(steered["run_id"], seconds=20)).status
    assert {"speed": 7} == studio.app.done[-1]
    code, out, err = await line(
        "run", "follow-up", steered["run_id"], "chain@1", "--input", changed, "--json"
    )
    assert code == 0, err
    assert "completed" == (await studio.client.wait(json.loads(out)["run_id"], seconds=20)).status
    code, out, err = await line(
        "run", "fork", steered["run_id"], "after", "--max-extra-credits", "0", "--json"
    )
    assert code == 0, err
    assert "completed" == (await studio.client.wait(json.loads(out)["run_id"], seconds=20)).status


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("start", "probe@1", "--input", "in.json", "--project", "p1"), "/kind"),
        (
            ("start", "chain@1", "--input", "in.json", "--project", "p1", "--start-at", "2030-01-01"),
            "time zone",
        ),
        (("start", "chain@1", "--input", "absent.json", "--project", "p1"), "absent.json"),
        (("pause", "00000000-0000-0000-0000-000000000001"), "There is no run"),
        (("input", "00000000-0000-0000-0000-000000000001", "a", "--answer", "absent.json"), "absent.json"),
        (("event", "00000000-0000-0000-0000-000000000001", "go", "--payload", "no.json"), "no.json"),
    ],
    ids=["kind", "time", "input", "run", "answer", "payload"],
)
async def test_what_is_wrong_is_one_message_and_a_code(line, tmp_path, arguments, said):
    written(tmp_path, "in.json", {})

    code, out, err = await line("run", *arguments)

    assert code == 1 and said in err and "Traceback" not in err
    assert out == ""
