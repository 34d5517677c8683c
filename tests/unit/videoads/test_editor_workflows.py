"""The workflows of the editor as plans: ten identities, sound and repeatable, each with its price and its scopes."""

import base64
from io import BytesIO
from typing import Any

import msgspec
import pytest
from PIL import Image

from kit.promises import promise
from longtake import InvalidPlan, Plan, Step, at_least, group
from longtake.errors import Refused
from longtake.workflow.plan import compile_plan, validate
from videoads.application import app
from videoads.brief import brief_as_json, parse_brief
from videoads.script import write_script
from videoads.showcase import SMALL_BRIEF
from videoads.workflows.editor_autopilot import scenes_of
from videoads.workflows.editor_order import every_scope


def picture() -> dict[str, str]:
    """A product picture as a brief carries it."""
    raw = BytesIO()
    Image.new("RGB", (64, 64), "#b94f1f").save(raw, format="PNG")
    return {"media_type": "image/png", "base64": base64.b64encode(raw.getvalue()).decode()}


def brief_of(scenes: int = 3, **changes: Any) -> dict[str, Any]:
    """A brief with so many scenes, as a client sends it."""
    document = {
        **SMALL_BRIEF,
        "seconds": round(4.8 * scenes, 1),
        "scenes": SMALL_BRIEF["scenes"] * scenes,
        "narration": SMALL_BRIEF["narration"] * scenes,
        **changes,
    }
    return brief_as_json(parse_brief(msgspec.json.encode(document), base=None))


BRIEF = brief_of()
SILENT = brief_of(narration=None)
SCRIPT = write_script(parse_brief(msgspec.json.encode(BRIEF), base=None))


def file_of(name: str, digit: str = "0") -> dict[str, Any]:
    """An artifact as it is listed."""
    return {
        "name": name,
        "kind": name,
        "object_key": f"objects/{digit * 2}/{digit * 64}",
        "sha256": digit * 64,
        "bytes": 1,
        "content_type": "x/y",
    }


MEDIA: dict[str, Any] = {
    "scenes": [{"clip": file_of("clip", str(n)), "anchors": [[500, 500]]} for n in (1, 2, 3)],
    "music": file_of("music", "a"),
    "narration": file_of("narration", "b"),
    "timings": {
        "rate": 48000,
        "phrases": [{"text": phrase.text, "start_sample": 0, "end_sample": 1} for phrase in SCRIPT.phrases],
    },
}
ADS = [{"ad": name, "brief": BRIEF} for name in ("mon", "tue", "wed", "thu", "fri")]

GIVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "generate": ("editor.scene.generate@1", {"brief": BRIEF, "scene": 2}),
    "generate, with the product": (
        "editor.scene.generate@1",
        {"brief": brief_of(product_picture=picture()), "scene": 1},
    ),
    "regenerate": ("editor.scene.regenerate@1", {"brief": BRIEF, "scene": 2, "seed": 7}),
    "regenerate, by another model": (
        "editor.scene.regenerate@1",
        {"brief": BRIEF, "scene": 2, "model": "synthetic-shot-2"},
    ),
    "variants": ("editor.scene.variants@1", {"brief": BRIEF, "scene": 3, "variants": 4, "keep": 2}),
    "voice": ("editor.voice.generate@1", {"brief": BRIEF}),
    "music": ("editor.music.generate@1", {"brief": BRIEF, "seed": 3}),
    "render": ("editor.render@1", {"brief": BRIEF, "media": MEDIA}),
    "autopilot": ("editor.autopilot@1", {"brief": BRIEF}),
    "autopilot, without a voice": ("editor.autopilot@1", {"brief": SILENT, "ad": "easter"}),
    "batch of ads": ("editor.batch@1", {"ads": ADS}),
    "batch of scenes": ("editor.batch@1", {"brief": BRIEF, "scenes": [3, 1]}),
}


def planned(name: str) -> Plan:
    return app.plan(*GIVEN[name], {}).plan


