"""Nonsense by every door: each wrong command is refused with its problem, its place and a remedy, and nothing moves.

One stage holds runs in the states that commands are about; the table is sent to it row after row, by one door a test.
"""

import asyncio
import json
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kit.doors import DOORS, Doors, doors_of
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, runtime, start_run, summary_of
from kit.tables import counts, grown, runs_now
from kit.witnessing import WITNESS
from longtake.bootstrap import Runtime
from longtake.cli.main import run_command
from longtake.contracts.commands import Command
from longtake.contracts.principal import Principal

pytestmark = pytest.mark.timeout(120)

NOBODY = str(uuid.UUID(int=7))


class Stage(msgspec.Struct, frozen=True):
    """Runs to be wrong about, by the names that the table uses: (run id, revision)."""

    asked: tuple[str, int]
    """Waits for an answer."""
    done: tuple[str, int]
    costly: tuple[str, int]
    """Waits for a larger cap."""
    voice: tuple[str, int]
    """Waits for an event."""
    foreign: tuple[str, int]
    """Another tenant's."""


Made = dict[str, Any] | bytes


class Case(msgspec.Struct, frozen=True):
    """A wrong command, and the problem that it gets: slug, status, first place."""

    name: str
    command: Callable[[Stage], Made]
    slug: str
    status: int
    pointer: str | None
    doors: tuple[str, ...] = DOORS


def start(workflow: Any = "asked@1", *, kind: str = "generation", **payload: Any) -> Callable[[Stage], Made]:
    return lambda _: {"kind": kind, "project": "p1", "payload": {"workflow": workflow, **payload}}


def begin(**changes: Any) -> Callable[[Stage], Made]:
    """A good start with one thing wrong beside its payload."""
    return lambda _: {"kind": "generation", "project": "p1", "payload": {"workflow": "asked@1"}, **changes}


def on(name: str, kind: str, /, *, revision: Any = "seen", **payload: Any) -> Callable[[Stage], Made]:
    """A command about one of the stage's runs."""

    def make(stage: Stage) -> Made:
        run_id, seen = getattr(stage, name)
        made = {"kind": kind, "project": "p1", "targets": [run_id], "payload": payload}
        expected = seen if revision == "seen" else revision
        return made if expected is None else {**made, "expected_revision": expected}

    return make


def at_nobody(kind: str, *, revision: int | None = 1, **payload: Any) -> Callable[[Stage], Made]:
    made = {"kind": kind, "project": "p1", "targets": [NOBODY], "payload": payload}
    return lambda _: made if revision is None else {**made, "expected_revision": revision}


def raw(text: str) -> Callable[[Stage], Made]:
    return lambda _: text.encode("utf-8", "surrogatepass")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


DEEP = "[" * 5000 + "]" * 5000
OPENING = '{"client_command_id":"raw","kind":"generation","project":"p1","payload":{"workflow":"asked@1"'

BODIES = [
    Case("an empty body", raw(""), "malformed", 400, None),
    Case("not JSON", raw("{"), "malformed", 400, None),
    Case("a list", raw("[]"), "invalid-command", 422, ""),
    Case("NaN", raw(OPENING + ',"input":{"a":NaN}}}'), "malformed", 400, None),
    Case("half a character", raw(OPENING + ',"input":{"a":"\\ud800"}}}'), "malformed", 400, None),
    Case("a thousand brackets", raw(OPENING + f',"input":{{"a":{DEEP}}}}}}}'), "malformed", 400, None),
    Case("a member twice", raw(OPENING + '},"kind":"cancel"}'), "malformed", 400, "/kind"),
    Case(
        "a member of the input twice",
        raw(OPENING + ',"input":{"a":[{"b/c":1,"b/c":2}]}}}'),
        "malformed",
        400,
        "/payload/input/a/0/b~1c",
    ),
    Case("too long", begin(text="x" * 300_000), "too-large", 413, None, doors=("http",)),
    Case(
        "a kind nobody knows", begin(kind="dance"), "invalid-command", 422, "/kind", doors=("http", "request")
    ),
    Case(
        "a kind that is a number", begin(kind=7), "invalid-command", 422, "/kind", doors=("http", "request")
    ),
    Case("no project", begin(project=""), "invalid-command", 422, "/project"),
    Case("an endless project", begin(project="x" * 257), "invalid-command", 422, "/project"),
    Case("U+0000 in the project", begin(project="a\0b"), "invalid-command", 422, "/project"),
    Case("U+0000 in the text", begin(text="a\0b"), "invalid-command", 422, "/text"),
    Case("targets of a start", begin(targets=[NOBODY]), "invalid-command", 422, "/targets"),
    Case("targets that are numbers", begin(targets=[1]), "invalid-command", 422, "/targets/0"),
    Case("an attachment that is none", begin(attachments=["x"]), "invalid-command", 422, "/attachments/0"),
    Case("a revision of a start", begin(expected_revision=1), "invalid-command", 422, "/expected_revision"),
    Case("a payload that is a list", begin(payload=[]), "invalid-command", 422, "/payload"),
    Case("a payload without a workflow", begin(payload={}), "invalid-command", 422, "/payload/workflow"),
]

