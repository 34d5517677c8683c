"""What can be heard in a finished film: is the voice where its captions are, and does the music duck?

A finished film holds one sound, the mix, usually after a lossy codec. These measures read that sound and
compare it with the stems it was made from (the narration and the music, which are stored media of their
own), so they judge the file and not the intentions:

- `locate_phrases` slides each spoken phrase over the whole mix and says where it fits best (a matched
  filter on the voice band) and how well. A phrase that is missing, or elsewhere, is found out.
- `ducking_depth_db` fits the music stem to the mix piece by piece. The fitted factor is the gain the music
  has there, whatever is spoken over it; the depth is that gain outside speech against inside.
- `speech_presence_db` needs no stem: the level of the voice band in a window against the gaps.

A codec's delay of up to a tenth of a second is found and taken out. Verdicts and limits are the
inspection's matter.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from .filters import equalise, fft_length, slope
from .wav import Pcm, as_floats

__all__ = [
    "LIKENESS_MIN",
    "HeardPhrase",
    "codec_delay",
    "ducking_depth_db",
    "locate_phrases",
    "mono",
    "speech_presence_db",
]

Window = tuple[int, int]

PIECE_SECONDS = 0.1
DELAY_SECONDS_MAX = 0.1
RELEASE_SECONDS = 0.35
ATTACK_SECONDS = 0.15
SILENT_PIECE_DB = -30.0
LIKENESS_MIN = 0.3
"""Under this a phrase counts as not heard; one that is spoken over ducked music measures above 0.6."""


class HeardPhrase(msgspec.Struct, frozen=True):
    """Where a phrase was found in the mix, and how much of the sound there it explains (0 to 1)."""

    start_sample: int
    end_sample: int
    likeness: float


def locate_phrases(mix: Pcm, narration: Pcm, phrases: Sequence[Window], rate: int) -> tuple[HeardPhrase, ...]:
    """Find each phrase (its samples in the narration stem) in the mix, anywhere; a likeness under `LIKENESS_MIN` is absence."""
    heard_signal = _voice_band(mono(mix), rate)
    stem = _voice_band(mono(narration), rate)
    size = fft_length(len(heard_signal) + len(stem))
    spectrum = np.fft.rfft(heard_signal, size)
    energy = np.concatenate([[0.0], np.cumsum(heard_signal**2)])
    found = []
    for begin, end in phrases:
        piece = stem[begin:end]
        norm = float(np.sqrt(np.sum(piece**2)))
        length = len(piece)
        places = len(heard_signal) - length + 1
        if norm < 1e-6 or places < 1:
            found.append(HeardPhrase(0, 0, 0.0))
            continue
        match = np.fft.irfft(spectrum * np.conj(np.fft.rfft(piece, size)), size)[:places]
        local = np.sqrt(np.maximum(energy[length:] - energy[:-length], 1e-12))
        # A floor on the local level: the almost silent parts of a film must not count as a perfect match.
        score = match / (norm * np.maximum(local, 0.1 * float(np.max(local))))
        at = int(np.argmax(score))
        found.append(HeardPhrase(at, at + length, round(float(score[at]), 3)))
    return tuple(found)


def ducking_depth_db(mix: Pcm, music: Pcm, speech: Sequence[Window], rate: int) -> float:
    """How much lower the music lies under speech than elsewhere, in dB; 0 when either part has no music."""
    heard = mono(mix)
    stem = mono(music)
    length = min(len(heard), len(stem))
    delay = codec_delay(heard, stem, rate)
    heard = np.roll(heard, -delay)[:length]
    stem = stem[:length]
    piece = int(PIECE_SECONDS * rate)
    count = length // piece
    if count == 0:
        return 0.0
    a = heard[: count * piece].reshape(count, piece)
    b = stem[: count * piece].reshape(count, piece)
    own = np.sum(b * b, axis=1)
    cross = np.sum(a * b, axis=1)
    audible = own > np.max(own, initial=0.0) * 10 ** (SILENT_PIECE_DB / 10)
    under = np.zeros(count, dtype=bool)
    clear = np.ones(count, dtype=bool)
    for begin, end in speech:
        under[-(-begin // piece) : end // piece] = True
        first = max(0, int(begin - ATTACK_SECONDS * rate) // piece)
        clear[first : -(-int(end + RELEASE_SECONDS * rate) // piece)] = False
    inside, outside = audible & under, audible & clear
    if not inside.any() or not outside.any():
        return 0.0
    # Summed before dividing: what is spoken is unlike the music and cancels out over a whole film.
    gain_inside = abs(float(np.sum(cross[inside]) / np.sum(own[inside])))
    gain_outside = abs(float(np.sum(cross[outside]) / np.sum(own[outside])))
    if gain_outside < 1e-6:
        return 0.0
    return float(20.0 * np.log10(gain_outside / max(gain_inside, gain_outside * 1e-3)))


def speech_presence_db(mix: Pcm, window: Window, gaps: Sequence[Window], rate: int) -> float:
    """The level of the voice band inside `window` against its mean level in the gaps, in dB, from the mix alone."""
    band = _voice_band(mono(mix), rate)
    inside = float(np.mean(band[window[0] : window[1]] ** 2)) if window[1] > window[0] else 0.0
    quiet = np.concatenate([band[a:b] for a, b in gaps]) if gaps else np.zeros(1)
    outside = float(np.mean(quiet**2)) if len(quiet) else 0.0
    return float(10.0 * np.log10(max(inside, 1e-10) / max(outside, 1e-10)))


def mono(pcm: Pcm) -> NDArray[np.float64]:
    """PCM as one channel of floats."""
    middle: NDArray[np.float64] = np.mean(as_floats(pcm), axis=0)
    return middle


def codec_delay(heard: NDArray[np.float64], stem: NDArray[np.float64], rate: int) -> int:
    """By how many samples the heard sound lags behind its stem, within a tenth of a second either way."""
    reach = int(DELAY_SECONDS_MAX * rate)
    size = fft_length(len(heard) + len(stem))
    match = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(stem, size)), size)
    near = np.concatenate([match[-reach:], match[: reach + 1]])
    return int(np.argmax(near)) - reach


def _voice_band(signal: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    return equalise(signal, rate, lambda f: slope(f, low=300.0, high=3400.0, order=3))
