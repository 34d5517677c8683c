"""The composition: everything the renderer needs to make one film, and nothing else.

Whole numbers only; media are named by object key or path, never by address, so that the same composition can
be rendered anywhere and compared byte for byte. `composing.compose` makes one from a script; `layout.layout`
says what one frame of it shows; `film.render_film` makes the file.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from videoads.renderer.lettering.coverage import Face

__all__ = [
    "SAFE_BOTTOM_PERCENT",
    "SAFE_SIDE_PERCENT",
    "SAFE_TOP_PERCENT",
    "Audio",
    "Box",
    "CallOut",
    "Caption",
    "Card",
    "Composition",
    "CompositionError",
    "Effects",
    "Logo",
    "Narration",
    "Output",
    "Palette",
    "Shot",
    "SpokenPhrase",
    "TextBlock",
    "Timings",
    "Title",
    "check_composition",
    "composition_as_json",
    "composition_schema",
    "media_of",
    "parse_composition",
    "safe_area",
]

SAFE_TOP_PERCENT = 12
SAFE_BOTTOM_PERCENT = 20
SAFE_SIDE_PERCENT = 8

Transition = Literal["cut", "whip", "wipe"]


class Box(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rectangle in output pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The first column after the box."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """The first row below the box."""
        return self.y + self.height

    def contains(self, other: Box) -> bool:
        """Say whether `other` lies wholly inside."""
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.right <= self.right
            and other.bottom <= self.bottom
        )

    def overlaps(self, other: Box) -> bool:
        """Say whether the two share a pixel."""
        return (
            self.x < other.right and other.x < self.right and self.y < other.bottom and other.y < self.bottom
        )


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The finished file: size, rate, length and codecs."""

    width: int
    height: int
    fps: int
    frames: int
    profile: Literal["h264-aac", "vp9-opus"]


