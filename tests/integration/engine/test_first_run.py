"""A run goes all the way over real Postgres and real nats-server."""

import uuid

from kit.promises import promise
from kit.runtimes import ended, fund, noop_app, runtime, start_run


@promise("G13", "H22")
async def test_a_noop_run_is_admitted_decided_executed_and_completed(database, broker, tmp_path):
    async with runtime(database, broker, tmp_path, noop_app()) as process:
        await fund(process)

        receipt = await start_run(process, "first-1", input_={"steps": 5})

        assert receipt.status == "running", receipt
        summary = await ended(process, receipt.run_id)
        assert summary["status"] == "completed"
        assert summary["progress"] == {"completed": 5, "total": 5, "percent": 100}
        run_id = uuid.UUID(receipt.run_id)
        assert await process.audit.verify(run_id) == summary["revision"]
        assert await process.audit.prove(run_id, "acme") == []
