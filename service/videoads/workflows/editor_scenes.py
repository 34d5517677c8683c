"""editor.scene.generate@1, editor.scene.regenerate@1, editor.scene.variants@1: the clip of one scene of an ad.

Each owns its scene and nothing else, so other scenes, the voice and the music are free meanwhile. All three deliver an
artifact `clip` and a result with `anchors`, under a step that names the scene.
"""

from collections.abc import Mapping
from typing import Any

from longtake import ExpectedArtifact, Plan, Retry, Step, at_least, group, ref
from videoads.script_requests import shot_requests
from videoads.workflows.editor_order import Order, problem_at, read_order, whole_number

SCENE_POLICY: dict[str, Any] = {
    "clip_price_credits": 2,
    "clip_model": "synthetic-shot-1",
    "retry_first_delay_ms": 1000,
}
VARIANTS_POLICY: dict[str, Any] = {**SCENE_POLICY, "max_parallel": 4, "choose_seconds": 24 * 3600}

VARIANTS_MAX = 8
SEED_STEP = 104_729
"""Between the seeds of two takes; a prime, so that no two of eight meet."""
MODEL_CHARACTERS_MAX = 64


def build_generate(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief", "scene"}: the clip as the script has it."""
    order = read_order(given, "scene")
    return _one_clip(order, policy, seed=_seed_of_script(order), model=policy["clip_model"])


def build_regenerate(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief", "scene", "seed"?, "model"?}: another clip of the same scene."""
    order = read_order(given, "scene", "seed", "model")
    before = _seed_of_script(order)
    seed, model = order.seed(), given.get("model")
    if model is not None and not (isinstance(model, str) and 0 < len(model) <= MODEL_CHARACTERS_MAX):
        raise problem_at("/model", f"is {model!r}", f"name a model in up to {MODEL_CHARACTERS_MAX} letters")
    if seed in (None, before) and model in (None, policy["clip_model"]):
        raise problem_at("/seed", "changes nothing", f"give a seed other than {before}, or another model")
    return _one_clip(
        order, policy, seed=before if seed is None else seed, model=model or policy["clip_model"]
    )


def build_variants(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief", "scene", "variants"?, "keep"?}: so many takes at once; of the first to come, a person chooses one.

    Each take is charged when it begins; those that are not waited for are cancelled and given back.
    """
    order = read_order(given, "scene", "variants", "keep")
    scene = order.scene()
    variants = whole_number(given, "variants", low=2, high=VARIANTS_MAX, default=3)
    keep = whole_number(given, "keep", low=1, high=variants, default=2)
    first = _seed_of_script(order)
    return (
        _begun(
            order,
            scene,
            billing="pay_as_you_go",
            max_parallel=policy["max_parallel"],
            delivers=f"scene.select:{scene}",
        )
        .fan_out(
            "takes",
            range(variants),
            lambda ahead, number: Step(
                f"take.generate:{number}",
                activity="clip.generate@1",
                phase="takes",
                label=f"Take {number} of {variants} of scene {scene}",
                input=_clip_input(
                    order,
                    scene,
                    seed=(first + SEED_STEP * ahead) % 2**31,
                    model=policy["clip_model"],
                ),
                price=policy["clip_price_credits"],
                retry=Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"]),
                artifacts=(ExpectedArtifact("clip", "clip"),),
                # One take less is no reason to wait for a person: the shortlist says whether enough are left.
                on_exhausted="fail",
            ),
        )
        .step(
            "takes.shortlist",
            activity="takes.shortlist@1",
            phase="takes",
            label="Laying the takes side by side",
            depends_on=[group("takes")],
            join=at_least(keep),
            input={
                "clips": ref(group("takes"), "/artifacts/clip"),
                "anchors": ref(group("takes"), "/result/anchors"),
                "keep": keep,
            },
            artifacts=[f"take-{number}:clip" for number in range(1, keep + 1)],
        )
        .input(
            "take.choose",
            phase="choice",
            label=f"Choosing a take for scene {scene}",
            depends_on=["takes.shortlist"],
            timeout_seconds=policy["choose_seconds"],
            answer={
                "type": "object",
                "required": ["take"],
                "properties": {"take": {"type": "integer", "minimum": 1, "maximum": keep}},
                "additionalProperties": False,
            },
        )
        .step(
            f"scene.select:{scene}",
            activity="take.select@1",
            phase="choice",
            label=f"Taking the choice for scene {scene}",
            input={
                "takes": ref("takes.shortlist", "/result/takes"),
                "choice": ref("take.choose", "/result/take"),
            },
            artifacts=["clip"],
        )
    )


def _one_clip(order: Order, policy: Mapping[str, Any], *, seed: int, model: str) -> Plan:
    scene = order.scene()
    key = f"scene.generate:{scene}"
    return _begun(order, scene, delivers=key).step(
        key,
        activity="clip.generate@1",
        phase="scenes",
        label=f"Generating scene {scene} of {len(order.brief.scenes)}",
        input=_clip_input(order, scene, seed=seed, model=model),
        price=policy["clip_price_credits"],
        retry=Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"]),
        artifacts=["clip"],
    )


def _begun(order: Order, scene: int, **fields: Any) -> Plan:
    """The plan with its scope; the picture of the product is stored first where the scene shows it."""
    plan = Plan(scopes=order.scopes(f"scene:{scene}"), **fields)
    if not _shows_product(order, scene):
        return plan
    return plan.step(
        "script.write",
        activity="script.write@1",
        phase="script",
        label="Writing the script",
        input={"brief": order.document},
        artifacts=["product"],
    )


def _clip_input(order: Order, scene: int, *, seed: int, model: str) -> dict[str, Any]:
    shot = {**shot_requests(order.script)[scene - 1], "seed": seed}
    product = {"product": ref("script.write", "/artifacts/product")} if _shows_product(order, scene) else {}
    return {"shot": shot, "model": model, **product}


def _shows_product(order: Order, scene: int) -> bool:
    return order.brief.product_picture is not None and order.brief.scenes[scene - 1].shows_product


def _seed_of_script(order: Order) -> int:
    return order.script.shots[order.scene() - 1].seed
