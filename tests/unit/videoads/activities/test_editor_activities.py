"""The small activities of the editor: a shortlist, the choice from it, orders for scenes, and the report of a batch."""

import base64
from io import BytesIO
from typing import Any

import msgspec
import pytest
from PIL import Image

import longtake
from kit.calls import call_of
from longtake.worker.fragments import with_fragment
from videoads.activities.batches import BatchReport
from videoads.activities.scene_plan import ScenesPlan
from videoads.activities.takes import TakeSelect, TakesShortlist
from videoads.brief import parse_brief
from videoads.script import write_script
from videoads.script_requests import shot_requests
from videoads.showcase import SMALL_BRIEF
from videoads.workflows.editor_autopilot import scenes_of


def clip_of(digit: str) -> dict[str, Any]:
    """A clip as a later step is given it."""
    return {
        "name": "clip",
        "kind": "clip",
        "object_key": f"objects/{digit}",
        "sha256": digit * 64,
        "bytes": 1,
        "content_type": "video/mp4",
    }


async def test_a_shortlist_keeps_so_many_takes_under_the_numbers_by_which_they_are_chosen(tmp_path) -> None:
    given = {
        "clips": [clip_of(digit) for digit in "abc"],
        "anchors": [[[1, 1]], [[2, 2]], [[3, 3]]],
        "keep": 2,
    }

    made = await TakesShortlist().execute(call_of(tmp_path, given))

    assert isinstance(made, longtake.Succeeded)
    assert [("take-1", "clip", "a" * 64), ("take-2", "clip", "b" * 64)] == [
        (file.name, file.kind, file.sha256) for file in made.artifacts
    ]
    assert [[[1, 1]], [[2, 2]]] == [take["anchors"] for take in made.result["takes"]]


async def test_the_chosen_take_is_handed_on_as_the_clip_of_its_scene(tmp_path) -> None:
    takes = [{"clip": clip_of(digit), "anchors": [[n, n]]} for n, digit in enumerate("ab", start=1)]

    made = await TakeSelect().execute(call_of(tmp_path, {"takes": takes, "choice": 2}))

    assert isinstance(made, longtake.Succeeded)
    assert ("clip", "b" * 64) == (made.artifacts[0].name, made.artifacts[0].sha256)
    assert {"anchors": [[2, 2]], "take": 2} == made.result


@pytest.mark.parametrize("choice", [0, 3])
async def test_a_take_that_is_not_there_cannot_be_chosen(tmp_path, choice: int) -> None:
    takes = [{"clip": clip_of(digit), "anchors": []} for digit in "ab"]

    made = await TakeSelect().execute(call_of(tmp_path, {"takes": takes, "choice": choice}))

    assert isinstance(made, longtake.Failed)
    assert ("invalid_input", "request") == (made.error_class, made.origin)


async def test_a_report_tells_what_was_made_and_what_is_missing(tmp_path) -> None:
    items = [
        {"name": "scene 1", "run_id": "r1", "artifacts": {"clip": clip_of("a")}},
        {"name": "scene 2", "run_id": None, "artifacts": None},
    ]
    call = call_of(tmp_path, {"items": items})

    made = await BatchReport().execute(call)

    assert isinstance(made, longtake.Succeeded)
    assert (1, 1) == (made.result["made"], made.result["missing"])
    assert [("made", {"clip": "a" * 64}), ("missing", {})] == [
        (item["status"], item["artifacts"]) for item in made.result["items"]
    ]
    await call.artifacts.fetch(made.artifacts[0].object_key, tmp_path / "report.json")
    assert made.result == msgspec.json.decode((tmp_path / "report.json").read_bytes())


async def test_a_batch_of_which_nothing_came_has_failed(tmp_path) -> None:
    items = [{"name": "scene 1", "run_id": None, "artifacts": None}]

    made = await BatchReport().execute(call_of(tmp_path, {"items": items}))

    assert isinstance(made, longtake.Failed)
    assert "dependency" == made.error_class


async def test_scenes_are_ordered_as_the_script_has_them_and_show_the_product_where_it_does(tmp_path) -> None:
    raw = BytesIO()
    Image.new("RGB", (64, 64), "#b94f1f").save(raw, format="PNG")
    (scene,) = SMALL_BRIEF["scenes"]
    document = {
        **SMALL_BRIEF,
        "seconds": 9.6,
        "scenes": [scene, {**scene, "shows_product": False}],
        "narration": SMALL_BRIEF["narration"] * 2,
        "product_picture": {
            "media_type": "image/png",
            "base64": base64.b64encode(raw.getvalue()).decode(),
        },
    }
    script = write_script(parse_brief(msgspec.json.encode(document), base=None))
    given = {
        "script": msgspec.to_builtins(script),
        "product": clip_of("f"),
        "model": "m",
        "retry_first_delay_ms": 7,
    }

    made = await ScenesPlan().execute(call_of(tmp_path, given))

    assert isinstance(made, longtake.Succeeded)
    assert shot_requests(script) == [scene["shot"] for scene in made.result["scenes"]]
    assert [True, False] == ["product" in scene for scene in made.result["scenes"]]
    grown = with_fragment(made, scenes_of)
    assert isinstance(grown, longtake.Succeeded)
    assert ["scenes:1", "scenes:2"] == [step["key"] for step in grown.fragment or ()]
