"""editor.render@1: a film of given media. The plan holds their keys and digests, and the run owns what it was given of.

While it renders nobody generates a scene, the voice or the music of the ad (H56); whether the film is still made of the
newest media afterwards is a question of its own (`videoads.freshness`).
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from longtake import InvalidInput, Plan, ProblemError, ref
from videoads.workflows.editor_film import DELIVERS, with_film
from videoads.workflows.editor_order import Order, problem_at, read_order

RENDER_POLICY: dict[str, Any] = {
    "render_price_credits": 5,
    "render_model": "synthetic-render-1",
    "retry_first_delay_ms": 1000,
}

ANCHORS_MAX = 64


class GivenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A stored file, as artifacts are listed."""

    name: str
    kind: str
    object_key: str
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, msgspec.Meta(ge=1)]
    content_type: str


class GivenScene(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A clip, and where call-outs may point in it, in thousandths."""

    clip: GivenFile
    anchors: Annotated[tuple[tuple[int, int], ...], msgspec.Meta(max_length=ANCHORS_MAX)] = ()


class GivenPhrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a phrase is heard, in samples."""

    text: str
    start_sample: int
    end_sample: int


class GivenTimings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When every phrase of the narration is heard."""

    rate: int
    phrases: tuple[GivenPhrase, ...]


class GivenMedia(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a film is made of."""

    scenes: tuple[GivenScene, ...]
    music: GivenFile
    narration: GivenFile | None = None
    timings: GivenTimings | None = None


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief", "media": {"scenes": [{"clip", "anchors"}], "music", "narration"?, "timings"?}}."""
    order = read_order(given, "media")
    media = _media(order)
    pictures = {
        name: ref("script.write", f"/artifacts/{name}")
        for name, picture in (("logo", order.brief.logo), ("product", order.brief.product_picture))
        if picture is not None
    }
    spoken = {"narration": media.narration, "timings": media.timings} if media.narration is not None else {}
    plan = Plan(
        scopes=order.scopes(
            "render",
            *(f"scene:{n}" for n in range(1, len(media.scenes) + 1)),
            "music",
            *(["voice"] if spoken else []),
        ),
        delivers=DELIVERS,
    ).step(
        "script.write",
        activity="script.write@1",
        phase="script",
        label="Writing the script",
        input={"brief": order.document},
        artifacts=list(pictures),
    )
    snapshot = msgspec.to_builtins(
        {
            "clips": [scene.clip for scene in media.scenes],
            "anchors": [scene.anchors for scene in media.scenes],
            "music": media.music,
            **spoken,
        }
    )
    return with_film(plan, {**snapshot, **pictures}, policy)


def _media(order: Order) -> GivenMedia:
    try:
        media = msgspec.convert(order.given.get("media"), GivenMedia)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        pointer = "/media" + path.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
        raise problem_at(
            pointer, message, "give the media as media_made() has them of the runs that made them"
        ) from error
    faults = list(_faults(order, media))
    if faults:
        raise InvalidInput(tuple(faults))
    return media


def _faults(order: Order, media: GivenMedia) -> list[ProblemError]:
    wanted, spoken = len(order.brief.scenes), order.brief.narration is not None
    faults = []
    if len(media.scenes) != wanted:
        faults.append(
            ProblemError("/media/scenes", f"has {len(media.scenes)} clips", f"give {wanted}, one a scene")
        )
    for name, value in (("narration", media.narration), ("timings", media.timings)):
        if spoken and value is None:
            faults.append(ProblemError(f"/media/{name}", "is missing", "the brief has a narration"))
        if not spoken and value is not None:
            faults.append(
                ProblemError(f"/media/{name}", "is not wanted", "leave it out: the brief has no narration")
            )
    phrases = [phrase.text for phrase in order.script.phrases]
    if spoken and media.timings is not None and [said.text for said in media.timings.phrases] != phrases:
        faults.append(
            ProblemError(
                "/media/timings/phrases",
                "are not the phrases of the brief's narration",
                f"speak the narration of this brief: {len(phrases)} phrases",
            )
        )
    return faults
