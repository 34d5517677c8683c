"""Nobody knows whether it was committed: the connection is reset at every byte of the exchange that commits (F31, N11).

Each offset is one act over a connection whose last bytes to the server, or from it, are torn there. Whoever asked then does
what the engine does: the same act again under the same id. Judged: nothing twice, nothing lost, and a true answer.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import msgspec
import pytest

from kit.hand_work import Bench
from kit.promises import promise
from kit.proxy import TcpProxy
from kit.runtimes import PRINCIPAL, fund, runtime, start_run, summary_of
from longtake import App, Plan, Succeeded
from longtake.contracts.commands import Command
from longtake.contracts.effects import Report
from longtake.engine import admission as admitting
from longtake.engine.admission import Admission
from longtake.engine.dispatcher import Dispatcher, Pointers
from longtake.errors import AuthorityUnavailable
from longtake.postgres import admissions
from longtake.postgres.admissions import PostgresAdmissionStore
from longtake.postgres.commits import commit_decisions
from longtake.postgres.decisions import PostgresDecisionStore
from longtake.postgres.effects import PostgresEffectStore
from longtake.postgres.pool import open_pool
from longtake.postgres.statements import statement

API_ONLY = ("api",)
TAIL = 40
"""How many of an exchange's last bytes are swept, in each direction. A COMMIT is shorter and is swept whole; of a
statement that commits by itself these are the end of its values, Execute and Sync."""
INCARNATION = uuid.UUID(int=0xC0FFEE)


def torn_app() -> App:
    """A run of one step at the price it is asked for."""
    app = App("torn")

    @app.activity("torn@1")
    async def one(call: Any) -> None:
        return None

    @app.workflow("torn", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan(deadline_seconds=86_400).step("one", activity="torn@1", price=input.get("price", 0))

    return app


class Torn:
    """A path to the authority that is torn at one byte of the next exchange."""

    def __init__(self, proxy: TcpProxy, pool: asyncpg.Pool) -> None:
        self._proxy = proxy
        self.pool = pool
        self._cut: tuple[bool, int] | None = None
        self._begun: dict[bool, int] | None = None

    def at(self, cut: tuple[bool, int] | None) -> None:
        """Tear the next exchange there: (to the server?, after so many bytes). None only measures."""
        self._cut, self._begun = cut, {}

    def arm(self) -> None:
        """The exchange begins now. Later ones, of another try, are left alone."""
        if self._begun is None or self._begun:
            return
        self._begun = dict(self._proxy.passed)
        if self._cut is not None:
            to_server, offset = self._cut
            (self._proxy.cut_after if to_server else self._proxy.cut_reply_after)(offset)

    def lengths(self) -> dict[bool, int]:
        """Bytes in each direction since the exchange began."""
        assert self._begun, "the exchange never began"
        return {way: self._proxy.passed[way] - self._begun[way] for way in (True, False)}

    async def fetch(self, sql: str, *arguments: Any) -> Any:
        """As the pool's; a batch of decisions is torn where it is written."""
        if sql == statement("decisions_commit"):
            self.arm()
        return await self.pool.fetch(sql, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)


def offsets(lengths: dict[bool, int]) -> list[tuple[bool, int]]:
    """Every byte of the exchange's tail, both ways."""
    return [(way, byte) for way in (True, False) for byte in range(max(0, lengths[way] - TAIL), lengths[way])]


async def insisted(act: Callable[[], Awaitable[Any]]) -> tuple[Any, int]:
    """The act's answer, and how often the caller was told that nobody knows."""
    for unknown in range(3):
        try:
            return await act(), unknown
        except AuthorityUnavailable:
            continue
    raise AssertionError("torn once, and still no answer")


async def swept(torn: Torn, proxy: TcpProxy, act: Callable[[int], Awaitable[None]], slack: int = 0) -> int:
    """Measure with act 0, then one act for each offset; returns how many were torn.

    The values of a decision differ by a few bytes from one to the next, so the last offsets can lie behind its end.
    """
    torn.at(None)
    await act(0)
    places = offsets(torn.lengths())
    before = proxy.cuts_in_the_middle
    for number, place in enumerate(places, start=1):
        torn.at(place)
        await act(number)
        proxy.heal()
    hit = proxy.cuts_in_the_middle - before
    print(f"{act.__name__}: {hit} bytes torn of {len(places)}")
    assert len(places) - slack <= hit <= len(places), f"{hit} torn of {len(places)}"
    return len(places)


