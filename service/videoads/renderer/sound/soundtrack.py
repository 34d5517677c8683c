"""The soundtrack of a composition: its audio part, read and mixed.

This is where the film meets the sound. The composition promises levels for the delivered file; the mix
stays a little below its ceiling and ducks a little deeper, because a lossy codec adds to peaks and noise.
What can be heard in the delivered file is measured by `presence` and `loudness`.
"""

from collections.abc import Callable
from pathlib import Path

from videoads.renderer.composition import Composition

from .mix import FrameWindow, MixPlan, MixReport, mix
from .speech import Narration, PhraseTiming
from .wav import read_wav

__all__ = ["mix_plan", "mix_soundtrack"]

Media = Callable[[str], Path]

CODEC_HEADROOM_DB = 1.0
DUCKING_MARGIN_DB = 1.0


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
