"""Commands whose row, run or project another transaction holds: told to come again, decided once when they do (P23)."""

import json
import uuid
from contextlib import asynccontextmanager

import pytest

from kit.runtimes import PRINCIPAL
from kit.shop import control, generation
from longtake.contracts.commands import Command
from longtake.engine.intake import Intake
from longtake.errors import AuthorityUnavailable
from longtake.postgres.admissions import PostgresAdmissionStore
from longtake.postgres.pool import open_pool


@asynccontextmanager
async def held(shop, take):
    """Another process has taken its locks, and neither commits nor goes away."""
    pool = await open_pool(shop.process.addresses.postgres, size=1, name="test")
    store = PostgresAdmissionStore(pool, store_epoch=1, incarnation=uuid.UUID(int=5))
    try:
        with pytest.raises(_Enough):
            async with store.transaction(PRINCIPAL, channel="http", traceparent=None) as transaction:
                await take(transaction)
                yield
                raise _Enough
    finally:
        await pool.close()


class _Enough(Exception):
    pass


def is_to_come_again(response) -> None:
    assert (409, "command-in-progress") == (response.status_code, response.json()["type"].rpartition("/")[2])
    assert int(response.headers["Retry-After"]) >= 1


async def test_a_command_whose_run_stays_locked_is_to_come_again_and_is_then_decided(counter):
    run_id = await counter.start("a", "gate@1")
    cancel = control("cancel", run_id, 2)
    async with held(counter, lambda transaction: transaction.lock_run(uuid.UUID(run_id))):
        is_to_come_again(await counter.post(cancel, key="c"))

    decided = await counter.post(cancel, key="c")
    assert (202, "cancelling") == (decided.status_code, decided.json()["summary"]["status"]), decided.text


async def test_a_start_whose_project_stays_locked_is_to_come_again(counter):
    start = generation("clip@1", scopes=["voice"])
    async with held(counter, lambda transaction: transaction.lock_project("p1")):
        is_to_come_again(await counter.post(start, key="a"))

    assert 202 == (await counter.post(start, key="a")).status_code


async def test_a_copy_of_a_command_that_is_being_admitted_for_too_long_is_to_come_again(counter):
    first = Command(kind="generation", project="p1", client_command_id="a")
    async with held(counter, lambda transaction: transaction.insert_command(first, intent_hash="h")):
        is_to_come_again(await counter.post(generation("gate@1"), key="a"))

    # The first was rolled back, so the copy is the first.
    assert 202 == (await counter.post(generation("gate@1"), key="a")).status_code


class Delivered:
    """A message with a command."""

    headers = {"Longtake-Actor": PRINCIPAL.actor}  # noqa: RUF012  # nobody changes it

    def __init__(self, run_id: str) -> None:
        self.subject = f"longtake.v1.command.{PRINCIPAL.tenant}.cancel"
        self.body = json.dumps({**control("cancel", run_id, 2), "client_command_id": "c"}).encode()
        self.acked = 0

    async def ack(self, *, sync: bool = False) -> None:
        self.acked += 1


async def test_a_message_with_such_a_command_is_no_dead_letter_and_comes_again(counter):
    process = counter.process
    run_id = await counter.start("a", "gate@1")
    await process.transport.started()
    intake = Intake(process.admission, process.transport, process.sweep)
    delivery = Delivered(run_id)
    async with held(counter, lambda transaction: transaction.lock_run(uuid.UUID(run_id))):
        with pytest.raises(AuthorityUnavailable, match="held by another transaction"):
            await intake.take(delivery)
    assert 0 == delivery.acked

    await intake.take(delivery)
    assert 1 == delivery.acked
    assert [] == await process.audit.prove(uuid.UUID(run_id), PRINCIPAL.tenant)
