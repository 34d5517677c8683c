"""The final mix: music, narration and effects on the film's time line, at broadcast level.

The music makes room whenever someone speaks (ducking), the effects a little. Loudness and true peak are
brought to target at the very end and measured on the very samples that are handed back. The same plan and
the same inputs give the same samples. What is played when was decided by the script; `presence` measures
on the finished film whether it came true.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from .effects import impact, pour, whoosh
from .errors import SoundRequestError
from .filters import db, equalise, resample, slope
from .limiter import level_to
from .loudness import integrated_lufs, loudness, true_peak_dbtp
from .presence import ducking_depth_db
from .speech import Narration, PhraseTiming
from .wav import Pcm, as_floats, as_pcm, pcm_digest

__all__ = ["FrameWindow", "MixPlan", "MixReport", "mix"]

FRAMES_MAX = 20_000
DUCK_ATTACK_SECONDS = 0.14
DUCK_RELEASE_SECONDS = 0.26
DUCK_BRIDGE_SECONDS = 0.45
HIT_RELEASE_SECONDS = 0.015
MUSIC_LUFS = -17.5
SPEECH_LUFS = -15.5
EFFECTS_DUCK_DB = 6.0
WHOOSH_SECONDS = 0.62
WHOOSH_LEVEL = 0.17
IMPACT_LEVEL = 0.24
POUR_LEVEL = 0.12
FADE_OUT_SECONDS = 0.12


class FrameWindow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Frames of the film, the end not included."""

    start_frame: int
    end_frame: int


class MixPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What sounds when. The default ceiling leaves AAC the half decibel that it adds to peaks.

    `hit_frame` is the music's final hit: if a phrase ends just before it, the music is back in time for it.
    """

    frames: int
    fps: int = 30
    rate: int = 48000
    seed: int = 0
    whoosh_frames: tuple[int, ...] = ()
    impact_frames: tuple[int, ...] = ()
    hit_frame: int | None = None
    pour: FrameWindow | None = None
    narration_start_frame: int = 0
    ducking_db: float = 12.0
    target_lufs: float = -16.0
    ceiling_dbtp: float = -2.0


class MixReport(msgspec.Struct, frozen=True):
    """The finished sound (stereo PCM) and what was measured on it."""

    pcm: Pcm
    rate: int
    digest: str
    integrated_lufs: float
    true_peak_dbtp: float
    ducking_db: float
    limiter_db: float
    narration: tuple[PhraseTiming, ...]
    music_only: bool


def mix(
    plan: MixPlan, *, music: Pcm, narration: Narration | None = None, music_rate: int = 48000
) -> MixReport:
    """Mix everything the plan names; without narration the music stays as it is (music-only)."""
    _refuse_bad_plan(plan)
    samples = plan.frames * plan.rate // plan.fps
    bed = _bed(music, music_rate, plan.rate, samples)
    voice = np.zeros(samples)
    phrases: tuple[PhraseTiming, ...] = ()
    if narration is not None:
        voice, phrases = _voice(plan, narration, samples)
    hit = None if plan.hit_frame is None else plan.hit_frame * plan.rate // plan.fps
    duck = _ducking(phrases, samples, plan.rate, hit)
    total = bed * db(-plan.ducking_db) ** duck
    total += _effects(plan, samples) * db(-EFFECTS_DUCK_DB) ** duck
    total += voice
    fade = min(samples, int(FADE_OUT_SECONDS * plan.rate))
    total[:, samples - fade :] *= np.linspace(1.0, 0.0, fade) ** 0.5
    levelled = level_to(total, plan.rate, target_lufs=plan.target_lufs, ceiling_dbtp=plan.ceiling_dbtp)
    pcm = as_pcm(levelled.signal)
    windows = [(phrase.start_sample, phrase.end_sample) for phrase in phrases]
    depth = ducking_depth_db(pcm, as_pcm(bed), windows, plan.rate) if windows else 0.0
    return MixReport(
        pcm=pcm,
        rate=plan.rate,
        digest=pcm_digest(pcm),
        integrated_lufs=round(integrated_lufs(pcm, plan.rate), 2),
        true_peak_dbtp=round(true_peak_dbtp(pcm), 2),
        ducking_db=round(depth, 2),
        limiter_db=round(levelled.reduction_db, 2),
        narration=phrases,
        music_only=narration is None,
    )


def _refuse_bad_plan(plan: MixPlan) -> None:
    if not 1 <= plan.frames <= FRAMES_MAX:
        raise SoundRequestError("/frames", f"{plan.frames} frames", f"give 1 to {FRAMES_MAX}")
    if not 1 <= plan.fps <= 120:
        raise SoundRequestError("/fps", f"{plan.fps} frames per second", "give 1 to 120")
    if not 8000 <= plan.rate <= 96000:
        raise SoundRequestError("/rate", f"{plan.rate} Hz", "give 8000 to 96000, usually 48000")
    if not 0.0 <= plan.ducking_db <= 40.0:
        raise SoundRequestError("/ducking_db", f"{plan.ducking_db} dB", "give 0 to 40, usually 12")
    if not -40.0 <= plan.target_lufs <= -6.0:
        raise SoundRequestError("/target_lufs", f"{plan.target_lufs} LUFS", "give -40 to -6, usually -16")
    if not -20.0 <= plan.ceiling_dbtp <= 0.0:
        raise SoundRequestError("/ceiling_dbtp", f"{plan.ceiling_dbtp} dBTP", "give -20 to 0, usually -2")
    if plan.hit_frame is not None and not 0 <= plan.hit_frame < plan.frames:
        raise SoundRequestError(
            "/hit_frame", f"frame {plan.hit_frame} is not in the film", f"give 0 to {plan.frames - 1}"
        )
    for name, frames in (("whoosh_frames", plan.whoosh_frames), ("impact_frames", plan.impact_frames)):
        for index, frame in enumerate(frames):
            if not 0 <= frame < plan.frames:
                raise SoundRequestError(
                    f"/{name}/{index}", f"frame {frame} is not in the film", f"give 0 to {plan.frames - 1}"
                )
    if plan.pour is not None and not 0 <= plan.pour.start_frame < plan.pour.end_frame <= plan.frames:
        raise SoundRequestError(
            "/pour",
            f"the window {plan.pour.start_frame}..{plan.pour.end_frame} is empty or leaves the film",
            f"give frames from 0 to {plan.frames}, the end after the start",
        )


def _bed(music: Pcm, music_rate: int, rate: int, samples: int) -> NDArray[np.float64]:
    """The music in stereo, as long as the film and at its own loudness; its end is faded, never looped."""
    floats = as_floats(music)
    bed = np.stack([resample(channel, music_rate, rate) for channel in floats])
    if bed.shape[0] == 1:
        bed = np.repeat(bed, 2, axis=0)
    out = np.zeros((2, samples))
    length = min(samples, bed.shape[1])
    out[:, :length] = bed[:2, :length]
    measured = loudness(out, rate)
    return out * db(MUSIC_LUFS - measured) if measured > -69.0 else out


def _voice(
    plan: MixPlan, narration: Narration, samples: int
) -> tuple[NDArray[np.float64], tuple[PhraseTiming, ...]]:
    """The narration on the film's time line, in the middle, and its phrases at their final places."""
    line = resample(as_floats(narration.pcm)[0], narration.rate, plan.rate)
    offset = plan.narration_start_frame * plan.rate // plan.fps
    phrases = []
    for index, phrase in enumerate(narration.phrases):
        begin = offset + phrase.start_sample * plan.rate // narration.rate
        end = offset + phrase.end_sample * plan.rate // narration.rate
        if not 0 <= begin < end <= samples:
            raise SoundRequestError(
                f"/narration/phrases/{index}",
                f"it sounds from {begin / plan.rate:.2f} to {end / plan.rate:.2f} s "
                f"and the film has {samples / plan.rate:.2f} s",
                "plan the narration inside the film",
            )
        phrases.append(PhraseTiming(phrase.text, begin, end, phrase.pace))
    out = np.zeros(samples)
    first = max(0, offset)
    length = min(samples - first, len(line))
    out[first : first + length] = line[:length]
    spoken = np.concatenate([out[p.start_sample : p.end_sample] for p in phrases]) if phrases else out
    # Both channels carry the voice, so its loudness is 3 dB above that of one of them.
    measured = loudness(np.stack([spoken, spoken]), plan.rate)
    if measured > -69.0:
        out *= db(SPEECH_LUFS - measured)
    room = equalise(out, plan.rate, lambda f: slope(f, high=5000.0, order=1))
    delay = int(0.021 * plan.rate)
    out[delay:] += 0.05 * room[: max(0, samples - delay)]
    return out, tuple(phrases)


