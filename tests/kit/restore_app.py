"""An application for restores: paid shots at an HTTP provider that charges for every submission, known key or not.

Nothing but a look-up keeps such a provider from being paid twice. LONGTAKE_TEST_BROKEN leaves out one guard of the process
that loads this module: `ask` (known calls are made without a look-up) or `guard` (a rewound store is worked on).
"""

import os
from typing import Any

import httpx2

from longtake import Activity, App, NotFound, Plan, Retry, Succeeded
from longtake.engine import store_guard
from longtake.worker import executor

PROVIDER = "LONGTAKE_TEST_PROVIDER_URL"
BROKEN = "LONGTAKE_TEST_BROKEN"
PRICE = 3

app = App("restored")


@app.workflow("film", version=1)
def build(input: Any, policy: Any) -> Plan:
    """A paid shot, somebody who looks at it, another paid shot, a free cut."""
    once = Retry(max_attempts=3, first_delay_ms=1)
    plan = Plan().step("one", activity="shot@1", price=PRICE, retry=once)
    plan = plan.input("look", answer={"type": "object"}, depends_on=["one"])
    plan = plan.step("two", activity="shot@1", price=PRICE, retry=once, depends_on=["look"])
    return plan.step("cut", activity="cut@1", depends_on=["two"])


@app.workflow("short", version=1)
def build_short(input: Any, policy: Any) -> Plan:
    """One paid shot."""
    return Plan().step("one", activity="shot@1", price=PRICE, retry=Retry(max_attempts=3, first_delay_ms=1))


class Shot(Activity):
    """A paid call that can be looked up."""

    name = "shot@1"
    paid = True

    async def execute(self, call: Any) -> Any:
        return Succeeded(external_ref=await _ask("submit", call.token))

    async def reconcile(self, call: Any) -> Any:
        job = await _ask("find", call.token)
        return Succeeded(external_ref=job, adopted=True) if job else NotFound(evidence="no such key")


app.add(Shot())


@app.activity("cut@1")
async def cut(call: Any) -> None:
    return None


async def _ask(kind: str, key: str) -> str:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.get(f"{os.environ[PROVIDER]}/{kind}/{key}")
    answer.raise_for_status()
    return answer.text


async def _nobody_asks(effect: Any, activity: Any, call: Any) -> None:
    return None


async def _nobody_looks(memory: Any, store: Any) -> None:
    return None


match os.environ.get(BROKEN):
    case "ask":
        executor.known_outside = _nobody_asks
    case "guard":
        store_guard.check_store = _nobody_looks
