"""editor.batch@1: many ads, or many scenes of one ad, each as a run of its own, and a report of what became of them.

So many runs at once: run n begins when run n - max_parallel has ended, however it did. The batch owns `full_generation`,
its runs own what they make, so that no run meets its own batch. Each run has its own price, hold, failures and history;
the batch itself costs nothing.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from longtake import Plan, ref
from videoads.workflows.editor_order import problem_at, read_ad, read_brief_of, read_order, scoped

BATCH_POLICY: dict[str, Any] = {"max_parallel": 3}

ADS_MAX = 50
PARALLEL_MAX = 16


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the batch."""

    name: str
    key: str
    workflow: str
    input: dict[str, Any]


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"ads": [{"ad", "brief"}]} or {"brief", "scenes": [n], "ad"?}."""
    lanes = policy["max_parallel"]
    if type(lanes) is not int or not 1 <= lanes <= PARALLEL_MAX:
        raise problem_at(
            "", f"policy max_parallel is {lanes!r}", f"give a whole number from 1 to {PARALLEL_MAX}"
        )
    if isinstance(given, dict) and "ads" in given:
        ad, items = "", _ads(given)
    else:
        ad, items = _scenes(given)
    plan = Plan(scopes=scoped(ad, ("full_generation",)), delivers="batch.report")
    for at, item in enumerate(items):
        plan = plan.run(
            item.key,
            workflow=item.workflow,
            phase="runs",
            label=f"{item.name} ({at + 1} of {len(items)})",
            input=item.input,
            depends_on=[items[at - lanes].key] if at >= lanes else [],
            join="all_terminal",
            on_exhausted="fail",
        )
    return plan.step(
        "batch.report",
        activity="batch.report@1",
        phase="report",
        label="Reporting the batch",
        join="all_terminal",
        input={
            "items": [
                {
                    "name": item.name,
                    "run_id": ref(item.key, "/result/run_id"),
                    "artifacts": ref(item.key, "/artifacts"),
                }
                for item in items
            ]
        },
        artifacts=["report"],
    )


def _ads(given: Mapping[str, Any]) -> list[Item]:
    ads = given["ads"]
    strange = [name for name in given if name != "ads"]
    if strange:
        raise problem_at(
            f"/{strange[0]}", "stands beside ads", "give each ad its own brief, and nothing else"
        )
    if not isinstance(ads, list) or not 1 <= len(ads) <= ADS_MAX:
        raise problem_at("/ads", "is no list of ads", f"give 1 to {ADS_MAX} objects with ad and brief")
    items: list[Item] = []
    for at, each in enumerate(ads):
        pointer = f"/ads/{at}"
        if not isinstance(each, dict) or set(each) - {"ad", "brief"}:
            raise problem_at(pointer, "is no ad", "give an object with ad and brief, and nothing else")
        name = read_ad(each, f"{pointer}/ad")
        if not name or any(item.name == name for item in items):
            raise problem_at(f"{pointer}/ad", f"is {name!r}", "give each ad of the batch a name of its own")
        read_brief_of(each, f"{pointer}/brief")
        items.append(
            Item(
                name=name,
                key=f"ad.run:{name}",
                workflow="editor.autopilot@1",
                input={"brief": each["brief"], "ad": name},
            )
        )
    return items


def _scenes(given: Any) -> tuple[str, list[Item]]:
    order = read_order(given, "scenes")
    scenes, there = given.get("scenes"), len(order.brief.scenes)
    if not isinstance(scenes, list) or not scenes:
        raise problem_at(
            "/scenes", "is no list of scenes", f"name some of 1 to {there}, or give a list of ads"
        )
    for at, scene in enumerate(scenes):
        if type(scene) is not int or not 1 <= scene <= there or scene in scenes[:at]:
            raise problem_at(f"/scenes/{at}", f"is {scene!r}", f"give a whole number from 1 to {there}, once")
    named = {"ad": order.ad} if order.ad else {}
    return order.ad, [
        Item(
            name=f"scene {scene}",
            key=f"scene.run:{scene}",
            workflow="editor.scene.generate@1",
            input={"brief": order.document, "scene": scene, **named},
        )
        for scene in scenes
    ]
