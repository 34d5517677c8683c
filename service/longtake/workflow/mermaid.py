"""A plan as a Mermaid flowchart, fan-outs as boxes, each step in the colour of its status.

Leaves to others: statuses (state.py, and `running` from a live lease).
"""

from collections.abc import Mapping

from longtake.workflow.plan import Plan
from longtake.workflow.refs import GroupName, Reference, find_references

_COLOURS = {
    "succeeded": "fill:#d7f5dd,stroke:#1a7f37",
    "running": "fill:#dbeafe,stroke:#1d4ed8",
    "queued": "fill:#eef2ff,stroke:#4f46e5",
    "waiting_external": "fill:#dbeafe,stroke:#1d4ed8",
    "retry_scheduled": "fill:#fef3c7,stroke:#b45309",
    "reconciling": "fill:#fef3c7,stroke:#b45309",
    "blocked": "fill:#ffe4e6,stroke:#be123c",
    "failed": "fill:#fecaca,stroke:#991b1b",
    "cancelled": "fill:#e5e7eb,stroke:#6b7280",
}

STEPS_PER_GROUP_MAX = 12
"""A larger fan-out is drawn as one node with a count."""


def mermaid(plan: Plan, statuses: Mapping[str, str]) -> str:
    """Draw the plan; `statuses` maps step keys to what they are now."""
    node, folded = _nodes(plan)
    lines = ["flowchart LR"]
    for name in dict.fromkeys(step.group for step in plan.steps if step.group is not None):
        members = [step for step in plan.steps if step.group == name]
        if name in folded:
            done = sum(statuses.get(step.key) == "succeeded" for step in members)
            lines.append(f'  {folded[name]}[["{_text(name)}<br/>{done} of {len(members)} done"]]')
            continue
        lines.append(f'  subgraph {_group_id(plan, name)}["{_text(name)}"]')
        lines.extend(f"    {_shape(node[step.key], step.title, statuses.get(step.key))}" for step in members)
        lines.append("  end")
    lines.extend(
        f"  {_shape(node[step.key], step.title, statuses.get(step.key))}"
        for step in plan.steps
        if step.group is None
    )
    lines.extend(f"  {edge}" for edge in _edges(plan, node, folded))
    used = sorted({status for status in statuses.values() if status in _COLOURS})
    lines.extend(f"  classDef {status} {_COLOURS[status]}" for status in used)
    return "\n".join(lines) + "\n"


def _nodes(plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    sizes: dict[str, int] = {}
    for step in plan.steps:
        if step.group is not None:
            sizes[step.group] = sizes.get(step.group, 0) + 1
    folded = {name: _group_id(plan, name) for name, size in sizes.items() if size > STEPS_PER_GROUP_MAX}
    node = {
        step.key: folded[step.group] if step.group in folded and step.group is not None else f"s{index}"
        for index, step in enumerate(plan.steps)
    }
    return node, folded


def _group_id(plan: Plan, name: str) -> str:
    return f"g{list(dict.fromkeys(step.group for step in plan.steps)).index(name)}"


def _edges(plan: Plan, node: Mapping[str, str], folded: Mapping[str, str]) -> list[str]:
    edges: dict[str, None] = {}
    filled = {step.group for step in plan.steps}
    for step in plan.steps:
        waits: list[str | GroupName] = list(step.depends_on)
        for item in find_references(step.input):
            if isinstance(item, Reference):
                waits.append(GroupName(item.group) if item.group is not None else str(item.step))
        for wait in waits:
            if isinstance(wait, GroupName):
                if wait.group not in filled:
                    continue
                source = folded.get(wait.group) or _group_id(plan, wait.group)
            else:
                source = node[wait]
            edges[f"{source} --> {node[step.key]}"] = None
    return list(edges)


def _shape(node: str, title: str, status: str | None) -> str:
    colour = f":::{status}" if status in _COLOURS else ""
    return f'{node}["{_text(title)}"]{colour}'


def _text(text: str) -> str:
    """Nothing in a label may end it or begin markup."""
    cleaned = text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
    return cleaned.replace("\n", " ")
