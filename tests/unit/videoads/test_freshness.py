"""Freshness: a film says by its plan and history what it is made of, and whether that is still the newest (H63)."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from kit.promises import promise
from longtake import InvalidInput
from videoads.application import app
from videoads.brief import brief_as_json, parse_brief
from videoads.freshness import Change, Fresh, Stale, brief_digest, freshness, main, snapshot_of
from videoads.media import media_made, render_input
from videoads.script import write_script
from videoads.showcase import SMALL_BRIEF

PARSED = parse_brief(msgspec.json.encode(SMALL_BRIEF), base=None)
BRIEF = brief_as_json(PARSED)
PHRASES = [
    {"text": phrase.text, "start_sample": 0, "end_sample": 1} for phrase in write_script(PARSED).phrases
]


def told(step: str, name: str, digit: str, **result: Any) -> SimpleNamespace:
    """A step that succeeded with one file."""
    file = {
        "name": name, "kind": name, "object_key": f"objects/{digit}", "sha256": digit * 64, "bytes": 1, "content_type": "x/y",
    }  # fmt: skip
    return SimpleNamespace(
        type="step_succeeded", fields={"step": step, "result": result, "artifacts": [file]}
    )


CLIP = told("scene.generate:1", "clip", "1", anchors=[[1, 2]])
VOICE = told("narration.generate", "narration", "2", rate=48000, phrases=PHRASES)
MUSIC = told("music.generate", "music", "3")
WHOLE = [CLIP, VOICE, MUSIC]


def film_of(*history: SimpleNamespace) -> dict[str, Any]:
    """The plan of a render of what these runs made, as the API gives it."""
    given = render_input(BRIEF, media_made(history))
    plan: dict[str, Any] = msgspec.json.decode(app.plan("editor.render@1", given, {}).plan_document)
    return plan


@promise("H63")
def test_a_film_of_the_newest_is_fresh_and_one_of_an_older_clip_is_stale_and_names_it() -> None:
    snapshot = snapshot_of(film_of(*WHOLE))
    newest: dict[str, str | None] = {**snapshot}
    again = media_made([told("scene.select:1", "clip", "9", anchors=[], take=2)])

    assert {"brief", "scene:1", "voice", "music"} == set(snapshot)
    assert Fresh() == freshness(snapshot, newest)
    assert Fresh() == freshness(snapshot, {}), "nothing was made since"
    changed = freshness(snapshot, {**newest, "scene:1": again["scene:1"].sha256})
    assert Stale((Change(slot="scene:1", made_of="1" * 64, newest="9" * 64),)) == changed


@promise("H63")
def test_what_was_taken_away_what_came_new_and_what_is_said_otherwise_make_a_film_stale() -> None:
    snapshot = snapshot_of(film_of(*WHOLE))
    words = brief_digest({**BRIEF, "headline": "Light for early roads"})
    changed = freshness(snapshot, {"voice": None, "scene:2": "4" * 64, "brief": words, "music": "3" * 64})

    assert isinstance(changed, Stale)
    assert ["brief", "scene:2", "voice"] == [change.slot for change in changed.changes]
    assert [snapshot["brief"], None, "2" * 64] == [change.made_of for change in changed.changes]


def test_the_order_of_a_briefs_members_is_no_change() -> None:
    assert brief_digest(BRIEF) == brief_digest(dict(reversed(BRIEF.items())))


@pytest.mark.parametrize("workflow", ["short.generation@1", "editor.autopilot@1"])
def test_a_run_that_made_its_own_media_is_read_by_its_history(workflow: str) -> None:
    key = {"short.generation@1": "clip.generate:1", "editor.autopilot@1": "scenes:1"}[workflow]
    plan = msgspec.json.decode(app.plan(workflow, {"brief": BRIEF}, {}).plan_document)
    history = [told(key, "clip", "5", anchors=[]), VOICE, MUSIC]

    snapshot = snapshot_of(plan, history)

    assert {
        "scene:1": "5" * 64,
        "voice": "2" * 64,
        "music": "3" * 64,
        "brief": brief_digest(BRIEF),
    } == snapshot


def test_a_run_that_makes_no_film_has_no_freshness() -> None:
    plan = msgspec.json.decode(app.plan("editor.music.generate@1", {"brief": BRIEF}, {}).plan_document)

    with pytest.raises(LookupError):
        snapshot_of(plan)


def test_a_batch_hands_on_the_scenes_that_its_runs_made() -> None:
    run = told("scene.run:1", "clip", "6", result={"anchors": [[3, 4]]}, run_id="r")

    made = media_made(
        [run, told("batch.report", "report", "7"), SimpleNamespace(type="run_completed", fields={})]
    )

    assert ["scene:1"] == list(made)
    assert [[3, 4]] == made["scene:1"].result["anchors"]


def test_a_render_names_the_places_that_nobody_has_made_yet() -> None:
    with pytest.raises(InvalidInput) as caught:
        render_input(BRIEF, media_made([MUSIC]))

    assert ["/scene:1", "/voice"] == [place.pointer for place in caught.value.errors]


def test_the_program_says_in_one_line_why_there_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["run", "--url", "ftp://127.0.0.1", "--key", "k"])

    told = capsys.readouterr()
    assert (1, "") == (len(told.err.splitlines()), told.out)
    with pytest.raises(SystemExit) as ended:
        main(["run", "--url", ""])
    assert 2 == ended.value.code
