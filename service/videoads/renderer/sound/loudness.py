"""How loud it is: integrated loudness and true peak after ITU-R BS.1770-4, written out here.

The tests hold both against an independent meter. Making it louder or softer is done in `limiter` and `mix`.
"""

import numpy as np
from numpy.typing import NDArray

from .filters import fft_length
from .wav import Floats, Pcm, as_floats

__all__ = ["integrated_lufs", "loudness", "peak_envelope", "rms_per_window", "true_peak_dbtp"]

SILENCE_LUFS = -70.0
BLOCK_SECONDS = 0.4
STEP_SECONDS = 0.1
ABSOLUTE_GATE_LUFS = -70.0
RELATIVE_GATE_LU = -10.0
OVERSAMPLING = 4
PHASE_TAPS = 24


def integrated_lufs(pcm: Pcm, rate: int) -> float:
    """Integrated (gated) loudness of mono or stereo PCM in LUFS; silence is -70."""
    return loudness(as_floats(pcm), rate)


def loudness(signal: NDArray[np.float64], rate: int) -> float:
    """The same for floats of shape (channels, samples). Sound shorter than a block counts as one block."""
    weighted = _k_weight(np.atleast_2d(signal), rate)
    block, step = int(BLOCK_SECONDS * rate), int(STEP_SECONDS * rate)
    samples = weighted.shape[1]
    if samples == 0:
        return SILENCE_LUFS
    total = np.concatenate([[0.0], np.cumsum(np.sum(weighted**2, axis=0))])
    starts = np.arange(0, max(1, samples - block + 1), step)
    ends = np.minimum(starts + block, samples)
    power = (total[ends] - total[starts]) / (ends - starts)
    heard = power[_lufs(power) > ABSOLUTE_GATE_LUFS]
    if len(heard) == 0:
        return SILENCE_LUFS
    gate = float(_lufs(np.mean(heard))) + RELATIVE_GATE_LU
    heard = heard[_lufs(heard) > gate]
    return float(_lufs(np.mean(heard)))


def true_peak_dbtp(pcm: Pcm) -> float:
    """The highest level between the samples as well as on them, at four times the rate, in dBTP."""
    return float(20.0 * np.log10(max(1e-6, float(np.max(peak_envelope(as_floats(pcm)), initial=0.0)))))


def peak_envelope(signal: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each sample the highest absolute value from it to the next one, over all channels, oversampled."""
    highest = np.zeros(signal.shape[-1])
    if len(highest) == 0:
        return highest
    for channel in np.atleast_2d(signal):
        np.maximum(highest, np.abs(channel), out=highest)
        for taps in _interpolators():
            between = np.convolve(channel, taps)[PHASE_TAPS // 2 : PHASE_TAPS // 2 + len(channel)]
            np.maximum(highest, np.abs(between), out=highest)
    return highest


def rms_per_window(pcm: Pcm, rate: int, seconds: float = 0.05) -> NDArray[np.float64]:
    """The level of each window of `seconds` in dBFS (RMS over channels), the last part-window included."""
    signal = as_floats(pcm)
    block = max(1, int(seconds * rate))
    padded = np.pad(signal, ((0, 0), (0, -signal.shape[1] % block)))
    power = np.mean(padded.reshape(signal.shape[0], -1, block) ** 2, axis=(0, 2))
    levels: NDArray[np.float64] = 10.0 * np.log10(np.maximum(power, 1e-12))
    return levels


def _lufs(power: NDArray[np.float64] | np.floating) -> Floats:
    return -0.691 + 10.0 * np.log10(np.maximum(power, 1e-12))


def _k_weight(signal: NDArray[np.float64], rate: int) -> NDArray[np.float64]:
    """The head shelf and the low cut of the standard, as exact responses of its two biquads at this rate."""
    samples = signal.shape[-1]
    # Half a second of padding: the low cut has died away by then, so nothing wraps round.
    length = fft_length(samples + rate // 2)
    z = np.exp(-2j * np.pi * np.fft.rfftfreq(length))
    response = np.ones_like(z)
    for numerator, denominator in (_shelf(rate), _low_cut(rate)):
        response *= (numerator[0] + numerator[1] * z + numerator[2] * z * z) / (
            denominator[0] + denominator[1] * z + denominator[2] * z * z
        )
    return np.fft.irfft(np.fft.rfft(signal, length, axis=-1) * response, length, axis=-1)[..., :samples]


Biquad = tuple[tuple[float, float, float], tuple[float, float, float]]


def _shelf(rate: int) -> Biquad:
    # The analogue prototype behind the standard's 48 kHz table, so that other rates weigh alike.
    frequency, gain, quality = 1681.974450955533, 3.999843853973347, 0.7071752369554196
    k = float(np.tan(np.pi * frequency / rate))
    high = 10.0 ** (gain / 20.0)
    band = high**0.4996667741545416
    a0 = 1.0 + k / quality + k * k
    return (
        (
            (high + band * k / quality + k * k) / a0,
            2.0 * (k * k - high) / a0,
            (high - band * k / quality + k * k) / a0,
        ),
        (1.0, 2.0 * (k * k - 1.0) / a0, (1.0 - k / quality + k * k) / a0),
    )


def _low_cut(rate: int) -> Biquad:
    frequency, quality = 38.13547087602444, 0.5003270373238773
    k = float(np.tan(np.pi * frequency / rate))
    a0 = 1.0 + k / quality + k * k
    return (1.0, -2.0, 1.0), (1.0, 2.0 * (k * k - 1.0) / a0, (1.0 - k / quality + k * k) / a0)


def _interpolators() -> list[NDArray[np.float64]]:
    """Windowed-sinc filters that give the values a quarter, a half and three quarters past each sample."""
    positions = np.arange(PHASE_TAPS) - (PHASE_TAPS // 2)
    filters = []
    for phase in range(1, OVERSAMPLING):
        x = positions + phase / OVERSAMPLING
        taps = np.sinc(x) * np.cos(np.pi * x / (PHASE_TAPS + 1)) ** 2
        filters.append(taps / np.sum(taps))
    return filters
