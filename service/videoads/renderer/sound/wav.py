"""16-bit PCM in and out of WAV files, and its digest.

PCM is an int16 array of shape (samples, channels). Everything between two files works in float; see
`filters` for that. Other formats (AAC, Opus) are the film's matter.
"""

import hashlib
import wave
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import SoundRequestError

__all__ = ["Floats", "Pcm", "as_floats", "as_pcm", "pcm_digest", "read_wav", "write_wav"]

Pcm: TypeAlias = NDArray[np.int16]
Floats: TypeAlias = NDArray[np.float64]

WAV_BYTES_MAX = 256 * 1024 * 1024
FULL_SCALE = 32768.0


def as_floats(pcm: Pcm) -> NDArray[np.float64]:
    """PCM of shape (samples,) or (samples, channels) as floats of shape (channels, samples) in [-1, 1)."""
    frames = pcm[:, None] if pcm.ndim == 1 else pcm
    return np.ascontiguousarray(frames.T, dtype=np.float64) / FULL_SCALE


def as_pcm(signal: Floats) -> Pcm:
    """Floats of shape (channels, samples) as PCM (samples, channels), rounded and held inside the scale."""
    scaled = np.rint(np.atleast_2d(signal) * FULL_SCALE)
    return np.ascontiguousarray(np.clip(scaled, -32768, 32767).astype(np.int16).T)


def pcm_digest(pcm: Pcm) -> str:
    """SHA-256 over shape and little-endian samples: equal digests mean equal sound."""
    digest = hashlib.sha256(f"pcm:{pcm.shape[0]}x{pcm.shape[1] if pcm.ndim > 1 else 1}:".encode())
    digest.update(np.ascontiguousarray(pcm, dtype="<i2").tobytes())
    return digest.hexdigest()


def write_wav(path: Path, pcm: Pcm, rate: int) -> None:
    """Write PCM to a WAV file, replacing what was there only when the whole file is written."""
    frames = pcm[:, None] if pcm.ndim == 1 else pcm
    partial = path.with_name(path.name + ".part")
    # Opened by us: the wave module leaves a half-made writer behind when the path cannot be opened.
    with partial.open("wb") as raw, wave.open(raw, "wb") as file:
        file.setnchannels(frames.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.ascontiguousarray(frames, dtype="<i2").tobytes())
    partial.replace(path)


def read_wav(path: Path, pointer: str = "") -> tuple[Pcm, int]:
    """Read a 16-bit PCM WAV file as (samples, channels) and its rate; `pointer` names it in a refusal."""
    remedy = "give a 16-bit PCM WAV file"
    if not path.is_file():
        raise SoundRequestError(pointer, f"{path} does not exist", remedy)
    if path.stat().st_size > WAV_BYTES_MAX:
        raise SoundRequestError(pointer, f"{path} is larger than {WAV_BYTES_MAX} bytes", remedy)
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            raw = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise SoundRequestError(pointer, f"{path} is not a WAV file ({error})", remedy) from error
    if width != 2:
        raise SoundRequestError(pointer, f"{path} has {8 * width}-bit samples", remedy)
    samples = np.frombuffer(raw[: len(raw) - len(raw) % (2 * channels)], dtype="<i2")
    return samples.reshape(-1, channels).astype(np.int16), rate
