"""Requests over NATS get an answer or a problem, never our insides."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import QUICK_WATCHDOG, barrier, transport_to
from longtake.contracts.problems import problem
from longtake.errors import AuthorityUnavailable, Refused
from longtake.jetstream import (
    CommandServices,
    Connection,
    ConnectionOptions,
    JetStreamTransport,
    ServiceRequest,
)
from longtake.jetstream.services import COMMAND_SUBJECT, IN_FLIGHT_MAX, SUMMARY_SUBJECT

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Engine:
    """Stands for admission: answers by the words of the body."""

    def __init__(self) -> None:
        self.requests: list[ServiceRequest] = []
        self.held = asyncio.Event()
        self.holding = 0

    async def command(self, request: ServiceRequest) -> bytes:
        self.requests.append(request)
        match request.body:
            case b"refuse":
                raise Refused(problem("stale-revision", "the run is at revision 7, not 5"))
            case b"no database":
                raise AuthorityUnavailable("connection to 10.0.0.7 refused")
            case b"break":
                raise RuntimeError("password=hunter2")
            case b"hold":
                self.holding += 1
                await self.held.wait()
        return b'{"receipt": 1}'

    async def summary(self, request: ServiceRequest) -> bytes:
        return b'{"summary": "' + request.body + b'"}'


@pytest_asyncio.fixture
async def engine(proxy: TcpProxy) -> AsyncIterator[Engine]:
    engine = Engine()
    connection = Connection(
        ConnectionOptions(
            servers=(f"nats://127.0.0.1:{proxy.port}",),
            role="api",
            reconnect_seconds=0.05,
            watchdog=QUICK_WATCHDOG,
        )
    )
    services = CommandServices(connection, command=engine.command, summary=engine.summary)
    await connection.start()
    assert await connection.wait_linked(5)
    await services.start()
    await barrier(connection.client)
    yield engine
    engine.held.set()
    await services.stop()
    await services.stop()
    await connection.stop()


async def ask(client: Client, body: bytes, subject: str = COMMAND_SUBJECT) -> Msg:
    return await client.request(subject, body, timeout=5, headers={"traceparent": TRACE})


async def test_a_command_and_a_question_are_answered(engine: Engine, bystander: Client) -> None:
    receipt = await ask(bystander, b"{}")
    summary = await ask(bystander, b"r1", SUMMARY_SUBJECT)

    assert (receipt.data, summary.data) == (b'{"receipt": 1}', b'{"summary": "r1"}')
    assert engine.requests[0].traceparent == TRACE


async def test_a_refusal_is_its_problem_with_the_error_headers_of_nats(
    engine: Engine, bystander: Client
) -> None:
    answer = await ask(bystander, b"refuse")
    body = json.loads(answer.data)

    assert (body["status"], body["detail"]) == (412, "the run is at revision 7, not 5")
    assert body["trace_id"] == TRACE.split("-")[1]
    assert answer.headers is not None
    assert answer.headers["Nats-Service-Error-Code"] == "412"
    assert answer.headers["Nats-Service-Error"] == "The run has moved on"
    assert answer.headers["Content-Type"] == "application/problem+json"


async def test_a_broken_handler_tells_nothing_about_our_insides(engine: Engine, bystander: Client) -> None:
    """nats.micro by itself would answer RuntimeError('password=hunter2')."""
    answer = await ask(bystander, b"break")

    assert json.loads(answer.data)["status"] == 500
    assert "hunter2" not in answer.data.decode() + str(answer.headers)


async def test_an_authority_that_is_away_is_a_503_that_says_when_to_come_back(
    engine: Engine, bystander: Client
) -> None:
    answer = await ask(bystander, b"no database")
    body = json.loads(answer.data)

    assert (body["status"], body["retry_after_seconds"]) == (503, 5)
    assert "10.0.0.7" not in answer.data.decode()


async def test_a_slow_request_holds_up_no_other_and_the_number_at_once_is_bounded(
    engine: Engine, bystander: Client
) -> None:
    slow = [asyncio.create_task(ask(bystander, b"hold")) for _ in range(IN_FLIGHT_MAX + 5)]
    await eventually(lambda: engine.holding == IN_FLIGHT_MAX, "as many are at work as may be")
    before_release = len(engine.requests)
    engine.held.set()
    answers = await asyncio.gather(*slow)

    assert before_release == IN_FLIGHT_MAX
    assert {answer.data for answer in answers} == {b'{"receipt": 1}'}
    assert engine.holding == IN_FLIGHT_MAX + 5


async def test_requests_are_answered_after_the_connection_was_built_anew(
    engine: Engine, proxy: TcpProxy, bystander: Client
) -> None:
    proxy.blackhole()
    await eventually(lambda: proxy.accepted > 1, "another connection is tried")
    proxy.heal()

    async def answered() -> bool:
        try:
            return (await ask(bystander, b"{}")).data == b'{"receipt": 1}'
        except (NoRespondersError, NatsTimeout):
            return False

    await eventually(answered, "the new connection answers")


async def test_the_service_can_be_discovered(engine: Engine, bystander: Client) -> None:
    answer = await bystander.request("$SRV.INFO.longtake", b"", timeout=5)
    endpoints = json.loads(answer.data)["endpoints"]

    assert {endpoint["subject"] for endpoint in endpoints} == {COMMAND_SUBJECT, SUMMARY_SUBJECT}


async def test_a_receipt_reaches_the_producer_who_listens(
    transport: JetStreamTransport, bystander: Client
) -> None:
    receipts = await bystander.subscribe("longtake.v1.receipt.acme_example.*")
    await barrier(bystander)
    await transport.publish_receipt(tenant="acme.example", command_id="c1", receipt=b'{"state": "accepted"}')
    receipt = await receipts.next_msg(timeout=5)

    assert receipt.subject == "longtake.v1.receipt.acme_example.c1"
    assert receipt.data == b'{"state": "accepted"}'


async def test_a_receipt_that_nobody_can_hear_is_no_error(server: LoneNats) -> None:
    transport = transport_to("nats://127.0.0.1:1")
    await transport.start()
    await transport.publish_receipt(tenant="acme", command_id="c1", receipt=b"{}")
    await transport.stop()
