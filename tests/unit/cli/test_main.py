"""The program: whatever is wrong is one message and a code that is not zero, never a traceback."""

import json

import pytest

from longtake.cli.main import COMMANDS, EXIT_BROKEN, run_command
from longtake.cli.process import Stopped, StopSignal

PLAN = ("plan", "show", "clip@1", "--app", "kit.cli_app:app")


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """A directory with no store and no settings."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "LONGTAKE_URL",
        "LONGTAKE_KEY",
        "LONGTAKE_POSTGRES_URL",
        "LONGTAKE_NATS_URL",
        "LONGTAKE_DATA_DIR",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "show", "w@1", "--input", "in.json", "--app", "nowhere:app"), "nowhere cannot be imported"),
        (("plan", "show", "w@1", "--input", "in.json", "--app", "json:app"), "json has no 'app'"),
        (("plan", "show", "w@1", "--input", "in.json", "--app", "json:loads"), "not a longtake App"),
        (("plan", "show", "w@1", "--input", "in.json", "--app", "json"), "module, colon, attribute"),
        ((*PLAN, "--input", "missing.json"), "missing.json: No such file"),
        ((*PLAN, "--input", "bad.json"), "bad.json is not JSON"),
        (
            ("plan", "show", "nope@1", "--app", "kit.cli_app:app", "--input", "good.json"),
            "use one of: clip@1",
        ),
        ((*PLAN, "--input", "wrong.json"), "/payload/input/scenes: must be 1 to 3. give a number"),
        (("run", "list"), "no API key"),
        (
            ("run", "list", "--key", "k", "--url", "http://127.0.0.1:9"),
            "no longtake answers at http://127.0.0.1:9",
        ),
        (("run", "list", "--key", "k", "--url", "ftp://x"), "must begin with http://"),
        (("run", "start", "w@1", "--project", "p", "--input", "missing.json"), "missing.json"),
        (("history", "verify"), "there is no store"),
        (("projection", "prove"), "there is no store"),
        (("keys", "list"), "there is no store"),
        (("keys", "create", "--tenant", "a b", "--actor", "x"), "--tenant is 'a b'"),
        (("serve", "--role", "api"), "serve needs LONGTAKE_POSTGRES_URL and LONGTAKE_NATS_URL"),
        (("up", "--config", "missing.toml"), "there is no such file"),
        (("up", "--port", "99999", "--app", "kit.cli_app:app"), "LONGTAKE_PORT is 99999"),
    ],
)
def test_a_mistake_is_one_message_with_what_would_be_right(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("longtake.client.http.PAUSE_SECONDS_MAX", 0.01)
    monkeypatch.setattr("longtake.cli.place.PATIENCE_SECONDS", 0.0)
    (tmp_path / "in.json").write_text("{}")
    (tmp_path / "good.json").write_text('{"scenes": 2}')
    (tmp_path / "wrong.json").write_text('{"scenes": 9}')
    (tmp_path / "bad.json").write_text("{")

    code = run_command(list(arguments))

    told = capsys.readouterr()
    assert code == 1, told
    assert said in told.err
    assert told.err.startswith("longtake: ")
    assert "Traceback" not in told.err and told.out == ""


def test_with_json_the_message_is_json_too(capsys):
    assert run_command(["run", "list", "--json"]) == 1
    assert "no API key" in json.loads(capsys.readouterr().err)["error"]


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["run", "show"], ["run", "list", "--limit", "many"], ["up", "--nope"]]
)
def test_wrong_usage_is_said_and_ends_with_a_code(arguments, capsys):
    assert run_command(arguments) != 0
    told = capsys.readouterr()
    assert "Error" in told.err + told.out
    assert "Traceback" not in told.err + told.out


def test_what_nobody_foresaw_is_one_line(capsys, monkeypatch):
    monkeypatch.setitem(COMMANDS, "version", ("kit.cli_app:broken", "breaks"))

    assert run_command(["version"]) == EXIT_BROKEN
    assert capsys.readouterr().err.count("\n") == 1


def test_every_command_is_in_the_help(capsys):
    assert run_command(["--help"]) == 0
    said = capsys.readouterr().out
    for command in (
        "up",
        "serve",
        "migrate",
        "doctor",
        "run",
        "history",
        "projection",
        "plan",
        "keys",
        "schemas",
    ):
        assert f" {command} " in said


@pytest.mark.parametrize("group", ["run", "history", "projection", "plan", "keys", "schemas"])
def test_every_group_explains_itself(group, capsys):
    assert run_command([group, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_a_plan_is_shown_with_its_price_as_table_picture_and_data(capsys, tmp_path):
    (tmp_path / "good.json").write_text('{"scenes": 2}')
    arguments = [*PLAN, "--input", "good.json"]

    assert run_command(arguments) == 0
    table = capsys.readouterr().out
    assert run_command([*arguments, "--format", "mermaid"]) == 0
    picture = capsys.readouterr().out
    assert run_command([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)

    assert "clip@1: 2 steps, 6 credits" in table
    assert picture.startswith("flowchart")
    assert (data["quoted_credits"], len(data["plan"]["steps"])) == (6, 2)


def test_the_doctor_has_a_line_for_each_finding_and_a_code(capsys):
    code = run_command(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)

    assert code == (1 if any(finding["state"] == "fail" for finding in findings) else 0)
    assert {"python", "libc", "socket"} <= {finding["name"] for finding in findings}
    assert run_command(["doctor"]) == code
    assert len(capsys.readouterr().out.splitlines()) == len(findings)


async def test_work_is_cancelled_when_the_process_is_told_to_stop():
    import asyncio

    stop, ended = StopSignal(), []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    asyncio.get_running_loop().call_soon(stop.set, "enough")
    with pytest.raises(Stopped, match="enough"):
        await stop.before(endless())
    assert ended == [True]
    assert await StopSignal().before(_seven()) == 7


async def _seven() -> int:
    return 7
