"""The restore drill: a base backup, a lost interval full of paid work, and what is judged after the restore (F70, N30).

async with drill(tmp_path) as it:
    await it.live_until_backup()
    await it.live_on(60)              # the interval that will be lost; ends by a kill in the middle of work
    await it.restore()                # Postgres alone goes back; JetStream and the provider stay ahead
    report = await it.doctor()
    faults = await it.judged(report)
"""

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import msgspec

from kit.instance import instance
from kit.probe import eventually
from kit.restore_app import BROKEN, PROVIDER, app
from kit.runtimes import PRINCIPAL
from longtake.bootstrap import Addresses, apply_migrations
from longtake.cli.restore import go_through
from longtake.client import Client
from longtake.embedded import THROWAWAY, EmbeddedServers
from longtake.embedded.process import run
from longtake.engine.audit import Audit
from longtake.engine.restore import RestoreReport
from longtake.postgres.audits import PostgresAuditStore
from longtake.postgres.keys import PostgresKeyStore
from longtake.postgres.pool import open_pool
from longtake.testing.checking import WitnessLine, read_witness

PROFILE = msgspec.structs.replace(
    THROWAWAY, postgres={**THROWAWAY.postgres, "wal_level": "replica", "max_wal_senders": "4"}
)
"""A base backup is streamed as by a standby."""
FUNDS = 1_000_000
SLOTS = 4
ENDED = ("completed", "cancelled")