@promise("H03", "H04")
def test_the_ten_identities_of_the_mission_are_registered_each_on_its_own() -> None:
    names = {
        "editor.autopilot", "editor.batch", "editor.scene.generate", "editor.scene.regenerate", "editor.scene.variants",
        "editor.voice.generate", "editor.music.generate", "editor.render", "short.generation", "short.rerender",
    }  # fmt: skip

    assert {(name, 1) for name in names} <= set(app.workflows)
    assert 10 == len({app.workflows[name, 1].build for name in names})


@pytest.mark.parametrize(("workflow", "given"), GIVEN.values(), ids=GIVEN.keys())
@promise("H75", "H07", "H15")
def test_a_plan_of_the_editor_is_whole_acyclic_registered_and_the_same_each_time(
    workflow: str, given: dict[str, Any]
) -> None:
    made, again = app.plan(workflow, given, {}), app.plan(workflow, given, {})
    plan = made.plan

    assert len(plan.steps) == len(compile_plan(plan).order), "no circle"
    assert (made.plan_document, made.fingerprint) == (again.plan_document, again.fingerprint)
    assert {step.activity for step in plan.steps if step.is_worked} <= set(app.activities)
    assert {step.workflow for step in plan.steps if step.kind == "run"} <= {
        f"{name}@{version}" for name, version in app.workflows
    }
    assert all(step.artifacts and step.price > 0 for step in plan.steps if step.paid)
    assert plan.scopes
    assert all(step.phase != "main" and step.label for step in plan.steps), "what people read"
    assert plan.delivers in compile_plan(plan).position
    assert all(step.artifacts for step in plan.steps if step.key == plan.delivers)


@pytest.mark.parametrize("name", [name for name in GIVEN if not name.startswith("batch")])
@promise("H75")
def test_what_changes_a_plan_changes_its_fingerprint(name: str) -> None:
    """The proof that the test above can fail: another price, or another retry, is another contract."""
    workflow, given = GIVEN[name]
    marks = {
        app.plan(workflow, given, policy).fingerprint
        for policy in ({}, {"retry_first_delay_ms": 1001}, {"retry_first_delay_ms": 1002})
    }

    assert 3 == len(marks)


QUOTES = {
    "generate": (2, 2),
    "variants": (8, 8),
    "voice": (2, 2),
    "music": (2, 2),
    "render": (5, 5),
    "autopilot": (9, 15),
    "autopilot, without a voice": (7, 13),
    "batch of ads": (0, 0),
}


@pytest.mark.parametrize(("name", "money"), QUOTES.items())
def test_a_plan_says_what_it_costs_and_what_it_may_cost(name: str, money: tuple[int, int]) -> None:
    made = app.plan(*GIVEN[name], {})

    assert money == (made.quoted, made.cap)


SCOPES = {
    "generate": ("scene:2",),
    "regenerate": ("scene:2",),
    "variants": ("scene:3",),
    "voice": ("voice",),
    "music": ("music",),
    "render": ("render", "scene:1", "scene:2", "scene:3", "music", "voice"),
    "autopilot": every_scope(3),
    "autopilot, without a voice": tuple(f"easter:{name}" for name in every_scope(3)),
    "batch of ads": ("full_generation",),
    "batch of scenes": ("full_generation",),
}


@pytest.mark.parametrize(("name", "scopes"), SCOPES.items())
@promise("H53", "H55", "H56")
def test_a_run_owns_what_it_makes_and_what_it_was_given_and_no_more(
    name: str, scopes: tuple[str, ...]
) -> None:
    assert scopes == planned(name).scopes


@pytest.mark.parametrize("name", ["batch of ads", "batch of scenes"])
@promise("H55", "H57")
def test_the_runs_of_a_batch_meet_neither_the_batch_nor_each_other(name: str) -> None:
    batch = planned(name)
    owned = list(batch.scopes)
    for step in batch.steps:
        if step.kind == "run":
            owned += app.plan(str(step.workflow), step.input, {}).plan.scopes

    assert len(owned) == len(set(owned))
    # What the test looks for is there where an ad has no name of its own.
    alone = app.plan("editor.autopilot@1", {"brief": BRIEF}, {}).plan
    assert set(alone.scopes) & set(batch.scopes)


