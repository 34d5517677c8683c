"""The application that tests run under `longtake up`: a run that waits until the test makes a file."""

import asyncio
import os
from pathlib import Path

from longtake import App, Plan

GATE_VARIABLE = "LONGTAKE_TEST_GATE"
LOOK_SECONDS = 0.02

app = App("up")


@app.workflow("gate", version=1)
def build(input, policy):  # type: ignore[no-untyped-def]
    """Before the gate, at the gate, behind the gate."""
    return (
        Plan()
        .step("before", activity="noop@1", pool="short")
        .step("gate", activity="gate@1", depends_on=["before"])
        .step("after", activity="noop@1", pool="short", depends_on=["gate"])
    )


@app.activity("noop@1", pool="short")
async def noop(call):  # type: ignore[no-untyped-def]
    """Nothing to do."""


@app.activity("gate@1")
async def gate(call):  # type: ignore[no-untyped-def]
    """Wait for the file."""
    path = Path(os.environ[GATE_VARIABLE])
    while not path.exists():
        await asyncio.sleep(LOOK_SECONDS)