STARTS = [
    Case("a workflow without a version", start("asked"), "unknown-workflow", 422, "/payload/workflow"),
    Case("the latest version", start("asked@latest"), "unknown-workflow", 422, "/payload/workflow"),
    Case("version two, raised", start("asked@\u00b2"), "unknown-workflow", 422, "/payload/workflow"),
    Case("a version without end", start("asked@" + "9" * 5000), "unknown-workflow", 422, "/payload/workflow"),
    Case("a workflow that is a number", start(7), "invalid-command", 422, "/payload/workflow"),
    Case("U+0000 in the input", start(input={"a": "\0"}), "invalid-command", 422, "/payload/input/a"),
    Case("a float in the input", start(input={"a": 1.5}), "invalid-command", 422, "/payload/input/a"),
    Case("an integer without end", start(input={"a": 10**300}), "invalid-command", 422, "/payload/input/a"),
    Case(
        "an input that nests too deep",
        start(input={"a": nested(200)}),
        "invalid-command",
        422,
        "/payload/input/a" + "/0" * 98,
    ),
    Case("an input its builder stumbles over", start("poster@1"), "invalid-plan", 422, "/payload/input"),
    Case("a price that is a word", start("probe@1", kind="utility", input={"price": "x"}), "invalid-plan", 422, "/payload/input"),
    Case("a price below nothing", start("probe@1", kind="utility", input={"price": -5}), "invalid-plan", 422, "/steps/0/price"),
    Case("a utility with a price", start("probe@1", kind="utility", input={"price": 3}), "invalid-command", 422, "/kind"),
    Case("a kind that is not declared", start(kind="export"), "invalid-command", 422, "/kind"),
    Case("a utility started as a generation", start("probe@1"), "invalid-command", 422, "/kind"),
    Case("a policy nobody knows", start(policy={"a/b": 1}), "invalid-command", 422, "/payload/policy/a~1b"),
    Case("an account nobody has", start("poster@1", input={"score": 1}, account="x"), "insufficient-funds", 409, "/payload/account"),
    Case("less than the quote", start("poster@1", input={"score": 1}, max_credits=2), "invalid-command", 422, "/payload/max_credits"),
    Case("less than nothing", start(max_credits=-1), "invalid-command", 422, "/payload/max_credits"),
    Case("credits without end", start(max_credits=10**30), "invalid-command", 422, "/payload/max_credits"),
    Case("half a credit", start(max_credits=0.5), "invalid-command", 422, "/payload/max_credits"),
    Case("credits that are a truth", start(max_credits=True), "invalid-command", 422, "/payload/max_credits"),
    Case("a time without zone", start(start_at="2030-01-01T00:00:00"), "invalid-command", 422, "/payload/start_at"),
    Case("a time in the far future", start(start_at="9999-12-31T23:59:59-14:00"), "invalid-command", 422, "/payload/start_at"),
    Case("a time that is a word", start(start_at="tomorrow"), "invalid-command", 422, "/payload/start_at"),
    Case("a time that is a number", start(start_at=5), "invalid-command", 422, "/payload/start_at"),
    Case("a policy of conflict nobody knows", start(on_conflict="pray"), "invalid-command", 422, "/payload/on_conflict"),
]  # fmt: skip

