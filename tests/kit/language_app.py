"""An application that speaks the whole language of plans: every kind of step and every join, in one family of workflows.

Each execution is written to the witness before it is answered (kit.witnessing), so an outsider can count them. Work that
`holds` waits until the test opens the door, a file beside the witness.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

from kit.witnessing import WITNESS, witness
from longtake import App, Failed, Plan, Retry, Step, at_least, condition, group, ref

LOOK_SECONDS = 0.02
CHOICE = {
    "type": "object",
    "required": ["take"],
    "properties": {"take": {"type": "integer", "minimum": 1, "maximum": 3}},
    "additionalProperties": False,
}
ONCE = Retry(max_attempts=1)

app = App("language", price_list="2026-11")


def door() -> Path:
    """The file that lets go of what holds."""
    return Path(os.environ[WITNESS] + ".open")


def begun() -> Path:
    """Where work that holds says that it has begun."""
    return Path(os.environ[WITNESS] + ".begun")


@app.workflow("film", version=1, starts=("generation", "follow_up"))
def film(input: Any, policy: Any) -> Plan:
    """Every kind and every join: a gate for a person, events early and late, a sleep, a child, a fan-out that grows, a
    race with losers, a failure that is borne, a step that its condition skips."""
    return (
        Plan(delivers="deliver", prices={"scene": 2}, cost_cap=20)
        .step("draft", activity="note@1", input={"score": 3}, price=1)
        .input("choose", answer=CHOICE, depends_on=["draft"], label="Choosing a take")
        .input(
            "mood",
            answer={"type": "object"},
            default={"mood": "calm"},
            timeout_seconds=1,
            depends_on=["draft"],
        )
        .sleep("rest", seconds=1, depends_on=["choose"])
        .wait("cleared", event="cleared", depends_on=["choose"])
        .wait("released", event="released", depends_on=["choose"])
        .run("poster", workflow="poster@1", input={"score": ref("draft", "/result/score")})
        .expand("scenes", activity="scenes.plan@1", fills="takes", expands_to=["note@1"], input={"count": 2})
        .step("fast", activity="note@1")
        .step("slow", activity="hold@1", on_exhausted="fail")
        .step("first", activity="note@1", depends_on=["fast", "slow"], join=at_least(1))
        .step("risky", activity="risky@1", optional=True, retry=ONCE)
        .step("anyway", activity="note@1", depends_on=["risky"], join="all_terminal")
        .step("polish", activity="note@1", when=condition("gt", ref("draft", "/result/score"), 5))
        .step(
            "deliver",
            activity="note@1",
            depends_on=["rest", "cleared", "first", "anyway", "poster"],
            input={
                "takes": ref(group("takes"), "/result/step"),
                "choice": ref("choose", "/result/take"),
                "mood": ref("mood", "/result/mood"),
                "by": ref("released", "/result/by"),
                "poster": ref("poster", "/result/run_id"),
            },
        )
    )


@app.workflow("poster", version=1)
def poster(input: Any, policy: Any) -> Plan:
    """A child."""
    return Plan(delivers="print").step("print", activity="note@1", input={"score": input["score"]}, price=3)


@app.workflow("family", version=1)
def family(input: Any, policy: Any) -> Plan:
    """A child and what follows from it."""
    return (
        Plan()
        .run("poster", workflow="poster@1", input={"score": 1})
        .step("after", activity="note@1", depends_on=["poster"])
    )


@app.workflow("shoot", version=1)
def shoot(input: Any, policy: Any) -> Plan:
    """Booked, paid, and then it fails: what was done is undone."""
    undo = "undo.hold@1" if input.get("holds") else "undo@1"
    return (
        Plan()
        .step("book", activity="note@1", compensate=undo)
        .step("rent", activity="note@1", depends_on=["book"], price=4, compensate=undo)
        .step("break", activity="risky@1", depends_on=["rent"], retry=ONCE, on_exhausted="fail")
    )


@app.workflow("costly", version=1)
def costly(input: Any, policy: Any) -> Plan:
    """Pays as it goes; what the expansion adds does not fit under the cap."""
    return (
        Plan(billing="pay_as_you_go", cost_cap=5, prices={"scene": 4})
        .step("one", activity="note@1", price=5)
        .expand(
            "scenes",
            activity="scenes.plan@1",
            fills="takes",
            expands_to=["note@1"],
            depends_on=["one"],
            input={"count": 2},
        )
        .step("cut", activity="note@1", depends_on=[group("takes")])
    )


@app.workflow("grown", version=1)
def grown(input: Any, policy: Any) -> Plan:
    """An expansion that holds, and what follows from what it made."""
    return (
        Plan()
        .expand("scenes", activity="scenes.hold@1", fills="takes", expands_to=["note@1"])
        .step("cut", activity="note@1", depends_on=[group("takes")])
    )


@app.workflow("voice", version=1)
def voice(input: Any, policy: Any) -> Plan:
    """Owns the voice until somebody says that it is done."""
    return (
        Plan(scopes=("voice",)).wait("said", event="said").step("cut", activity="note@1", depends_on=["said"])
    )


@app.workflow("nap", version=1)
def nap(input: Any, policy: Any) -> Plan:
    """Rests, and goes on."""
    return Plan().sleep("rest", seconds=1).step("after", activity="note@1", depends_on=["rest"])


@app.workflow("asked", version=1)
def asked(input: Any, policy: Any) -> Plan:
    """Asks a person, and goes on."""
    return (
        Plan()
        .input("choose", answer=CHOICE)
        .step(
            "after", activity="note@1", depends_on=["choose"], input={"take": ref("choose", "/result/take")}
        )
    )


@app.workflow("probe", version=1, starts=("utility",))
def probe(input: Any, policy: Any) -> Plan:
    """A utility, which costs what it is told to."""
    return Plan().step("look", activity="note@1", price=input.get("price", 0))


@app.activity("note@1")
async def note(call: Any) -> dict[str, Any]:
    """Write down that it was done, and give back the input."""
    await witness(call)
    return {**call.input, "step": call.step}


@app.activity("hold@1")
async def hold(call: Any) -> None:
    """Wait for the door first."""
    await _pass_the_door(call)
    await witness(call)


@app.activity("risky@1")
async def risky(call: Any) -> Failed:
    """Fail for good."""
    await witness(call)
    return Failed(error_class="invalid_input", message="it does not work")


@app.activity("undo@1")
async def undo(call: Any) -> None:
    """Undo a step."""
    await witness(call)


@app.activity("undo.hold@1")
async def undo_slowly(call: Any) -> None:
    """Undo a step, behind the door."""
    await _pass_the_door(call)
    await witness(call)


@app.activity("scenes.plan@1")
async def scenes(call: Any) -> dict[str, Any]:
    """Say how many scenes there are."""
    await witness(call)
    return {"count": call.input["count"], "priced": True}


@app.activity("scenes.hold@1")
async def scenes_slowly(call: Any) -> dict[str, Any]:
    """Say it behind the door."""
    await _pass_the_door(call)
    await witness(call)
    return {"count": 2, "priced": False}


@app.expander("scenes.plan@1")
@app.expander("scenes.hold@1")
def expand(result: Any) -> list[Step]:
    """One step a scene."""
    key = "scene" if result["priced"] else None
    return [Step(f"scenes:{n}", activity="note@1", price_key=key) for n in range(1, result["count"] + 1)]


async def _pass_the_door(call: Any) -> None:
    with begun().open("a") as file:
        file.write(f"{call.run_id} {call.step}\n")
    while not door().exists():
        await asyncio.sleep(LOOK_SECONDS)
