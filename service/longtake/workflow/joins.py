"""Joins: what the ends of its dependencies mean for a step: wait, run, skip or fail (design.md 6).

| dependency ended as | all_succeeded | all_terminal | at_least(k) |
| succeeded           | run           | run          | run         |
| skipped             | skip          | run          | skip        |
| failed, optional    | fail*         | run          | fail*       |
| failed, timed out   | fail*         | run          | fail*       |
| cancelled           | fail*         | run          | fail*       |

for one dependency (k = 1); `fail*` is skip when the dependent is optional. With several, a join that can no longer be met
says so at once: it skips when only skips are to blame. Groups are counted as their members, without a product of edges.
Leaves to others: acting on a verdict (scheduling.py), the counters (moves.py).
"""

from typing import Literal

from longtake.workflow.conditions import ABSENT, holds
from longtake.workflow.refs import Reference
from longtake.workflow.run_state import RunState

Verdict = Literal["wait", "run", "skip", "fail"]


def verdict(state: RunState, index: int) -> Verdict:
    """What a pending step does now, by its dependencies alone."""
    plan, step = state.plan.steps[index], state.steps[index]
    total, successes = state.plan.step_deps[index], step.successes
    failures, skips, still_open = step.failures, step.skips, 0
    for name in state.plan.group_deps[index]:
        group = state.groups[name]
        total += group.total
        successes += group.successes
        failures += group.failures
        skips += group.skips
        still_open += group.open
    ended = successes + failures + skips
    if plan.join == "all_terminal":
        return "run" if ended == total and not still_open else "wait"
    if plan.join == "at_least":
        need = plan.need or 0
        if successes >= need:
            return "run"
        impossible = not still_open and total - failures - skips < need
    else:
        if successes == total and not still_open:
            return "run"
        impossible = failures + skips > 0
    if not impossible:
        return "wait"
    return "skip" if failures == 0 or plan.optional else "fail"


def bears(state: RunState, index: int, failed: int) -> bool:
    """Whether a step that waits for `failed` goes on in spite of its failure, which is not counted yet."""
    plan, step = state.plan.steps[index], state.steps[index]
    if step.status != "pending" or index in state.judged:
        return False
    if plan.join == "all_terminal":
        return True
    if plan.join != "at_least":
        return False
    total = state.plan.step_deps[index]
    lost, still_open = step.failures + step.skips, 0
    for name in state.plan.group_deps[index]:
        group = state.groups[name]
        total += group.total
        lost += group.failures + group.skips
        still_open += group.open
    return still_open > 0 or total - lost - 1 >= (plan.need or 0)


def waiters(state: RunState, index: int) -> list[int]:
    """The steps that wait for a step, by name or by its group."""
    found = list(state.plan.dependents[index])
    plan = state.plan.steps[index]
    for name in (plan.group, plan.fills):
        if name is not None:
            found.extend(state.plan.group_dependents[name])
    return found


def wants_to_run(state: RunState, index: int) -> bool:
    """Whether the step's condition holds."""
    when = state.plan.steps[index].when
    if when is None:
        return True

    def look_up(reference: Reference) -> object:
        source = state.plan.position[str(reference.step)]
        return state.results.get(source, {}).get(reference.pointer, ABSENT)

    return holds(when, look_up)


def losers_of(state: RunState, index: int) -> list[int]:
    """What a join that has its successes needs no more: unended steps that lead nowhere but to it, transitively."""
    found: dict[int, None] = {}
    look = _sources(state, index)
    while look:
        source = look.pop()
        step = state.steps[source]
        if source in found or step.ended or step.abandoned:
            continue
        needed = any(
            waiter not in found
            and waiter != index
            and state.steps[waiter].status == "pending"
            and waiter not in state.judged
            for waiter in waiters(state, source)
        )
        if needed:
            continue
        found[source] = None
        look.extend(_sources(state, source))
    return sorted(found)


def _sources(state: RunState, index: int) -> list[int]:
    found = list(state.plan.needs[index])
    for name in state.plan.group_deps[index]:
        found.extend(state.plan.groups[name])
        found.extend(state.plan.fillers.get(name, ()))
    return found
