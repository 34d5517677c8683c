"""What travels in messages is pointers, and what counts is the row they name (G28, G44, G45, P2)."""

import ast
import uuid
from pathlib import Path
from typing import Any

import msgspec

from kit.hand_work import Bench
from kit.outside import outside_app
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, ended, fund, noop_app, runtime, start_run
from longtake import App, Plan
from longtake.contracts.ids import event_id_for, fence_floor
from longtake.contracts.pointers import EffectPointers, encode_pointers

SERVICE = Path(__file__).parents[3] / "service" / "longtake"
SECRET = "nobody may read this on the wire"


def secretive_app(seen: list[Any]) -> App:
    app = App("secretive")

    @app.activity("secret@1")
    async def keep(call: Any) -> dict[str, Any]:
        seen.append(dict(call.input))
        return {"echo": call.input["word"]}

    @app.workflow("secret", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("keep", activity="secret@1", input={"word": input["word"]})

    return app


async def _messages(client: Any, stream: str) -> list[Any]:
    """Everything that lies in a stream."""
    info = await client.jetstream().stream_info(stream)
    numbers = range(info.state.first_seq, info.state.last_seq + 1) if info.state.messages else ()
    return [await client.jetstream().get_msg(stream, number) for number in numbers]


@promise("G44", "G45", "T06")
async def test_messages_carry_ids_alone_and_the_executor_reads_the_row(database, broker, tmp_path):
    seen: list[Any] = []
    app = secretive_app(seen)
    async with runtime(database, broker, tmp_path, app, roles=("api",)) as process:
        await fund(process)
        receipt = await start_run(process, "quiet", "secret@1", {"word": SECRET})
        client = await broker.connect()

        async def published() -> list[Any]:
            return await _messages(client, "LT_EFFECT")

        (effect,) = await eventually(published, "the pointer to be published")
        bench = await Bench.open(process)
        try:
            claimed = await bench.claim()
            await bench.report(claimed)
            await process.hints.look_at(effects=[(e.id, e.run_id) for e in claimed])
            (report,) = await _messages(client, "LT_CALLBACK")
            await bench.pool.execute(
                "update longtake.effects set state = 'queued', receipt = null, reported_at = null"
            )
        finally:
            await bench.close()

        assert set(msgspec.json.decode(effect.data)) == {"schema_version", "epoch", "effects"}
        assert set(msgspec.json.decode(report.data)) == {
            "schema_version",
            "epoch",
            "effects",
            "inbox",
            "runs",
        }
        for message in (effect, report):
            everything = f"{message.subject} {message.headers} {message.data.decode()}"
            for word in (SECRET, str(receipt.run_id), "keep", PRINCIPAL.actor, PRINCIPAL.tenant):
                assert word not in everything

        # The worker is given nothing but such a message, and knows the input.
        async with runtime(
            database, broker, tmp_path / "rest", app, roles=("worker", "relay", "dispatcher", "sweeper")
        ):
            await ended(process, str(receipt.run_id), 20)
    assert seen == [{"word": SECRET}]


@promise("H82", "H86", "H30")
def test_only_hints_and_the_relay_make_messages_and_no_worker_imports_the_rules() -> None:
    """The source guard: whoever else would put something on the wire, or decide beside the reducer, shows here."""
    makers = {
        path.relative_to(SERVICE).as_posix()
        for path in SERVICE.rglob("*.py")
        # The simulator plays outsiders, who put on the wire what they like.
        if "testing" not in path.parts
        and any(
            isinstance(node, ast.Call) and getattr(node.func, "id", None) == "OutgoingMessage"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    rules = {
        (path.name, node.module)
        for path in (SERVICE / "worker").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module
        in ("longtake.workflow.reducer", "longtake.workflow.state", "longtake.engine.deciding")
    }

    assert makers == {"engine/hints.py", "engine/relay.py"}
    assert rules == set()


async def test_a_pointer_of_a_closed_effect_is_acked_and_nothing_happens(database, broker, tmp_path):
    """A stale pointer is a hint like any other: the row says that there is nothing to do."""
    async with runtime(database, broker, tmp_path, noop_app()) as process:
        receipt = await start_run(process, "over", input_={"steps": 1})
        await ended(process, str(receipt.run_id))
        connection, client = await database.connect(), await broker.connect()
        row = await connection.fetchrow("select id, attempt from longtake.effects")
        claims = await connection.fetchval("select count(*) from longtake.effect_claims")

        await client.jetstream().publish(
            "longtake.v1.effect.short",
            encode_pointers(EffectPointers(epoch=1, effects=((row["id"], row["attempt"], 77),))),
        )

        async def taken() -> bool:
            return (await client.jetstream().stream_info("LT_EFFECT")).state.messages == 0

        await eventually(taken, "the stale pointer to be acked")
        assert await connection.fetchval("select count(*) from longtake.effect_claims") == claims


@promise("T05", "H34")
async def test_after_the_store_epoch_rose_every_id_and_fence_is_of_the_new_one(database, broker, tmp_path):
    """P2: what a lost past made and what the present makes can never meet."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        receipt = await start_run(process, "restored", input_={"steps": 2})
    run_id = uuid.UUID(receipt.run_id)
    connection = await database.connect()
    await connection.execute("update longtake.store set store_epoch = 2")

    async with runtime(database, broker, tmp_path, noop_app(), sole_owner=True) as process:
        await ended(process, str(run_id), 20)
        assert await process.audit.verify(run_id) > 0
        assert await process.audit.prove(run_id, "acme") == []

    events = await connection.fetch("select seq, id, store_epoch from longtake.events order by seq")
    assert [row["id"] for row in events] == [
        event_id_for(run_id, seq=row["seq"], store_epoch=row["store_epoch"]) for row in events
    ]
    assert {row["store_epoch"] for row in events} == {1, 2}
    assert event_id_for(run_id, seq=1, store_epoch=1) != event_id_for(run_id, seq=1, store_epoch=2)
    fences = await connection.fetch("select fence from longtake.effect_claims")
    assert all(row["fence"] > fence_floor(2) for row in fences)


@promise("T16", "T23")
async def test_reports_told_again_late_and_in_another_order_change_nothing(database, broker, tmp_path):
    """Order and number come from the authority: a message only says where to look."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        for number in range(4):
            await start_run(process, f"shuffled-{number}", input_={"steps": 2})
        bench = await Bench.open(process)
        try:
            first = await bench.claim()
            await bench.report(first)
            ids = [effect.id for effect in first]
            await bench.decide([*reversed(ids)])
            second = await bench.claim()
            await bench.report(second)
            await bench.decide([ids[0], *(effect.id for effect in second), ids[0]])
            stands = await bench.pool.fetch(
                "select run_id, seq, type, hash from longtake.events order by run_id, seq"
            )
            for _ in range(3):
                await bench.decide([*ids, *(effect.id for effect in second)])
            again = await bench.pool.fetch(
                "select run_id, seq, type, hash from longtake.events order by run_id, seq"
            )
            ended_runs = await bench.pool.fetchval(
                "select count(*) from longtake.runs where status = 'completed'"
            )
        finally:
            await bench.close()

    assert ended_runs == 4
    assert [tuple(row) for row in again] == [tuple(row) for row in stands]


@promise("T44")
async def test_what_waits_holds_no_lease_and_wakes_nobody_before_its_time(database, broker, tmp_path):
    from longtake import Submitted

    async with runtime(database, broker, tmp_path, outside_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            await start_run(process, "waiting", "outside@1")
            await bench.settle(Submitted(external_ref="job-1", poll_after_seconds=600))
            poll = await bench.pool.fetchrow(
                "select kind, state, lease_owner, not_before > now() + interval '9 minutes' as later "
                "from longtake.effects where closed_at is null"
            )
            due = await process.sweep.next_due_seconds(grace_seconds=1.0)
            claimed = await bench.claim()
        finally:
            await bench.close()

    assert tuple(poll) == ("poll", "queued", None, True)
    assert due is not None and due > 500
    assert claimed == []
