"""A real service with its history on: what it does is accepted, what it must not do is found (4.6)."""

import asyncio
import os
import random
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
import pytest

from kit.instance import instance
from kit.judged_app import DOWN, SLOW, WITNESS, app, signature
from kit.probe import eventually
from kit.recorded_client import RecordedClient
from kit.runtimes import FUNDS, PRINCIPAL, fund, runtime
from longtake.client import Client
from longtake.contracts.summary import Summary
from longtake.settings import ROLES
from longtake.testing.checking import (
    Recorder,
    Verdict,
    WitnessLine,
    judge,
    read_history,
    read_store,
    read_witness,
)
from longtake.testing.checking.kept import keep_store

FUNDED = {(PRINCIPAL.tenant, "main"): FUNDS}


class Service:
    """A service, its clients, and the evidence."""

    def __init__(self, database, tmp_path: Path, client: Client) -> None:
        self.database = database
        self.client = client
        self.history = tmp_path / "history"
        self.witness = self.history / "witness.jsonl"
        self.slow = tmp_path / "slow"
        self.down = tmp_path / "down"

    def session(self, name: str) -> RecordedClient:
        return RecordedClient(self.client, Recorder(self.history / f"{name}.jsonl", name))

    async def judged(self, *, ok_floor: float = 0.5, **options) -> Verdict:
        store = await read_store(await self.database.connect())
        verdict = judge(
            read_history(self.history),
            store,
            read_witness(self.witness),
            funded=FUNDED,
            ok_floor=ok_floor,
            **options,
        )
        print(verdict.text())
        if kept := os.environ.get(KEEP):
            shutil.copytree(self.history, kept)
            keep_store(Path(kept), store)
        return verdict


@asynccontextmanager
async def served(database, broker, tmp_path, monkeypatch, *, roles=("api",)) -> AsyncIterator[Service]:
    (tmp_path / "history").mkdir()
    monkeypatch.setenv(WITNESS, str(tmp_path / "history" / "witness.jsonl"))
    monkeypatch.setenv(SLOW, str(tmp_path / "slow"))
    monkeypatch.setenv(DOWN, str(tmp_path / "down"))
    async with runtime(
        database, broker, tmp_path / "api", app, roles=roles, history_dir=str(tmp_path / "history")
    ) as process:
        await fund(process)
        made = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        async with Client(process.api_server.url, made.text) as client:
            yield Service(database, tmp_path, client)


WORK = ("dispatcher", "relay", "sweeper", "worker")
KEEP = "LONGTAKE_TEST_KEEP"
"""A directory: the evidence of the eventful service is kept there; tests/unit/checking/real was made so."""


def workers(service: Service, broker, tmp_path: Path, **settings):
    """A process of everything but the API."""
    return instance(
        service.database,
        broker,
        tmp_path / "api",  # the secret of callbacks is there
        witness=tmp_path / "unused",
        roles=WORK,
        app="kit.judged_app:app",
        public_url=service.client.url,
        history_dir=str(service.history),
        **settings,
    )


async def until(session: RecordedClient, run_id: str, *statuses: str) -> Summary:
    """Read until the run has come to one of the statuses."""

    async def there() -> Summary | None:
        summary = await session.read(run_id)
        return summary if summary is not None and summary.status in statuses else None

    return await eventually(there, f"{' or '.join(statuses)} of run {run_id}", 30)


async def test_a_service_whose_workers_are_killed_is_accepted(database, broker, tmp_path, monkeypatch):
    """Kill -9 at paid work, gates, a pause, a cancel, failures, a retry, a callback twice, repeats: nothing is wrong."""
    async with served(database, broker, tmp_path, monkeypatch) as service:
        one, two = service.session("client-1"), service.session("client-2")
        service.slow.touch()
        async with workers(service, broker, tmp_path) as doomed:
            gated = (await one.start("gated", "reel@1", {"gate": True})).run_id
            metered = (
                await one.start("metered", "reel@1", {"gate": True, "billing": "pay_as_you_go"})
            ).run_id
            await eventually(lambda: len(read_witness(service.witness)) >= 3, "work at the provider")
            await doomed.kill()
        service.slow.unlink()
        async with workers(service, broker, tmp_path):
            bad = (await two.start("bad", "reel@1", {"bad": True})).run_id
            ordered = (await two.start("ordered", "ordered@1", {})).run_id
            await until(two, bad, "failed")
            await call_back(service)

            summary = await until(one, gated, "needs_input")
            await one.command("pause", gated, "pause", summary.revision)
            await one.command("pause", gated, "pause", summary.revision)
            await one.command(
                "provide_input", gated, "answer", summary.revision, step="look", answer={"ok": True}
            )
            paused = await until(one, gated, "paused")
            await one.command("resume", gated, "resume", summary.revision)
            await one.command("resume", gated, "resume-2", paused.revision)
            await until(one, gated, "completed")

            summary = await until(one, metered, "needs_input")
            await two.command("cancel", metered, "cancel", summary.revision)
            await until(one, metered, "cancelled")
            await one.command("cancel", metered, "cancel-again", summary.revision)

            service.down.touch()
            hard = (await two.start("hard", "reel@1", {"billing": "pay_as_you_go"})).run_id
            await eventually(lambda: both_blocked(two, hard), "two blocked shots", 30)
            service.down.unlink()
            summary = await two.read(hard)
            await two.command("retry", hard, "retry", summary.revision)
            await until(two, hard, "completed")
            await until(two, ordered, "completed")
            await one.start("gated", "reel@1", {"gate": True})

        verdict = await service.judged()

    assert verdict.ok, verdict.text()
    assert verdict.counters["runs"] == 5
    assert verdict.counters["charged"] == 7
    assert verdict.counters["inbox"] == 1
    assert verdict.counters["decided"] > 10
    assert verdict.counters["reported"] > 10


