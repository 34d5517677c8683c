"""The sound of an ad: narration, music, effects, the mix and its measures.

Depends on numpy and msgspec, on hibari-tts only when something is spoken, and on nothing else of this
project but the composition. Reading order: `moods`, `score` (what is played), `instruments`, `drums`, `effects`,
`music` (how it sounds), `speech` (who speaks), `mix` (together), `loudness`, `limiter` (at what level),
`presence` (what can be heard in a finished film), `soundtrack` (the sound of a composition).
`python -m videoads.renderer.sound` runs it as a process of its own.
"""

from .errors import NarrationTooLong, SoundError, SoundRequestError, VoiceUnavailable
from .loudness import integrated_lufs, rms_per_window, true_peak_dbtp
from .mix import FrameWindow, MixPlan, MixReport, mix
from .music import compose_music, music_samples
from .presence import HeardPhrase, ducking_depth_db, locate_phrases, speech_presence_db
from .score import MusicPlan, write_score
from .speech import Narration, PhraseTiming, PhraseWindow, speak, voice_available
from .wav import Pcm, pcm_digest, read_wav, write_wav

__all__ = [
    "FrameWindow",
    "HeardPhrase",
    "MixPlan",
    "MixReport",
    "MusicPlan",
    "Narration",
    "NarrationTooLong",
    "Pcm",
    "PhraseTiming",
    "PhraseWindow",
    "SoundError",
    "SoundRequestError",
    "VoiceUnavailable",
    "compose_music",
    "ducking_depth_db",
    "integrated_lufs",
    "locate_phrases",
    "mix",
    "music_samples",
    "pcm_digest",
    "read_wav",
    "rms_per_window",
    "speak",
    "speech_presence_db",
    "true_peak_dbtp",
    "voice_available",
    "write_score",
    "write_wav",
]
