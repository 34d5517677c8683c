"""Stores that went back to an earlier moment: who notices, what is refused, and which epoch comes next (F70, F71, P2)."""

import asyncio
import json
import uuid

import pytest

from kit.probe import eventually
from kit.restore_app import app
from kit.runtimes import ended, noop_app, runtime, start_run
from longtake.bootstrap import Addresses
from longtake.cli.main import run_command
from longtake.cli.restore import go_through
from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.ids import event_id_for
from longtake.contracts.outcomes import (
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Pending,
    Submitted,
    Succeeded,
    Unknown,
)
from longtake.engine import presence
from longtake.errors import ConfigurationError, StoreRewound
from longtake.worker.activity import Activity
from longtake.worker.executor import known_outside


def addresses(database, broker) -> Addresses:
    return Addresses(database.connect_kwargs, broker.url, broker.token)


async def test_a_process_ends_when_the_epoch_was_raised_under_it(database, broker, tmp_path, monkeypatch):
    monkeypatch.setattr(presence, "ANNOUNCE_SECONDS", 0.05)
    connection = await database.connect()
    async with runtime(database, broker, tmp_path, noop_app()) as process:
        await connection.execute("update longtake.store set store_epoch = 2")
        error = await asyncio.wait_for(process.failed(), 30)
        assert isinstance(error, StoreRewound)
        assert "epoch 2" in str(error)
        process._services = [s for s in process._services if getattr(s, "name", "") != "presence"]


async def test_nobody_starts_on_a_store_whose_restore_is_not_finished(database, broker, tmp_path):
    connection = await database.connect()
    await connection.execute("update longtake.store set restoring = true")
    with pytest.raises(StoreRewound, match="longtake doctor restore"):
        async with runtime(database, broker, tmp_path, noop_app()):
            pass
    await connection.execute("update longtake.store set restoring = false")
    async with runtime(database, broker, tmp_path, noop_app()) as process:
        run = await start_run(process, "after")
        assert (await ended(process, run.run_id))["status"] == "completed"


async def test_nobody_starts_on_a_store_whose_epoch_lags_what_the_transport_has_seen(
    database, broker, tmp_path
):
    connection = await database.connect()
    await connection.execute("update longtake.store set store_epoch = 4")
    async with runtime(database, broker, tmp_path, noop_app()):
        pass
    await connection.execute("update longtake.store set store_epoch = 3")
    with pytest.raises(StoreRewound, match="epoch 3 and the transport has seen 4"):
        async with runtime(database, broker, tmp_path, noop_app()):
            pass


async def test_a_restore_refuses_company_and_does_not_guess_a_lost_epoch(
    database, broker, tmp_path, monkeypatch
):
    """JetStream lost entirely (F71): only the operator can know which epochs there were."""
    connection = await database.connect()
    with pytest.raises(ConfigurationError, match="1 other connections are open"):
        await go_through(addresses(database, broker), app, yes=True)
    await database.close()
    await eventually(lambda: connection.is_closed(), "the end of the connection")
    with pytest.raises(ConfigurationError, match="--epoch-above"):
        await go_through(addresses(database, broker), app, yes=True)
    report = await go_through(addresses(database, broker), app, yes=False, epoch_above=7)
    assert report.epoch == 0, "looked only"
    report = await go_through(addresses(database, broker), app, yes=True, epoch_above=7)
    assert (report.epoch_before, report.epoch) == (1, 8)
    report = await go_through(addresses(database, broker), app, yes=True)
    assert (report.epoch_before, report.epoch_of_transport, report.epoch) == (8, 8, 9)
    async with runtime(database, broker, tmp_path, noop_app()) as process:
        run = await start_run(process, "after")
        assert (await ended(process, run.run_id))["status"] == "completed"
    row = await (await database.connect()).fetchrow("select id, run_id, seq from longtake.events limit 1")
    assert row["id"] == event_id_for(row["run_id"], seq=row["seq"], store_epoch=9)


async def test_the_command_walks_through_and_says_each_step(database, broker, monkeypatch, capsys):
    monkeypatch.setenv("LONGTAKE_POSTGRES_URL", database.dsn)
    monkeypatch.setenv("LONGTAKE_NATS_URL", broker.url)
    monkeypatch.setenv("LONGTAKE_NATS_TOKEN", broker.token)
    call = ["doctor", "restore", "--app", "kit.restore_app:app"]
    assert await asyncio.to_thread(run_command, call) == 1
    assert "give --epoch-above N" in capsys.readouterr().err
    assert await asyncio.to_thread(run_command, [*call, "--epoch-above", "1"]) == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert await asyncio.to_thread(run_command, [*call, "--epoch-above", "1", "--yes", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"]["epoch"] == 2
    assert "nobody else is connected" in told["steps"]


SUBMITTED = Submitted(external_ref="job")
ASKED: list[tuple[str, Outcome | Exception, type[Outcome] | None]] = [
    ("no", Succeeded(), None),
    ("lost", Succeeded(), Succeeded),
    ("lost", SUBMITTED, Submitted),
    ("lost", Failed(error_class="bad_output", message="m", adopted=True), Failed),
    ("lost", NotFound(evidence="e"), None),
    ("lost", Impossible(evidence="e"), Unknown),
    ("new", Impossible(evidence="e"), None),
    ("new", Succeeded(), Succeeded),
    ("lost", Failed(error_class="overloaded", message="m"), Unknown),
    ("lost", Pending(poll_after_seconds=1), Unknown),
    ("lost", ValueError("broke"), Unknown),
]


@pytest.mark.parametrize(("asks", "told", "outcome"), ASKED)
async def test_what_a_look_up_before_a_call_means(asks, told, outcome):
    class Asked(Activity):
        name = "asked@1"
        paid = True

        async def execute(self, call):
            raise AssertionError("never called")

        async def reconcile(self, call):
            if isinstance(told, Exception):
                raise told
            return told

    effect = claimed(asks)
    found = await known_outside(effect, Asked(), None)
    assert (None if found is None else type(found)) is outcome
    free = type("Free", (Asked,), {"paid": False})
    assert await known_outside(effect, free(), None) is None, "what costs nothing may be done again"


def claimed(asks) -> ClaimedEffect:
    return ClaimedEffect(
        id=uuid.UUID(int=1), tenant="acme", run_id=uuid.UUID(int=2), step="s", attempt=1, kind="execute",
        activity="asked@1", pool="default", input=b"{}", fence=1, lease_seconds=30, traceparent=None,
        external_ref=None, call_opened_before=False, asks=asks,
    )  # fmt: skip