def _ducking(
    phrases: Sequence[PhraseTiming], samples: int, rate: int, hit: int | None = None
) -> NDArray[np.float64]:
    """How far the music is down, 0 to 1: full before the first sound of a phrase, held over short gaps."""
    duck = np.zeros(samples)
    attack = int(DUCK_ATTACK_SECONDS * rate)
    bridge = int(DUCK_BRIDGE_SECONDS * rate)
    spans: list[tuple[int, int]] = []
    for phrase in phrases:
        if spans and phrase.start_sample - spans[-1][1] < bridge:
            spans[-1] = (spans[-1][0], phrase.end_sample)
        else:
            spans.append((phrase.start_sample, phrase.end_sample))
    for begin, end in spans:
        release = int(DUCK_RELEASE_SECONDS * rate)
        if hit is not None and end <= hit < end + release:
            release = max(int(HIT_RELEASE_SECONDS * rate), hit - end)
        span = np.concatenate(
            [
                0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, attack)),
                np.ones(end - begin),
                0.5 + 0.5 * np.cos(np.linspace(0.0, np.pi, release)),
            ]
        )
        first = begin - attack
        left, right = max(0, first), min(samples, first + len(span))
        duck[left:right] = np.maximum(duck[left:right], span[left - first : right - first])
    return duck


def _effects(plan: MixPlan, samples: int) -> NDArray[np.float64]:
    out = np.zeros((2, samples))
    for index, frame in enumerate(plan.whoosh_frames):
        sound = whoosh(WHOOSH_SECONDS, plan.seed + index, plan.rate)
        # The loudest moment of a whoosh lies at two thirds of it: that is put on the cut.
        _lay(out, sound * WHOOSH_LEVEL, frame * plan.rate // plan.fps - sound.shape[1] * 2 // 3)
    for index, frame in enumerate(plan.impact_frames):
        _lay(out, impact(1.6, plan.seed + index, plan.rate) * IMPACT_LEVEL, frame * plan.rate // plan.fps)
    if plan.pour is not None:
        seconds = (plan.pour.end_frame - plan.pour.start_frame) / plan.fps
        _lay(
            out,
            pour(seconds, plan.seed, plan.rate) * POUR_LEVEL,
            plan.pour.start_frame * plan.rate // plan.fps,
        )
    return out


def _lay(out: NDArray[np.float64], sound: NDArray[np.float64], at: int) -> None:
    left, right = max(0, at), min(out.shape[1], at + sound.shape[1])
    if left < right:
        out[:, left:right] += sound[:, left - at : right - at]
