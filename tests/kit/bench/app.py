"""The application of the fault bench: paid work of both kinds, a gate in every run, rests and free work.

`app` keeps its promises. `greedy` gives the provider another key at each call, as an author may who knows no better: what
the judge must notice.
"""

import os
import ssl
import uuid
from typing import Any

import httpx2
import msgspec

from kit.bench.provider import PRICE, URL, signature
from longtake import (
    Activity,
    App,
    AuthenticCallback,
    Failed,
    NotFound,
    Pending,
    Plan,
    Retry,
    Submitted,
    Succeeded,
    Throttled,
    Unknown,
)

PATIENT = Retry(max_attempts=8, first_delay_ms=200, delay_ms_max=2000)
CALL_SECONDS = 3.0
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Plain HTTP on this machine: loading the certificate list would be most of a call's time."""


async def ask(path: str, **said: Any) -> httpx2.Response:
    """Ask the provider."""
    async with httpx2.AsyncClient(trust_env=False, verify=NOBODY, timeout=CALL_SECONDS) as http:
        return await http.post(os.environ[URL] + path, content=msgspec.json.encode(said))


class Shoot(Activity):
    """A paid call that is taken at once and done later: the provider calls back, or is asked."""

    name = "shoot@1"
    paid = True

    async def execute(self, call: Any) -> Any:
        try:
            answer = await ask("/submit", key=self.key(call), callback=self.callback(call))
        except httpx2.ConnectError as error:
            return Failed(error_class="transient", origin="infrastructure", message=str(error))
        except httpx2.TransportError as error:
            return Unknown(evidence=f"{type(error).__name__}: {error}")
        if answer.status_code == 429:
            return Throttled(retry_after_seconds=int(answer.headers["retry-after"]))
        if answer.status_code != 200:
            return Unknown(evidence=f"the provider answered {answer.status_code}")
        return self.taken(msgspec.json.decode(answer.content)["job"])

    async def poll(self, call: Any) -> Any:
        try:
            answer = await ask("/poll", key=self.key(call))
        except httpx2.TransportError as error:
            return Unknown(evidence=f"{type(error).__name__}: {error}")
        if answer.status_code == 404:
            return NotFound(evidence="the provider knows no such key")
        done = msgspec.json.decode(answer.content)["done"]
        return Succeeded(external_ref=call.external_ref) if done else Pending(poll_after_seconds=1)

    async def reconcile(self, call: Any) -> Any:
        try:
            answer = await ask("/find", key=self.key(call))
        except httpx2.TransportError as error:
            return Failed(error_class="transient", origin="infrastructure", message=str(error))
        if answer.status_code == 404:
            return NotFound(evidence="the provider knows no such key")
        return self.taken(msgspec.json.decode(answer.content)["job"])

    def callback(self, call: Any) -> str | None:
        """Where the provider tells of the end."""
        return str(call.callback_url("bench"))

    def taken(self, job: str) -> Any:
        """What a request that was taken is."""
        return Submitted(external_ref=job, poll_after_seconds=2)

    def key(self, call: Any) -> str:
        """What the provider knows the request by."""
        return str(call.token)


class Speak(Shoot):
    """A paid call that is answered when it is done."""

    name = "speak@1"

    def callback(self, call: Any) -> str | None:
        return None

    def taken(self, job: str) -> Any:
        return Succeeded(external_ref=job)


class Greedy(Shoot):
    """Asks for work under another key each time, and cannot look for what it asked for."""

    async def poll(self, call: Any) -> Any:
        return Succeeded(external_ref=call.external_ref)

    async def reconcile(self, call: Any) -> Any:
        return NotFound(evidence="who knows under which key it was")

    def key(self, call: Any) -> str:
        return uuid.uuid4().hex


def reel(input: Any, policy: Any) -> Plan:
    """Shots and a voice side by side, a rest, somebody looks at it, then cuts that wait for each other."""
    plan = Plan(billing=input.get("billing", "prepaid"))
    paid = [f"shot:{number}" for number in range(input.get("shots", 2))]
    for key in paid:
        plan = plan.step(key, activity="shoot@1", price=PRICE, retry=PATIENT)
    plan = plan.step("voice", activity="speak@1", price=PRICE, retry=PATIENT).sleep("rest", seconds=1)
    plan = plan.input("look", answer={"type": "object"}, depends_on=[*paid, "voice", "rest"])
    before = "look"
    for number in range(input.get("cuts", 4)):
        plan = plan.step(f"cut:{number}", activity="cut@1", depends_on=[before])
        before = f"cut:{number}"
    return plan


async def cut(call: Any) -> None:
    """Free work."""


def verify(headers: Any, raw: bytes) -> AuthenticCallback | None:
    """Whether the provider signed it."""
    if headers.get("bench-signature", "") != signature(raw):
        return None
    said = msgspec.json.decode(raw)
    return AuthenticCallback(dedupe_key=said["id"], type=said["type"], external_ref=said["job"])


def made(shoot: Activity) -> App:
    """The application around one way to shoot."""
    application = App("bench", price_list="2026-12")
    application.workflow("reel", version=1)(reel)
    application.add(shoot, Speak())
    application.activity("cut@1", pool="short")(cut)
    application.callback("bench")(verify)
    return application


app = made(Shoot())
greedy = made(Greedy())
