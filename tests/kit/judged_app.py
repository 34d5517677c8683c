"""An application whose provider is a file: each request is written down and synced before it is answered.

Besides it knows how to fail: for good when the input says so, for now while the file LONGTAKE_TEST_DOWN exists.
The provider honours idempotency keys: a key that it knows gives the same job and costs nothing. The application gives
it the attempt's token. An input may ask for the mistakes of authors who know no better (`shoot`): keyless@1 makes a key up each
time, blind@1 looks up by asking anew, of a provider that forgets the keys it has seen.
"""

import asyncio
import fcntl
import hashlib
import hmac
import os
import time
import uuid
from pathlib import Path
from typing import Any

import msgspec

from longtake import Activity, App, AuthenticCallback, Failed, NotFound, Plan, Retry, Submitted, Succeeded
from longtake.testing.checking import WitnessLine, read_witness

WITNESS = "LONGTAKE_TEST_PROVIDER"
SLOW = "LONGTAKE_TEST_SLOW"
"""A file: while it exists the provider keeps its answers to itself."""
DOWN = "LONGTAKE_TEST_DOWN"
PRICE = 3
SECRET = b"what the provider signs with"


class FileProvider:
    """The provider. Any number of processes may ask."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, key: str, kind: str, *, forgetful: bool = False) -> WitnessLine | None:
        """Submit or find; None when there is nothing to be found."""
        with self._path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = next((line for line in read_witness(self._path) if line.key == key and line.job), None)
            line = WitnessLine(t=time.monotonic(), key=key, kind=kind)
            if known is not None and not forgetful:
                line.job = known.job
            elif kind == "submit":
                line.job, line.charged, line.credits = f"job-{uuid.uuid4().hex[:8]}", True, PRICE
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return line if line.job else None


app = App("judged")


ONE_TRY = Retry(max_attempts=1, first_delay_ms=1)


@app.workflow("reel", version=1)
def build(input: Any, policy: Any) -> Plan:
    """Some paid shots side by side, then the cut; with `gate` somebody looks at them first."""
    plan = Plan(billing=input.get("billing", "prepaid"))
    shots = [f"shot:{number}" for number in range(input.get("shots", 2))]
    for shot in shots:
        plan = plan.step(
            shot,
            activity=input.get("shoot", "shoot@1"),
            price=PRICE,
            input={"bad": bool(input.get("bad"))},
            retry=ONE_TRY,
            on_exhausted="fail" if input.get("bad") else "block",
        )
    if input.get("gate"):
        plan = plan.input("look", answer={"type": "object"}, depends_on=shots)
        shots = ["look"]
    return plan.step("cut", activity="cut@1", depends_on=shots)


@app.workflow("ordered", version=1)
def build_ordered(input: Any, policy: Any) -> Plan:
    """One paid shot that the provider calls back about."""
    return Plan(billing="pay_as_you_go").step("shot", activity="order@1", price=PRICE)


class Shoot(Activity):
    """A paid call that can be looked up."""

    name = "shoot@1"
    paid = True

    async def execute(self, call: Any) -> Any:
        return await self._ask(call, "submit")

    async def reconcile(self, call: Any) -> Any:
        return await self._ask(call, "find")

    async def _ask(self, call: Any, kind: str, *, key: str | None = None, forgetful: bool = False) -> Any:
        if call.input.get("bad"):
            return Failed(error_class="invalid_input", message="no such shot", origin="request")
        if os.environ.get(DOWN) and Path(os.environ[DOWN]).exists():
            return Failed(error_class="overloaded", message="come back later")
        provider = FileProvider(Path(os.environ[WITNESS]))
        line = await asyncio.to_thread(provider.ask, key or call.token, kind, forgetful=forgetful)
        while os.environ.get(SLOW) and Path(os.environ[SLOW]).exists():
            await asyncio.sleep(0.02)
        if line is None:
            return NotFound(evidence="the provider knows no such key")
        return Succeeded(external_ref=line.job)


class Keyless(Shoot):
    """Never the same key."""

    name = "keyless@1"

    async def execute(self, call: Any) -> Any:
        return await self._ask(call, "submit", key=uuid.uuid4().hex)


class Blind(Shoot):
    """Asks again instead of looking."""

    name = "blind@1"

    async def reconcile(self, call: Any) -> Any:
        return await self._ask(call, "submit", forgetful=True)


class Order(Shoot):
    """The same, taken now and done when the provider says so."""

    name = "order@1"

    async def execute(self, call: Any) -> Any:
        outcome = await self._ask(call, "submit")
        if isinstance(outcome, Succeeded):
            Path(os.environ[WITNESS]).with_suffix(".url").write_text(call.callback_url("file"))
            return Submitted(external_ref=str(outcome.external_ref), poll_after_seconds=3600)
        return outcome

    async def poll(self, call: Any) -> Any:
        return Succeeded(external_ref=call.external_ref)


@app.callback("file")
def verify(headers: Any, raw: bytes) -> AuthenticCallback | None:
    """Whether the provider signed it."""
    if not hmac.compare_digest(headers.get("file-signature", ""), signature(raw)):
        return None
    said = msgspec.json.decode(raw)
    return AuthenticCallback(dedupe_key=said["id"], type="done", external_ref=said["job"])


def signature(raw: bytes) -> str:
    """How the provider signs what it sends."""
    return hmac.new(SECRET, raw, hashlib.sha256).hexdigest()


app.add(Shoot())
app.add(Order())
app.add(Keyless())
app.add(Blind())


@app.activity("cut@1")
async def cut(call: Any) -> None:
    return None
