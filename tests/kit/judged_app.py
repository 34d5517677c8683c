"""An application whose provider is a file: each request is written down and synced before it is answered.

The provider honours idempotency keys: a key that it knows gives the same job and costs nothing. The application gives
it the attempt's token; with LONGTAKE_TEST_BROKEN=no_key it makes one up each time, as an author may who knows no better.
"""

import asyncio
import fcntl
import os
import time
import uuid
from pathlib import Path
from typing import Any

import msgspec

from longtake import Activity, App, NotFound, Plan, Succeeded
from longtake.testing.checking import WitnessLine, read_witness

WITNESS = "LONGTAKE_TEST_PROVIDER"
BROKEN = "LONGTAKE_TEST_BROKEN"
SLOW = "LONGTAKE_TEST_SLOW"
"""A file: while it exists the provider keeps its answers to itself."""
PRICE = 3


class FileProvider:
    """The provider. Any number of processes may ask."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, key: str, kind: str) -> WitnessLine | None:
        """Submit or find; None when there is nothing to be found."""
        with self._path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            known = next((line for line in read_witness(self._path) if line.key == key and line.job), None)
            line = WitnessLine(t=time.monotonic(), key=key, kind=kind)
            if known is not None:
                line.job = known.job
            elif kind == "submit":
                line.job, line.charged, line.credits = f"job-{uuid.uuid4().hex[:8]}", True, PRICE
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        return line if line.job else None


app = App("judged")


@app.workflow("reel", version=1)
def build(input: Any, policy: Any) -> Plan:
    """Some paid shots side by side, then the cut; with `gate` somebody looks at them first."""
    plan = Plan(billing=input.get("billing", "prepaid"))
    shots = [f"shot:{number}" for number in range(input.get("shots", 2))]
    for shot in shots:
        plan = plan.step(shot, activity="shoot@1", price=PRICE)
    if input.get("gate"):
        plan = plan.input("look", answer={"type": "object"}, depends_on=shots)
        shots = ["look"]
    return plan.step("cut", activity="cut@1", depends_on=shots)


class Shoot(Activity):
    """A paid call that can be looked up."""

    name = "shoot@1"
    paid = True

    async def execute(self, call: Any) -> Any:
        return await self._ask(call, "submit")

    async def reconcile(self, call: Any) -> Any:
        return await self._ask(call, "find")

    async def _ask(self, call: Any, kind: str) -> Any:
        key = uuid.uuid4().hex if os.environ.get(BROKEN) == "no_key" else call.token
        line = await asyncio.to_thread(FileProvider(Path(os.environ[WITNESS])).ask, key, kind)
        while os.environ.get(SLOW) and Path(os.environ[SLOW]).exists():
            await asyncio.sleep(0.02)
        if line is None:
            return NotFound(evidence="the provider knows no such key")
        return Succeeded(external_ref=line.job)


app.add(Shoot())


@app.activity("cut@1")
async def cut(call: Any) -> None:
    return None
