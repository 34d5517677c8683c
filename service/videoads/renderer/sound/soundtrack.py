"""The soundtrack of a composition: mixed from its audio part, and measured on a finished film.

This is where the rest of the renderer meets the sound: `mix_soundtrack` before the film is written,
`measure_soundtrack` on what was decoded from it. The composition promises levels for the delivered file; the
mix stays a little below its ceiling, because a lossy codec adds to peaks.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from videoads.renderer.composition import Composition

from .loudness import integrated_lufs, true_peak_dbtp
from .mix import FrameWindow, MixPlan, MixReport, mix
from .presence import codec_delay, ducking_depth_db, locate_phrases, mono
from .speech import Narration, PhraseTiming
from .wav import Pcm, read_wav

__all__ = [
    "LIKENESS_MIN",
    "PhraseMeasure",
    "SoundtrackMeasures",
    "measure_soundtrack",
    "mix_plan",
    "mix_soundtrack",
]

Media = Callable[[str], Path]

CODEC_HEADROOM_DB = 1.0
DUCKING_MARGIN_DB = 1.0
LIKENESS_MIN = 0.3
"""Under this a phrase counts as not heard; a spoken one under ducked music measures above 0.6."""


class PhraseMeasure(msgspec.Struct, frozen=True):
    """A phrase: where the composition says it is heard, where it was found, and how surely (0 to 1)."""

    key: str
    text: str
    planned_start_sample: int
    planned_end_sample: int
    heard_start_sample: int
    heard_end_sample: int
    likeness: float

    @property
    def is_heard(self) -> bool:
        """Was it found at all?"""
        return self.likeness >= LIKENESS_MIN


class SoundtrackMeasures(msgspec.Struct, frozen=True):
    """What a finished film sounds like; `ducking_db` is None when nobody speaks."""

    integrated_lufs: float
    true_peak_dbtp: float
    ducking_db: float | None
    delay_samples: int
    phrases: tuple[PhraseMeasure, ...]


def mix_plan(composition: Composition) -> MixPlan:
    """The audio part of a composition as a plan for the mix."""
    audio, output = composition.audio, composition.output
    pour = audio.effects.pour
    return MixPlan(
        frames=output.frames,
        fps=output.fps,
        rate=audio.rate,
        seed=audio.seed,
        whoosh_frames=audio.effects.whoosh_frames,
        hit_frame=audio.effects.hit_frame,
        pour=None if pour is None else FrameWindow(*pour),
        ducking_db=audio.ducking_centibels / 100 + DUCKING_MARGIN_DB,
        target_lufs=audio.loudness_centilufs / 100,
        ceiling_dbtp=audio.true_peak_centidb / 100 - CODEC_HEADROOM_DB,
    )


def mix_soundtrack(composition: Composition, media: Media) -> MixReport:
    """Read the composition's narration and music and mix them."""
    music, music_rate = read_wav(media(composition.audio.music), "/audio/music")
    narration = None
    if composition.audio.narration is not None:
        voice, rate = read_wav(media(composition.audio.narration.media), "/audio/narration/media")
        scale = composition.audio.narration.timings.rate
        narration = Narration(
            pcm=voice[:, 0],
            rate=rate,
            phrases=tuple(
                PhraseTiming(
                    phrase.text, phrase.start_sample * rate // scale, phrase.end_sample * rate // scale
                )
                for phrase in composition.audio.narration.timings.phrases
            ),
            voice="",
        )
    return mix(mix_plan(composition), music=music, narration=narration, music_rate=music_rate)


def measure_soundtrack(pcm: Pcm, rate: int, composition: Composition, media: Media) -> SoundtrackMeasures:
    """Measure the sound decoded from a film (any length, any codec) against the composition's own media.

    The stems must have the film's rate; `heard_*` samples are those of the film with its codec's delay
    taken out, so they compare with captions directly.
    """
    music, _ = read_wav(media(composition.audio.music), "/audio/music")
    delay = codec_delay(mono(pcm), mono(music), rate)
    phrases: tuple[PhraseMeasure, ...] = ()
    ducking = None
    narration = composition.audio.narration
    if narration is not None:
        voice, _ = read_wav(media(narration.media), "/audio/narration/media")
        scale = narration.timings.rate
        planned = [
            (p.start_sample * rate // scale, p.end_sample * rate // scale) for p in narration.timings.phrases
        ]
        heard = locate_phrases(pcm, voice, planned, rate)
        ducking = round(ducking_depth_db(pcm, music, planned, rate), 2)
        phrases = tuple(
            PhraseMeasure(
                key=phrase.key,
                text=phrase.text,
                planned_start_sample=begin,
                planned_end_sample=end,
                heard_start_sample=found.start_sample - delay,
                heard_end_sample=found.end_sample - delay,
                likeness=found.likeness,
            )
            for phrase, (begin, end), found in zip(narration.timings.phrases, planned, heard, strict=True)
        )
    return SoundtrackMeasures(
        integrated_lufs=round(integrated_lufs(pcm, rate), 2),
        true_peak_dbtp=round(true_peak_dbtp(pcm), 2),
        ducking_db=ducking,
        delay_samples=delay,
        phrases=phrases,
    )
