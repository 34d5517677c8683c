"""Two ways to say which revision was seen: the normal one bears unrelated events, If-Match does not (P3)."""

import uuid

import pytest

from kit.hand_work import Bench
from kit.promises import promise
from kit.runtimes import PRINCIPAL, fund, noop_app, runtime, start_run, summary_of
from longtake.contracts.commands import Command


@pytest.mark.parametrize("strict", [False, True], ids=["since", "exact"])
@promise("H37")
async def test_a_step_that_finished_meanwhile_makes_only_the_strict_cancel_stale(
    database, broker, tmp_path, strict
):
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            receipt = await start_run(process, "seen")
            await bench.settle()
            assert (await summary_of(process, str(receipt.run_id)))["revision"] > receipt.revision
            cancel = Command(
                kind="cancel",
                project="p1",
                targets=(str(receipt.run_id),),
                client_command_id="stop",
                expected_revision=receipt.revision,
            )

            answer = await process.admission.admit(
                PRINCIPAL, cancel, channel="local", traceparent=None, strict=strict
            )

            if strict:
                assert answer.receipt.problem is not None
                assert answer.receipt.problem.slug == "stale-revision"
                assert answer.receipt.problem.errors[0].pointer == "/header/If-Match"
            else:
                assert answer.receipt.problem is None
                assert (await summary_of(process, str(receipt.run_id)))["status"] in {
                    "cancelling",
                    "cancelled",
                }
            assert await process.audit.prove(uuid.UUID(str(receipt.run_id)), "acme") == []
        finally:
            await bench.close()
