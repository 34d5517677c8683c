"""The whole language of plans on the real thing: Postgres, nats-server, HTTP and the command line, in one family of runs.

Each run must end as its plan says, and afterwards the read model, the chain of events and the money are proved.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kit.language_app import app, begun, door
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, fund, runtime
from kit.witnessing import WITNESS, times, witnessed
from longtake.cli.main import run_command
from longtake.client import Client
from longtake.contracts.summary import Summary

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("whole-service")]

EVENTS_MAX = {"film": 45, "poster": 6, "shoot": 20, "costly": 24, "voice": 12, "family": 9}
"""By workflow; a run that writes more says something twice."""

Line = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
async def client(database, broker, tmp_path, monkeypatch):
    """A client of a whole service that runs the language's application."""
    monkeypatch.setenv(WITNESS, str(tmp_path / "witness"))
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    monkeypatch.chdir(tmp_path)
    async with runtime(database, broker, tmp_path / "data", app) as process:
        await fund(process)
        key = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        monkeypatch.setenv("LONGTAKE_URL", process.api_server.url)
        monkeypatch.setenv("LONGTAKE_KEY", key.text)
        async with Client(process.api_server.url, key.text) as opened:
            yield opened


@pytest.fixture
def line(capsys) -> Line:
    """Run a command in a thread, as it brings a loop of its own; returns code, output, errors."""

    async def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = await asyncio.to_thread(run_command, list(arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


async def until(client: Client, run_id: str, status: str, *, asks: str | None = None) -> Summary:
    """Wait until the run has the status, and asks at that step when one is named."""

    async def there() -> Summary | None:
        summary = await client.summary(run_id)
        at = {blocker.step for blocker in summary.blockers}
        return summary if summary.status == status and (asks is None or asks in at) else None

    return await eventually(there, f"run {run_id} to be {status}")


async def started(client: Client, workflow: str, *, id: str, project: str = "p1", **given) -> str:
    accepted = await client.start(workflow, given.pop("input", {}), project=project, command_id=id, **given)
    return str(accepted.run_id)


async def the_film(client: Client, line: Line) -> str:
    """Every kind and every join: answered over HTTP, released by events early and late, watched from the command line."""
    run_id = await started(client, "film@1", id="film")
    asked = await until(client, run_id, "needs_input", asks="choose")
    assert "send_generation_event" in asked.available_actions
    early = await client.send_event(run_id, "released", {"by": "ann"})
    assert early.status == "attached"

    code, out, _ = await line("run", "show", run_id)
    assert code == 0
    assert f"longtake run input {run_id} choose --answer ANSWER.json" in out
    await client.provide_input(run_id, "choose", answer={"take": 2})

    async def waits() -> bool:
        return any(step.status == "waiting_event" for step in await client.steps(run_id))

    await eventually(waits, "the wait for what nobody has sent")
    code, out, _ = await line("run", "show", run_id)
    assert f"longtake run event {run_id} cleared" in out
    code, _, err = await line("run", "event", run_id, "cleared")
    assert code == 0, err
    door().touch()
    code, out, _ = await line("run", "watch", run_id)

    assert code == 0, out
    assert "choose asks a person" in out and "cleared waits for the event 'cleared'" in out
    steps = {step.key: step.status for step in await client.steps(run_id)}
    expected = dict.fromkeys(steps, "succeeded") | {
        "slow": "cancelled",
        "risky": "failed",
        "polish": "skipped",
    }
    assert steps == expected
    done = {e.fields["step"]: e.fields for e in await client.history(run_id) if e.type == "step_succeeded"}
    child = done["poster"]["result"]["run_id"]
    assert done["deliver"]["result"] == {
        "takes": ["scenes:1", "scenes:2"],
        "choice": 2,
        "mood": "calm",
        "by": "ann",
        "poster": child,
        "step": "deliver",
    }
    assert done["rest"]["source"] == "timer" and done["mood"]["source"] == "default"
    assert (await client.summary(run_id)).cost.net_credits == 5
    assert (await client.run(child)).status == "completed"
    return run_id


async def the_asked(client: Client, line: Line, tmp_path: Path) -> None:
    """A question answered from the command line, by the very line that `run show` prints."""
    run_id = await started(client, "asked@1", id="asked")
    await until(client, run_id, "needs_input", asks="choose")
    (tmp_path / "ANSWER.json").write_text('{"take": 3}')
    _, out, _ = await line("run", "show", run_id)
    (command,) = [text.split() for text in out.splitlines() if text.strip().startswith("longtake run input")]
    code, _, err = await line(*command[1:])
    assert code == 0, err
    assert "completed" == (await client.wait(run_id, seconds=30)).status


async def the_undone(client: Client) -> None:
    """What was booked and rented is undone in reverse, and paid back; why the run failed stands apart."""
    run_id = await started(client, "shoot@1", id="shoot")
    ended = await client.wait(run_id, seconds=30)
    assert ("failed", 4, 0) == (ended.status, ended.cost.charged_credits, ended.cost.net_credits)
    history = await client.history(run_id)
    assert ["rent", "book"] == [e.fields["step"] for e in history if e.type == "step_compensated"]
    assert "done" == history[-1].fields["compensation"]
    assert "it does not work" == history[-1].fields["message"]


async def the_costly(client: Client, line: Line) -> None:
    """Pays as it goes, stops at its cap, and goes on when somebody raises it by the line that is printed."""
    run_id = await started(client, "costly@1", id="costly")
    asked = await until(client, run_id, "needs_input", asks="scenes:2")
    assert 5 == asked.cost.net_credits
    _, out, _ = await line("run", "show", run_id)
    assert f"longtake run input {run_id} scenes:1 --cap 13" in out
    code, _, err = await line("run", "input", run_id, "scenes:1", "--cap", "13")
    assert code == 0, err
    ended = await client.wait(run_id, seconds=30)
    assert ("completed", 13) == (ended.status, ended.cost.net_credits)


async def the_line(client: Client) -> None:
    """One holds the voice, one waits in line for it, and one takes the place of both."""
    first = await started(client, "voice@1", id="first")
    second = await started(client, "voice@1", id="second", on_conflict="queue")
    assert first in (await until(client, second, "accepted")).label
    await client.send_event(first, "said")
    assert "completed" == (await client.wait(first, seconds=30)).status
    await until(client, second, "running")
    third = await started(client, "voice@1", id="third", on_conflict="supersede")
    assert "superseded" == (await client.wait(second, seconds=30)).status
    await until(client, third, "running")
    await client.send_event(third, "said")
    assert "completed" == (await client.wait(third, seconds=30)).status


async def the_fork(client: Client, film: str) -> None:
    """Done again from the delivery on: what stands before it is taken over, and costs nothing."""
    forked = await client.fork(film, "deliver", max_extra_credits=0, command_id="fork")
    ended = await client.wait(str(forked.run_id), seconds=30)
    assert ("completed", 0) == (ended.status, ended.cost.net_credits)
    (reused,) = [e for e in await client.history(str(forked.run_id)) if e.type == "steps_reused"]
    assert "draft" in {step["step"] for step in reused.fields["steps"]}


@promise("T34", "T62", "H67")
async def test_every_kind_and_every_join_end_truthfully_and_everything_is_proved_afterwards(
    client, line, database, tmp_path
):
    film = await the_film(client, line)
    await asyncio.gather(the_undone(client), the_line(client))
    await the_asked(client, line, tmp_path)
    await the_costly(client, line)
    await the_fork(client, film)

    page = await client.runs(limit=200)
    ends = Counter((run.workflow, run.status) for run in page.runs)
    assert ends == {
        ("film", "completed"): 2,  # one is the fork
        ("poster", "completed"): 1,
        ("asked", "completed"): 1,
        ("shoot", "failed"): 1,
        ("costly", "completed"): 1,
        ("voice", "completed"): 2,
        ("voice", "superseded"): 1,
    }
    for run in page.runs:
        history = await client.history(run.run_id)
        assert len(history) <= EVENTS_MAX.get(run.workflow, 12), (run.workflow, [e.type for e in history])
    counted = times(witnessed(tmp_path / "witness"))
    twice = {key: count for key, count in counted.items() if count > 1}
    shot = next(run.run_id for run in page.runs if run.workflow == "shoot")
    # Undoing goes under the name of the step that it undoes.
    assert twice == {(shot, "book"): 2, (shot, "rent"): 2}
    assert begun().exists()

    for command in (("projection", "prove"), ("history", "verify"), ("ledger", "check")):
        code, out, err = await line(*command)
        assert code == 0, (command, out, err)
    code, out, _ = await line("projection", "prove", "--json")
    assert json.loads(out) == {"runs": len(page.runs), "differences": [], "broken": []}


async def test_the_proofs_afterwards_would_see_a_changed_row(client, line, database):
    """Each of the three commands can fail: a step that never was, a byte of history, a credit from nowhere."""
    run_id = await started(client, "shoot@1", id="shoot")
    await client.wait(run_id, seconds=30)
    connection = await database.connect()
    await connection.execute(
        "update longtake.runs set refunded = refunded - 1 where run_id = $1::uuid", run_id
    )

    assert (await line("projection", "prove"))[0] == 1
    assert (await line("ledger", "check"))[0] == 1
    assert (await line("history", "verify"))[0] == 0
    await connection.execute("alter table longtake.events disable trigger user")
    await connection.execute(
        "update longtake.events set data = replace(data::text, 'it does not work', 'it works')::json "
        "where run_id = $1::uuid and type = 'step_failed'",
        run_id,
    )
    assert (await line("history", "verify"))[0] == 1
