"""Ways out: what a run waits for, each with the command line that ends the waiting.

Leaves to others: printing (run.py), and deciding what is offered (the summary says it).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from longtake.client import StepNow
from longtake.contracts.summary import Action, Blocker, Summary

ACTIONS: dict[str, Action] = {
    "input": "provide_generation_input",
    "event": "send_generation_event",
    "retry": "retry_generation",
    "resume": "resume_generation",
}
"""The verb of the command line to the action that a run must offer for it."""


class WayOut(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a run waits for."""

    word: str
    """blocked, asks or waits."""
    what: str
    command: str | None
    """None: nothing that is sent to the run would end it."""


def ways_out(summary: Summary, steps: Sequence[StepNow] = ()) -> Iterator[WayOut]:
    """What the run waits for: a resume, its blockers, and events that somebody may send."""
    by_key = {step.key: step for step in steps}
    if summary.status == "paused":
        yield WayOut(word="paused", what="nothing new begins", command=_line(summary, "resume"))
    for blocker in summary.blockers:
        step = by_key.get(blocker.step or "")
        yield WayOut(
            word="asks" if blocker.type in ("input_required", "spend_cap") else "blocked",
            what=_told(blocker, step),
            command=_answer(summary, blocker, step),
        )
    overdue = {blocker.step for blocker in summary.blockers}
    for step in steps:
        if step.status == "waiting_event" and step.key not in overdue:
            yield WayOut(
                word="waits",
                what=f"{step.key} for the event {step.event!r}",
                command=_line(summary, "event", str(step.event)),
            )


def gates_told(gates: Iterable[Mapping[str, object]], events: Mapping[str, str]) -> str:
    """Gates that were opened, in words; `events` says by step which event a wait is for."""
    return ", ".join(_gate_told(gate, events) for gate in gates)


def _told(blocker: Blocker, step: StepNow | None) -> str:
    at = f" at {blocker.step}" if blocker.step else ""
    details = blocker.details
    match blocker.type:
        case "input_required":
            schema = (
                ""
                if step is None or step.answer is None
                else f", {msgspec.json.encode(step.answer).decode()}"
            )
            said = f"{details.get('label', '')}{schema}"
        case "spend_cap":
            said = f"it costs {details['price']}; {details['net']} of at most {details['cap']} are spent"
        case _:
            said = "; ".join(
                text for name, text in details.items() if name not in ("application", "causation")
            )
    return f"{blocker.type}{at}" + (f": {said}" if said else "")


def _answer(summary: Summary, blocker: Blocker, step: StepNow | None) -> str | None:
    key = blocker.step or ""
    match blocker.type:
        case "input_required":
            return _line(summary, "input", f"{key} --answer ANSWER.json")
        case "spend_cap":
            return _line(summary, "input", f"{key} --cap {blocker.details['needed']}")
        case "wait_overdue" if step is not None and step.kind == "input":
            return _line(summary, "input", f"{key} --answer ANSWER.json")
        case "wait_overdue" if step is not None and step.event is not None:
            return _line(summary, "event", step.event)
        case "plan_drift":
            return f"longtake plan accept {summary.run_id} --reason WHY"
        case "no_worker":
            return None
        case _:
            return _line(summary, "retry", f"--step {key}" if key else "")


def _line(summary: Summary, verb: str, rest: str = "") -> str | None:
    if ACTIONS[verb] not in summary.available_actions:
        return None
    return f"longtake run {verb} {summary.run_id} {rest}".rstrip()


def _gate_told(gate: Mapping[str, object], events: Mapping[str, str]) -> str:
    step, until = gate["step"], gate.get("until")
    within = f" until {str(until)[11:19]}" if until else ""
    match gate["kind"]:
        case "input":
            return f"{step} asks a person{within}"
        case "sleep":
            return f"{step} sleeps{within}"
        case "wait":
            name = events.get(str(step))
            return f"{step} waits for {'an event' if name is None else f'the event {name!r}'}{within}"
        case _:
            return f"{step} waits for run {gate.get('child')}{within}"
