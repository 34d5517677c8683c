"""How work is done: claimed, opened, renewed, reported, and only then acknowledged or followed by more (P1, P11, P18)."""

import asyncio
import uuid
from typing import Any

import pytest

from kit.hand_work import Bench
from kit.outside import outside_app
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, noop_app, runtime, start_run, summary_of
from longtake import Activity, App, Outcome, Pending, Plan, Submitted, Succeeded, ref
from longtake.engine.dispatcher import Pointers
from longtake.postgres.effects import PostgresLeaseKeeper

API_ONLY = ("api",)
REST = ("relay", "sweeper", "dispatcher", "worker")


class Looking(Activity):
    """An activity that keeps what stands in the authority while it works, and stays until the test lets it go."""

    name = "look@1"

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.connection: Any = None
        self.seen: list[dict[str, Any]] = []

    async def execute(self, call: Any) -> Outcome:
        row = await self.connection.fetchrow(
            "select e.state, e.fence, e.leases, e.call_opened_at is not null as opened, e.receipt is null as open, "
            "(select count(*) from longtake.effect_claims) as claims, (select count(*) from longtake.effects) as effects "
            "from longtake.effects e where e.step = $1",
            call.step,
        )
        self.seen.append(dict(row))
        await self.gate.wait()
        return Succeeded()