RUNS = [
    Case("cancel: a run of nobody", at_nobody("cancel"), "not-found", 404, "/targets/0"),
    Case("cancel: another tenant's run", on("foreign", "cancel"), "not-found", 404, "/targets/0"),
    Case("cancel: stale", on("asked", "cancel", revision=0), "stale-revision", 412, "/expected_revision"),
    Case("cancel: of the future", on("asked", "cancel", revision=99), "stale-revision", 412, "/expected_revision"),
    Case("cancel: a revision that is a word", on("asked", "cancel", revision="1"), "invalid-command", 422, "/expected_revision"),
    Case("cancel: no revision", on("asked", "cancel", revision=None), "precondition-missing", 428, "/expected_revision"),
    Case("cancel: a reason that is a number", on("asked", "cancel", reason=4), "invalid-command", 422, "/payload/reason"),
    Case("cancel: U+0000", on("asked", "cancel", reason="\0"), "invalid-command", 422, "/payload/reason"),
    Case("cancel: an ended run", on("done", "cancel"), "action-not-available", 409, "/kind"),
    Case("retry: another tenant's run", on("foreign", "retry"), "not-found", 404, "/targets/0"),
    Case("retry: nothing is blocked", on("asked", "retry"), "action-not-available", 409, "/kind"),
    Case("retry: a step nobody knows", on("asked", "retry", step="x"), "action-not-available", 409, "/payload/step"),
    Case("pause: another tenant's run", on("foreign", "pause"), "not-found", 404, "/targets/0"),
    Case("pause: with a member", on("asked", "pause", x=1), "invalid-command", 422, "/payload"),
    Case("pause: an ended run", on("done", "pause"), "action-not-available", 409, "/kind"),
    Case("resume: a run that is not paused", on("asked", "resume"), "action-not-available", 409, "/kind"),
    Case("input: another tenant's run", on("foreign", "provide_input", step="choose", answer={"take": 1}), "not-found", 404, "/targets/0"),
    Case("input: too large a number", on("asked", "provide_input", step="choose", answer={"take": 9}), "invalid-command", 422, "/payload/answer/take"),
    Case("input: nothing in it", on("asked", "provide_input", step="choose", answer={}), "invalid-command", 422, "/payload/answer"),
    Case("input: too much in it", on("asked", "provide_input", step="choose", answer={"take": 1, "x": 1}), "invalid-command", 422, "/payload/answer"),
    Case("input: a float", on("asked", "provide_input", step="choose", answer={"take": 1.5}), "invalid-command", 422, "/payload/answer/take"),
    Case("input: U+0000", on("asked", "provide_input", step="choose", answer={"take": "\0"}), "invalid-command", 422, "/payload/answer/take"),
    Case("input: nests too deep", on("asked", "provide_input", step="choose", answer={"take": nested(400)}), "invalid-command", 422, "/payload/answer/take" + "/0" * 98),
    Case("input: a list", on("asked", "provide_input", step="choose", answer=[]), "invalid-command", 422, "/payload/answer"),
    Case("input: no step", on("asked", "provide_input", answer={}), "invalid-command", 422, "/payload/step"),
    Case("input: a step nobody knows", on("asked", "provide_input", step="x", answer={}), "action-not-available", 409, "/payload/step"),
    Case("input: a step that does not ask", on("asked", "provide_input", step="after", answer={}), "action-not-available", 409, "/payload/step"),
    Case("input: neither answer nor cap", on("asked", "provide_input", step="choose"), "invalid-command", 422, "/payload/answer"),
    Case("input: both", on("asked", "provide_input", step="choose", answer={"take": 1}, cap=9), "invalid-command", 422, "/payload/answer"),
    Case("input: a cap for a question", on("asked", "provide_input", step="choose", cap=9), "invalid-command", 422, "/payload/cap"),
    Case("input: an answer for a cap", on("costly", "provide_input", step="scenes:1", answer={}), "invalid-command", 422, "/payload/answer"),
    Case("input: a cap below what is spent", on("costly", "provide_input", step="scenes:1", cap=4), "invalid-command", 422, "/payload/cap"),
    Case("input: no cap at all", on("costly", "provide_input", step="scenes:1", cap=0), "invalid-command", 422, "/payload/cap"),
    Case("input: a cap without end", on("costly", "provide_input", step="scenes:1", cap=10**30), "invalid-command", 422, "/payload/cap"),
    Case("input: a cap nobody can pay", on("costly", "provide_input", step="scenes:1", cap=10**9), "insufficient-funds", 409, "/payload/cap"),
    Case("event: another tenant's run", on("foreign", "send_event", name="said"), "not-found", 404, "/targets/0"),
    Case("event: nobody waits for it", on("voice", "send_event", name="sung"), "action-not-available", 409, "/payload/name"),
    Case("event: a name with a blank", on("voice", "send_event", name="a b"), "invalid-command", 422, "/payload/name"),
    Case("event: U+0000", on("voice", "send_event", name="said", payload={"a": "\0"}), "invalid-command", 422, "/payload/payload/a"),
    Case("event: too long", on("voice", "send_event", name="said", payload={"a": "x" * 70_000}), "invalid-command", 422, "/payload/payload"),
    Case("event: an ended run", on("done", "send_event", name="said"), "action-not-available", 409, "/payload/name"),
    Case("steer: another tenant's run", on("foreign", "steer"), "not-found", 404, "/targets/0"),
    Case("steer: an ended run", on("done", "steer"), "action-not-available", 409, "/kind"),
    Case("steer: a workflow nobody knows", on("asked", "steer", workflow="x@1"), "unknown-workflow", 422, "/payload/workflow"),
    Case("steer: an input its builder stumbles over", on("asked", "steer", workflow="poster@1"), "invalid-plan", 422, "/payload/input"),
    Case("steer: stale", on("asked", "steer", revision=0), "stale-revision", 412, "/expected_revision"),
    Case("steer: credits below nothing", on("asked", "steer", max_credits=-1), "invalid-command", 422, "/payload/max_credits"),
    Case("follow-up: of a run of nobody", at_nobody("follow_up", revision=None, workflow="film@1"), "not-found", 404, "/targets/0"),
    Case("follow-up: of another tenant's run", on("foreign", "follow_up", revision=None, workflow="film@1"), "not-found", 404, "/targets/0"),
    Case("follow-up: with a revision", on("done", "follow_up", workflow="film@1"), "invalid-command", 422, "/expected_revision"),
    Case("follow-up: not declared", on("done", "follow_up", revision=None, workflow="probe@1"), "invalid-command", 422, "/kind"),
    Case("fork: of a run of nobody", at_nobody("fork", revision=None, step="print"), "not-found", 404, "/targets/0"),
    Case("fork: of another tenant's run", on("foreign", "fork", revision=None, step="said"), "not-found", 404, "/targets/0"),
    Case("fork: from a step nobody knows", on("done", "fork", revision=None, step="x"), "invalid-command", 422, "/payload/step"),
    Case("fork: of a run at work", on("asked", "fork", revision=None, step="choose"), "action-not-available", 409, "/targets/0"),
    Case("fork: costs more than approved", on("done", "fork", revision=None, step="print", max_extra_credits=2), "invalid-command", 422, "/payload/max_extra_credits"),
    Case("fork: approved below nothing", on("done", "fork", revision=None, step="print", max_extra_credits=-1), "invalid-command", 422, "/payload/max_extra_credits"),
    *(
        Case(f"{kind}: a target that is no run", lambda _, kind=kind, payload=payload: {"kind": kind, "project": "p1", "targets": ["x"], "expected_revision": 1, "payload": payload}, "invalid-command", 422, "/targets")
        for kind, payload in (("cancel", {}), ("retry", {}), ("pause", {}), ("resume", {}), ("steer", {}), ("send_event", {"name": "a"}), ("provide_input", {"step": "a", "cap": 1}))
    ),
]  # fmt: skip


