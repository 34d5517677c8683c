"""The application of the crash matrix: paid calls over HTTP, and a workflow for each thing that some point needs.

`app` is what is deployed; `older` has a workflow more, so that its runs are compared when `app` comes (P15). `rebuying` does not give the provider the attempt's token: what the matrix's verdict must notice.
"""

import os
import ssl
import uuid
from typing import Any

import httpx2
import msgspec

from kit.crash_provider import PRICE, PROVIDER, is_authentic
from longtake import Activity, App, AuthenticCallback, NotFound, Plan, Submitted, Succeeded, Throttled

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Plain HTTP on this machine: loading the certificate list would be most of a call's time."""
POOLS = ("default", "b", "c")


async def ask(path: str, **said: Any) -> dict[str, Any] | None:
    """Ask the provider; None when it does not know."""
    url = os.environ[PROVIDER] + path
    async with httpx2.AsyncClient(trust_env=False, verify=NOBODY, timeout=30) as http:
        response = await http.post(url, content=msgspec.json.encode(said))
        return msgspec.json.decode(response.content) if response.status_code == 200 else None


class Shoot(Activity):
    """A paid call: taken at once, done when the provider calls back or is asked."""

    name = "shoot@1"
    paid = True

    async def execute(self, call: Any) -> Any:
        answer = await ask("/submit", key=self.key(call), callback=call.callback_url("shots"))
        assert answer is not None, "it takes everything"
        return Submitted(external_ref=answer["job"], poll_after_seconds=2)

    async def poll(self, call: Any) -> Any:
        await ask("/poll", key=self.key(call))
        return Succeeded(external_ref=call.external_ref)

    async def reconcile(self, call: Any) -> Any:
        answer = await ask("/find", key=self.key(call))
        if answer is None:
            return NotFound(evidence="the provider knows no such key")
        return Submitted(external_ref=answer["job"], poll_after_seconds=1)

    def key(self, call: Any) -> str:
        """What the provider knows the request by."""
        return str(call.token)


class ShootB(Shoot):
    name = "shoot.b@1"
    pool = "b"


class ShootC(Shoot):
    name = "shoot.c@1"
    pool = "c"


class Rebuy(Shoot):
    """Makes up a key each time, as an author may who knows no better."""

    def key(self, call: Any) -> str:
        return uuid.uuid4().hex


def reel(input: Any, policy: Any) -> Plan:
    """One paid shot in each of some pools, then the cut."""
    plan = Plan()
    shots = []
    for pool in POOLS[: input.get("pools", 1)]:
        name = "shoot@1" if pool == "default" else f"shoot.{pool}@1"
        plan = plan.step(f"shot:{pool}", activity=name, price=PRICE)
        shots.append(f"shot:{pool}")
    return plan.step("cut", activity="cut@1", depends_on=shots)


def crowd(input: Any, policy: Any) -> Plan:
    """Work that is sent away three times before it is done."""
    return Plan().step("stand", activity="stand@1").step("cut", activity="cut@1", depends_on=["stand"])


def nap(input: Any, policy: Any) -> Plan:
    """A rest, then the cut."""
    return Plan().sleep("rest", seconds=1).step("cut", activity="cut@1", depends_on=["rest"])


def cutting(input: Any, policy: Any) -> Plan:
    """The cut alone."""
    return Plan().step("cut", activity="cut@1")


def family(input: Any, policy: Any) -> Plan:
    """A child, then the cut."""
    return (
        Plan()
        .run("child", workflow="cutting@1", input={})
        .step("cut", activity="cut@1", depends_on=["child"])
    )


def voice(input: Any, policy: Any) -> Plan:
    """Owns the voice until somebody says that it is done."""
    return (
        Plan(scopes=("voice",)).wait("said", event="said").step("cut", activity="cut@1", depends_on=["said"])
    )


def asked(input: Any, policy: Any) -> Plan:
    """A person is asked, then one paid shot."""
    return (
        Plan()
        .input("choose", answer={"type": "object"})
        .step("shot:default", activity="shoot@1", price=PRICE, depends_on=["choose"])
    )


def retired(input: Any, policy: Any) -> Plan:
    """What is no longer offered."""
    return Plan().step("cut", activity="cut@1")


async def cut(call: Any) -> None:
    """Free work."""


async def stand(call: Any) -> Any:
    """Work that depends on how busy somebody is."""
    answer = await ask("/crowd", key=call.token)
    return Throttled(retry_after_seconds=0) if answer is not None and answer["busy"] else None


def verify(headers: Any, raw: bytes) -> AuthenticCallback | None:
    """Whether the provider signed it."""
    if not is_authentic(headers.get("shots-signature", ""), raw):
        return None
    said = msgspec.json.decode(raw)
    return AuthenticCallback(dedupe_key=said["id"], type="done", external_ref=said["job"])


def made(shoot: Activity, *more: Any) -> App:
    """The application, with more workflows."""
    application = App("crashing", price_list="2026-11")
    for build in (reel, crowd, nap, cutting, family, voice, asked, *more):
        application.workflow(build.__name__, version=1)(build)
    application.add(shoot, ShootB(), ShootC())
    application.activity("cut@1")(cut)
    application.activity("stand@1")(stand)
    application.callback("shots")(verify)
    return application


app = made(Shoot())
older = made(Shoot(), retired)
rebuying = made(Rebuy())
