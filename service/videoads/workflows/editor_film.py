"""The last three steps of an ad of the editor: composition, film, and the delivery that is measured."""

from collections.abc import Mapping
from typing import Any

from longtake import Plan, Retry, ref

DELIVERS = "delivery.verify"


def with_film(plan: Plan, media: Mapping[str, Any], policy: Mapping[str, Any]) -> Plan:
    """The plan with the film made of `media`: clips, anchors, music, narration and timings, as artifacts or references.

    The plan writes the script in a step `script.write`.
    """
    return (
        plan.step(
            "render.prepare",
            activity="render.prepare@1",
            phase="render",
            label="Setting words and pictures",
            input={"script": ref("script.write", "/result/script"), **media},
            artifacts=["composition"],
        )
        .step(
            "render.submit",
            activity="render.submit@1",
            phase="render",
            label="Rendering the film",
            input={
                "composition": ref("render.prepare", "/artifacts/composition"),
                "media": ref("render.prepare", "/result/media"),
                "model": policy["render_model"],
            },
            price=policy["render_price_credits"],
            retry=Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"]),
            artifacts=["film"],
        )
        .step(
            DELIVERS,
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
