"""The promises about the moving picture: whole, as long, as large and as fast as composed, cut where composed, alive."""

import math

import numpy as np

from videoads.renderer.composition import Composition
from videoads.renderer.inspect.check import Check, failed, passed
from videoads.renderer.inspect.decoding import RATE, Decoded
from videoads.renderer.inspect.picture import (
    MOVING_SHARE_MIN,
    black_run,
    difference_across,
    frame_changes,
    layout_distance,
    least_moving_share,
    shot_changes,
    still_second,
)

PIXEL_FORMAT = "yuv420p"
TRANSITION_FRAMES = 9
"""How far a whip or a wipe may reach to either side of its cut."""
SOFT_CUT_SLACK_FRAMES = 6
LAYOUT_CHANGE_MIN = 0.03
DURATION_SLACK_SECONDS = 0.05
SOUND_SLACK_SECONDS = 0.12
CODECS = {"h264-aac": ("h264", "aac"), "vp9-opus": ("vp9", "opus")}


def check_decodes(decoded: Decoded, composition: Composition) -> Check:
    """The file decodes to its last frame, and the frames are as many as composed."""
    expected = f"{composition.output.frames} frames decoded to the last"
    remedy = "The file is cut short or damaged: render or fetch it again"
    fps = composition.output.fps
    if decoded.interruption is not None:
        return failed("decodes", decoded.interruption, expected, frame=decoded.frames, fps=fps, remedy=remedy)
    if decoded.frames != composition.output.frames:
        at = min(decoded.frames, composition.output.frames)
        return failed("decodes", f"{decoded.frames} frames", expected, frame=at, fps=fps, remedy=remedy)
    return passed("decodes", f"{decoded.frames} frames", expected)


def check_duration(decoded: Decoded, composition: Composition) -> Check:
    """Picture and sound both last as long as composed, to a frame or 50 ms."""
    output = composition.output
    planned = output.frames / output.fps
    expected = f"{planned:.2f} s of picture and of sound"
    seen = 0.0
    if len(decoded.times):
        rate = float(decoded.rate) if decoded.rate else float(output.fps)
        seen = float(decoded.times[-1] - decoded.times[0]) + 1 / rate
    heard = None if decoded.sound is None else decoded.sound.shape[1] / RATE
    words = f"picture {seen:.2f} s, sound " + ("none" if heard is None else f"{heard:.2f} s")
    slack = max(DURATION_SLACK_SECONDS, 1 / output.fps) + 1e-6
    good = abs(seen - planned) <= slack and (heard is None or abs(heard - planned) <= SOUND_SLACK_SECONDS)
    if good:
        return passed("duration", words, expected)
    return failed("duration", words, expected, remedy="Render all frames and exactly as much sound")


def check_geometry(decoded: Decoded, composition: Composition) -> Check:
    """Width and height are those composed."""
    output = composition.output
    words, expected = f"{decoded.width} x {decoded.height}", f"{output.width} x {output.height}"
    if words == expected:
        return passed("geometry", words, expected)
    return failed("geometry", words, expected, remedy="Render at the composition's size")


def check_frame_rate(decoded: Decoded, composition: Composition) -> Check:
    """The declared rate is the composed one and every frame is shown exactly when its turn is."""
    fps = composition.output.fps
    expected = f"{fps} frames a second, evenly"
    rate = decoded.rate
    if rate is None or rate != fps:
        words = "no rate" if rate is None else f"{float(rate):.3f} frames a second"
        return failed("frame_rate", words, expected, remedy="Encode at the composition's rate")
    planned = np.arange(decoded.frames) / fps
    drift = np.abs(decoded.times - (decoded.times[0] if decoded.frames else 0.0) - planned)
    late = np.flatnonzero(~(drift < 0.5 / fps))
    if len(late):
        at = int(late[0])
        words = f"frame {at} is shown at {decoded.times[at]:.3f} s"
        return failed(
            "frame_rate", words, expected, frame=at, fps=fps, remedy="Give each frame its own time stamp"
        )
    return passed("frame_rate", f"{fps} frames a second, evenly", expected)


def check_formats(decoded: Decoded, composition: Composition) -> tuple[Check, ...]:
    """Pixels and codecs are those every player of the profile knows."""
    pixels = (
        passed("pixel_format", decoded.pixel_format, PIXEL_FORMAT)
        if decoded.pixel_format == PIXEL_FORMAT
        else failed(
            "pixel_format",
            decoded.pixel_format,
            PIXEL_FORMAT,
            remedy="Encode as yuv420p, which every player shows",
        )
    )
    video, audio = CODECS[composition.output.profile]
    words = f"{decoded.video_codec} and {decoded.audio_codec or 'no sound'}"
    good = video in decoded.video_codec and audio in (decoded.audio_codec or "")
    codecs = (
        passed("codecs", words, f"{video} and {audio}")
        if good
        else failed(
            "codecs",
            words,
            f"{video} and {audio}",
            remedy=f"Encode with the profile {composition.output.profile}",
        )
    )
    return pixels, codecs


