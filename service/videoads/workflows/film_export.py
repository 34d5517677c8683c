"""film.export@1 and short.rerender@1: another film of a delivered ad's own material, in another shape or in the same.

Nothing is generated again: script, clips, narration and music are those of the delivered run (`material_of`), set anew by
render.prepare, rendered and measured. Only the render is paid.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from longtake import InvalidInput, Plan, ProblemError, Retry, ref
from videoads.script import Script

EXPORT_POLICY: dict[str, Any] = {
    "price_credits": 5,
    "render_model": "synthetic-render-1",
    "retry_first_delay_ms": 1000,
}
RERENDER_POLICY: dict[str, Any] = EXPORT_POLICY

SIDE_MIN, SIDE_MAX = 64, 1920
"""Pixels of a side, as in a brief."""

NEEDED = ("script", "clips", "anchors", "music")


class Told(Protocol):
    """An event of a delivered run, as the client gives it."""

    @property
    def type(self) -> str: ...
    @property
    def fields(self) -> Mapping[str, Any]: ...


def material_of(history: Iterable[Told]) -> dict[str, Any]:
    """What a delivered short.generation was made of: the `material` that an export takes."""
    done = {event.fields["step"]: event.fields for event in history if event.type == "step_succeeded"}
    files = {
        key: {item["name"]: item for item in fields.get("artifacts", ())} for key, fields in done.items()
    }
    clips = sorted(
        (key for key in done if key.startswith("clip.generate:")), key=lambda key: int(key.rpartition(":")[2])
    )
    material: dict[str, Any] = {
        "script": done["script.write"]["result"]["script"],
        "clips": [files[key]["clip"] for key in clips],
        "anchors": [done[key].get("result", {}).get("anchors", []) for key in clips],
        "music": files["music.generate"]["music"],
    }
    if "narration.generate" in done:
        material["narration"] = files["narration.generate"]["narration"]
        material["timings"] = done["narration.generate"]["result"]
    return material | {
        name: files["script.write"][name] for name in ("logo", "product") if name in files["script.write"]
    }


def build_export(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"material": ..., "size": {"width", "height"}}: the same ad in another shape."""
    material = _material(given)
    size = given.get("size")
    sides = {name: size.get(name) if isinstance(size, dict) else None for name in ("width", "height")}
    wrong = [
        ProblemError(
            f"/size/{name}", f"is {side!r}", f"give an even number of pixels, {SIDE_MIN} to {SIDE_MAX}"
        )
        for name, side in sides.items()
        if type(side) is not int or side % 2 or not SIDE_MIN <= side <= SIDE_MAX
    ]
    if wrong:
        raise InvalidInput(tuple(wrong))
    return _plan(
        {**material, "script": {**material["script"], **sides}}, policy, label="Rendering the export"
    )


def build_rerender(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"material": ...}: the same ad rendered once more."""
    return _plan(_material(given), policy, label="Rendering the film again")


def _material(given: Any) -> dict[str, Any]:
    material = given.get("material") if isinstance(given, dict) else None
    if not isinstance(material, dict):
        raise InvalidInput(
            (ProblemError("/material", "is missing", "give what material_of() made of the run"),)
        )
    lost = [name for name in NEEDED if name not in material]
    if ("narration" in material) != ("timings" in material):
        lost.append("timings" if "narration" in material else "narration")
    try:
        msgspec.convert(material.get("script"), Script)
    except msgspec.ValidationError as error:
        place = ProblemError(
            "/material/script", f"is no script: {error}", "give the script of the delivered run"
        )
        raise InvalidInput((place,)) from error
    if lost:
        raise InvalidInput(
            tuple(
                ProblemError(f"/material/{name}", "is missing", "give all of the run's material")
                for name in lost
            )
        )
    return material


def _plan(material: dict[str, Any], policy: Mapping[str, Any], *, label: str) -> Plan:
    return (
        Plan(scopes=("render",), cost_cap=policy["price_credits"], delivers="delivery.verify")
        .step(
            "render.prepare",
            activity="render.prepare@1",
            phase="render",
            label="Setting words and pictures",
            input=material,
            artifacts=["composition"],
        )
        .step(
            "render.submit",
            activity="render.submit@1",
            phase="render",
            label=label,
            input={
                "composition": ref("render.prepare", "/artifacts/composition"),
                "media": ref("render.prepare", "/result/media"),
                "model": policy["render_model"],
            },
            price=policy["price_credits"],
            retry=Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"]),
            artifacts=["film"],
        )
        .step(
            "delivery.verify",
            activity="delivery.verify@1",
            phase="delivery",
            label="Measuring the delivery",
            input={
                "film": ref("render.submit", "/artifacts/film"),
                "composition": ref("render.prepare", "/artifacts/composition"),
                "media": ref("render.prepare", "/result/media"),
            },
            artifacts=["ad", "poster", "contact", "inspection"],
            on_exhausted="fail",
        )
    )