@pytest.mark.parametrize(
    ("activity", "found"),
    [("keyless@1", {"I13"}), ("blind@1", {"I18", "I25"})],
)
async def test_work_that_is_done_twice_at_the_provider_is_found(
    database, broker, tmp_path, monkeypatch, activity, found
):
    """The worker is killed at paid work; what follows it asks under another key, or asks again instead of looking."""
    async with served(database, broker, tmp_path, monkeypatch) as service:
        session = service.session("client-1")
        service.slow.touch()
        async with workers(service, broker, tmp_path) as doomed:
            run = (await session.start("reel", "reel@1", {"shots": 1, "shoot": activity})).run_id
            await eventually(lambda: read_witness(service.witness), "work at the provider")
            await doomed.kill()
        service.slow.unlink()
        async with workers(service, broker, tmp_path):
            await until(session, run, "completed")
        verdict = await service.judged()

    assert verdict.invariants == found, verdict.text()
    assert verdict.counters["charged"] == 2


ACTIONS = {
    "pause_generation": ("pause", {}),
    "resume_generation": ("resume", {}),
    "cancel_generation": ("cancel", {}),
    "provide_generation_input": ("provide_input", {"step": "look", "answer": {"ok": True}}),
}


async def test_clients_that_race_on_a_few_runs_are_told_what_one_order_explains(
    database, broker, tmp_path, monkeypatch
):
    """Six clients read and act on what they have read, some on what they read long ago, some twice."""
    async with served(database, broker, tmp_path, monkeypatch, roles=ROLES) as service:
        sessions = [service.session(f"client-{number}") for number in range(6)]
        runs = [
            (await sessions[0].start(f"reel-{number}", "reel@1", {"shots": 1, "gate": True})).run_id
            for number in range(4)
        ]
        for run in runs:
            await until(sessions[0], run, "needs_input")
        await asyncio.gather(*(quarrel(session, number, runs) for number, session in enumerate(sessions)))
        for run in runs:
            summary = await sessions[0].read(run)
            if summary.status == "paused":
                await sessions[0].command("cancel", run, f"last-{run[:8]}", summary.revision)
        for run in runs:
            await until(sessions[0], run, "completed", "cancelled", "needs_input")
        verdict = await service.judged(ok_floor=0.3)

    assert verdict.ok, verdict.text()
    assert verdict.counters["acknowledged"] > 8
    assert verdict.counters["fail"] > 3


async def quarrel(session: RecordedClient, number: int, runs: list[str]) -> None:
    chance = random.Random(number)
    old: dict[str, Summary] = {}
    for turn in range(25):
        run = chance.choice(runs)
        summary = await session.read(run)
        if chance.random() < 0.2:
            summary = old.get(run, summary)
        old.setdefault(run, summary)
        kinds = [action for action in ACTIONS if action in summary.available_actions]
        if not kinds or (kinds == ["cancel_generation"] and turn < 15):
            continue
        weights = [0.05 if kind in ("cancel_generation", "provide_generation_input") else 1 for kind in kinds]
        kind, payload = ACTIONS[chance.choices(kinds, weights)[0]]
        for _ in range(1 + (chance.random() < 0.2)):
            await session.command(kind, run, f"c{number}-{turn}", summary.revision, **payload)


SPOILS = [
    ("I8", "delete from longtake.commands where client_command_id = 'two'"),
    (
        "I9",
        "update longtake.commands set receipt = replace(receipt::text, '\"revision\":3', '\"revision\":2')::json",
    ),
    ("I15", "update longtake.effects set receipt = null where step = 'cut'"),
    ("I21", "update longtake.accounts set balance = balance + 1"),
    ("I6", "update longtake.steps set status = 'failed' where key = 'cut'"),
    (
        "I1",
        "update longtake.events set data = json_build_object('step', 'cut', 'attempt', 1) where type = 'step_succeeded'",
    ),
    ("I3", "delete from longtake.events where type = 'run_completed'"),
]
"""What no program of ours does, each with the invariant that tells of it; the guards of the database are put aside for it."""


async def test_a_store_that_somebody_has_spoilt_is_found(database, broker, tmp_path, monkeypatch):
    async with served(database, broker, tmp_path, monkeypatch, roles=ROLES) as service:
        session = service.session("client-1")
        runs = [(await session.start(name, "reel@1", {"shots": 1})).run_id for name in ("one", "two")]
        for run in runs:
            await until(session, run, "completed")
        assert (await service.judged()).ok
    connection = await database.connect()
    await connection.execute("set session_replication_role = replica")  # no trigger speaks
    found: set[str] = set()
    for invariant, spoil in SPOILS:
        assert invariant not in found
        await connection.execute(spoil)
        found = (await service.judged()).invariants
        assert invariant in found, spoil


async def both_blocked(session: RecordedClient, run_id: str) -> bool:
    summary = await session.read(run_id)
    return summary is not None and len(summary.blockers) == 2


async def call_back(service: Service) -> None:
    """The provider says twice that its work is done."""
    url = service.witness.with_suffix(".url")
    await eventually(url.exists, "an order at the provider")
    order = next(line for line in reversed(read_witness(service.witness)) if line.charged)
    raw = msgspec.json.encode({"id": f"done-{order.job}", "job": order.job})
    with service.witness.open("ab") as file:
        sent = WitnessLine(t=time.monotonic(), key=order.key, kind="callback", job=order.job)
        file.write(msgspec.json.encode(sent) + b"\n")
    async with httpx2.AsyncClient(trust_env=False) as http:
        for _ in range(2):
            answer = await http.post(url.read_text(), content=raw, headers={"File-Signature": signature(raw)})
            assert answer.status_code == 200, answer.text