def looking_app() -> tuple[App, Looking]:
    app, looking = App("looking"), Looking()
    app.add(looking)

    @app.workflow("look", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("first", activity="look@1").step("then", activity="look@1", depends_on=["first"])

    return app, looking


@promise("G52", "H30", "T38")
async def test_the_call_runs_under_a_claim_with_its_door_marked_open_and_its_successor_unknown(
    database, broker, tmp_path
):
    """Claim, open, execute, receipt, decision, next effect: seen from inside the call, and afterwards from the rows."""
    app, looking = looking_app()
    looking.connection = await database.connect()
    async with runtime(database, broker, tmp_path, app) as process:
        receipt = await start_run(process, "looked", "look@1")
        await eventually(lambda: looking.seen, "the first call")
        looking.gate.set()
        await ended(process, str(receipt.run_id))

    first, then = looking.seen
    assert (first["state"], first["opened"], first["open"], first["claims"]) == ("leased", True, True, 1)
    assert first["effects"] == 1, "nobody but the dispatcher makes the next step's effect"
    assert (then["state"], then["opened"], then["claims"], then["effects"]) == ("leased", True, 2, 2)
    order = await looking.connection.fetch(
        "select a.reported_at <= b.created_at as followed, a.claimed_at <= a.call_opened_at as opened, "
        "a.call_opened_at <= a.reported_at as answered from longtake.effects a, longtake.effects b "
        "where a.step = 'first' and b.step = 'then'"
    )
    assert [tuple(row) for row in order] == [(True, True, True)]


@promise("W41")
async def test_while_a_call_is_begun_nobody_else_can_begin_it(database, broker, tmp_path):
    """That it was begun is durable before the call: another worker that is told of it finds nothing to claim."""
    app, looking = looking_app()
    looking.connection = await database.connect()
    async with runtime(database, broker, tmp_path, app) as process:
        receipt = await start_run(process, "begun", "look@1")
        await eventually(lambda: looking.seen, "the first call")
        other = await Bench.open(process)
        try:
            begun = await other.open_effects(state="leased")
            again = await other.effects.claim(
                claim_id=uuid.uuid4(), effects=begun, limit=9, owner="other", lease_seconds=30
            )
        finally:
            await other.close()
        looking.gate.set()
        summary = await ended(process, str(receipt.run_id))

    assert (len(begun), again) == (1, [])
    assert (summary["status"], len(looking.seen)) == ("completed", 2)


@promise("G32", "G34", "G35")
async def test_a_living_worker_keeps_its_lease_past_its_end_and_a_dead_ones_is_given_to_another(
    database, broker, tmp_path
):
    """Two runs on leases of one second: one is held by a worker that beats, one by somebody who never beats."""
    app, looking = looking_app()
    looking.connection = await database.connect()
    connection = await database.connect()
    async with runtime(database, broker, tmp_path, app, roles=API_ONLY) as admitting:
        bench = await Bench.open(admitting)
        dead = await start_run(admitting, "dead", "look@1")
        (held,) = await bench.claim(owner="dead", lease_seconds=1)
        await bench.close()
        living = await start_run(admitting, "living", "look@1")
        async with runtime(
            database,
            broker,
            tmp_path / "worker",
            app,
            roles=REST,
            lease_seconds=1,
            heartbeat_seconds=0.2,
            idle_seconds=0.5,
        ):

            async def outlived() -> bool:
                row = await connection.fetchrow(
                    "select heartbeat_at > claimed_at + interval '1.5 s' as beat, lease_until > clock_timestamp() as held "
                    "from longtake.effects where run_id = $1::uuid",
                    living.run_id,
                )
                return bool(row["beat"] and row["held"])

            async def inherited() -> bool:
                return await connection.fetchval(
                    "select fence > $2 and lease_owner <> 'dead' from longtake.effects where id = $1",
                    held.id,
                    held.fence,
                )

            await eventually(outlived, "the beating lease to outlive its second")
            await eventually(inherited, "the silent lease to go to another worker")
            looking.gate.set()
            summaries = [await ended(admitting, str(run.run_id)) for run in (dead, living)]
    claims = {
        str(row["run_id"]): row["owners"]
        for row in await connection.fetch(
            "select run_id, array_agg(owner order by fence) as owners from longtake.effect_claims "
            "where step = 'first' group by 1"
        )
    }

    assert {summary["status"] for summary in summaries} == {"completed"}
    assert len(claims[living.run_id]) == 1
    assert len(claims[dead.run_id]) == 2 and claims[dead.run_id][0] == "dead"


async def _unacked(broker: Any, stream: str) -> tuple[int, int]:
    client = await broker.connect()
    found = await client.jetstream().stream_info(stream)
    consumers = await client.jetstream().consumers_info(stream)
    return found.state.messages, sum(consumer.num_ack_pending or 0 for consumer in consumers)


@pytest.mark.parametrize(
    ("stream", "table", "roles"),
    [("LT_EFFECT", "effects", ("worker",)), ("LT_CALLBACK", "runs", ("dispatcher",))],
    ids=["worker", "dispatcher"],
)
@promise("T11", "G46")
async def test_a_message_is_acked_only_when_what_it_asked_for_is_durable(
    database, broker, tmp_path, stream, table, roles
):
    """The authority is made to hesitate: taken messages stay unacked, all of the batch, until the rows are written."""
    app = noop_app()
    async with runtime(database, broker, tmp_path, app, roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            runs = [await start_run(process, f"held-{n}") for n in range(3)]
            if stream == "LT_CALLBACK":
                claimed = await bench.claim()
                await bench.report(claimed)
                await process.hints.look_at(effects=[(effect.id, effect.run_id) for effect in claimed])

            async def published() -> bool:
                return (await _unacked(broker, stream))[0] > 0

            await eventually(published, "messages to stand in the stream")
            messages, _ = await _unacked(broker, stream)
            holder = await database.connect()
            barrier = holder.transaction()
            await barrier.start()
            await holder.execute(f"lock table longtake.{table} in share row exclusive mode")
            async with runtime(database, broker, tmp_path / "rest", app, roles=roles):

                async def taken() -> bool:
                    return (await _unacked(broker, stream))[1] == messages

                await eventually(taken, "the messages to be taken")
                assert (await _unacked(broker, stream)) == (messages, messages)
                await barrier.rollback()

                async def settled() -> bool:
                    return (await _unacked(broker, stream))[0] == 0

                await eventually(settled, "the messages to be acked")
                connection = await database.connect()
                if stream == "LT_EFFECT":
                    assert await connection.fetchval("select count(*) from longtake.effect_claims") == 3
                else:
                    for run in runs:
                        summary = await summary_of(process, str(run.run_id))
                        assert summary["progress"]["completed"] == 1
        finally:
            await bench.close()


class Patient(Activity):
    """A request that an outsider works at for hours."""

    name = "patient@1"

    async def execute(self, call: Any) -> Outcome:
        return Submitted(external_ref="job", poll_after_seconds=3600)

    async def poll(self, call: Any) -> Outcome:
        return Pending(poll_after_seconds=3600)


@promise("T44", "H33")
async def test_a_wait_holds_no_lease_no_slot_and_no_message(database, broker, tmp_path):
    """With a single slot, a run that waits for hours leaves it to the next."""
    app = App("patient")
    app.add(Patient())

    @app.activity("brief@1")
    async def brief(call: Any) -> None:
        return None

    @app.workflow("patient", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("wait", activity="patient@1")

    @app.workflow("brief", version=1)
    def build_brief(input: Any, policy: Any) -> Plan:
        return Plan().step("do", activity="brief@1").step("more", activity="brief@1", depends_on=["do"])

    connection = await database.connect()
    async with runtime(database, broker, tmp_path, app, slots=1) as process:
        waiting = await start_run(process, "waiting", "patient@1")

        async def submitted() -> bool:
            return await connection.fetchval(
                "select count(*) = 1 from longtake.effects where kind = 'poll' and closed_at is null"
            )

        await eventually(submitted, "the request to be with the outsider")
        brief_run = await start_run(process, "brief", "brief@1")
        assert (await ended(process, str(brief_run.run_id)))["status"] == "completed"
        poll = await connection.fetchrow(
            "select state, lease_owner, published_at, not_before > clock_timestamp() + interval '50 min' as far "
            "from longtake.effects where kind = 'poll'"
        )
        assert tuple(poll) == ("queued", None, None, True)
        assert (await _unacked(broker, "LT_EFFECT"))[0] == 0
        assert (await summary_of(process, str(waiting.run_id)))["status"] == "running"


@promise("T34", "T35")
async def test_independent_steps_run_at_the_same_time_and_the_join_waits_for_both(database, broker, tmp_path):
    """Each branch waits inside its call for the other: one after the other would never end."""
    app = App("parallel")
    both = asyncio.Barrier(2)
    order: list[str] = []

    @app.activity("meet@1")
    async def meet(call: Any) -> dict[str, str]:
        await both.wait()
        order.append(call.step)
        return {"from": call.step}

    @app.activity("join@1")
    async def join(call: Any) -> dict[str, Any]:
        order.append(call.step)
        return dict(call.input)

    @app.workflow("diamond", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return (
            Plan()
            .step("left", activity="meet@1")
            .step("right", activity="meet@1")
            .step(
                "join",
                activity="join@1",
                input={"l": ref("left", "/result/from"), "r": ref("right", "/result/from")},
            )
        )

    async with runtime(database, broker, tmp_path, app) as process:
        receipt = await start_run(process, "diamond", "diamond@1")
        summary = await ended(process, str(receipt.run_id))
        joined = await (await database.connect()).fetchval(
            "select receipt->'result' from longtake.effects where step = 'join'"
        )

    assert summary["status"] == "completed"
    assert sorted(order[:2]) == ["left", "right"] and order[2:] == ["join"]
    assert joined.replace(" ", "") == '{"l":"left","r":"right"}'


@promise("G58", "T41", "H23")
async def test_every_step_may_be_decided_by_a_process_that_knows_nothing_but_the_store(
    database, broker, tmp_path
):
    """A chain of four, each claim, report and decision by a newcomer: nothing lives in anybody's memory."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        receipt = await start_run(process, "strangers", input_={"steps": 4})
    for _ in range(4):
        async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
            bench = await Bench.open(process)
            (effect,) = await bench.claim()
            await bench.report([effect])
            await bench.close()
            bench = await Bench.open(process)
            await bench.decide([effect.id])
            await bench.close()
            summary = await summary_of(process, str(receipt.run_id))

    assert (summary["status"], summary["progress"]["completed"]) == ("completed", 4)


@promise("T16", "T23", "T24")
async def test_doorbells_in_any_order_and_number_lead_to_one_history(database, broker, tmp_path):
    """Twice each, backwards, by two dispatchers at once: order and uniqueness are those of the authority."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        bench = await Bench.open(process)
        try:
            runs = [str((await start_run(process, f"mixed-{n}")).run_id) for n in range(8)]
            other = bench.new_dispatcher()
            for _ in range(3):
                claimed = await bench.claim()
                assert len(claimed) == len(runs)
                await bench.report(claimed)
                ids = [effect.id for effect in claimed]
                backwards = Pointers(effects=dict.fromkeys(reversed(ids)))
                await asyncio.gather(bench.decide(ids), other.handle(backwards))
                await other.handle(backwards)
            summaries = [await summary_of(process, run_id) for run_id in runs]
            steps = await bench.pool.fetch(
                "select run_id, count(*) as n from longtake.events where type = 'step_succeeded' group by 1"
            )
            gaps = await bench.pool.fetchval(
                "select count(*) from (select run_id from longtake.events group by 1 having max(seq) <> count(*)) g"
            )
        finally:
            await bench.close()

    assert {summary["status"] for summary in summaries} == {"completed"}
    assert {row["n"] for row in steps} == {3} and len(steps) == len(runs)
    assert gaps == 0


@promise("T25")
async def test_every_projection_says_which_event_it_shows(database, broker, tmp_path):
    """A run's revision and a step's updated_seq are places in the history; a reader need not trust that somebody lives."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=API_ONLY) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "placed", "outside@1")
            await bench.settle(Submitted(external_ref="job-1", poll_after_seconds=600))
            places = await bench.pool.fetchrow(
                "select r.revision, s.updated_seq, (select max(seq) from longtake.events) as last, "
                "(select seq from longtake.events where type = 'attempt_submitted') as submitted "
                "from longtake.runs r join longtake.steps s using (run_id)"
            )
            shown = await summary_of(process, str(receipt.run_id))
        finally:
            await bench.close()

    assert places["revision"] == places["last"] == shown["revision"]
    assert places["updated_seq"] == places["submitted"]


class Slow(Activity):
    """A call that says it may take many minutes."""

    name = "slow@1"
    lease = "long"

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def execute(self, call: Any) -> Outcome:
        await self.gate.wait()
        return Succeeded()


@promise("G33", "G32")
async def test_a_long_call_holds_a_lease_of_five_minutes_after_its_first_beat(database, broker, tmp_path):
    app, slow = App("slow"), Slow()
    app.add(slow)

    @app.workflow("slow", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("write", activity="slow@1")

    connection = await database.connect()
    async with runtime(database, broker, tmp_path, app, heartbeat_seconds=0.2) as process:
        receipt = await start_run(process, "slow", "slow@1")

        async def long() -> bool:
            return await connection.fetchval(
                "select lease_until - heartbeat_at > interval '4 min 59 s' from longtake.effects"
            )

        await eventually(long, "the first beat")
        slow.gate.set()
        assert (await ended(process, str(receipt.run_id)))["status"] == "completed"


@promise("G34")
async def test_a_lease_whose_time_passed_in_an_outage_is_kept_by_a_holder_that_comes_first(
    database, broker, tmp_path
):
    """P18: until a sweeper has ended it nobody else can have it; afterwards it is lost whoever asks."""
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await start_run(process, "outage")
        bench = await Bench.open(process)
        keeper = PostgresLeaseKeeper(process.addresses.postgres, owner="hand")
        try:
            (effect,) = await bench.claim()
            lapse = "update longtake.effects set lease_until = clock_timestamp() - interval '1 min'"
            await bench.pool.execute(lapse)
            kept = await keeper.renew([(effect.id, effect.fence, 30)], {})
            spared = await process.sweep.expire_leases(leases_max=5, authority_up_seconds=0.0, connected=True)
            await bench.pool.execute(lapse)
            ended_ = await process.sweep.expire_leases(leases_max=5, authority_up_seconds=0.0, connected=True)
            late = await keeper.renew([(effect.id, effect.fence, 30)], {})
        finally:
            await keeper.close()
            await bench.close()

    assert (kept, spared) == ({effect.id}, [])
    assert ([lease.id for lease in ended_], late) == ([effect.id], set())