async def stage_of(process: Runtime) -> Stage:
    """The runs, in the states that the table wants them in."""
    await fund(process)
    rival = Principal(tenant="rival", actor="tester")
    command = Command(
        kind="generation", project="p1", payload={"workflow": "voice@1"}, client_command_id="theirs"
    )
    theirs = (await process.admission.admit(rival, command, channel="local", traceparent=None)).receipt
    ours = {}
    for name, workflow, status in (
        ("asked", "asked@1", "needs_input"),
        ("costly", "costly@1", "needs_input"),
        ("voice", "voice@1", "running"),
    ):
        receipt = await start_run(process, name, workflow)

        async def settled(run_id: str = str(receipt.run_id), status: str = status) -> dict | None:
            summary = await summary_of(process, run_id)
            return (
                summary
                if summary["status"] == status and summary["timing"]["poll_after_ms"] is None
                else None
            )

        summary = await eventually(settled, f"{name} to be {status}")
        ours[name] = (str(receipt.run_id), summary["revision"])
    done = await start_run(process, "done", "poster@1", {"score": 1})
    summary = await ended(process, str(done.run_id))
    return Stage(
        **ours,
        done=(str(done.run_id), summary["revision"]),
        foreign=(str(theirs.run_id), int(theirs.revision or 0)),
    )


