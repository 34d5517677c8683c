"""The whole inspection of a finished film against its composition, step by step.

A film that is missing or does not open gets only the checks that could be made; everything else is measured in one
pass over the file.
"""

from collections.abc import Callable
from pathlib import Path

from videoads.renderer.composition import Composition
from videoads.renderer.inspect.check import Check, Inspection, failed, passed
from videoads.renderer.inspect.container import check_digest, check_index_first, check_object
from videoads.renderer.inspect.decoding import Decoded, FilmUnreadable, decode_film
from videoads.renderer.inspect.lettering_checks import (
    LEGIBLE_SHORT_SIDE_MIN,
    check_apart,
    check_contrast,
    check_glyphs,
    check_presence,
    check_safe_area,
    measurable,
    sight,
)
from videoads.renderer.inspect.picture_checks import (
    check_black,
    check_cuts,
    check_decodes,
    check_duration,
    check_formats,
    check_frame_rate,
    check_geometry,
    check_motion,
)
from videoads.renderer.inspect.sound_checks import check_sound
from videoads.renderer.inspect.templates import Template, templates_of


def inspect_film(
    path: Path,
    composition: Composition,
    *,
    expected_sha256: str | None = None,
    expected_bytes: int | None = None,
    media: Callable[[str], Path] = Path,
) -> Inspection:
    """Measure the film against everything its composition promises.

    `media` tells where the object of a media key lies; music, narration and logo are needed, the clips are not.
    """
    there = check_object(path, expected_bytes=expected_bytes)
    if not there.passed and (not path.is_file() or path.stat().st_size == 0):
        return Inspection((there,))
    checks: list[Check] = [there, check_digest(path, expected_sha256=expected_sha256)]
    templates = templates_of(composition, media) if measurable(composition) else ()
    frames = {frame for template in templates for frame in template.look_frames}
    try:
        decoded = decode_film(path, whole_frames=frames)
    except FilmUnreadable as unreadable:
        remedy = "The file is no film or is damaged: render or fetch it again"
        checks.append(failed("opens", str(unreadable), "a container that opens", remedy=remedy))
        return Inspection(tuple(checks))
    checks.append(passed("opens", f"{decoded.video_codec} in a readable container", "a container that opens"))
    checks.append(check_index_first(path))
    checks.extend(_picture_checks(decoded, composition))
    checks.extend(_lettering_checks(decoded, composition, templates))
    checks.extend(check_sound(decoded.sound, composition, media))
    return Inspection(tuple(checks))


def _picture_checks(decoded: Decoded, composition: Composition) -> list[Check]:
    checks = [
        check_decodes(decoded, composition),
        check_duration(decoded, composition),
        check_geometry(decoded, composition),
        check_frame_rate(decoded, composition),
        *check_formats(decoded, composition),
    ]
    if decoded.frames:
        checks += [
            check_cuts(decoded, composition),
            check_motion(decoded, composition),
            check_black(decoded, composition),
        ]
    return checks


def _lettering_checks(
    decoded: Decoded, composition: Composition, templates: tuple[Template, ...]
) -> list[Check]:
    checks = [check_glyphs(composition)]
    if not measurable(composition):
        words = f"not measured: letters of a picture under {LEGIBLE_SHORT_SIDE_MIN} pixels are no letters"
        checks += [passed(name, words, "") for name in ("lettering", "safe_area", "overlap", "contrast")]
        return checks
    sightings = sight(templates, decoded.whole)
    fps = composition.output.fps
    return [
        *checks,
        check_presence(templates, sightings, fps),
        check_safe_area(composition, templates, sightings),
        check_apart(composition, templates, sightings),
        check_contrast(templates, sightings, decoded.whole, fps),
    ]
