"""An application that writes down each execution before it answers: an outsider's view of who did what how often."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from longtake import App, Plan

WITNESS = "LONGTAKE_TEST_WITNESS"


class Execution(msgspec.Struct, frozen=True):
    """One line of the witness."""

    run_id: str
    step: str
    attempt: int
    pid: int


def witnessed(path: Path) -> list[Execution]:
    """All executions so far, in order."""
    if not path.exists():
        return []
    return [Execution(r, s, int(a), int(p)) for r, s, a, p in map(str.split, path.read_text().splitlines())]


def times(executions: list[Execution]) -> Counter[tuple[str, str]]:
    """How often each step of each run was executed."""
    return Counter((line.run_id, line.step) for line in executions)


app = App("witnessing")


@app.workflow("chain", version=1)
def build(input: Any, policy: Any) -> Plan:
    """A chain of steps, free, in the pool whose messages carry one effect each."""
    plan = Plan()
    previous: list[str] = []
    for index in range(input.get("steps", 3)):
        plan = plan.step(f"link:{index}", activity="witness@1", depends_on=previous)
        previous = [f"link:{index}"]
    return plan


@app.activity("witness@1")
async def witness(call: Any) -> None:
    line = f"{call.run_id} {call.step} {call.attempt} {os.getpid()}\n"
    descriptor = os.open(os.environ[WITNESS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
