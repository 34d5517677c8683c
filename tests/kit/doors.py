"""The doors of longtake: the same command sent over HTTP, as a NATS request, and into the stream, with one form of answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
from nats.aio.client import Client

from kit.runtimes import PRINCIPAL
from longtake.bootstrap import Runtime
from longtake.contracts.problems import PROBLEM_BASE
from longtake.jetstream.services import COMMAND_SUBJECT, SUMMARY_SUBJECT

ANSWER_SECONDS = 20.0
DOORS = ("http", "request", "stream")


class Said(msgspec.Struct, frozen=True):
    """What a door answered: the status, the problem's last word or None, and the whole body."""

    status: int
    problem: str | None
    body: dict[str, Any]

    @property
    def places(self) -> list[str]:
        """The JSON pointers of a problem."""
        return [error["pointer"] for error in self.body.get("errors", ())]


class Doors:
    """All doors of one running process."""

    def __init__(self, process: Runtime, nats: Client, http: httpx2.AsyncClient, key: str) -> None:
        self._process = process
        self.nats = nats
        self.http = http
        self._key = key
        self._receipts = 0

    async def send(
        self, door: str, command: dict[str, Any] | bytes, *, traceparent: str | None = None
    ) -> Said:
        """Send a command; its id is in the body. Bytes go as they are."""
        raw = command if isinstance(command, bytes) else msgspec.json.encode(command)
        trace = {"traceparent": traceparent} if traceparent else {}
        match door:
            case "http":
                answer = await self.http.post(
                    "/v1/commands", content=raw, headers={"Content-Type": "application/json", **trace}
                )
                return _said(answer.status_code, answer.json())
            case "request":
                return await self._ask(COMMAND_SUBJECT, raw, trace)
            case _:
                return await self._publish(command, raw, trace)

    async def summary(self, run_id: str) -> Said:
        """Ask for a summary over NATS."""
        return await self._ask(SUMMARY_SUBJECT, msgspec.json.encode({"run_id": run_id}), {})

    async def _ask(self, subject: str, raw: bytes, headers: dict[str, str]) -> Said:
        reply = await self.nats.request(
            subject,
            raw,
            timeout=ANSWER_SECONDS,
            headers={"Authorization": f"Bearer {self._key}", **headers},
        )
        body = msgspec.json.decode(reply.data)
        return _said(int((reply.headers or {}).get("Nats-Service-Error-Code", "202")), body)

    async def _publish(self, command: dict[str, Any] | bytes, raw: bytes, headers: dict[str, str]) -> Said:
        named = isinstance(command, dict)
        id_ = command.get("client_command_id", "nameless") if isinstance(command, dict) else "nameless"
        kind = command["kind"] if named else "generation"
        self._receipts += 1
        answers = await self.nats.subscribe(f"longtake.v1.receipt.{PRINCIPAL.tenant}.>")
        try:
            await self.nats.flush()
            await self.nats.jetstream().publish(
                f"longtake.v1.command.{PRINCIPAL.tenant}.{kind}",
                raw,
                headers={
                    "Longtake-Actor": PRINCIPAL.actor,
                    # A repeat that the stream swallowed would never reach us.
                    "Nats-Msg-Id": id_ if self._receipts == 1 else f"{id_}-{self._receipts}",
                    **headers,
                },
            )
            told = await asyncio.wait_for(answers.next_msg(), ANSWER_SECONDS)
        finally:
            await answers.unsubscribe()
        body = msgspec.json.decode(told.data)
        found = body.get("problem") or (body if "type" in body else None)
        return _said(202 if found is None else found["status"], found or body)


def _said(status: int, body: dict[str, Any]) -> Said:
    problem = body["type"].removeprefix(PROBLEM_BASE) if "type" in body else None
    return Said(status, problem, body)


@asynccontextmanager
async def doors_of(process: Runtime, broker) -> AsyncIterator[Doors]:  # type: ignore[no-untyped-def]
    """The doors of a process, opened with a key of the tester."""
    made = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
    assert process.api_server is not None
    await process.transport.started()  # the streams are there
    async with httpx2.AsyncClient(
        base_url=process.api_server.url, trust_env=False, headers={"Authorization": f"Bearer {made.text}"}
    ) as http:
        yield Doors(process, await broker.connect(), http, made.text)
