"""The three requests of the sound process, read strictly from JSON, and what is answered.

`speak` -> a narration WAV, `music` -> a music WAV, `mix` -> the finished sound. Paths in a request are those
of the machine it runs on, relative ones to the request's folder. Running them as a process: `__main__`.
"""

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .errors import SoundRequestError
from .mix import MixPlan, mix
from .music import compose_music
from .score import MusicPlan
from .speech import Narration, PhraseTiming, PhraseWindow, speak
from .wav import pcm_digest, read_wav, write_wav

__all__ = ["MixRequest", "NarrationMedia", "SpeakRequest", "run"]

T = TypeVar("T")

REQUEST_BYTES_MAX = 1024 * 1024


class SpeakRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines to speak, each in its window of frames when windows are given."""

    lines: tuple[str, ...]
    seed: int = 0
    rate: int = 48000
    fps: int = 30
    windows: tuple[PhraseWindow, ...] | None = None


class NarrationMedia(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A spoken narration: its WAV, and the phrases as `speak` reported them."""

    media: str
    phrases: tuple[PhraseTiming, ...]
    voice: str = ""


class MixRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mix plan and the media it mixes; `narration` null is the music-only profile."""

    plan: MixPlan
    music: str
    narration: NarrationMedia | None = None


def run(kind: str, request: Path, out: Path) -> dict[str, Any]:
    """Carry out one request file and return the report; every refusal is a `SoundRequestError`."""
    match kind:
        case "speak":
            return _speak(_read(request, SpeakRequest), out)
        case "music":
            return _music(_read(request, MusicPlan), out)
        case "mix":
            return _mix(_read(request, MixRequest), request.parent, out)
        case _:
            raise SoundRequestError("", f"{kind!r} is not a request", "ask for speak, music or mix")


def _speak(request: SpeakRequest, out: Path) -> dict[str, Any]:
    spoken = speak(
        request.lines, seed=request.seed, rate=request.rate, windows=request.windows, fps=request.fps
    )
    write_wav(out, spoken.pcm, spoken.rate)
    return {
        "kind": "speak",
        "voice": spoken.voice,
        "rate": spoken.rate,
        "samples": int(spoken.pcm.shape[0]),
        "seconds": round(spoken.pcm.shape[0] / spoken.rate, 3),
        "digest": pcm_digest(spoken.pcm),
        "phrases": msgspec.to_builtins(spoken.phrases),
    }


def _music(plan: MusicPlan, out: Path) -> dict[str, Any]:
    pcm = compose_music(plan)
    write_wav(out, pcm, 48000)
    return {
        "kind": "music",
        "mood": plan.mood,
        "bpm": plan.bpm,
        "bars": plan.bars,
        "rate": 48000,
        "samples": int(pcm.shape[0]),
        "seconds": round(pcm.shape[0] / 48000, 3),
        "digest": pcm_digest(pcm),
    }


def _mix(request: MixRequest, folder: Path, out: Path) -> dict[str, Any]:
    music, music_rate = read_wav(folder / request.music, "/music")
    narration = None
    if request.narration is not None:
        voice, rate = read_wav(folder / request.narration.media, "/narration/media")
        narration = Narration(voice[:, 0], rate, request.narration.phrases, request.narration.voice)
    report = mix(request.plan, music=music, narration=narration, music_rate=music_rate)
    write_wav(out, report.pcm, report.rate)
    return {
        "kind": "mix",
        "rate": report.rate,
        "samples": int(report.pcm.shape[0]),
        "seconds": round(report.pcm.shape[0] / report.rate, 3),
        "digest": report.digest,
        "integrated_lufs": report.integrated_lufs,
        "true_peak_dbtp": report.true_peak_dbtp,
        "ducking_db": report.ducking_db,
        "limiter_db": report.limiter_db,
        "music_only": report.music_only,
        "narration": msgspec.to_builtins(report.narration),
    }


def _read(path: Path, shape: type[T]) -> T:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SoundRequestError(
            "", f"{path} cannot be read ({error.strerror})", "name a readable file"
        ) from error
    if len(raw) > REQUEST_BYTES_MAX:
        raise SoundRequestError("", f"{len(raw)} bytes", f"at most {REQUEST_BYTES_MAX}")
    try:
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise SoundRequestError(_pointer(place), problem, "see the field's type in the request") from error
    except msgspec.DecodeError as error:
        raise SoundRequestError("", f"it is not JSON ({error})", "give one JSON object") from error


def _pointer(place: str) -> str:
    """A place like `.plan.whoosh_frames[2]` as a JSON pointer."""
    return "".join(f"/{part}" for part in re.findall(r"[^.\[\]`]+", place))
