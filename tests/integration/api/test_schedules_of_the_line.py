"""`longtake schedule` against a real store: what people type, what they read, and what each mistake is answered with."""

import asyncio
import json

import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, noop_app, runtime
from longtake.cli.main import run_command

NIGHTLY = ("nightly", "--tenant", "acme")
CREATE = (
    *("schedule", "create", *NIGHTLY, "--actor", "planner", "--project", "p1"),
    *("--workflow", "noop@1", "--cron", "30 2 * * *", "--zone", "Europe/Madrid"),
)


@pytest.fixture
def line(monkeypatch, tmp_path, capsys, database):
    """Run a command in a thread, as it brings a loop of its own; returns code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    monkeypatch.delenv("LONGTAKE_NATS_URL", raising=False)

    async def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


async def test_a_schedule_is_made_listed_shown_paused_resumed_and_deleted(line, tmp_path):
    (tmp_path / "in.json").write_text('{"steps": 2}')
    code, out, err = await line(*CREATE, "--input", "in.json", "--overlap", "queue")
    assert (code, err) == (0, "")
    assert "nightly runs first at 20" in out

    code, out, _ = await line("schedule", "list", "--tenant", "acme")
    assert code == 0 and "30 2 * * *" in out and "Europe/Madrid" in out and "queue" in out
    code, _, _ = await line("schedule", "pause", *NIGHTLY)
    assert code == 0
    code, out, _ = await line("schedule", "show", *NIGHTLY)
    assert code == 0 and "paused since 20" in out
    code, out, _ = await line("schedule", "resume", *NIGHTLY, "--json")
    assert (code, json.loads(out)) == (0, {"id": "nightly", "done": "resumed"})
    code, out, _ = await line("schedule", "show", *NIGHTLY, "--json")
    shown = json.loads(out)
    assert code == 0 and shown["paused_at"] is None and shown["template"]["input"] == {"steps": 2}
    code, out, _ = await line("schedule", "delete", *NIGHTLY)
    assert (code, out.strip()) == (0, "deleted nightly")
    code, out, _ = await line("schedule", "list", "--tenant", "acme", "--json")
    assert (code, json.loads(out)) == (0, [])


async def test_a_backfill_lays_down_each_occurrence_once(line):
    await line(*CREATE)
    range_ = ("--since", "2026-03-28T00:00:00+01:00", "--until", "2026-03-30T12:00:00+02:00")
    code, out, _ = await line("schedule", "backfill", *NIGHTLY, *range_)
    assert (code, out.strip()) == (0, "3 occurrences of nightly are on their way")

    code, out, _ = await line("schedule", "backfill", *NIGHTLY, *range_, "--json")
    assert (code, json.loads(out)["added"]) == (0, 0)
    code, out, _ = await line("schedule", "show", *NIGHTLY)
    assert "2026-03-29 01:00:00Z" in out and out.count("backfill") == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("--cron", "61 * * * *"), "'61 * * * *' has a bad minute"),
        (("--cron", "@daily"), "has 1 fields, not 5"),
        (("--zone", "Europe/Atlantis"), "'Europe/Atlantis' is no time zone"),
        (("--workflow", "noop"), "use name@version"),
        (("--overlap", "wait"), "--overlap is 'wait'; use one of skip, queue, cancel_running, allow"),
        (("--catch-up", "some"), "--catch-up is 'some'; use one of none, last, all"),
        (("--start-at", "tomorrow"), "--start-at is 'tomorrow'; write it like 20"),
        (("--end-at", "2026-11-30T22:00:00"), "has no offset"),
        (("--end-at", "2020-01-01T00:00:00Z"), "would never run"),
        (("--catch-up-seconds", "-5"), "/catch_up_seconds: is -5"),
        (("--policy", "list.json"), "--policy list.json holds no JSON object"),
        (("--input", "missing.json"), "--input missing.json: No such file"),
        (("--tenant", "a b"), "/tenant: is 'a b'"),
    ],
)
async def test_a_mistake_is_one_message_and_a_code(line, tmp_path, changes, said):
    (tmp_path / "list.json").write_text("[]")
    given = list(CREATE)
    option, value = changes
    if option in given:
        given[given.index(option) + 1] = value
    else:
        given += [option, value]

    code, out, err = await line(*given)

    assert (code, out) == (1, "")
    assert said in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "nobody", "--tenant", "acme"), "There is no schedule 'nobody'"),
        (("pause", "nobody", "--tenant", "acme"), "There is no schedule 'nobody'"),
        (("delete", *NIGHTLY[:1], "--tenant", "rival"), "There is no schedule 'nightly'"),
        (
            ("backfill", *NIGHTLY, "--since", "2026-01-01T00:00:00Z", "--until", "2190-01-01T00:00:00Z"),
            "is in the future",
        ),
        (("backfill", *NIGHTLY, "--since", "soon", "--until", "later"), "--since is 'soon'"),
    ],
)
async def test_what_is_not_there_or_cannot_be_is_said(line, arguments, said):
    await line(*CREATE)
    code, _, err = await line("schedule", *arguments)
    assert code == 1 and said in err and "Traceback" not in err


async def test_a_taken_id_is_said(line):
    await line(*CREATE)
    code, _, err = await line(*CREATE)
    assert code == 1 and "There is a schedule 'nightly' already" in err


@promise("T61")
async def test_a_command_wakes_the_schedulers_of_a_running_service(
    line, database, broker, tmp_path, monkeypatch
):
    """Their sleep is thirty seconds long; rung, they start the occurrence, and its run ends, well before."""
    async with runtime(database, broker, tmp_path, noop_app(), idle_seconds=30.0) as process:
        monkeypatch.setenv("LONGTAKE_NATS_URL", broker.url)
        monkeypatch.setenv("LONGTAKE_NATS_TOKEN", broker.token)
        assert (await line(*CREATE))[0] == 0
        moment = "2026-03-29T01:00:00Z"
        code, out, _ = await line("schedule", "backfill", *NIGHTLY, "--since", moment, "--until", moment)
        assert code == 0 and "1 occurrences" in out

        async def started() -> str | None:
            (row,) = await process.schedules.occurrences("acme", "nightly")
            return str(row.run_id) if row.run_id else None

        run_id = await eventually(started, "the occurrence to become a run", 10.0)
        assert (await ended(process, run_id))["status"] == "completed"