class Palette(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The brand's colours as `#rrggbb`."""

    background: str
    surface: str
    ink: str
    accent: str
    light: str


class Shot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A clip and when it is seen; `transition` is how it arrives."""

    key: str
    media: str
    start_frame: int
    frames: int
    transition: Transition


class TextBlock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set text: its lines, face, size in pixels, weight, and the box its ink stays in."""

    lines: tuple[str, ...]
    face: Face
    size: int
    weight: int
    align: Literal["left", "centre"]
    line_height: int
    box: Box


class Title(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Large words over a shot, arriving one by one; `word_frames` has one frame for each word of the block."""

    block: TextBlock
    kicker: TextBlock | None
    word_frames: tuple[int, ...]
    start_frame: int
    end_frame: int


class CallOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A short label with a line to a point of the picture."""

    block: TextBlock
    box: Box
    point_x: int
    point_y: int
    start_frame: int
    end_frame: int


class Caption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is being said, in at most two lines; `phrase` is the key of the spoken phrase."""

    phrase: str
    block: TextBlock
    start_frame: int
    end_frame: int


class Logo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The brand's mark in the corner of the shots."""

    media: str
    box: Box
    start_frame: int
    end_frame: int


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The closing card; each part has a box and the frame at which it begins to arrive."""

    start_frame: int
    frames: int
    logo: str | None
    logo_box: Box
    logo_frame: int
    product_picture: str | None
    product_box: Box
    product_frame: int
    name: TextBlock
    name_frame: int
    tagline: TextBlock | None
    offer: TextBlock
    offer_frame: int
    button: TextBlock
    button_box: Box
    button_frame: int
    address: TextBlock
    address_frame: int


class SpokenPhrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A phrase and the samples between which it is heard, counted from the film's first."""

    key: str
    text: str
    start_sample: int
    end_sample: int


class Timings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the narration measured about itself."""

    rate: int
    phrases: tuple[SpokenPhrase, ...]


class Narration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The narration's sound and its timings."""

    media: str
    timings: Timings


class Effects(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sounds that belong to the picture; `pour` is (first frame, frame after the last)."""

    whoosh_frames: tuple[int, ...]
    pour: tuple[int, int] | None
    hit_frame: int


class Audio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is heard and how loud; loudness in hundredths (LUFS, dBTP, dB), so that no fraction is stored."""

    rate: int
    narration: Narration | None
    music: str
    effects: Effects
    seed: int
    ducking_centibels: int = 1100
    loudness_centilufs: int = -1600
    true_peak_centidb: int = -100


class Composition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One film, version 1."""

    version: Literal[1]
    product: str
    language: str
    style: Literal["warm-editorial", "bold-dark", "clean-service"]
    output: Output
    palette: Palette
    shots: tuple[Shot, ...]
    titles: tuple[Title, ...]
    call_outs: tuple[CallOut, ...]
    captions: tuple[Caption, ...]
    logo: Logo | None
    card: Card | None
    audio: Audio
    cuts: tuple[int, ...]


class CompositionError(ValueError):
    """A composition that cannot be rendered: where it is wrong and what would be right."""

    def __init__(self, pointer: str, message: str, remedy: str) -> None:
        self.pointer = pointer
        self.message = message
        self.remedy = remedy
        super().__init__(f"{pointer or '/'}: {message}; {remedy}")


def safe_area(output: Output) -> Box:
    """Return the box in which all words, the logo and the card's parts must lie."""
    left = -(-output.width * SAFE_SIDE_PERCENT // 100)
    top = -(-output.height * SAFE_TOP_PERCENT // 100)
    bottom = output.height - -(-output.height * SAFE_BOTTOM_PERCENT // 100)
    return Box(left, top, output.width - 2 * left, bottom - top)


def composition_as_json(composition: Composition) -> bytes:
    """Return the one canonical JSON text: members sorted, no spaces, whole numbers, UTF-8."""
    return msgspec.json.encode(composition, order="sorted")


def parse_composition(raw: bytes) -> Composition:
    """Read a composition and check what its types cannot say."""
    try:
        composition = msgspec.json.decode(raw, type=Composition)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        pointer = path.rstrip("`").replace("[", "/").replace("]", "").replace(".", "/")
        raise CompositionError(
            pointer, message, "compare with the schema that `python -m videoads.renderer schema FILE` writes"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CompositionError("", f"not JSON: {error}", "give one composition object in UTF-8") from error
    check_composition(composition)
    return composition


def check_composition(composition: Composition) -> None:
    """Raise `CompositionError` unless the parts fit together in time and name media rather than addresses."""
    frames = composition.output.frames
    at = 0
    for index, shot in enumerate(composition.shots):
        if shot.start_frame != at or shot.frames < 1:
            pointer = f"/shots/{index}/start_frame"
            raise CompositionError(
                pointer, f"starts at {shot.start_frame}", f"shots follow without gap: {at}"
            )
        at += shot.frames
    if composition.card is not None:
        if composition.card.start_frame != at:
            raise CompositionError("/card/start_frame", f"{composition.card.start_frame}", f"{at} is next")
        at += composition.card.frames
    if at != frames:
        raise CompositionError("/output/frames", f"{frames} frames, the shots have {at}", f"give {at}")
    starts = tuple(shot.start_frame for shot in composition.shots[1:])
    cuts = (*starts, composition.card.start_frame) if composition.card and composition.shots else starts
    if composition.cuts != cuts:
        raise CompositionError("/cuts", f"{list(composition.cuts)}", f"the shots say {list(cuts)}")
    for pointer, media in media_of(composition):
        if "://" in media or not media:
            raise CompositionError(pointer, f"{media!r} is not a key", "name media by object key or path")


def media_of(composition: Composition) -> list[tuple[str, str]]:
    """Return each media key with the pointer of the member that names it."""
    named = [(f"/shots/{i}/media", shot.media) for i, shot in enumerate(composition.shots)]
    if composition.logo is not None:
        named.append(("/logo/media", composition.logo.media))
    if composition.card is not None:
        if composition.card.logo is not None:
            named.append(("/card/logo", composition.card.logo))
        if composition.card.product_picture is not None:
            named.append(("/card/product_picture", composition.card.product_picture))
    named.append(("/audio/music", composition.audio.music))
    if composition.audio.narration is not None:
        named.append(("/audio/narration/media", composition.audio.narration.media))
    return named


def composition_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a composition."""
    schema = msgspec.json.schema(Composition)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Composition", **schema}