class Provider:
    """HTTP, charges every submission, and writes down each request before it answers."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness
        self.answering = asyncio.Event()
        self.answering.set()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            _, kind, key = head.split(" ")[1].split("/")
            known = next((line.job for line in self.lines() if line.key == key and line.job), "")
            line = WitnessLine(t=time.monotonic(), key=key, kind=kind, job=known)
            if kind == "submit":
                line.job, line.charged, line.credits = known or f"job-{key[-8:]}", True, 3
            with self.witness.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            await self.answering.wait()
            body = line.job.encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def lines(self) -> list[WitnessLine]:
        """Everything that was asked."""
        return read_witness(self.witness)


class Drill:
    """One store with its past, its lost interval and its restores."""

    def __init__(self, home: Path, servers: EmbeddedServers, provider: Provider) -> None:
        self.home = home
        self.servers = servers
        self.provider = provider
        self.backup = home / "backup"
        self.key = ""
        self.accepted: dict[str, tuple[str, str | None]] = {}
        """By command id of the lost interval: its kind and its run."""
        self.events: dict[Any, bytes] = {}
        """Id and hash of every event that somebody may have seen."""
        self.waiting: list[str] = []
        """Runs that wait for somebody at the moment of the backup."""
        self.commands = 0
        self.charged, self.lost = 0, 0
        """What the last judgement counted: attempts that were charged, and accepted commands that are not there."""

    @property
    def addresses(self) -> Addresses:
        return Addresses(
            self.servers.postgres_connect_kwargs(), self.servers.nats_url, self.servers.nats_token
        )

    async def connect(self) -> asyncpg.Connection:
        return await asyncpg.connect(**self.servers.postgres_connect_kwargs())

    @asynccontextmanager
    async def served(self) -> AsyncIterator[tuple[Client, Any]]:
        """A process of all roles, and a client of it."""
        database = SimpleNamespace(connect_kwargs=self.servers.postgres_connect_kwargs())
        broker = SimpleNamespace(url=self.servers.nats_url, token=self.servers.nats_token)
        async with (
            instance(
                database,
                broker,
                self.home / "instance",
                witness=self.home / "unused",
                app="kit.restore_app:app",
                slots=SLOTS,
            ) as process,
            Client(process.url, self.key) as client,
        ):
            yield client, process

    async def live_until_backup(self) -> None:
        """Some runs come to their end, some wait for somebody; then pg_basebackup, verified."""
        await apply_migrations(self.servers.postgres_connect_kwargs())
        pool = await open_pool(self.servers.postgres_connect_kwargs(), size=1, name="drill")
        keys = PostgresKeyStore(pool)
        await keys.fund(tenant=PRINCIPAL.tenant, account="main", credits=FUNDS)
        self.key = (
            await keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        ).text
        await pool.close()
        async with self.served() as (client, _):
            await self.end(client, [await self.start(client, "short@1") for _ in range(3)])
            self.waiting = [await self.start(client, "film@1") for _ in range(3)]
            await self.wait(client, self.waiting, "needs_input")
            seat = self.servers._postgres._seat
            host = self.servers.postgres_connect_kwargs()["host"]
            for command in (
                seat.command("pg_basebackup", *("-D", str(self.backup), "-h", host, "-U", "longtake", "-X", "stream"),
                             *("-c", "fast", "--no-sync")),
                seat.command("pg_verifybackup", str(self.backup)),
            ):  # fmt: skip
                status, said = await run(command)
                assert status == 0, said

    async def live_on(self, runs: int) -> None:
        """The interval that is lost: paid runs, some cancelled, some half way, killed while the provider works."""
        async with self.served() as (client, process):
            for run_id in self.waiting[:2]:
                await self.answer(
                    client, run_id
                )  # paid for in the lost interval, by runs that the backup has
            films = [await self.start(client, "film@1") for _ in range(max(4, runs // 4))]
            shorts = [await self.start(client, "short@1") for _ in range(runs - len(films) - SLOTS)]
            await self.wait(client, films, "needs_input")
            for run_id in films[: len(films) // 3]:
                await self.cancel(client, run_id)
            await self.end(client, [*shorts, *films[: len(films) // 3], *self.waiting[:2]])
            self.provider.answering.clear()
            asked = len(self.provider.lines())
            for _ in range(SLOTS):
                await self.start(client, "short@1")
            await eventually(lambda: len(self.provider.lines()) >= asked + SLOTS, "calls half way", 60)
            for run_id in films[-2:]:
                await self.answer(
                    client, run_id
                )  # its next call stands in the stream, and nobody has a slot for it
            connection = await self.connect()
            await eventually(lambda: _all_copied(connection), "every command in its stream", 60)
            await process.kill()
        self.provider.answering.set()
        for row in await connection.fetch(
            "select client_command_id as id, kind, run_id from longtake.commands"
        ):
            self.accepted[row["id"]] = (row["kind"], None if row["run_id"] is None else str(row["run_id"]))
        await self.remember(connection)
        await connection.close()

    async def remember(self, connection: asyncpg.Connection) -> None:
        for row in await connection.fetch("select id, hash from longtake.events"):
            self.events.setdefault(row["id"], row["hash"])

    async def restore(self) -> None:
        """Put the backup in the place of the cluster. JetStream and the provider stay as they are."""
        data = self.servers._postgres.data
        await self.servers.stop()
        shutil.rmtree(data)
        status, said = await run(["cp", "-a", str(self.backup), str(data)])
        assert status == 0, said
        await self.servers.start()

    async def doctor(self, **options: Any) -> RestoreReport:
        return await go_through(self.addresses, app, yes=True, **options)

    async def judged(self, report: RestoreReport) -> list[str]:
        """Start the service again, bring everything to its end, and say all that is wrong."""
        async with self.served() as (client, _):
            connection = await self.connect()
            while open_ := [
                str(row["run_id"])
                for row in await connection.fetch("select run_id from longtake.runs where ended_at is null")
            ]:
                for run_id in open_:
                    summary = await self.come_to(client, run_id, *ENDED, "needs_input")
                    if summary.status == "needs_input":
                        await self.answer(client, run_id)
            faults = await self._faults(connection, report)
            await self.remember(connection)
            await connection.close()
        return faults

    async def _faults(self, connection: asyncpg.Connection, report: RestoreReport) -> list[str]:
        keys = Counter(line.key for line in self.provider.lines() if line.charged)
        faults = [f"charged {times} times: {key}" for key, times in keys.items() if times > 1]
        known = {
            row["id"]: (row["kind"], None if row["run_id"] is None else str(row["run_id"]))
            for row in await connection.fetch(
                "select client_command_id as id, kind, run_id from longtake.commands where status <> 'rejected'"
            )
        }
        self.charged = len(keys)
        self.lost = sum(known.get(id_) != was for id_, was in self.accepted.items())
        listed = {lost.id for lost in report.commands_not_taken}
        faults += [
            f"accepted, and gone without a word: {was[0]} {id_}"
            for id_, was in self.accepted.items()
            if known.get(id_) != was and not (id_ in listed and was[0] == "provide_input")
        ]
        for row in await connection.fetch("select id, run_id, seq, hash from longtake.events"):
            if self.events.get(row["id"], row["hash"]) != row["hash"]:
                faults.append(f"two events have one id: {row['run_id']} {row['seq']}")
        orphans = await connection.fetchval(
            "select count(*) from longtake.dead_letters where source = 'restore' and reason like 'unknown run%'"
        )
        if bool(orphans) != bool(report.orphan_pointers):
            faults.append(f"{orphans} orphans are kept and {len(report.orphan_pointers)} are listed")
        pool = await open_pool(self.servers.postgres_connect_kwargs(), size=1, name="judge")
        store = PostgresAuditStore(pool)
        audit = Audit(store)
        async for run_id, tenant in audit.runs():
            await audit.verify(run_id)
            faults += [f"projection: {difference}" for difference in await audit.prove(run_id, tenant)]
        faults += [f"money: {violation}" for violation in await store.money_violations(None)]
        await pool.close()
        return faults

    async def start(self, client: Client, workflow: str) -> str:
        accepted = await client.start(workflow, {}, project="p1", command_id=self._id())
        return str(accepted.run_id)

    async def cancel(self, client: Client, run_id: str) -> None:
        await self._command(client, "cancel", run_id)

    async def answer(self, client: Client, run_id: str) -> None:
        await self._command(client, "provide_input", run_id, step="look", answer={"ok": True})

    async def _command(self, client: Client, kind: Any, run_id: str, **payload: Any) -> None:
        summary = await client.summary(run_id)
        await client.command(
            kind, project="p1", payload=payload, targets=(run_id,), expected_revision=summary.revision,
            command_id=self._id(),
        )  # fmt: skip

    def _id(self) -> str:
        self.commands += 1
        return f"command-{self.commands}"

    async def end(self, client: Client, runs: list[str]) -> None:
        await self.wait(client, runs, *ENDED)

    async def wait(self, client: Client, runs: list[str], *statuses: str) -> None:
        for run_id in runs:
            await self.come_to(client, run_id, *statuses)

    async def come_to(self, client: Client, run_id: str, *statuses: str) -> Any:
        async def there() -> Any:
            summary = await client.summary(run_id)
            return summary if summary.status in statuses else None

        return await eventually(there, f"{' or '.join(statuses)} of run {run_id}", 90)


async def _all_copied(connection: asyncpg.Connection) -> bool:
    return not await connection.fetchval("select count(*) from longtake.commands where copied_at is null")


@asynccontextmanager
async def drill(home: Path, monkeypatch: Any) -> AsyncIterator[Drill]:
    """Servers of its own and a provider."""
    provider = Provider(home / "witness.jsonl")
    listening = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    monkeypatch.setenv(PROVIDER, provider.url)
    monkeypatch.delenv(BROKEN, raising=False)
    servers = EmbeddedServers(home / "data", profile=PROFILE)
    await servers.start()
    try:
        yield Drill(home, servers, provider)
    finally:
        provider.answering.set()
        await servers.stop()
        listening.close()
