"""The drum kit: each stroke as mono floats, made from sines and seeded noise.

One function a drum; the colours differ by mood. Placement, level and panning belong to `music`.
"""

import numpy as np
from numpy.typing import NDArray

from .filters import equalise, slope
from .moods import MoodName
from .score import Stroke

__all__ = ["strike"]

Mono = NDArray[np.float64]


def strike(stroke: Stroke, mood: MoodName, rate: int, random: np.random.Generator) -> Mono:
    """The sound of one stroke at full level; velocity shapes its brightness, the level is the caller's."""
    match stroke.drum:
        case "kick":
            return _kick(mood, rate, random)
        case "snare":
            return _snare(mood, rate, random)
        case "rim":
            return _rim(rate, random)
        case "clap":
            return _clap(rate, random)
        case "hat":
            return _hat(rate, random, 0.045)
        case "open_hat":
            return _hat(rate, random, 0.16)
        case "shaker":
            return _shaker(rate, random)
        case "tom":
            return _tom(stroke.tone, rate, random)
        case "crash":
            return _crash(rate, random)


def _time(seconds: float, rate: int) -> Mono:
    return np.arange(int(seconds * rate)) / rate


def _noise(t: Mono, random: np.random.Generator, rate: int, low: float, high: float, order: int = 2) -> Mono:
    return equalise(random.standard_normal(len(t)), rate, lambda f: slope(f, low=low, high=high, order=order))


def _kick(mood: MoodName, rate: int, random: np.random.Generator) -> Mono:
    root, sweep, decay, drive = {
        "warm": (50.0, 95.0, 0.17, 1.5),
        "bold": (48.0, 190.0, 0.2, 2.6),
        "clean": (52.0, 130.0, 0.15, 1.7),
    }[mood]
    t = _time(0.55 if mood == "bold" else 0.4, rate)
    cycles = root * t + sweep * 0.03 * (1.0 - np.exp(-t / 0.03))
    body = np.sin(2 * np.pi * cycles) * np.exp(-t / decay) * np.minimum(1.0, t / 0.0012)
    click = _noise(t, random, rate, 1500.0, 7000.0) * np.exp(-t / 0.004) * (0.25 if mood == "warm" else 0.4)
    level = 0.75 if mood == "bold" else 1.0
    return _fade(level * np.tanh(drive * (body + 0.5 * click)) / np.tanh(drive), rate)


def _snare(mood: MoodName, rate: int, random: np.random.Generator) -> Mono:
    t = _time(0.42 if mood == "bold" else 0.28, rate)
    shell = np.sin(2 * np.pi * (186.0 * t + 1.6 * (1.0 - np.exp(-t / 0.012)))) * np.exp(-t / 0.075)
    shell += 0.5 * np.sin(2 * np.pi * 331.0 * t) * np.exp(-t / 0.05)
    wires = _noise(t, random, rate, 900.0, 9000.0, 1) * np.exp(-t / (0.13 if mood == "bold" else 0.085))
    return _fade(np.tanh(1.7 * (0.7 * shell + 0.55 * wires)), rate)


def _rim(rate: int, random: np.random.Generator) -> Mono:
    t = _time(0.12, rate)
    tick = sum(a * np.sin(2 * np.pi * f * t) for f, a in ((452.0, 0.5), (815.0, 0.8), (1690.0, 0.5)))
    wood = _noise(t, random, rate, 1200.0, 5500.0) * np.exp(-t / 0.006)
    return _fade(np.tanh(tick * np.exp(-t / 0.017) + 0.5 * wood), rate)


def _clap(rate: int, random: np.random.Generator) -> Mono:
    t = _time(0.3, rate)
    hands = _noise(t, random, rate, 850.0, 5200.0, 1)
    envelope = np.zeros_like(t)
    # Three people are never together; the last one leaves the room sounding.
    for start, level, decay in ((0.0, 0.75, 0.006), (0.011, 0.7, 0.006), (0.023, 1.0, 0.075)):
        late = t - start
        envelope += np.where(late >= 0, level * np.exp(-np.maximum(late, 0.0) / decay), 0.0)
    return _fade(np.tanh(0.9 * hands * envelope), rate)


def _hat(rate: int, random: np.random.Generator, decay: float) -> Mono:
    t = _time(min(0.5, decay * 5), rate)
    metal = sum(
        np.sign(np.sin(2 * np.pi * f * t + f)) for f in (3171.0, 4297.0, 5413.0, 6127.0, 7489.0, 8521.0)
    )
    sizzle = 0.14 * metal + 0.6 * random.standard_normal(len(t))
    bright = equalise(sizzle, rate, lambda f: slope(f, low=6800.0, high=13500.0, order=2))
    return _fade(bright * np.exp(-t / decay) * np.minimum(1.0, t / 0.001), rate)


def _shaker(rate: int, random: np.random.Generator) -> Mono:
    t = _time(0.11, rate)
    grains = _noise(t, random, rate, 4200.0, 9500.0)
    envelope = np.minimum(1.0, (t / 0.014) ** 1.5) * np.exp(-np.maximum(0.0, t - 0.014) / 0.022)
    return _fade(grains * envelope, rate)


def _tom(tone: int, rate: int, random: np.random.Generator) -> Mono:
    t = _time(0.42, rate)
    root = (82.0, 110.0, 147.0)[tone % 3]
    skin = np.sin(2 * np.pi * (root * t + 1.4 * (1.0 - np.exp(-t / 0.03)))) * np.exp(-t / 0.14)
    stick = _noise(t, random, rate, 700.0, 4500.0) * np.exp(-t / 0.012)
    return _fade(np.tanh(1.6 * (skin + 0.3 * stick)), rate)


def _crash(rate: int, random: np.random.Generator) -> Mono:
    t = _time(1.9, rate)
    wash = _noise(t, random, rate, 2600.0, 11000.0, 1)
    dark = _noise(t, random, rate, 700.0, 3200.0, 1)
    return _fade(0.5 * wash * np.exp(-t / 0.42) + 0.22 * dark * np.exp(-t / 0.2), rate)


def _fade(sound: Mono, rate: int) -> Mono:
    edge = min(len(sound) // 4, int(0.008 * rate))
    sound[len(sound) - edge :] *= np.linspace(1.0, 0.0, edge)
    return sound
