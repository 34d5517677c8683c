"""From a command to its run: derived ids, mapped at the authority, found again however often and however late one asks."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from kit.promises import promise
from kit.runtimes import PRINCIPAL, noop_app, runtime
from longtake import App, Plan
from longtake.contracts.commands import Command
from longtake.contracts.events import RunAccepted
from longtake.contracts.ids import run_id_for
from longtake.engine.admission import TRIES_MAX, Admission
from longtake.engine.intake import Intake
from longtake.errors import AuthorityUnavailable, Refused
from longtake.postgres.admissions import PostgresAdmissionStore
from longtake.postgres.pool import open_pool

API_ONLY = ("api",)
SUBJECT = f"longtake.v1.command.{PRINCIPAL.tenant}.generation"


def generation(id_: str, workflow: str = "noop@1", **input_: Any) -> Command:
    return Command(
        kind="generation",
        project="p1",
        payload={"workflow": workflow, "input": input_},
        client_command_id=id_,
    )


def run_id_of(id_: str) -> str:
    return str(run_id_for(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, client_command_id=id_))


def two_versions() -> App:
    app = noop_app()

    @app.workflow("noop", version=2)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("only", activity="noop@1", pool="short")

    return app


class Message:
    """A delivery of a command, and what became of it."""

    def __init__(self, command: Command) -> None:
        self.subject = SUBJECT
        self.body = msgspec.json.encode(command)
        self.headers = {"Longtake-Actor": PRINCIPAL.actor}
        self.settled: list[str] = []

    async def ack(self, *, sync: bool = False) -> None:
        self.settled.append("ack")

    async def term(self) -> None:
        self.settled.append("term")


class Faulty:
    """An authority that is away before the commits of its first transactions, or loses their answers."""

    def __init__(self, store: PostgresAdmissionStore, *, away: int = 0, lost: int = 0) -> None:
        self.store = store
        self.away, self.lost = away, lost

    @asynccontextmanager
    async def transaction(self, *who: Any, **how: Any) -> AsyncIterator[Any]:
        async with self.store.transaction(*who, **how) as transaction:
            yield transaction
            if self.away > 0:
                self.away -= 1
                raise AuthorityUnavailable("away before the commit")
        if self.lost > 0:
            self.lost -= 1
            raise AuthorityUnavailable("the answer of the commit was lost")


@promise("T46")
async def test_a_runs_id_is_derived_and_what_it_was_mapped_to_stands_with_the_authority(
    database, broker, tmp_path
) -> None:
    """The same id for another revision of the workflow is another intent: it never reaches the run that is there."""
    async with runtime(database, broker, tmp_path, two_versions(), roles=API_ONLY) as process:
        first = await process.admission.admit(
            PRINCIPAL, generation("a", steps=2), channel="local", traceparent=None
        )
        with pytest.raises(Refused) as refused:
            await process.admission.admit(
                PRINCIPAL, generation("a", "noop@2", steps=2), channel="local", traceparent=None
            )
    connection = await database.connect()
    row = await connection.fetchrow(
        "select c.run_id::text as mapped, r.run_id::text as run, r.workflow_version, r.plan_fingerprint, e.data, "
        "p.plan is not null as kept from longtake.commands c join longtake.runs r on r.run_id = c.run_id "
        "join longtake.plans p on p.fingerprint = r.plan_fingerprint "
        "join longtake.events e on e.run_id = r.run_id and e.seq = 1"
    )
    accepted = msgspec.json.decode(row["data"], type=RunAccepted)

    assert run_id_of("a") == first.receipt.run_id == row["mapped"] == row["run"]
    assert (1, True) == (row["workflow_version"], row["kept"])
    assert row["plan_fingerprint"] == accepted.plan_fingerprint
    assert "command-conflict" == refused.value.problem.slug
    assert 1 == await connection.fetchval("select count(*) from longtake.runs")


@promise("T47")
@pytest.mark.parametrize("fault", ["away", "lost"])
async def test_only_a_match_counts_as_already_there_and_whatever_else_fails_comes_again(
    database, broker, tmp_path, fault: str
) -> None:
    async with runtime(database, broker, tmp_path, two_versions(), roles=API_ONLY) as process:
        await process.transport.started()
        pool = await open_pool(process.addresses.postgres, size=2, name="test")
        store = PostgresAdmissionStore(pool, store_epoch=1, incarnation=uuid.UUID(int=6))
        faulty = Faulty(store, **{fault: TRIES_MAX})
        admission = Admission(faulty, process.app, process.hints, store_epoch=1)
        intake = Intake(admission, process.transport, process.sweep)
        message, again, stranger = (Message(generation(*of)) for of in (("a",), ("a",), ("a", "noop@2")))
        connection = await database.connect()
        if fault == "away":
            with pytest.raises(AuthorityUnavailable):
                await intake.take(message)  # type: ignore[arg-type]  # all of a Delivery that is asked for
            assert [] == message.settled, "it comes again"
            assert 0 == await connection.fetchval("select count(*) from longtake.commands")
        else:
            # Its commit stands though its answer was lost: the next try finds the match.
            faulty.lost = 1
        for delivery in (message, again, stranger):
            await intake.take(delivery)  # type: ignore[arg-type]  # see above
        runs = [str(row[0]) for row in await connection.fetch("select run_id from longtake.runs")]
        receipts = await connection.fetch(
            "select receipt is not null as told, run_id::text from longtake.commands"
        )
        await pool.close()

    assert [["ack"]] * 2 == [message.settled, again.settled]
    assert [run_id_of("a")] == runs
    assert [(True, run_id_of("a"))] == [tuple(row) for row in receipts]
    assert ["term"] == stranger.settled, (
        "another intent under the id is no success: it is refused, and kept as a dead letter"
    )


@promise("T48")
async def test_of_a_batch_those_that_are_there_already_are_told_their_runs_like_the_new_ones(
    database, broker, tmp_path
) -> None:
    async with runtime(database, broker, tmp_path, noop_app(), roles=API_ONLY) as process:
        await process.transport.started()
        for id_ in ("b", "d"):
            await process.admission.admit(PRINCIPAL, generation(id_), channel="local", traceparent=None)
        client = await broker.connect()
        answers = await client.subscribe(f"longtake.v1.receipt.{PRINCIPAL.tenant}.*")
        await client.flush()
        batch = [generation(id_) for id_ in ("a", "b", "c", "d")]
        for command in batch:
            await client.jetstream().publish(
                SUBJECT,
                msgspec.json.encode(command),
                headers={
                    "Longtake-Actor": PRINCIPAL.actor,
                    "Nats-Msg-Id": f"batch-{command.client_command_id}",
                },
            )
        told = [msgspec.json.decode((await answers.next_msg(timeout=20)).data) for _ in batch]

    assert {id_: (run_id_of(id_), "running") for id_ in "abcd"} == {
        receipt["command_id"]: (receipt["run_id"], receipt["status"]) for receipt in told
    }
    connection = await database.connect()
    assert 4 == await connection.fetchval("select count(*) from longtake.runs")
