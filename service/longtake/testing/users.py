"""Your own workflow under everything that goes wrong: `simulate(app, "film@1", input)`.

Its builders, plans, conditions, prices and expanders are your own; its activities are stood for by a fake provider that is slow,
silent, double or wrong, and every one of them succeeds in the end unless the seed says otherwise. What must hold is what longtake
promises of every run.
Leaves to others: playing a seed (simulation.py).
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from longtake.contracts.commands import Command
from longtake.testing.activities import SimulatedActivity, Stage, Style
from longtake.testing.catalogue import PROVIDER, verify_callback
from longtake.testing.commanding import CLOSING, control
from longtake.testing.faults import draw_profile
from longtake.testing.scenario import Scenario, Stagehand
from longtake.testing.shrinking import explain, shrink
from longtake.testing.simulation import Result, play
from longtake.worker.registry import App
from longtake.workflow.plan import ActivityFacts


class PromiseBroken(AssertionError):
    """A run of your workflow broke a promise; the message tells the seed, what went wrong and the last calls."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What many simulated runs came to."""

    seeds: int
    statuses: dict[str, int]
    """How the runs ended, or what they wait for."""
    events: int
    faults: dict[str, int]
    """In how many seeds each fault occurred."""


def simulate(
    app: App,
    workflow: str,
    input: Mapping[str, Any],
    *,
    policy: Mapping[str, Any] | None = None,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
    seeds: Iterable[int] = range(20),
    safety_seconds: float = 120.0,
) -> Report:
    """Run a workflow once for each seed under that seed's faults.

    `workflow` is "name@version". `answers` are given to gates by step; a person cancels, retries and pauses now and then.
    Raises PromiseBroken at the first seed whose run broke a promise or came to no end, and Refused (from the app) when
    the plan itself is not valid.
    """
    app.plan(workflow, dict(input), dict(policy or {}))
    stage = Stage()
    scenario = Scenario(
        app=_on_stage(app, stage),
        script=lambda hand: _clients(hand, workflow, dict(input), dict(policy or {}), answers or {}),
    )

    def one(seed: int, profile: Any = None) -> Result:
        drawn = draw_profile(seed, safety_seconds=safety_seconds) if profile is None else profile
        return play(seed, profile=drawn, scenario=scenario, stage=stage)

    statuses: dict[str, int] = {}
    faults: dict[str, int] = {}
    events = count = 0
    for seed in seeds:
        result = one(seed)
        if result.failed:
            raise PromiseBroken(explain(shrink(result, lambda profile, seed=seed: one(seed, profile))))  # type: ignore[misc]  # bound per seed
        count += 1
        events += result.events
        for status, number in result.statuses.items():
            statuses[status] = statuses.get(status, 0) + number
        for name in result.counts["fault"]:
            faults[name] = faults.get(name, 0) + 1
    return Report(seeds=count, statuses=statuses, events=events, faults=faults)


def _on_stage(app: App, stage: Stage) -> App:
    """The same workflows over activities that ask the fake provider."""
    twin = App(app.name, price_list=app.price_list)
    twin.workflows = dict(app.workflows)
    twin.expanders = dict(app.expanders)
    for facts in app.facts().values():
        twin.add(SimulatedActivity(stage, _style_of(facts), facts))
    twin.verifiers = {PROVIDER: verify_callback}
    return twin


def _style_of(facts: ActivityFacts) -> Style:
    if facts.external:
        return "job"
    return "held" if facts.paid else "quick"


def _clients(
    hand: Stagehand,
    workflow: str,
    input: dict[str, Any],
    policy: dict[str, Any],
    answers: Mapping[str, Mapping[str, Any]],
) -> Iterable[tuple[str, Any]]:
    session = hand.session("ann", "t1")

    async def begin() -> None:
        command = Command(
            kind="generation",
            project="p1",
            payload={"workflow": workflow, "input": input, "policy": policy},
            client_command_id=session.new_id(),
        )
        told = await session.send(command)
        if told is not None and told.receipt is not None and told.receipt.run_id is not None:
            session.runs.append(uuid.UUID(told.receipt.run_id))
        while True:
            await session.world.sleep(2 + session.chance.random() * 8)
            for run_id in session.runs:
                await _answer(run_id)

    async def _answer(run_id: uuid.UUID) -> None:
        summary = await session.read(run_id)
        if summary is None:
            return
        for blocker in summary["blockers"]:
            if blocker["type"] == "input_required" and blocker["step"] in answers:
                await session.send(
                    Command(
                        kind="provide_input",
                        project="p1",
                        targets=(str(run_id),),
                        payload={"step": blocker["step"], "answer": dict(answers[blocker["step"]])},
                        client_command_id=session.new_id(),
                        expected_revision=summary["revision"],
                    )
                )
                return
        if any(blocker["type"] == "retries_exhausted" for blocker in summary["blockers"]):
            await control(session, run_id, careful=True, kinds=CLOSING[:1])

    yield "ann", begin()
