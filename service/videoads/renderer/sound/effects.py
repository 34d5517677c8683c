"""The sounds that belong to the picture: a whoosh, a pouring liquid, an impact, a riser.

Each is stereo floats of shape (2, samples), made from seeded noise and sines, peaking near 1. When they
sound and how loud is the mix's matter.
"""

import numpy as np
from numpy.typing import NDArray

from .filters import bump, equalise, moving_noise, slope

__all__ = ["impact", "pour", "riser", "whoosh"]

Stereo = NDArray[np.float64]


def whoosh(seconds: float, seed: int, rate: int = 48000) -> Stereo:
    """Air passing from left to right; it is loudest at two thirds, which belongs on the cut."""
    samples = max(64, int(seconds * rate))
    random = np.random.default_rng([seed, 11])
    direction = 1.0 if random.random() < 0.5 else -1.0

    def shape(progress: float, f: NDArray[np.float64]) -> NDArray[np.float64]:
        rise = np.sin(np.pi * min(1.0, progress / 1.33)) ** 1.5
        centre = 260.0 * 2.0 ** (3.6 * rise)
        return bump(f, centre, 1.15) * slope(f, high=7000.0, order=1)

    air = moving_noise(samples, rate, random, shape, channels=2)
    t = np.linspace(0.0, 1.0, samples)
    swell = np.where(t < 0.66, (t / 0.66) ** 2.4, ((1.0 - t) / 0.34) ** 1.6)
    pan = direction * np.linspace(-0.75, 0.75, samples)
    air = air * swell * np.sqrt(0.5 * np.stack([1.0 - pan, 1.0 + pan]))
    return _peak_at_one(air)


def pour(seconds: float, seed: int, rate: int = 48000) -> Stereo:
    """A thin stream into a filling cup: a steady hiss, bubbles, and a cup note that rises as it fills."""
    samples = max(64, int(seconds * rate))
    random = np.random.default_rng([seed, 23])

    def shape(progress: float, f: NDArray[np.float64]) -> NDArray[np.float64]:
        cup = 420.0 * 2.0 ** (1.35 * progress)
        body = bump(f, cup, 0.22) + 0.5 * bump(f, 2.93 * cup, 0.25)
        stream = 0.1 * slope(f, low=1100.0, high=5200.0, order=1)
        return body + stream

    stream = moving_noise(samples, rate, random, shape, channels=2)
    flutter = 1.0 + 0.35 * np.interp(
        np.arange(samples),
        np.arange(0, samples + rate // 18, rate // 18),
        random.standard_normal(samples // (rate // 18) + 2),
    )
    stream *= np.clip(flutter, 0.3, 1.8)
    stream /= max(1e-9, float(np.max(np.abs(stream))))

    # Bubbles: short sines whose pitch rises while they die, as an air bubble does below a surface.
    for _ in range(int(34 * seconds)):
        begin = int(random.random() * samples)
        length = min(samples - begin, int((0.012 + 0.03 * random.random()) * rate))
        if length < 32:
            continue
        time = np.arange(length) / rate
        start_hz = (520.0 + 900.0 * random.random()) * 2.0 ** (0.9 * begin / samples)
        bubble = np.sin(2 * np.pi * start_hz * time * (1.0 + 5.0 * time)) * np.exp(-time * 160.0)
        place = 0.5 + 0.35 * (random.random() - 0.5)
        level = 0.1 + 0.3 * random.random()
        stream[:, begin : begin + length] += level * np.stack([bubble * (1.0 - place), bubble * place])

    edge = min(samples // 3, int(0.16 * rate))
    stream[:, :edge] *= np.linspace(0.0, 1.0, edge) ** 1.5
    stream[:, samples - edge :] *= np.linspace(1.0, 0.0, edge)
    return _peak_at_one(equalise(stream, rate, lambda f: slope(f, low=160.0)))


def impact(seconds: float, seed: int, rate: int = 48000) -> Stereo:
    """A deep hit with a burst of air and a long tail."""
    samples = max(64, int(seconds * rate))
    random = np.random.default_rng([seed, 37])
    time = np.arange(samples) / rate
    phase = 2 * np.pi * (46.0 * time + 62.0 * 0.05 * (1.0 - np.exp(-time / 0.05)))
    boom = np.sin(phase) * np.exp(-time * 2.9 / max(0.3, seconds) * 1.6)
    boom = np.tanh(1.6 * boom)

    def shape(progress: float, f: NDArray[np.float64]) -> NDArray[np.float64]:
        return slope(f, low=90.0, high=6500.0 * 2.0 ** (-4.5 * progress) + 180.0, order=1)

    air = moving_noise(samples, rate, random, shape, channels=2) * np.exp(-time * 7.0 / max(0.4, seconds))
    air *= 0.5 / max(1e-9, float(np.max(np.abs(air))))
    tail = boom + air
    edge = min(samples // 4, int(0.1 * rate))
    tail[:, samples - edge :] *= np.linspace(1.0, 0.0, edge)
    return _peak_at_one(tail)


def riser(seconds: float, seed: int, rate: int = 48000, root_hz: float = 220.0) -> Stereo:
    """Tension that climbs to its end and stops dead there, tuned to `root_hz`."""
    samples = max(64, int(seconds * rate))
    random = np.random.default_rng([seed, 41])
    t = np.linspace(0.0, 1.0, samples)

    def shape(progress: float, f: NDArray[np.float64]) -> NDArray[np.float64]:
        centre = 320.0 * 2.0 ** (4.4 * progress**1.3)
        return bump(f, centre, 1.3 - 0.5 * progress)

    air = moving_noise(samples, rate, random, shape, channels=2)
    air /= max(1e-9, float(np.max(np.abs(air))))
    glide = root_hz * 2.0 ** (1.0 * t**2)
    tones = []
    for detune in (0.994, 1.006):
        cycles = np.cumsum(glide * detune) / rate
        tones.append(sum(np.sin(2 * np.pi * k * cycles) / k**1.4 for k in range(1, 7)))
    swell = t**2.2
    out = (0.8 * air + 0.22 * np.stack(tones)) * swell
    edge = min(samples // 8, int(0.012 * rate))
    out[:, samples - edge :] *= np.linspace(1.0, 0.0, edge)
    return _peak_at_one(out)


def _peak_at_one(signal: Stereo) -> Stereo:
    return signal / max(1e-9, float(np.max(np.abs(signal))))
