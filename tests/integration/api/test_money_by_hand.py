"""The money of a run as people ask for it: the price of a fork before it is sent, and whether all money keeps its laws."""

import uuid
from typing import Any

import asyncpg
import pytest

from kit.promises import promise
from kit.runtimes import PRINCIPAL, ended, fund, runtime, start_run
from longtake import App, Plan
from longtake.cli import ledger
from longtake.cli.fork_price import fork_price, print_fork
from longtake.client import Client
from longtake.errors import LongtakeError, Refused


def pair() -> App:
    app = App("pair")

    @app.activity("make@1")
    async def make(call: Any) -> dict[str, str]:
        return {"url": "u"}

    @app.workflow("pair", version=1)
    def build(input: Any, policy: Any) -> Plan:
        plan = Plan(billing="pay_as_you_go").step("first", activity="make@1", price=2)
        return plan.step("second", activity="make@1", price=3, depends_on=["first"])

    return app


@promise("T52")
async def test_the_price_of_a_fork_is_told_before_it_is_sent_and_is_what_it_costs(
    database, broker, tmp_path, capsys
):
    async with runtime(database, broker, tmp_path, pair()) as process:
        await fund(process)
        source = str((await start_run(process, "c1", "pair@1")).run_id)
        await ended(process, source)
        key = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        async with Client(process.api_server.url, key.text) as client:
            told = await fork_price(client, source, "second")
            with pytest.raises(Refused, match="no step"):
                await fork_price(client, source, "third")
            accepted = await client.fork(source, "second", max_extra_credits=told.extra)
            summary = await client.wait(str(accepted.run_id), seconds=30)
    print_fork(told, as_json=False)
    shown = capsys.readouterr().out

    assert (3, 3) == (told.extra, summary.cost.charged_credits)
    assert "A fork from second costs 3 extra credits." in shown
    assert "free" in shown


@promise("H52")
async def test_the_ledger_is_checked_from_the_command_line(database, broker, tmp_path, monkeypatch, capsys):
    async with runtime(database, broker, tmp_path, pair()) as process:
        await fund(process)
        run_id = str((await start_run(process, "c1", "pair@1")).run_id)
        await ended(process, run_id)
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    connection: asyncpg.Connection = await database.connect()

    assert 0 == await in_thread(ledger.check)
    assert "the money keeps its laws" in capsys.readouterr().out
    await connection.execute("update longtake.accounts set held = held + 1")
    assert 1 == await in_thread(ledger.check)
    assert "account_holds_are_the_runs" in capsys.readouterr().out
    assert 0 == await in_thread(ledger.check, run_id)
    with pytest.raises(LongtakeError, match="there is no run"):
        await in_thread(ledger.check, str(uuid.uuid4()))


async def in_thread(check: Any, *arguments: str) -> int:
    """Commands run a loop of their own."""
    import asyncio

    found: int = await asyncio.to_thread(check, *arguments)
    return found