def generation(id_: str, **input_: Any) -> Command:
    return Command(
        kind="generation",
        project="p1",
        payload={"workflow": "torn@1", "input": input_},
        client_command_id=id_,
    )


class Desk:
    """Admission over a path that can be torn at COMMIT."""

    def __init__(self, process: Any, torn: Torn, patch: pytest.MonkeyPatch) -> None:
        store = PostgresAdmissionStore(torn.pool, store_epoch=1, incarnation=INCARNATION)
        self.admission = Admission(store, process.app, process.hints, store_epoch=1)
        patch.setattr(
            admissions,
            "reach",
            lambda point: torn.arm() if point == "tx.after_append.before_commit" else None,
        )

    async def admit(self, command: Command) -> Any:
        return (await self.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)).receipt


async def _starts(database: Any, broker: Any, tmp_path: Any, patch: Any, *, fresh_ids: bool) -> None:
    async with runtime(database, broker, tmp_path, torn_app(), roles=API_ONLY) as process:
        await fund(process)
        address = process.addresses.postgres
        async with TcpProxy(address["host"], address["port"]) as proxy:
            pool = await open_pool({**address, "host": "127.0.0.1", "port": proxy.port}, size=1, name="torn")
            torn = Torn(proxy, pool)
            desk = Desk(process, torn, patch)
            if fresh_ids:
                patch.setattr(admitting, "TRIES_MAX", 1)
            runs: set[uuid.UUID] = set()

            async def start(number: int) -> None:
                tries = 0

                async def send() -> Any:
                    nonlocal tries
                    tries += 1
                    id_ = f"start-{number}" + (f"-{tries}" if fresh_ids else "")
                    return await desk.admit(generation(id_, price=3))

                receipt, unknown = await insisted(send)
                assert fresh_ids or unknown == 0, "admission looks the command's id up by itself"
                runs.add(uuid.UUID(str(receipt.run_id)))

            count = await swept(torn, proxy, start)
            pool.terminate()
        connection = await database.connect()
        rows = await connection.fetch("select run_id from longtake.runs")
        charged = await connection.fetchval(
            "select count(*) from longtake.ledger_entries where kind = 'charge'"
        )
        print(f"starts: {len(rows)} runs, {charged} charges")
        assert {row["run_id"] for row in rows} == runs, "doubled or lost"
        assert len(rows) == charged == count + 1
        for run_id in runs:
            assert await process.audit.prove(run_id, PRINCIPAL.tenant) == []


@promise("T20")
async def test_a_start_torn_at_any_byte_of_its_commit_is_one_run(database, broker, tmp_path, monkeypatch):
    await _starts(database, broker, tmp_path, monkeypatch, fresh_ids=False)


async def test_a_caller_that_asks_again_under_a_fresh_id_is_found_out(
    database, broker, tmp_path, monkeypatch
):
    with pytest.raises(AssertionError, match="doubled or lost"):
        await _starts(database, broker, tmp_path, monkeypatch, fresh_ids=True)


