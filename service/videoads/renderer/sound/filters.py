"""The few signal tools the sound is made with: filters, moving noise, reverb, resampling.

All of them work in the frequency domain, because numpy has no recursive filter and a Python loop over
samples would take longer than the sound lasts. Signals are floats of shape (samples,) or (channels,
samples). What the tools are used for is decided elsewhere.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .wav import Floats

__all__ = ["bump", "db", "decibels", "equalise", "fft_length", "moving_noise", "resample", "reverb", "slope"]

Response = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def db(value: float) -> float:
    """Decibels as an amplitude factor."""
    return float(10.0 ** (value / 20.0))


def decibels(factor: float) -> float:
    """An amplitude factor as decibels; silence is -120."""
    return float(20.0 * np.log10(max(factor, 1e-6)))


def fft_length(samples: int) -> int:
    """The next length at or above `samples` which the FFT is fast at (factors 2, 3 and 5 only)."""
    best = 1 << max(0, samples - 1).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            length = three
            while length < samples:
                length *= 2
            best = min(best, length)
            three *= 3
        five *= 5
    return best


def slope(frequencies: NDArray[np.float64], *, low: float = 0.0, high: float = 0.0, order: int = 2) -> Floats:
    """The magnitude of a band: rolls off below `low` and above `high` (0 = open), `order` * 6 dB an octave."""
    safe = np.maximum(frequencies, 1e-3)
    gain = np.ones_like(safe)
    if low > 0:
        gain /= np.sqrt(1.0 + (low / safe) ** (2 * order))
    if high > 0:
        gain /= np.sqrt(1.0 + (safe / high) ** (2 * order))
    return gain


def bump(frequencies: Floats, centre: float, octaves: float) -> Floats:
    """A bell on the octave scale: 1 at `centre`, 0.37 at `octaves` to either side."""
    distance: Floats = np.log2(np.maximum(frequencies, 1.0) / centre) / octaves
    bell: Floats = np.exp(-(distance**2))
    return bell


def equalise(signal: Floats, rate: int, response: Response) -> Floats:
    """Filter a whole signal with a zero-phase magnitude response given as a function of Hz."""
    samples = signal.shape[-1]
    # Padding keeps the ringing of the end from coming round to the beginning.
    length = fft_length(samples + rate // 10)
    spectrum = np.fft.rfft(signal, length, axis=-1)
    hertz: Floats = np.fft.rfftfreq(length, 1.0 / rate).astype(np.float64)
    spectrum *= response(hertz)
    out: Floats = np.fft.irfft(spectrum, length, axis=-1)[..., :samples]
    return out


def moving_noise(
    samples: int,
    rate: int,
    random: np.random.Generator,
    shape: Callable[[float, NDArray[np.float64]], NDArray[np.float64]],
    *,
    channels: int = 1,
) -> NDArray[np.float64]:
    """Noise whose spectrum moves: `shape(progress, frequencies)` gives the magnitudes at progress 0 to 1."""
    window = 1024
    hop = window // 2
    frames = samples // hop + 2
    bins: Floats = np.fft.rfftfreq(window, 1.0 / rate).astype(np.float64)
    masks = np.stack([shape(min(1.0, k / max(1, frames - 2)), bins) for k in range(frames)])
    fade: Floats = np.sin(np.pi * (np.arange(window) + 0.5) / window)
    out = np.zeros((channels, (frames + 1) * hop))
    noise = random.standard_normal((channels, (frames + 1) * hop))
    for k in range(frames):
        part = noise[:, k * hop : k * hop + window] * fade
        out[:, k * hop : k * hop + window] += np.fft.irfft(np.fft.rfft(part) * masks[k], window) * fade
    return out[:, hop : hop + samples]


def reverb(
    signal: NDArray[np.float64],
    rate: int,
    *,
    seconds: float,
    seed: int,
    bright_hz: float = 6000.0,
    predelay_seconds: float = 0.018,
) -> NDArray[np.float64]:
    """The wet part of a small hall, stereo, as long as `signal` (channels, samples)."""
    random = np.random.default_rng(seed)
    length = int(seconds * rate)
    time = np.arange(length) / rate
    impulse = random.standard_normal((2, length)) * np.exp(-6.9 * time / seconds)
    impulse[:, : int(0.004 * rate)] *= np.linspace(0.0, 1.0, int(0.004 * rate))
    impulse = equalise(impulse, rate, lambda f: slope(f, low=220.0, high=bright_hz, order=1))
    impulse /= np.sqrt(np.sum(impulse**2, axis=1, keepdims=True))
    samples = signal.shape[-1]
    size = fft_length(samples + length)
    source = np.fft.rfft(np.atleast_2d(signal), size, axis=-1)
    wet = np.fft.irfft(source * np.fft.rfft(impulse, size, axis=-1), size, axis=-1)
    delay = int(predelay_seconds * rate)
    out = np.zeros((2, samples))
    out[:, delay:] = wet[:, : max(0, samples - delay)]
    return out


def resample(signal: NDArray[np.float64], rate_from: int, rate_to: int) -> NDArray[np.float64]:
    """A mono signal at another rate, by the exact band-limited method; a short pad hides the seam."""
    if rate_from == rate_to or signal.shape[-1] == 0:
        return signal
    unit = rate_from // int(np.gcd(rate_from, rate_to))
    samples = signal.shape[-1]
    length = -(-(samples + rate_from // 20) // unit) * unit
    target = length * rate_to // rate_from
    spectrum = np.fft.rfft(signal, length)
    keep = min(length, target) // 2
    moved = np.zeros(target // 2 + 1, dtype=np.complex128)
    moved[:keep] = spectrum[:keep]
    out: Floats = np.fft.irfft(moved, target) * (target / length)
    return out[: -(-samples * rate_to // rate_from)]
