"""The pitched instruments: each note as stereo floats.

Bright and dark wave tables are made once per instrument and pitch range (band-limited, so nothing aliases) and
blended while a note lasts: that is our moving filter. Struck things are sums of dying partials. What is
played is decided in `score`; levels between the parts in `music`.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .moods import MoodName
from .score import Part

__all__ = ["play"]

Stereo = NDArray[np.float64]
Mono = NDArray[np.float64]

TABLE_SIZE = 4096
TABLE_HARMONICS_HZ_MAX = 11000.0


def play(part: Part, mood: MoodName, pitch: int, seconds: float, velocity: float, rate: int) -> Stereo:
    """One note of a part in a mood; it may ring on after `seconds`."""
    hz = 440.0 * 2.0 ** ((pitch - 69) / 12)
    match part:
        case "chords":
            if mood == "warm":
                return _electric_piano(hz, seconds, velocity, rate)
            if mood == "bold":
                return _saws(
                    hz, seconds, rate, voices=5, spread=0.0065, attack=0.006, open_from=0.75, open_to=0.25
                )
            return _saws(hz, seconds, rate, voices=4, spread=0.004, attack=0.02, open_from=0.3, open_to=0.12)
        case "bass":
            return _bass(hz, seconds, velocity, mood, rate)
        case "arp":
            return _marimba(hz, rate) if mood == "clean" else _pluck(hz, velocity, rate)
        case "lead":
            if mood == "warm":
                return _vibraphone(hz, seconds, rate)
            if mood == "bold":
                return _saws(
                    hz, seconds, rate, voices=3, spread=0.004, attack=0.012, open_from=0.9, open_to=0.45
                )
            return _bell(hz, rate, 0.55)
        case "bell":
            return _bell(hz, rate, 1.1)


def _electric_piano(hz: float, seconds: float, velocity: float, rate: int) -> Stereo:
    t = _time(seconds + 0.35, rate)
    index = (0.55 + 1.5 * velocity) * np.exp(-t / 0.55) * min(1.0, 320.0 / hz)
    body = np.sin(2 * np.pi * hz * t + index * np.sin(2 * np.pi * hz * t + 0.3))
    tine = (
        np.sin(2 * np.pi * hz * 7.02 * t) * np.exp(-t / 0.05) * 0.16 * velocity if hz * 7.02 < 9000 else 0.0
    )
    sound = (body + tine) * np.exp(-t / (1.5 * (300.0 / hz) ** 0.3)) * _gate(t, seconds, 0.004, 0.22)
    sound = np.tanh(1.1 * sound)
    # The slow wander between the speakers that this instrument is loved for.
    wander = 0.28 * np.sin(2 * np.pi * 3.3 * t)
    return np.stack([sound * (1.0 - wander), sound * (1.0 + wander)])


def _saws(
    hz: float,
    seconds: float,
    rate: int,
    *,
    voices: int,
    spread: float,
    attack: float,
    open_from: float,
    open_to: float,
) -> Stereo:
    t = _time(seconds + 0.18, rate)
    bright, dark = _table(hz, 1.0), _table(hz, 2.3)
    opening = open_to + (open_from - open_to) * np.exp(-t / 0.28)
    left, right = np.zeros_like(t), np.zeros_like(t)
    for voice in range(voices):
        place = voice / max(1, voices - 1) * 2 - 1
        cycles = hz * (1.0 + spread * place) * t + 0.37 * voice
        index = ((cycles % 1.0) * TABLE_SIZE).astype(np.int64)
        wave = dark[index] + opening * (bright[index] - dark[index])
        left += wave * (0.5 - 0.4 * place)
        right += wave * (0.5 + 0.4 * place)
    shape: Mono = _gate(t, seconds, attack, 0.14) * (0.9 / voices**0.5)
    return np.stack([left * shape, right * shape])


def _bass(hz: float, seconds: float, velocity: float, mood: MoodName, rate: int) -> Stereo:
    t = _time(seconds + 0.08, rate)
    cycles = hz * t
    index = ((cycles % 1.0) * TABLE_SIZE).astype(np.int64)
    bright, dark = _table(hz, 1.25), _table(hz, 3.2)
    openness, decay, drive = {
        "warm": (0.22, 0.16, 1.3),
        "bold": (0.75, 0.2, 2.4),
        "clean": (0.35, 0.12, 1.4),
    }[mood]
    opening = openness * velocity * np.exp(-t / decay)
    wave = dark[index] + opening * (bright[index] - dark[index])
    sub = np.sin(2 * np.pi * cycles)
    sound = np.tanh(drive * (0.55 * wave + 0.6 * sub)) / drive**0.5
    sound *= (0.45 + 0.55 * np.exp(-t / 0.55)) * _gate(t, seconds, 0.004, 0.06)
    return np.stack([sound, sound])


def _pluck(hz: float, velocity: float, rate: int) -> Stereo:
    t = _time(0.5, rate)
    left = ((hz * 1.002 * t % 1.0) * TABLE_SIZE).astype(np.int64)
    right = ((hz * 0.998 * t % 1.0) * TABLE_SIZE).astype(np.int64)
    bright, dark = _table(hz, 1.1), _table(hz, 2.6)
    opening = (0.4 + 0.5 * velocity) * np.exp(-t / 0.05)
    shape = np.exp(-t / 0.11) * _gate(t, 0.45, 0.002, 0.05)
    return np.stack([(dark[i] + opening * (bright[i] - dark[i])) * shape for i in (left, right)])


def _marimba(hz: float, rate: int) -> Stereo:
    t = _time(0.6, rate)
    bar = np.sin(2 * np.pi * hz * t) * np.exp(-t / (0.16 * (520.0 / hz) ** 0.4))
    for ratio, level, decay in ((3.98, 0.28, 0.045), (9.6, 0.1, 0.018)):
        if hz * ratio < 14000:
            bar += level * np.sin(2 * np.pi * hz * ratio * t) * np.exp(-t / decay)
    bar *= _gate(t, 0.55, 0.0015, 0.05)
    return np.stack([bar, bar])


def _vibraphone(hz: float, seconds: float, rate: int) -> Stereo:
    t = _time(seconds + 0.9, rate)
    bar = np.sin(2 * np.pi * hz * t) + 0.16 * np.sin(2 * np.pi * hz * 4.0 * t) * np.exp(-t / 0.25)
    bar += 0.07 * np.sin(2 * np.pi * hz * 10.0 * t) * np.exp(-t / 0.03) if hz * 10 < 14000 else 0.0
    bar *= np.exp(-t / 0.9) * _gate(t, seconds + 0.6, 0.003, 0.3)
    motor = 0.22 * np.sin(2 * np.pi * 5.2 * t)
    return np.stack([bar * (1.0 + motor), bar * (1.0 - 0.6 * motor)])


def _bell(hz: float, rate: int, seconds: float) -> Stereo:
    t = _time(min(2.4, seconds * 2.2), rate)
    sound = np.zeros_like(t)
    for ratio, level, decay in ((1.0, 1.0, 1.0), (2.0, 0.35, 0.6), (3.01, 0.2, 0.4), (4.22, 0.1, 0.22)):
        if hz * ratio < 14000:
            sound += level * np.sin(2 * np.pi * hz * ratio * t) * np.exp(-t / (seconds * decay * 0.55))
    sound *= _gate(t, t[-1] - 0.1, 0.002, 0.1)
    shimmer = 0.12 * np.sin(2 * np.pi * 4.4 * t)
    return np.stack([sound * (1.0 + shimmer), sound * (1.0 - shimmer)])


def _time(seconds: float, rate: int) -> Mono:
    return np.arange(max(64, int(seconds * rate))) / rate


def _gate(t: Mono, seconds: float, attack: float, release: float) -> Mono:
    rise = np.minimum(1.0, t / attack)
    fall = np.clip((seconds + release - t) / release, 0.0, 1.0)
    return rise * fall * fall * (3.0 - 2.0 * fall)


def _table(hz: float, roll_off: float) -> Mono:
    """One cycle of a saw whose harmonics fall with `roll_off`, with as many of them as fit under the limit."""
    harmonics = max(1, min(160, int(TABLE_HARMONICS_HZ_MAX / hz)))
    # Few different sizes, so that the tables are shared between neighbouring notes.
    sizes = [size for size in (1, 2, 3, 4, 6, 8, 11, 16, 22, 32, 45, 64, 90, 128, 160) if size <= harmonics]
    return _saw_table(sizes[-1], roll_off)


@lru_cache(maxsize=64)
def _saw_table(harmonics: int, roll_off: float) -> Mono:
    spectrum = np.zeros(TABLE_SIZE // 2 + 1, dtype=np.complex128)
    number = np.arange(1, harmonics + 1)
    spectrum[1 : harmonics + 1] = (
        -0.5j * TABLE_SIZE / number**roll_off * (0.5 + 0.5 * np.cos(np.pi * number / (harmonics + 1)))
    )
    table = np.fft.irfft(spectrum, TABLE_SIZE)
    return table / float(np.sqrt(np.mean(table**2))) * 0.5