async def test_a_control_command_torn_at_any_byte_of_its_commit_is_one_decision(
    database, broker, tmp_path, monkeypatch
):
    async with runtime(database, broker, tmp_path, torn_app(), roles=API_ONLY) as process:
        await fund(process)
        address = process.addresses.postgres
        async with TcpProxy(address["host"], address["port"]) as proxy:
            pool = await open_pool({**address, "host": "127.0.0.1", "port": proxy.port}, size=1, name="torn")
            torn = Torn(proxy, pool)
            cancelled = []

            async def cancel(number: int) -> None:
                run_id = uuid.UUID(str((await start_run(process, f"run-{number}", "torn@1")).run_id))
                command = Command(
                    kind="cancel",
                    project="p1",
                    targets=(str(run_id),),
                    expected_revision=(await summary_of(process, str(run_id)))["revision"],
                    client_command_id=f"cancel-{number}",
                )
                with monkeypatch.context() as patch:
                    receipt = await Desk(process, torn, patch).admit(command)
                again = await process.admission.admit(PRINCIPAL, command, channel="local", traceparent=None)
                assert again.receipt == receipt, "the stored answer is the one that was given"
                cancelled.append(run_id)

            await swept(torn, proxy, cancel)
            pool.terminate()
        connection = await database.connect()
        decided = await connection.fetch(
            "select run_id, count(*) filter (where type = 'cancel_requested') as asked "
            "from longtake.events group by run_id"
        )
        print(f"cancels: {len(decided)} runs")
        assert {row["run_id"]: row["asked"] for row in decided} == dict.fromkeys(cancelled, 1)
        for run_id in cancelled:
            assert await process.audit.prove(run_id, PRINCIPAL.tenant) == []


@promise("G30")
async def test_claims_reports_and_decisions_torn_at_any_byte_happen_once(database, broker, tmp_path):
    runs = 2 * TAIL + 1
    async with runtime(database, broker, tmp_path, torn_app(), roles=API_ONLY) as process:
        await fund(process)
        receipts = [await start_run(process, f"wide-{n}", "torn@1") for n in range(runs)]
        bench = await Bench.open(process)
        address = process.addresses.postgres
        try:
            due = await bench.open_effects()
            assert len(due) == runs
            async with TcpProxy(address["host"], address["port"]) as proxy:
                pool = await open_pool(
                    {**address, "host": "127.0.0.1", "port": proxy.port}, size=1, name="torn"
                )
                torn = Torn(proxy, pool)
                effects = PostgresEffectStore(pool, store_epoch=1)
                claimed: dict[int, Any] = {}

                async def claim(number: int) -> None:
                    claim_id = uuid.uuid4()

                    async def ask(chosen: list[Any], id_: uuid.UUID) -> Any:
                        return await effects.claim(
                            claim_id=id_, effects=chosen, limit=1, owner="torn", lease_seconds=600
                        )

                    await insisted(lambda: ask([], uuid.uuid4()))
                    torn.arm()
                    (claimed[number],), _ = await insisted(lambda: ask([due[number]], claim_id))

                async def report(number: int) -> None:
                    effect = claimed[number]
                    outcome = msgspec.json.encode(Succeeded())
                    one = Report(effect_id=effect.id, fence=effect.fence, owner="torn", outcome=outcome)
                    await insisted(lambda: effects.report([]))
                    torn.arm()
                    await insisted(lambda: effects.report([one]))

                store = PostgresDecisionStore(torn, store_epoch=1, incarnation=INCARNATION)  # type: ignore[arg-type]
                dispatcher = Dispatcher(store, process.hints, process.doorbell, store_epoch=1)

                async def decide(number: int) -> None:
                    await insisted(lambda: commit_decisions(pool, [], store_epoch=1, incarnation=INCARNATION))
                    pointers = Pointers(effects={claimed[number].id: None})
                    await insisted(lambda: dispatcher.handle(pointers))

                counts = [await swept(torn, proxy, act) for act in (claim, report)]
                counts.append(await swept(torn, proxy, decide, slack=TAIL // 2))
                pool.terminate()
            rows = await bench.pool.fetchrow(
                "select (select count(*) from longtake.effect_claims) as claims, "
                "(select count(*) from longtake.late_receipts) as late, "
                "(select count(*) from longtake.effects where receipt is not null) as receipts, "
                "(select count(*) from longtake.effects where closed_at is not null) as closed, "
                "(select count(*) from longtake.runs where ended_at is not null) as ended"
            )
            print(f"claims, reports, decisions: {counts}; {dict(rows)}")
            for receipt in receipts:
                assert await process.audit.prove(uuid.UUID(str(receipt.run_id)), PRINCIPAL.tenant) == []
            assert rows["claims"] == counts[0] + 1
            assert (rows["receipts"], rows["late"]) == (counts[1] + 1, 0)
            assert rows["closed"] == rows["ended"] == counts[2] + 1
        finally:
            await bench.close()
