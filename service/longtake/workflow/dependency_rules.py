"""Rules of a plan about who waits for whom: names that lead nowhere, and circles (H09)."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from longtake.contracts.problems import ProblemError
from longtake.workflow.refs import BadReference, GroupName, Reference, find_references, is_pointer

if TYPE_CHECKING:
    from longtake.workflow.plan import Plan
    from longtake.workflow.step import Step


def dependency_faults(
    step: "Step", at: str, positions: Mapping[str, int], groups: set[str]
) -> Iterator[ProblemError]:
    for number, wait in enumerate(step.depends_on):
        if isinstance(wait, GroupName) and wait.group not in groups:
            yield ProblemError(
                f"{at}/depends_on/{number}",
                f"there is no group {wait.group!r}",
                "fan out that group, or mend the name",
            )
        if isinstance(wait, str) and wait not in positions:
            yield ProblemError(
                f"{at}/depends_on/{number}", f"there is no step {wait!r}", "add that step, or mend the name"
            )
    for field, item in [
        *(("input", item) for item in find_references(step.input)),
        *(("when", item) for item in find_references(step.when or {})),
    ]:
        if isinstance(item, BadReference):
            if field == "input":  # a condition names its own
                yield ProblemError(f"{at}/input{item.place}", item.message, "make references with ref()")
            continue
        place = f"{at}/{field}{item.place}"
        if item.step is not None and item.step not in positions:
            yield ProblemError(
                place, f"the reference names no step: {item.step!r}", "refer to a step of this plan"
            )
        if item.group is not None and item.group not in groups:
            yield ProblemError(
                place, f"the reference names no group: {item.group!r}", "refer to a group of this plan"
            )
        if field == "input" and not is_pointer(item.pointer):
            yield ProblemError(
                place, f"{item.pointer!r} is no JSON pointer", 'begin it with "/", write ~ as ~0 and / as ~1'
            )


def cycle_faults(plan: "Plan", positions: Mapping[str, int]) -> Iterator[ProblemError]:
    cycle = find_cycle(plan, positions)
    if cycle:
        names = " -> ".join([*cycle, cycle[0]])
        yield ProblemError(
            f"/steps/{positions[cycle[0]]}/depends_on",
            f"the steps wait for each other: {names}",
            "break the circle",
        )


def find_cycle(plan: "Plan", positions: Mapping[str, int]) -> tuple[str, ...]:
    """The keys of one cycle, each waiting for the next; empty when there is none. Walks without recursion."""
    # Nodes are steps by key and groups by GroupName, so that two groups in a row cost no product of edges.
    waits: dict[str | GroupName, list[str | GroupName]] = {}
    for step in plan.steps:
        waits[step.key] = [*step.depends_on, *_referred(step)]
        if step.group is not None:
            waits.setdefault(GroupName(step.group), []).append(step.key)
        if step.fills is not None:
            waits.setdefault(GroupName(step.fills), []).append(step.key)
    done: set[str | GroupName] = set()
    for start in positions:
        if start in done:
            continue
        path: dict[str | GroupName, int] = {start: 0}
        trail: list[str | GroupName] = [start]
        branches = [iter(waits[start])]
        while branches:
            following = next(branches[-1], None)
            if following is None:
                branches.pop()
                left = trail.pop()
                del path[left]
                done.add(left)
            elif following in path:
                return tuple(node for node in trail[path[following] :] if isinstance(node, str))
            elif following not in done:
                path[following] = len(trail)
                trail.append(following)
                branches.append(iter(waits.get(following, ())))
    return ()


def _referred(step: "Step") -> Iterator[str | GroupName]:
    for item in (*find_references(step.input), *find_references(step.when or {})):
        if isinstance(item, Reference):
            yield GroupName(item.group) if item.group is not None else str(item.step)