async def refusals(doors: Doors, door: str, stage: Stage, cases: list[Case]) -> dict[str, object]:
    """What differs from the table, by the name of its row."""
    differs: dict[str, object] = {}
    for number, case in enumerate(cases):
        made = case.command(stage)
        if isinstance(made, dict):
            made = {"client_command_id": f"{door}-{number}", **made}
        said = await doors.send(door, made)
        first = said.places[0] if said.places else None
        remedies = [error["remedy"] and error["message"] for error in said.body.get("errors", ())]
        if (said.problem, said.status, first) != (case.slug, case.status, case.pointer) or not all(remedies):
            differs[case.name] = (said.status, said.problem, said.places, said.body.get("detail"))
    return differs


@pytest.mark.parametrize("door", DOORS)
@promise("G20", "H37", "G17")
async def test_every_wrong_command_is_refused_with_its_place_and_moves_nothing(
    database, broker, tmp_path, monkeypatch, door
):
    from kit.language_app import app

    monkeypatch.setenv(WITNESS, str(tmp_path / "witness"))
    async with runtime(database, broker, tmp_path, app) as process, doors_of(process, broker) as doors:
        stage = await stage_of(process)
        connection = await database.connect()
        before, runs = await counts(connection), await runs_now(connection)

        cases = [case for case in [*BODIES, *STARTS, *RUNS] if door in case.doors]
        assert await refusals(doors, door, stage, cases) == {}

        assert set(grown(before, await counts(connection))) <= {"commands", "dead_letters"}
        assert await runs_now(connection) == runs
        # Whoever was told so much nonsense still takes a good command.
        good = {**start("asked@1")(stage), "client_command_id": f"good-{door}"}
        assert (await doors.send(door, good)).status == 202


async def test_the_table_would_notice_an_answer_that_is_another(database, broker, tmp_path, monkeypatch):
    """The comparison can fail: a command that is taken, and a refusal at another place, both show."""
    from kit.language_app import app

    monkeypatch.setenv(WITNESS, str(tmp_path / "witness"))
    async with runtime(database, broker, tmp_path, app) as process, doors_of(process, broker) as doors:
        stage = await stage_of(process)
        right = Case("right", start(), "invalid-command", 422, None)
        elsewhere = Case("elsewhere", start(max_credits=-1), "invalid-command", 422, "/payload/policy")

        assert set(await refusals(doors, "http", stage, [right, elsewhere])) == {"right", "elsewhere"}


@promise("T03")
async def test_what_breaks_admission_ends_no_intake(database, broker, tmp_path, monkeypatch):
    """A command that nobody foresaw becomes a dead letter and an answer, and the next one is taken."""
    from kit.language_app import app

    monkeypatch.setenv(WITNESS, str(tmp_path / "witness"))
    async with runtime(database, broker, tmp_path, app) as process, doors_of(process, broker) as doors:
        planned = process.admission._orders.planned

        async def breaks(principal, command, *rest):
            if command.client_command_id == "breaks":
                raise ZeroDivisionError("nobody foresaw this")
            return await planned(principal, command, *rest)

        monkeypatch.setattr(process.admission._orders, "planned", breaks)
        command = {"kind": "generation", "project": "p1", "payload": {"workflow": "asked@1"}}

        said = await doors.send("stream", {**command, "client_command_id": "breaks"})
        assert (said.status, said.problem) == (500, "internal")
        assert (await doors.send("stream", {**command, "client_command_id": "next"})).status == 202

        connection = await database.connect()
        letters = await connection.fetch("select source, reason from longtake.dead_letters")
        assert [tuple(letter) for letter in letters] == [
            ("intake", "internal: Admission broke: ZeroDivisionError: nobody foresaw this.")
        ]


# --- the command line -------------------------------------------------------------------------------------------------

