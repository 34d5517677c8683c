"""The small workflows as plans, what they refuse, and what a probe says of files that are no films."""

from types import SimpleNamespace

import msgspec
import pytest
from PIL import Image

import longtake
from kit.calls import call_of
from longtake.errors import Refused
from videoads.activities.assets import AssetProbe
from videoads.activities.words import ScriptRevise
from videoads.application import app
from videoads.brief import brief_as_json, parse_brief
from videoads.renderer.inspect.probing import main, probe
from videoads.script import write_script
from videoads.showcase import SMALL_BRIEF
from videoads.workflows.film_export import material_of

PARSED = parse_brief(msgspec.json.encode(SMALL_BRIEF), base=None)
BRIEF = brief_as_json(PARSED)
FILE = {"object_key": "objects/aa/bb", "sha256": "0" * 64, "bytes": 1, "content_type": "x/y"}


def file_of(name: str) -> dict:
    return {"name": name, "kind": name, **FILE}


def delivered() -> list[SimpleNamespace]:
    """The events of a delivered short that its material is made of."""
    script = msgspec.to_builtins(write_script(PARSED))
    told = {
        "script.write": ({"script": script}, ["logo"]),
        "clip.generate:1": ({"anchors": [{"x": 1, "y": 2}]}, ["clip"]),
        "narration.generate": ({"rate": 48000, "phrases": []}, ["narration"]),
        "music.generate": ({}, ["music"]),
    }
    return [
        SimpleNamespace(
            type="step_succeeded",
            fields={"step": step, "result": result, "artifacts": [file_of(name) for name in names]},
        )
        for step, (result, names) in told.items()
    ]


def test_an_export_takes_the_material_of_the_run_and_pays_for_its_render_alone() -> None:
    material = material_of(delivered())
    planned = app.plan("film.export@1", {"material": material, "size": {"width": 620, "height": 350}}, {})

    assert {"script", "clips", "anchors", "music", "narration", "timings", "logo"} == set(material)
    assert (5, ("export", "follow_up")) == (planned.quoted, planned.starts)
    prepared = planned.plan.steps[0].input
    assert (620, 350) == (prepared["script"]["width"], prepared["script"]["height"])
    again = app.plan("short.rerender@1", {"material": material}, {})
    assert (PARSED.size.width, PARSED.size.height) == (
        again.plan.steps[0].input["script"]["width"],
        again.plan.steps[0].input["script"]["height"],
    )


MATERIAL = material_of(delivered())
SIZE = {"width": 620, "height": 350}


@pytest.mark.parametrize(
    ("workflow", "given", "pointer"),
    [
        ("film.export@1", {}, "/payload/input/material"),
        ("film.export@1", {"material": MATERIAL}, "/payload/input/size/width"),
        (
            "film.export@1",
            {"material": MATERIAL, "size": {**SIZE, "height": 351}},
            "/payload/input/size/height",
        ),
        (
            "film.export@1",
            {"material": {**MATERIAL, "script": {}}, "size": SIZE},
            "/payload/input/material/script",
        ),
        (
            "film.export@1",
            {"material": {k: v for k, v in MATERIAL.items() if k != "timings"}, "size": SIZE},
            "/payload/input/material/timings",
        ),
        ("asset.probe@1", {"asset": {}}, "/payload/input/asset/object_key"),
        ("script.revise@1", {"brief": BRIEF, "changes": {}}, "/payload/input/changes"),
        ("script.revise@1", {"brief": BRIEF, "changes": {"product": "x"}}, "/payload/input/changes/product"),
        ("script.revise@1", {"brief": BRIEF, "changes": {"scenes": []}}, "/payload/input/changes/scenes"),
        ("script.revise@1", {"changes": {"tagline": "x"}}, "/payload/input/brief"),
    ],
)
def test_what_is_wrong_with_an_input_is_said_with_its_place(workflow, given, pointer) -> None:
    with pytest.raises(Refused) as caught:
        app.plan(workflow, given, {})

    assert pointer == caught.value.problem.errors[0].pointer
    assert caught.value.problem.errors[0].remedy


async def test_a_turn_says_what_of_the_script_is_different(tmp_path) -> None:
    changes = {"closing": {"offer": "Now", "button": "Go", "address": "x.example"}}
    asked = {"brief": {**BRIEF, **changes}, "before": BRIEF}

    made = await ScriptRevise().execute(call_of(tmp_path, asked))

    assert isinstance(made, longtake.Succeeded)
    assert "card" in made.result["changed"]
    assert "width" not in made.result["changed"]


async def test_a_probe_of_no_object_and_of_another_digest_fails_for_good(tmp_path) -> None:
    lost = await AssetProbe().execute(call_of(tmp_path, {"object_key": "objects/00/none"}))
    call = call_of(tmp_path, {})
    kept = await call.artifacts.put(b"words", name="a", kind="a", content_type="text/plain")
    other = await AssetProbe().execute(call_of(tmp_path, {"object_key": kept.object_key, "sha256": "0" * 64}))
    right = await AssetProbe().execute(
        call_of(tmp_path, {"object_key": kept.object_key, "sha256": kept.sha256})
    )

    assert ["invalid_input"] * 2 == [lost.error_class, other.error_class]
    assert ("unknown", 5) == (right.result["kind"], right.result["bytes"])


def test_a_picture_is_told_by_its_content_and_not_by_its_name(tmp_path, capsys) -> None:
    Image.new("RGB", (7, 5)).save(tmp_path / "film.mp4", format="PNG")

    assert ("picture", "png", 7, 5) == tuple(
        probe(tmp_path / "film.mp4")[name] for name in ("kind", "format", "width", "height")
    )
    assert 0 == main([str(tmp_path / "film.mp4")])
    assert "picture" == msgspec.json.decode(capsys.readouterr().out)["kind"]
    assert 2 == main([str(tmp_path / "absent")])
