"""The table of cases: what each channel answers, what is recorded, and what stays as it was.

Commands come by three ways - HTTP, a NATS request, the NATS stream - and callbacks, pointers and outcomes by the one
that is theirs. Everything that a case does not name as recorded must not have grown, and no run may have moved.
"""

import hashlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from kit.doors import DOORS, Doors, doors_of
from kit.hand_work import Bench
from kit.outside import outside_app, signed
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import FUNDS, fund, noop_app, runtime, start_run, summary_of
from kit.servers import clean_broker, fresh_database
from kit.tables import contents, counts, grown, runs_now
from longtake import App, Artifact, Failed, Plan, Submitted, Succeeded
from longtake.bootstrap import Runtime
from longtake.contracts.ids import callback_token_for
from longtake.contracts.pointers import CallbackPointers, EffectPointers, encode_pointers
from videoads.workflows import short_generation

API_ONLY = ("api",)


def generation(id_: str, workflow: str = "noop@1", **payload: Any) -> dict[str, Any]:
    return {
        "kind": "generation",
        "project": "p1",
        "client_command_id": id_,
        "payload": {"workflow": workflow, "input": {}, **payload},
    }


def control(kind: str, id_: str, run_id: str, revision: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "project": "p1",
        "client_command_id": id_,
        "targets": [run_id],
        "expected_revision": revision,
    }


def cases_app() -> App:
    """No-op runs, a priced and scoped run, and the short ad's builder for bad briefs."""
    app = noop_app()

    @app.activity("dear@1")
    async def dear(call: Any) -> None:
        return None

    @app.workflow("dear", version=1)
    def build(input: Any, policy: Any) -> Plan:
        plan = Plan(scopes=("voice",)) if input.get("scoped") else Plan()
        return plan.step("dear", activity="dear@1", price=input.get("price", 0))

    app.workflow("short.generation", version=1, policy=short_generation.POLICY)(short_generation.build)
    return app


class Case(msgspec.Struct, frozen=True):
    """One row: the command it sends after `prepare`, and what must come of it."""

    name: str
    command: Callable[[str], dict[str, Any] | bytes]
    """Makes the command from the id of the run that stands there already."""
    status: int
    problem: str | None
    recorded: Mapping[str, int] = {}
    places: tuple[str, ...] = ()
    kept: bool = True
    """A refusal that is not kept as a command leaves a dead letter when it came by the stream."""
    input: Mapping[str, Any] = {}
    workflow: str = "noop@1"


