"""A pause against claims on the real authority: what nobody has begun is taken back, what somebody has is his (P19, P1)."""

import asyncio
import uuid
from contextlib import asynccontextmanager

from kit.hand_work import Bench
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import PRINCIPAL, fund, noop_app, runtime, start_run, summary_of
from longtake import App, Plan
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.principal import Principal
from longtake.errors import Refused

RIVAL = Principal(tenant="rival", actor="tester")


def pair_app() -> App:
    """Two steps side by side."""
    app = noop_app()

    @app.workflow("pair", version=1)
    def build(input, policy):
        return Plan().step("a", activity="noop@1").step("b", activity="noop@1")

    return app


@asynccontextmanager
async def by_hand(database, broker, tmp_path):
    """An API and nothing that works by itself."""
    async with runtime(database, broker, tmp_path, pair_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            yield process, bench
        finally:
            await bench.close()


async def send(
    process, kind: str, run_id: str, *, principal: Principal = PRINCIPAL, id_: str | None = None
) -> Receipt:
    revision = (await summary_of(process, run_id))["revision"]
    command = Command(
        kind=kind,
        project="p1",
        targets=(run_id,),
        client_command_id=id_ or uuid.uuid4().hex,
        expected_revision=revision,
    )
    answer = await process.admission.admit(principal, command, channel="local", traceparent=None)
    assert answer.receipt.problem is None, answer.receipt.problem
    return answer.receipt


async def steps_of(process, run_id: str) -> dict[str, tuple[str, int]]:
    rows = await process.reads.steps(PRINCIPAL.tenant, uuid.UUID(run_id))
    return {row["key"]: (row["status"], row["attempt"]) for row in rows}


async def claim(bench: Bench, effect: tuple[uuid.UUID, int]) -> list[ClaimedEffect]:
    """One worker that wants one effect."""
    return await bench.effects.claim(
        claim_id=uuid.uuid4(), effects=[effect], limit=1, owner="hand", lease_seconds=30
    )


async def withdrawn(bench: Bench) -> list[uuid.UUID]:
    """Effects that were answered with Cancelled and are still to be decided."""
    rows = await bench.pool.fetch(
        "select id from longtake.effects where closed_at is null and receipt is not null order by id"
    )
    return [row["id"] for row in rows]


@promise("W07", "T45")
async def test_a_pause_takes_back_what_nobody_claimed_and_leaves_what_somebody_did(
    database, broker, tmp_path
):
    async with by_hand(database, broker, tmp_path) as (process, bench):
        run_id = str((await start_run(process, "pair", "pair@1")).run_id)
        (mine, _) = [effect for effect, _ in await bench.open_effects()]
        (held,) = await bench.effects.claim(
            claim_id=uuid.uuid4(), effects=[(mine, 1)], limit=1, owner="hand", lease_seconds=30
        )

        await send(process, "pause", run_id)
        await bench.decide(await withdrawn(bench))
        assert [] == await bench.claim(), "nothing is handed out"
        await bench.report([held])
        await bench.decide([held.id])
        assert "paused" == (await summary_of(process, run_id))["status"]

        await send(process, "resume", run_id)
        (again,) = await bench.claim()
        assert (1, "execute") == (again.attempt, again.kind)
        assert again.step != held.step and again.id not in {mine}
        await bench.report([again])
        await bench.decide([again.id])

        assert "completed" == (await summary_of(process, run_id))["status"]
        rows = await bench.pool.fetch(
            "select step, ordinal, disposition from longtake.effects order by step, ordinal"
        )
        assert sorted(
            [(held.step, 1, "applied"), (again.step, 1, "applied"), (again.step, 2, "applied")]
        ) == [tuple(row) for row in rows]
        assert [] == await process.audit.prove(uuid.UUID(run_id), PRINCIPAL.tenant)


async def test_pause_and_claim_at_once_let_each_step_be_done_once(database, broker, tmp_path):
    """Whoever comes first: after a resume every step has one receipt that was applied as work, and no work is lost."""
    async with by_hand(database, broker, tmp_path) as (process, bench):
        for number in range(12):
            run_id = str((await start_run(process, f"race-{number}", "pair@1")).run_id)
            one, other = await bench.open_effects()
            first, _, second = await asyncio.gather(
                claim(bench, one), send(process, "pause", run_id), claim(bench, other)
            )
            claimed = [*first, *second]
            taken_back = await withdrawn(bench)
            assert 2 == len(claimed) + len(taken_back), "each effect is somebody's"
            await bench.report(claimed)
            await bench.decide([*taken_back, *(effect.id for effect in claimed)])
            # A paused run whose every step was under way is simply done.
            if taken_back:
                await send(process, "resume", run_id)
            while await bench.settle():
                pass

            assert "completed" == (await summary_of(process, run_id))["status"]
            applied = await bench.pool.fetch(
                "select data->>'step' as step, count(*) as times from longtake.events "
                "where run_id = $1 and type = 'step_succeeded' group by 1",
                uuid.UUID(run_id),
            )
            assert {"a": 1, "b": 1} == {row["step"]: row["times"] for row in applied}
            assert [] == await process.audit.prove(uuid.UUID(run_id), PRINCIPAL.tenant)


@promise("T45")
async def test_a_command_of_another_tenant_finds_no_run(database, broker, tmp_path):
    """The tenant of the key decides, whatever the command says; the run is not touched."""
    async with by_hand(database, broker, tmp_path) as (process, _):
        run_id = str((await start_run(process, "mine", "pair@1")).run_id)
        before = await summary_of(process, run_id)
        for kind in ("pause", "cancel", "retry", "resume"):
            command = Command(
                kind=kind,
                project="p1",
                targets=(run_id,),
                client_command_id=kind,
                expected_revision=before["revision"],
            )
            refused = await _refusal(process, command)
            assert ("not-found", "/targets/0") == (refused.slug, refused.errors[0].pointer)

        assert before["revision"] == (await summary_of(process, run_id))["revision"]


async def _refusal(process, command: Command):
    try:
        await process.admission.admit(RIVAL, command, channel="local", traceparent=None)
    except Refused as refused:
        return refused.problem
    raise AssertionError("it was taken")


async def test_a_paused_run_goes_on_after_a_crash_of_everything(database, broker, tmp_path):
    """A pause is in the history, so a new process knows of it, and of the effects that were taken back."""
    app = pair_app()
    async with runtime(database, broker, tmp_path, app, roles=("api",)) as process:
        await fund(process)
        run_id = str((await start_run(process, "kept", "pair@1")).run_id)
        await send(process, "pause", run_id)
    async with runtime(database, broker, tmp_path, app) as process:

        async def ready() -> bool:
            return all(step == ("ready", 1) for step in (await steps_of(process, run_id)).values())

        await eventually(ready, "both steps taken back")
        assert "paused" == (await summary_of(process, run_id))["status"]
        await send(process, "resume", run_id)

        async def over() -> bool:
            return (await summary_of(process, run_id))["status"] == "completed"

        await eventually(over, "the end of the run")
        assert [] == await process.audit.prove(uuid.UUID(run_id), PRINCIPAL.tenant)