def check_cuts(decoded: Decoded, composition: Composition) -> Check:
    """The picture changes its shot at each cut of the list and nowhere else."""
    thumbnails, fps = decoded.thumbnails, composition.output.fps
    expected = f"shots change at {_listed(composition.cuts)}"
    remedy = "Render the shots at the frames of the cut list"
    transitions = {shot.start_frame: shot.transition for shot in composition.shots}
    found = shot_changes(thumbnails)
    reach = {
        cut: 0 if transitions.get(cut, "cut") == "cut" else TRANSITION_FRAMES for cut in composition.cuts
    }
    for change in found:
        if not any(abs(change - cut) <= reach[cut] for cut in composition.cuts):
            words = f"the shot changes at frame {change}"
            return failed("cuts", words, expected, frame=change, fps=fps, remedy=remedy)
    changes = frame_changes(thumbnails)
    for cut in composition.cuts:
        problem = None
        if cut >= len(thumbnails):
            problem = "the film ends before"
        elif reach[cut] == 0:
            problem = None if cut in found else _no_change(thumbnails, changes, cut)
        else:
            problem = _no_soft_change(decoded, composition, cut)
        if problem is not None:
            return failed("cuts", f"{problem} the cut at {cut}", expected, frame=cut, fps=fps, remedy=remedy)
    return passed("cuts", f"shots change at {_listed(composition.cuts)}", expected)


def check_motion(decoded: Decoded, composition: Composition) -> Check:
    """Something moves in every second, wherever the second begins."""
    fps = composition.output.fps
    expected = f"at least {MOVING_SHARE_MIN:.0%} of the picture moves in every second"
    still = still_second(decoded.thumbnails, fps)
    if still is not None:
        words = f"{still[1]:.1%} moves in the second from frame {still[0]}"
        return failed(
            "motion",
            words,
            expected,
            frame=still[0],
            fps=fps,
            remedy="The picture stands still: let something move",
        )
    return passed(
        "motion", f"{least_moving_share(decoded.thumbnails, fps):.0%} in the calmest second", expected
    )


def check_black(decoded: Decoded, composition: Composition) -> Check:
    """The picture is never black."""
    expected = "no black picture"
    run = black_run(decoded.thumbnails)
    if run is None:
        return passed("black", "no black frame run", expected)
    return failed(
        "black",
        f"{run[1]} black frames",
        expected,
        frame=run[0],
        fps=composition.output.fps,
        remedy="A clip is missing or faded to black: render it again",
    )


def _no_change(thumbnails: np.ndarray, changes: np.ndarray, cut: int) -> str | None:
    # A cut between two like pictures is a cut all the same: it only has to stand out from what is around it.
    around = np.r_[changes[max(1, cut - 6) : cut], changes[cut + 1 : cut + 7]]
    usual = float(np.median(around)) if len(around) else 0.0
    if changes[cut] > 2.0 * usual + 1.0 and difference_across(thumbnails, cut - 1, cut) > 2.0:
        return None
    return "the shot does not change at"


def _no_soft_change(decoded: Decoded, composition: Composition, cut: int) -> str | None:
    thumbnails, frames = decoded.thumbnails, decoded.frames
    ends = (0, *composition.cuts, composition.output.frames)
    reach = min(TRANSITION_FRAMES, *(abs(end - cut) - 1 for end in ends if end != cut))
    before, after = max(0, cut - reach - 1), min(frames - 1, cut + reach)
    distance = layout_distance(thumbnails, before, after)
    if distance < LAYOUT_CHANGE_MIN:
        return f"the pictures before and after are alike ({distance:.3f}) at"
    changes = np.convolve(frame_changes(thumbnails), np.ones(3) / 3, mode="same")
    around = range(max(1, cut - 3 * reach), min(frames, cut + 3 * reach + 1))
    strongest = max(around, key=lambda at: (changes[at], -abs(at - cut)))
    near = max(changes[max(1, cut - SOFT_CUT_SLACK_FRAMES) : cut + SOFT_CUT_SLACK_FRAMES + 1], default=0.0)
    if near < 0.8 * changes[strongest] and not math.isclose(near, changes[strongest]):
        return f"the shot changes at frame {strongest}, not at"
    return None


def _listed(cuts: tuple[int, ...]) -> str:
    return ", ".join(map(str, cuts)) if cuts else "no frame"