@promise("H75", "H13")
def test_a_batch_keeps_its_order_and_runs_so_many_at_once() -> None:
    runs = [step for step in planned("batch of ads").steps if step.kind == "run"]
    wide = app.plan(*GIVEN["batch of ads"], {"max_parallel": 5}).plan

    assert ["mon", "tue", "wed", "thu", "fri"] == [step.key.removeprefix("ad.run:") for step in runs]
    assert [(), (), (), ("ad.run:mon",), ("ad.run:tue",)] == [step.depends_on for step in runs]
    assert {"all_terminal"} == {step.join for step in runs}
    assert not any(step.depends_on for step in wide.steps if step.kind == "run")
    report = planned("batch of ads").steps[-1]
    assert ("batch.report", "all_terminal") == (report.key, report.join)


@promise("H11", "H64")
def test_variants_differ_by_their_seeds_alone_and_a_person_chooses_among_the_first() -> None:
    plan = planned("variants")
    steps = {step.key: step for step in plan.steps}
    shots = [step.input["shot"] for step in plan.steps if step.group == "takes"]

    assert 4 == len({shot["seed"] for shot in shots})
    assert 1 == len({msgspec.json.encode({**shot, "seed": 0}) for shot in shots})
    assert SCRIPT.shots[2].seed == shots[0]["seed"]
    assert ("at_least", 2) == (steps["takes.shortlist"].join, steps["takes.shortlist"].need)
    assert "input" == steps["take.choose"].kind
    assert 2 == steps["take.choose"].answer["properties"]["take"]["maximum"]
    assert "pay_as_you_go" == plan.billing, "a take that is not waited for is given back"


def test_a_scene_is_made_again_by_another_seed_or_another_model_and_is_the_same_scene() -> None:
    first, seed, model = (
        planned(name).steps[-1] for name in ("generate", "regenerate", "regenerate, by another model")
    )

    assert first.key == seed.key == model.key == "scene.generate:2"
    assert {**first.input["shot"], "seed": 7} == seed.input["shot"]
    assert first.input["shot"] == model.input["shot"]
    assert "synthetic-shot-2" == model.input["model"]


@promise("H11", "H13")
def test_the_scenes_of_an_autopilot_fit_the_plan_that_they_grow_into() -> None:
    """What the script says becomes one step a scene, in its order, with the keys and the price that the plan froze."""
    plan = planned("autopilot")
    (grows,) = [step for step in plan.steps if step.kind == "expand"]
    scene = {"shot": {"prompt": "x"}, "model": "m"}
    steps = scenes_of({"scenes": [scene] * 3, "retry_first_delay_ms": 5})

    assert ["scenes:1", "scenes:2", "scenes:3"] == [step.key for step in steps]
    assert {step.activity for step in steps} == set(grows.expands_to)
    assert {step.price_key for step in steps} == set(plan.prices)
    assert plan.cap == sum(step.price for step in plan.steps) + 3 * plan.prices["clip"]
    assert ("clips",) == plan.groups


def test_a_render_freezes_the_digests_of_what_it_is_given() -> None:
    prepare = next(step for step in planned("render").steps if step.key == "render.prepare")

    assert [str(n) * 64 for n in (1, 2, 3)] == [clip["sha256"] for clip in prepare.input["clips"]]
    assert ("a" * 64, "b" * 64) == (prepare.input["music"]["sha256"], prepare.input["narration"]["sha256"])


