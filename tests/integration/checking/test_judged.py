"""A real service with its history on: what it does is accepted, what it must not do is found (4.6)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kit.instance import instance
from kit.judged_app import SLOW, WITNESS, app
from kit.probe import eventually
from kit.recorded_client import RecordedClient
from kit.runtimes import FUNDS, PRINCIPAL, fund, runtime
from longtake.client import Client
from longtake.testing.checking import Recorder, Verdict, judge, read_history, read_store, read_witness

FUNDED = {(PRINCIPAL.tenant, "main"): FUNDS}


class Service:
    """A service, its clients, and the evidence."""

    def __init__(self, database, tmp_path: Path, client: Client) -> None:
        self.database = database
        self.client = client
        self.history = tmp_path / "history"
        self.witness = tmp_path / "provider.jsonl"
        self.slow = tmp_path / "slow"

    def session(self, name: str) -> RecordedClient:
        return RecordedClient(self.client, Recorder(self.history / f"{name}.jsonl", name))

    async def judged(self, **options) -> Verdict:
        store = await read_store(await self.database.connect())
        verdict = judge(
            read_history(self.history),
            store,
            read_witness(self.witness),
            funded=FUNDED,
            ok_floor=0.5,
            **options,
        )
        print(verdict.text())
        return verdict


@asynccontextmanager
async def served(database, broker, tmp_path, monkeypatch) -> AsyncIterator[Service]:
    monkeypatch.setenv(WITNESS, str(tmp_path / "provider.jsonl"))
    monkeypatch.setenv(SLOW, str(tmp_path / "slow"))
    async with runtime(database, broker, tmp_path / "api", app, roles=("api",)) as process:
        await fund(process)
        made = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        async with Client(process.api_server.url, made.text) as client:
            yield Service(database, tmp_path, client)


WORK = ("dispatcher", "relay", "sweeper", "worker")


async def test_a_service_whose_workers_are_killed_is_accepted(database, broker, tmp_path, monkeypatch):
    async with served(database, broker, tmp_path, monkeypatch) as service:
        service.slow.touch()
        session = service.session("client-1")
        async with instance(
            database, broker, tmp_path / "a", witness=tmp_path / "w", roles=WORK, app="kit.judged_app:app"
        ) as doomed:
            started = [await session.start(f"reel-{n}", "reel@1", {"gate": n == 0}) for n in range(3)]
            await eventually(lambda: len(read_witness(service.witness)) >= 2, "work at the provider")
            await doomed.kill()
        service.slow.unlink()
        async with instance(
            database, broker, tmp_path / "a", witness=tmp_path / "w", roles=WORK, app="kit.judged_app:app"
        ):
            gated, *others = [accepted.run_id for accepted in started if accepted]

            async def asks():
                summary = await session.read(gated)
                return summary if summary and summary.status == "needs_input" else None

            summary = await eventually(asks, "the gate")
            await session.command(
                "provide_input", gated, "answer", summary.revision, step="look", answer={"ok": True}
            )

            async def over():
                reads = [await session.read(run) for run in (gated, *others)]
                return all(read and read.status == "completed" for read in reads)

            await eventually(over, "the ends of all runs")

        verdict = await service.judged()

    assert verdict.ok, verdict.text()
    assert verdict.counters["charged"] == 6