LINES: list[tuple[tuple[str, ...], str]] = [
    (("start", "nobody@1", "--input", "good", "--project", "p"), "/payload/workflow"),
    (("start", "asked@1", "--input", "list", "--project", "p"), "/payload/input"),
    (("start", "asked@1", "--input", "absent", "--project", "p"), "absent"),
    (("start", "asked@1", "--input", "nojson", "--project", "p"), "is not JSON"),
    (("start", "asked@1", "--input", "twice", "--project", "p"), "/a stands twice"),
    (("start", "asked@1", "--input", "deep", "--project", "p"), "nests too deep"),
    (("start", "asked@1", "--input", "nul", "--project", "p"), "/payload/input/a"),
    (("start", "asked@1", "--input", "binary", "--project", "p"), "is not JSON"),
    (("start", "asked@1", "--input", "good", "--project", ""), "/project"),
    (("start", "poster@1", "--input", "good", "--project", "p"), "KeyError"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--start-at", "2030-01-01"), "time zone"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--start-at", "9999-12-31T23:59:59-14:00"), "2200"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--policy", "x"), "--policy"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--policy", "x=1"), "/payload/policy/x"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--max-credits", "-4"), "/payload/max_credits"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--on-conflict", "pray"), "on-conflict"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--id", "a b"), "/client_command_id"),
    (("start", "asked@1", "--input", "good", "--project", "p", "--kind", "dance"), "dance"),
    (("show", ""), "There is no run"),
    (("show", "../runs"), "no such"),
    (("watch", "nonsense"), "There is no run"),
    (("cancel", NOBODY), "There is no run"),
    (("cancel", "{asked}", "--revision", "0"), "/expected_revision"),
    (("retry", "{asked}"), "/kind"),
    (("input", "{asked}", "choose"), "/payload/answer"),
    (("input", "{asked}", "choose", "--answer", "list"), "no JSON object"),
    (("input", "{asked}", "choose", "--answer", "good"), "/payload/answer"),
    (("input", "{costly}", "scenes:1", "--cap", "1"), "/payload/cap"),
    (("event", "{voice}", "sung"), "/payload/name"),
    (("event", "{voice}", "said", "--payload", "deep"), "nests too deep"),
    (("event", "{foreign}", "said"), "There is no run"),
    (("steer", "{done}"), "/kind"),
    (("follow-up", NOBODY, "film@1", "--input", "good"), "There is no run"),
    (("fork", "{done}", "nobody"), "/payload/step"),
    (("fork", "{done}", "nobody", "--price"), "/payload/step"),
    (("fork", "nonsense", "nobody", "--price"), "There is no run"),
    (("list", "--limit", "0"), "/query/limit"),
    (("list", "--cursor", "zzz"), "cursor"),
    (("dance",), "dance"),
]  # fmt: skip

FILES = {
    "good": b"{}",
    "list": b"[1]",
    "nojson": b"nope",
    "twice": b'{"a":1,"a":2}',
    "deep": DEEP.encode(),
    "nul": b'{"a":"\\u0000"}',
    "binary": b"\xff\xfe",
}


async def test_the_command_line_says_what_is_wrong_in_one_message(
    database, broker, tmp_path, monkeypatch, capsys
):
    from kit.language_app import app

    monkeypatch.setenv(WITNESS, str(tmp_path / "witness"))
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    async with runtime(database, broker, tmp_path, app) as process, doors_of(process, broker) as doors:
        stage = await stage_of(process)
        monkeypatch.setenv("LONGTAKE_URL", str(doors.http.base_url))
        monkeypatch.setenv("LONGTAKE_KEY", doors.http.headers["authorization"].removeprefix("Bearer "))
        ids = {name: getattr(stage, name)[0] for name in Stage.__struct_fields__}
        wrong: dict[str, object] = {}
        for arguments, expected in LINES:
            typed = [argument.format_map(ids) for argument in arguments]
            capsys.readouterr()
            code = await asyncio.to_thread(run_command, ["run", *typed])
            told = capsys.readouterr()
            unforeseen = (
                "nobody foresaw" in told.err or "Traceback" in told.err or "Something broke" in told.err
            )
            if code == 0 or told.out or expected not in told.err or unforeseen:
                wrong[" ".join(typed)] = (code, told.out, told.err)

        assert wrong == {}
        # For programs the same message is one JSON object.
        await asyncio.to_thread(run_command, ["run", "show", "nonsense", "--json"])
        assert "There is no run" in json.loads(capsys.readouterr().err)["error"]