BROKEN: dict[str, Any] = {
    "a run of a workflow that has no version": lambda plan: plan.run("x", workflow="editor.render"),
    "a join that counts more than there are": lambda plan: plan.step(
        "x", activity="take.select@1", depends_on=[group("takes")], join=at_least(9)
    ),
    "a paid take without a price": lambda plan: plan.with_steps([Step("x", activity="clip.generate@1")]),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
@promise("H75")
def test_a_plan_of_the_editor_with_one_fault_is_refused(broken: Any) -> None:
    plan = planned("variants")
    validate(plan, app.facts())

    with pytest.raises(InvalidPlan):
        validate(broken(plan), app.facts())


def media(**changes: Any) -> dict[str, Any]:
    return {**MEDIA, **changes}


@pytest.mark.parametrize(
    ("workflow", "given", "pointer"),
    [
        ("editor.scene.generate@1", [], ""),
        ("editor.scene.generate@1", {"scene": 1}, "/brief"),
        ("editor.scene.generate@1", {"brief": {**BRIEF, "headline": ""}, "scene": 1}, "/brief/headline"),
        ("editor.scene.generate@1", {"brief": BRIEF}, "/scene"),
        ("editor.scene.generate@1", {"brief": BRIEF, "scene": 4}, "/scene"),
        ("editor.scene.generate@1", {"brief": BRIEF, "scene": True}, "/scene"),
        ("editor.scene.generate@1", {"brief": BRIEF, "scene": 1, "sede": 7}, "/sede"),
        ("editor.scene.generate@1", {"brief": BRIEF, "scene": 1, "ad": "No Name"}, "/ad"),
        ("editor.scene.regenerate@1", {"brief": BRIEF, "scene": 1}, "/seed"),
        (
            "editor.scene.regenerate@1",
            {"brief": BRIEF, "scene": 1, "seed": SCRIPT.shots[0].seed},
            "/seed",
        ),
        ("editor.scene.regenerate@1", {"brief": BRIEF, "scene": 1, "seed": -1}, "/seed"),
        ("editor.scene.regenerate@1", {"brief": BRIEF, "scene": 1, "model": 7}, "/model"),
        ("editor.scene.variants@1", {"brief": BRIEF, "scene": 1, "variants": 1}, "/variants"),
        ("editor.scene.variants@1", {"brief": BRIEF, "scene": 1, "variants": 3, "keep": 4}, "/keep"),
        ("editor.voice.generate@1", {"brief": SILENT}, "/brief/narration"),
        ("editor.render@1", {"brief": BRIEF}, "/media"),
        ("editor.render@1", {"brief": BRIEF, "media": media(scenes=MEDIA["scenes"][:2])}, "/media/scenes"),
        (
            "editor.render@1",
            {"brief": BRIEF, "media": media(music={**file_of("music"), "bytes": 0})},
            "/media/music/bytes",
        ),
        (
            "editor.render@1",
            {"brief": BRIEF, "media": media(scenes=[*MEDIA["scenes"][:2], {"clip": 1}])},
            "/media/scenes/2/clip",
        ),
        ("editor.render@1", {"brief": BRIEF, "media": media(timings=None)}, "/media/timings"),
        ("editor.render@1", {"brief": SILENT, "media": MEDIA}, "/media/narration"),
        (
            "editor.render@1",
            {"brief": BRIEF, "media": media(timings={"rate": 48000, "phrases": []})},
            "/media/timings/phrases",
        ),
        ("editor.batch@1", {"ads": []}, "/ads"),
        ("editor.batch@1", {"ads": [ADS[0], ADS[0]]}, "/ads/1/ad"),
        ("editor.batch@1", {"ads": [{"brief": BRIEF}]}, "/ads/0/ad"),
        ("editor.batch@1", {"ads": [ADS[0], {"ad": "x", "brief": {}}]}, "/ads/1/brief/product"),
        ("editor.batch@1", {"ads": ADS, "scenes": [1]}, "/scenes"),
        ("editor.batch@1", {"brief": BRIEF}, "/scenes"),
        ("editor.batch@1", {"brief": BRIEF, "scenes": [1, 1]}, "/scenes/1"),
    ],
)
def test_what_is_wrong_with_an_input_is_said_with_its_place(workflow: str, given: Any, pointer: str) -> None:
    with pytest.raises(Refused) as caught:
        app.plan(workflow, given, {})

    places = [place.pointer for place in caught.value.problem.errors]
    assert f"/payload/input{pointer}" in places
    assert all(place.remedy for place in caught.value.problem.errors)


def test_a_batch_without_a_bound_is_refused() -> None:
    with pytest.raises(Refused):
        app.plan(*GIVEN["batch of ads"], {"max_parallel": 0})


def test_latest_is_no_model() -> None:
    given = {"brief": BRIEF, "scene": 1, "model": "synthetic-shot-latest"}

    with pytest.raises(Refused):
        app.plan("editor.scene.regenerate@1", given, {})
