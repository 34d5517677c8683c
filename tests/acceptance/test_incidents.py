"""Incidents by name: what happened elsewhere, told in a line, and that it cannot happen here.

Real processes on a real Postgres and nats-server, a provider on a socket of its own that writes down what it was asked for.
Told elsewhere: G01 in test_g01.py; G06 in test_stream.py, G07 in test_observer.py (tests/integration/api); G31, G34, G37,
G45 in test_ambiguity.py, test_working.py, test_dead_dispatcher.py, test_pointers.py (tests/integration/engine).
"""

import asyncio
import uuid

import pytest

from kit.armed import ENVIRONMENT, armed
from kit.hand_work import Bench
from kit.market import Market, app, careless
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, ended, fund, noop_app, runtime, start_run, summary_of
from kit.witnessing import WITNESS, times, witnessed
from kit.witnessing import app as witnessing
from longtake.contracts.commands import Command
from longtake.contracts.pointers import EffectPointers, encode_pointers
from longtake.ports import OutgoingMessage

REST = ("relay", "sweeper", "dispatcher", "worker")
CLAIMERS = 8
RUNS = 25

pytestmark = pytest.mark.timeout(120)


async def _name(database) -> None:
    """Make the store one whose processes may be armed."""
    await (await database.connect()).execute("update longtake.store set environment = $1", ENVIRONMENT)


async def _money(database) -> tuple[int, int]:
    """Charges, and what they took in all after refunds."""
    row = await (await database.connect()).fetchrow(
        "select count(*) filter (where kind = 'charge') as charges, count(*) as entries from longtake.ledger_entries "
        "where kind in ('charge', 'refund')"
    )
    return row["charges"], row["entries"]


@promise("T78")
async def test_a_crash_after_the_commit_and_before_the_publication(database, broker, tmp_path, monkeypatch):
    """T78. The next step stood in the database, the process died before it told anybody, and nobody ever looked again."""
    witness = tmp_path / "witness"
    monkeypatch.setenv(WITNESS, str(witness))
    await _name(database)
    named = {"environment": ENVIRONMENT}
    async with (
        armed(
            "committed.before_hint", database, broker, tmp_path / "one", witness=witness, roles=REST
        ) as one,
        runtime(database, broker, tmp_path / "api", witnessing, roles=("api",), **named) as process,
    ):
        run_id = str((await start_run(process, "t78", "chain@1")).run_id)
        await one.die()
        connection = await database.connect()
        told = await connection.fetchrow(
            "select published_at, generation, state from longtake.effects where step = 'link:1'"
        )
        async with runtime(database, broker, tmp_path / "next", witnessing, roles=REST, **named):
            summary = await ended(process, run_id)
        again = await connection.fetchval("select generation from longtake.effects where step = 'link:1'")

    assert (told["state"], told["generation"]) == ("queued", 1) and told["published_at"] is not None
    assert again > 1, "it was never published, so it was published under another generation"
    assert summary["status"] == "completed"
    assert set(times(witnessed(witness)).values()) == {1}


@promise("T79")
async def test_a_publication_that_nobody_wrote_down(database, broker, tmp_path):
    """T79. The message was in the stream, the relay died before it marked it, and its successor published a second one."""
    await _name(database)
    named = {"environment": ENVIRONMENT}
    async with (
        armed(
            "puback.before_mark",
            database,
            broker,
            tmp_path / "one",
            witness=tmp_path / "none",
            roles=("relay",),
        ) as one,
        runtime(database, broker, tmp_path / "api", noop_app(), roles=("api",), **named) as process,
    ):
        command = Command(
            kind="generation",
            project="p1",
            payload={"workflow": "noop@1", "input": {}},
            client_command_id="t79",
        )
        answer = await process.admission.admit(PRINCIPAL, command, channel="http", traceparent=None)
        run_id = str(answer.receipt.run_id)
        await one.die()
        connection = await database.connect()
        assert await connection.fetchval("select copied_at is null from longtake.commands")
        client = (await broker.connect()).jetstream()
        published = (await client.stream_info("LT_COMMAND")).state.last_seq
        async with runtime(database, broker, tmp_path / "next", noop_app(), roles=REST, **named):
            summary = await ended(process, run_id)

            async def marked() -> bool:
                return await connection.fetchval("select copied_at is not null from longtake.commands")

            await eventually(marked, "the row to say what the stream has")
        assert (await client.stream_info("LT_COMMAND")).state.last_seq == published == 1

    assert summary["status"] == "completed"
    assert await connection.fetchval("select count(*) from longtake.runs") == 1