COMMAND_CASES = [
    Case(
        "a new command",
        lambda _: generation("new"),
        202,
        None,
        {"commands": 1, "runs": 1, "events": 2, "steps": 1, "effects": 1},
    ),
    Case("duplicate", lambda _: generation("first"), 202, None),
    Case(
        "same id, other payload",
        lambda _: generation("first", input={"steps": 9}),
        422,
        "command-conflict",
        places=("/client_command_id",),
        kept=False,
    ),
    Case("poison", lambda _: b"\xff\x00 not json", 400, "malformed", kept=False),
    Case(
        "not a command",
        lambda _: {**generation("odd"), "kind": "generation", "wish": 1},
        422,
        "invalid-command",
        places=("",),
        kept=False,
    ),
    Case(
        "no id",
        lambda _: {key: value for key, value in generation("x").items() if key != "client_command_id"},
        400,
        "idempotency-key-missing",
        places=("/client_command_id",),
        kept=False,
    ),
    Case(
        "bad brief",
        lambda _: generation("brief", "short.generation@1", input={"brief": {"product": 7}}),
        422,
        "invalid-command",
        places=("/payload/input/brief/product",),
        kept=False,
    ),
    Case(
        "unknown workflow",
        lambda _: generation("nobody", "nobody@1"),
        422,
        "unknown-workflow",
        places=("/payload/workflow",),
        kept=False,
    ),
    Case(
        "too dear",
        lambda _: generation("dear", "dear@1", input={"price": FUNDS + 1}),
        409,
        "insufficient-funds",
        {"commands": 1},
        places=("/payload/account",),
    ),
    Case(
        "scope held by another run",
        lambda _: generation("second", "dear@1", input={"scoped": True}),
        409,
        "scope-conflict",
        {"commands": 1},
        places=("/payload/input",),
        workflow="dear@1",
        input={"scoped": True},
    ),
    Case(
        "stale command",
        lambda run_id: control("cancel", "late", run_id, 0),
        412,
        "stale-revision",
        {"commands": 1},
    ),
    Case(
        "action that is not offered",
        lambda run_id: control("retry", "why", run_id, 2),
        409,
        "action-not-available",
        {"commands": 1},
    ),
    Case(
        "run of nobody",
        lambda _: control("cancel", "ghost", str(uuid.UUID(int=7)), 1),
        404,
        "not-found",
        places=("/targets/0",),
        kept=False,
    ),
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", COMMAND_CASES, ids=lambda case: case.name)
@promise("G20", "T13", "H37")
async def test_a_command_gets_its_answer_and_nothing_else_changes(database, broker, tmp_path, case, door):
    async with runtime(database, broker, tmp_path, cases_app(), roles=API_ONLY) as process:
        await fund(process)
        connection = await database.connect()
        async with doors_of(process, broker) as doors:
            first = await start_run(process, "first", case.workflow, dict(case.input))
            assert first.run_id is not None
            before, runs = await counts(connection), await runs_now(connection)

            said = await doors.send(door, case.command(first.run_id))

            recorded = grown(before, await counts(connection))
            assert (said.status, said.problem) == (case.status, case.problem), said.body
            if case.places:
                assert set(case.places) <= set(said.places), said.body
            dead = {"dead_letters": 1} if door == "stream" and not case.kept else {}
            assert recorded == {**case.recorded, **dead}
            assert [run for run in await runs_now(connection) if run[0] == runs[0][0]] == runs


async def test_the_table_would_notice_a_command_that_records_more(database, broker, tmp_path):
    """The comparison above can fail: a row that no case names shows."""
    async with runtime(database, broker, tmp_path, cases_app(), roles=API_ONLY) as process:
        connection = await database.connect()
        before = await counts(connection)
        await process.sweep.dead_letter(
            tenant=None, source="test", subject="s", reason="r", body=b"", headers={}
        )
        assert grown(before, await counts(connection)) == {"dead_letters": 1}


# --- row by row -------------------------------------------------------------------------------------------------------


async def _played(database, broker, tmp_path, door: str) -> tuple[dict[str, list[Any]], list[int]]:
    """A small life by one door: start, repeat, conflict, a stale cancel, a good one."""
    async with runtime(database, broker, tmp_path, cases_app(), roles=API_ONLY) as process:
        await fund(process)
        async with doors_of(process, broker) as doors:
            said = [await doors.send(door, generation("a", "dear@1", input={"scoped": True, "price": 5}))]
            run_id, revision = said[0].body["run_id"], said[0].body["revision"]
            said.append(await doors.send(door, generation("a", "dear@1", input={"scoped": True, "price": 5})))
            said.append(await doors.send(door, generation("b", "dear@1", input={"scoped": True})))
            said.append(await doors.send(door, control("cancel", "c", run_id, 0)))
            said.append(await doors.send(door, control("cancel", "d", run_id, revision)))
            assert said[0].body["summary"] == said[1].body["summary"]
        connection = await database.connect()
        rows = await contents(connection)
        receipts = await connection.fetch(
            "select client_command_id, receipt::jsonb - 'summary' as r from longtake.commands"
        )
        rows["receipts"] = sorted((row["client_command_id"], row["r"]) for row in receipts)
        return rows, [answer.status for answer in said]


@promise("T03")
async def test_every_door_ends_in_the_same_rows(servers, migrated_template, tmp_path):
    played = {}
    for door in DOORS:
        async with (
            fresh_database(servers, migrated_template) as database,
            clean_broker(servers) as of_the_door,
        ):
            played[door] = await _played(database, of_the_door, tmp_path / door, door)

    assert played["http"][1] == [202, 202, 409, 412, 202]
    for door in DOORS[1:]:
        assert played[door][1] == played["http"][1]
        for table, rows in played["http"][0].items():
            assert played[door][0][table] == rows, f"{table} differs between http and {door}"
    assert played["http"][0]["events"] and played["http"][0]["ledger_entries"]


@promise("H62", "G22")
async def test_a_request_is_answered_after_its_commit_and_needs_a_key(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, cases_app(), roles=API_ONLY) as process:
        await fund(process)
        connection = await database.connect()
        async with doors_of(process, broker) as doors:
            said = await doors.send("request", generation("asked"))
            kept = await connection.fetchval(
                "select receipt->>'run_id' from longtake.commands where client_command_id = 'asked'"
            )
            told = await doors.summary(said.body["run_id"])
            nothing = await doors.summary(str(uuid.UUID(int=1)))
            stranger = Doors(process, doors.nats, doors.http, "lt_nobody_nothing")
            refused = await stranger.send("request", generation("stolen"))

        assert kept == said.body["run_id"]
        assert told.body["revision"] == said.body["revision"]
        assert "cancel_generation" in told.body["available_actions"]
        assert (nothing.status, nothing.problem) == (404, "not-found")
        assert (refused.status, refused.problem) == (401, "unauthenticated")
        assert await connection.fetchval("select count(*) from longtake.commands") == 1


async def test_the_answer_of_the_stream_goes_to_the_commands_own_id(database, broker, tmp_path):
    """The message's id is for the stream's de-duplication, which knows no tenants; it need not be the command's."""
    async with runtime(database, broker, tmp_path, cases_app(), roles=API_ONLY) as process:
        await process.transport.started()
        client = await broker.connect()
        answers = await client.subscribe("longtake.v1.receipt.acme.*")
        await client.flush()
        for id_, workflow in (("taken", "noop@1"), ("refused", "nobody@1")):
            await client.jetstream().publish(
                "longtake.v1.command.acme.generation",
                msgspec.json.encode(generation(id_, workflow)),
                headers={"Longtake-Actor": "tester", "Nats-Msg-Id": f"acme-tester-{id_}"},
            )
        told = [await answers.next_msg(timeout=20) for _ in range(2)]

        assert {answer.subject.rpartition(".")[2] for answer in told} == {"taken", "refused"}


# --- callbacks --------------------------------------------------------------------------------------------------------


class Stage:
    """One run of the outside workflow, its doors, and hands to move it."""

    def __init__(self, process: Runtime, bench: Bench, doors: Doors, run_id: str) -> None:
        self.process, self.bench, self.doors, self.run_id = process, bench, doors, run_id

    async def submit(self) -> None:
        await self.bench.settle(Submitted(external_ref="job-1", poll_after_seconds=600))

    async def fail(self) -> None:
        """The first attempt fails; the second is handed out."""
        await self.bench.settle(Failed(error_class="transient", message="try again"))

    async def call_back(
        self, delivery: str, *, attempt: int = 1, forge: str = "", secret: bytes | None = None
    ) -> tuple[int, str | None]:
        raw, headers = signed(id=delivery, job="job-1")
        token = callback_token_for(
            secret or self.process.secret, run_id=uuid.UUID(self.run_id), step="make", attempt=attempt
        )
        answer = await self.doors.http.post(
            f"/v1/callbacks/acme/{token}", content=raw + forge.encode(), headers=headers
        )
        body = answer.json()
        return answer.status_code, body["type"].rpartition("/")[2] if "type" in body else None

    async def decide_inbox(self) -> None:
        """What the dispatcher does with every open inbox row."""
        from longtake.engine.dispatcher import Pointers

        rows = await self.bench.pool.fetch("select id from longtake.inbox where settled_at is null")
        await self.bench.dispatcher.handle(Pointers(inbox=dict.fromkeys(row["id"] for row in rows)))

    async def inbox(self) -> list[tuple[str, str | None, int]]:
        rows = await self.bench.pool.fetch(
            "select status, reason, copies from longtake.inbox order by received_at"
        )
        return [tuple(row) for row in rows]


class CallbackCase(msgspec.Struct, frozen=True):
    """A callback: what happened before, how it is sent, and what comes of it."""

    name: str
    before: tuple[str, ...]
    sent: Mapping[str, Any]
    status: int
    problem: str | None
    recorded: Mapping[str, int]
    inbox: tuple[tuple[str, str | None, int], ...]
    moves: bool = False
    """Whether the run's revision moves when the dispatcher has looked."""


CALLBACK_CASES = [
    CallbackCase(
        "in time",
        ("submit",),
        {},
        200,
        None,
        {"inbox": 1, "events": 1},
        (("dispatched", None, 1),),
        moves=True,
    ),
    CallbackCase("duplicate", ("submit", "callback"), {}, 200, None, {}, (("dispatched", None, 2),)),
    CallbackCase(
        "early: before the submit was answered",
        (),
        {},
        200,
        None,
        {"inbox": 1, "events": 1},
        (("dispatched", None, 1),),
        moves=True,
    ),
    CallbackCase("forged body", ("submit",), {"forge": " "}, 401, "bad-signature", {}, ()),
    CallbackCase(
        "forged address", ("submit",), {"secret": b"guessed secret of somebody"}, 404, "not-found", {}, ()
    ),
    CallbackCase(
        "late attempt",
        ("fail",),
        {"attempt": 1},
        200,
        None,
        {"inbox": 1},
        (("ignored", "late_attempt", 1),),
    ),
]


@pytest.mark.parametrize("case", CALLBACK_CASES, ids=lambda case: case.name)
@promise("H39", "H41", "H36")
async def test_a_callback_is_kept_once_and_believed_only_of_its_attempt(database, broker, tmp_path, case):
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            async with doors_of(process, broker) as doors:
                receipt = await start_run(process, "called", "outside@1")
                stage = Stage(process, bench, doors, str(receipt.run_id))
                for what in case.before:
                    match what:
                        case "submit":
                            await stage.submit()
                        case "fail":
                            await stage.fail()
                        case _:
                            assert await stage.call_back("d1") == (200, None)
                            await stage.decide_inbox()
                connection = await database.connect()
                before, revision = (
                    await counts(connection),
                    (await summary_of(process, stage.run_id))["revision"],
                )

                answer = await stage.call_back("d1", **case.sent)
                await stage.decide_inbox()

                assert answer == (case.status, case.problem)
                assert grown(before, await counts(connection)) == case.recorded
                assert tuple(await stage.inbox()) == case.inbox
                moved = (await summary_of(process, stage.run_id))["revision"] - revision
                assert moved == (1 if case.moves else 0)
                assert await process.audit.prove(uuid.UUID(stage.run_id), "acme") == []
        finally:
            await bench.close()


@promise("H40")
async def test_an_early_callback_hastens_the_poll_once_the_submit_is_known(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            async with doors_of(process, broker) as doors:
                receipt = await start_run(process, "early", "outside@1")
                stage = Stage(process, bench, doors, str(receipt.run_id))
                await stage.call_back("d1")
                await stage.decide_inbox()
                await stage.submit()

                poll = await bench.pool.fetchrow(
                    "select kind, not_before <= clock_timestamp() as due from longtake.effects where closed_at is null"
                )
                assert tuple(poll) == ("poll", True)
        finally:
            await bench.close()


@promise("H38", "H42")
async def test_an_authentic_callback_is_kept_in_its_redacted_form_only(database, broker, tmp_path):
    """What the provider's verifier does not pass on is nowhere afterwards: no raw body, no signature."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            async with doors_of(process, broker) as doors:
                receipt = await start_run(process, "kept", "outside@1")
                token = callback_token_for(
                    process.secret, run_id=uuid.UUID(receipt.run_id), step="make", attempt=1
                )
                raw, headers = signed(id="d1", job="job-1", address="https://signed.example/secret")
                await doors.http.post(f"/v1/callbacks/acme/{token}", content=raw, headers=headers)
                row = await bench.pool.fetchrow("select * from longtake.inbox")
        finally:
            await bench.close()

    kept = dict(row)
    assert (kept["provider"], kept["callback_type"], kept["external_ref"]) == ("acme", "done", "job-1")
    assert (kept["step"], kept["attempt"], kept["status"]) == ("make", 1, "pending")
    assert kept["dedupe_key"].endswith("/make/1/d1")
    assert "signed.example" not in str(kept)
    assert headers["Acme-Signature"] not in str(kept)


# --- pointers and outcomes --------------------------------------------------------------------------------------------

STRANGER = uuid.UUID(int=99)

POINTER_CASES = [
    (
        "unknown pointer",
        "longtake.v1.callback.0",
        encode_pointers(CallbackPointers(epoch=1, effects=(STRANGER,))),
        f"unknown pointer: {STRANGER}",
    ),
    ("poison report", "longtake.v1.callback.1", b"{", "poison: "),
    ("poison effect", "longtake.v1.effect.short", b'{"epoch":"x"}', "poison: "),
    ("unknown effect", "longtake.v1.effect.short", encode_pointers(EffectPointers(epoch=1, effects=((STRANGER, 1, 1),))), None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("subject", "body", "reason"), [c[1:] for c in POINTER_CASES], ids=[c[0] for c in POINTER_CASES]
)
@promise("G47", "G29", "T19")
async def test_a_pointer_that_leads_nowhere_is_settled_and_changes_no_run(
    database, broker, tmp_path, subject, body, reason
):
    """Poison and unknown rows are kept with their reason; an effect that cannot be claimed is simply acked."""
    async with runtime(
        database, broker, tmp_path, noop_app(), roles=("api", "dispatcher", "worker")
    ) as process:
        await fund(process)
        connection = await database.connect()
        await process.transport.started()
        client = await broker.connect()
        runs = await runs_now(connection)

        await client.jetstream().publish(subject, body)

        async def settled() -> bool:
            stream = await client.jetstream().stream_info(
                "LT_CALLBACK" if "callback" in subject else "LT_EFFECT"
            )
            return stream.state.messages == 0

        await eventually(settled, "the message to be settled")
        letters = await connection.fetch("select subject, reason, body from longtake.dead_letters")
        if reason is None:
            assert letters == []
        else:
            assert [(row["subject"], row["body"]) for row in letters] == [(subject, body)]
            assert letters[0]["reason"].startswith(reason)
        assert await runs_now(connection) == runs


def artifact(size: int) -> Artifact:
    digest = hashlib.sha256(b"").hexdigest()
    return Artifact(
        name="film",
        kind="film",
        object_key=f"sha256/{digest}",
        sha256=digest,
        bytes=size,
        content_type="video/mp4",
    )


async def test_an_empty_artifact_is_a_failed_attempt_and_never_published(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "empty", "outside@1")
            connection = await database.connect()
            before = await counts(connection)

            await bench.settle(Succeeded(artifacts=(artifact(0),)))

            recorded = grown(before, await counts(connection))
            step = await connection.fetchrow("select status, error_class from longtake.steps")
            assert tuple(step) == ("retry_scheduled", "bad_output")
            assert "artifacts" not in recorded
            assert "ledger_entries" not in recorded
            assert (await summary_of(process, str(receipt.run_id)))["status"] == "running"
        finally:
            await bench.close()
