"""Whole processes of longtake inside a test: all roles over the test's own database and broker."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kit.probe import eventually
from longtake import App, Plan
from longtake.bootstrap import Addresses, Runtime
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.principal import Principal
from longtake.contracts.summary import TERMINAL
from longtake.settings import ROLES, Settings

PRINCIPAL = Principal(tenant="acme", actor="tester")
FUNDS = 1_000_000


def noop_app() -> App:
    """An application whose workflow is a chain of free steps that do nothing."""
    app = App("noop")

    @app.workflow("noop", version=1)
    def build(input, policy):  # type: ignore[no-untyped-def]
        plan = Plan()
        previous: list[str] = []
        for index in range(input.get("steps", 3)):
            plan = plan.step(f"noop:{index}", activity="noop@1", pool="short", depends_on=previous)
            previous = [f"noop:{index}"]
        return plan

    @app.activity("noop@1", pool="short")
    async def noop(call):  # type: ignore[no-untyped-def]
        return None

    return app


def settings_for(tmp_path: Path, **changes: object) -> Settings:
    """Settings with times that suit a test: leases of two seconds, hints lost after half a second."""
    values = {"data_dir": tmp_path, "lease_seconds": 2, "heartbeat_seconds": 0.5, "grace_seconds": 0.5,
              "idle_seconds": 2.0, "stop_seconds": 1.0, "port": 0}  # fmt: skip
    return Settings(**{**values, **changes})  # type: ignore[arg-type]


@asynccontextmanager
async def runtime(
    database,
    broker,
    tmp_path: Path,
    app: App | None,
    *,
    roles=ROLES,
    sole_owner: bool = False,
    **changes: object,
) -> AsyncIterator[Runtime]:  # type: ignore[no-untyped-def]
    """Run the roles until the block ends."""
    addresses = Addresses(database.connect_kwargs, broker.url, broker.token)
    process = Runtime(
        settings_for(tmp_path, **changes), addresses, roles=roles, app=app, sole_owner=sole_owner
    )
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


async def fund(process: Runtime, credits: int = FUNDS) -> None:
    """Give the tester's account credits."""
    await process.keys.fund(tenant=PRINCIPAL.tenant, account="main", credits=credits)


async def start_run(
    process: Runtime, id_: str, workflow: str = "noop@1", input_: dict | None = None
) -> Receipt:
    """Admit a generation command the way the API does."""
    command = Command(
        kind="generation",
        project="p1",
        payload={"workflow": workflow, "input": input_ or {}},
        client_command_id=id_,
    )
    answer = await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)
    return answer.receipt


async def summary_of(process: Runtime, run_id: str) -> dict:
    """The stored summary."""
    row = await process.reads.summary(PRINCIPAL.tenant, uuid.UUID(run_id))
    assert row is not None
    return msgspec.json.decode(row["summary"])


async def ended(process: Runtime, run_id: str, seconds: float = 30.0) -> dict:
    """Wait for the run's end and return its summary."""

    async def over() -> dict | None:
        summary = await summary_of(process, run_id)
        return summary if summary["status"] in TERMINAL else None

    return await eventually(over, f"the end of run {run_id}", seconds)