@promise("T80")
async def test_one_message_delivered_to_many_at_once(database, broker, tmp_path):
    """T80. Two consumers had the same message in the same moment, both found the job open, both did it."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        runs = [await start_run(process, f"t80-{n}", input_={"steps": 1}) for n in range(RUNS)]
        bench = await Bench.open(process)
        try:
            pointers = await bench.open_effects()
            claims = await asyncio.gather(
                *(
                    bench.effects.claim(
                        claim_id=uuid.uuid4(),
                        effects=pointers,
                        limit=RUNS,
                        owner=f"worker-{n}",
                        lease_seconds=30,
                    )
                    for n in range(CLAIMERS)
                )
            )
            claimed = [effect for claim in claims for effect in claim]
            await bench.report(claimed)
            ids = [effect.id for effect in claimed]
            await asyncio.gather(*(bench.decide(ids) for _ in range(CLAIMERS)))
            facts = await bench.pool.fetchrow(
                "select (select count(*) from longtake.effect_claims) as claims, "
                "(select count(*) from longtake.events where type = 'step_succeeded') as applied"
            )
            statuses = {(await summary_of(process, str(run.run_id)))["status"] for run in runs}
        finally:
            await bench.close()

    assert sorted(ids) == sorted(id_ for id_, _ in pointers), "each has one holder"
    assert (facts["claims"], facts["applied"]) == (RUNS, RUNS)
    assert statuses == {"completed"}


@pytest.mark.parametrize(("activities", "orders"), [(app, 1), (careless, 2)], ids=["looks", "never-looks"])
@promise("T81", "T50")
async def test_the_provider_took_the_order_and_its_answer_was_lost(
    database, broker, tmp_path, activities, orders
):
    """T81. The connection broke after the create; the client tried again, and there were two jobs to pay for.

    Beside it an author's look-up that never looks: the market sees the second order, so this test can fail.
    """
    async with Market() as market, runtime(database, broker, tmp_path, activities) as process:
        await fund(process)
        market.loses_answers = 1
        run_id = str((await start_run(process, "t81", "shopping@1")).run_id)
        summary = await ended(process, run_id)
        proof = await process.audit.prove(uuid.UUID(run_id), "acme")

    assert summary["status"] == "completed"
    assert len(market.orders) == orders
    assert (await _money(database), proof) == ((1, 1), [])


@promise("T82")
async def test_a_step_is_tried_again_after_what_it_did_outside(database, broker, tmp_path):
    """T82. The step had bought, its process died before it could say so, and the next try bought again."""
    await _name(database)
    named = {"environment": ENVIRONMENT}
    async with (
        Market() as market,
        armed(
            "provider_ok.before_receipt", database, broker, tmp_path / "one",
            witness=tmp_path / "none", roles=REST, app="kit.market:app",
        ) as one,
        runtime(database, broker, tmp_path / "api", app, roles=("api",), **named) as process,
    ):  # fmt: skip
        await fund(process)
        run_id = str((await start_run(process, "t82", "shopping@1")).run_id)
        await one.die()
        assert len(market.orders) == 1, "the market has it, the service does not know"
        async with runtime(database, broker, tmp_path / "next", app, roles=REST, **named):
            summary = await ended(process, run_id)
        proof = await process.audit.prove(uuid.UUID(run_id), "acme")

    assert summary["status"] == "completed"
    assert len(market.orders) == 1
    assert market.asked["find"] >= 1
    assert (await _money(database), proof) == ((1, 1), [])


@promise("T85")
async def test_a_provider_that_has_no_room_is_asked_again_when_it_said(database, broker, tmp_path):
    """T85. The quota was used up for a minute; the job burnt its tries in a second and failed for good."""
    async with Market() as market, runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        market.full = True
        run_id = str((await start_run(process, "t85", "shopping@1")).run_id)
        await eventually(lambda: market.turned_away == 2, "it to be turned away twice")
        waiting = await summary_of(process, run_id)
        market.full = False
        summary = await ended(process, run_id)
        connection = await database.connect()
        attempts = await connection.fetch("select attempt, kind from longtake.effects")

    assert (waiting["status"], summary["status"]) == ("running", "completed")
    assert [tuple(row) for row in attempts] == [(1, "execute")], "being turned away costs no attempt"
    assert len(market.orders) == 1
    assert await _money(database) == (1, 1)


@promise("T86", "T51", "T60")
async def test_old_work_comes_back_after_the_provider_has_forgotten_it(database, broker, tmp_path):
    """T86. A dead letter was sent again after the provider's thirty days; to the provider it was new, and it was paid twice.

    The pointer of the finished effect comes back in every generation and so does its command. The provider no longer knows
    the order, so nothing but our own rows stands between the pointer and a second one.
    """
    async with Market() as market, runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        run_id = str((await start_run(process, "t86", "shopping@1")).run_id)
        await ended(process, run_id)
        market.remembers = False
        connection = await database.connect()
        effect = await connection.fetchrow("select id, attempt, pool from longtake.effects")
        before = await _standing(connection)
        results = await process.transport.publisher.publish(
            [
                OutgoingMessage(
                    subject=f"longtake.v1.effect.{effect['pool']}",
                    body=encode_pointers(
                        EffectPointers(epoch=1, effects=((effect["id"], attempt, generation),))
                    ),
                    stream="LT_EFFECT",
                    message_id=f"again-{attempt}-{generation}",
                )
                for attempt in (effect["attempt"], effect["attempt"] + 1)
                for generation in (1, 2, 9)
            ]
        )
        again = await start_run(process, "t86", "shopping@1")
        client = (await broker.connect()).jetstream()

        async def read() -> bool:
            return (await client.stream_info("LT_EFFECT")).state.messages == 0

        await eventually(read, "the old pointers to be read and acked")
        after = await _standing(connection)

    assert {result.state for result in results} == {"stored"}
    assert str(again.run_id) == run_id
    assert after == before
    assert (len(market.orders), market.asked["order"]) == (1, 1)


async def _standing(connection) -> dict[str, int]:
    """What a second business effect would have moved."""
    row = await connection.fetchrow(
        "select (select count(*) from longtake.runs) as runs, (select count(*) from longtake.events) as events, "
        "(select count(*) from longtake.effects) as effects, (select count(*) from longtake.effect_claims) as claims, "
        "(select count(*) from longtake.ledger_entries) as entries"
    )
    return dict(row)
