"""Eased time: how movements begin and end. All take and give numbers from 0 to 1."""

import math


def clamp(value: float, least: float = 0.0, most: float = 1.0) -> float:
    """`value` kept between `least` and `most`."""
    return min(max(value, least), most)


def span(t: float, start: float, end: float) -> float:
    """How far `t` is on its way from `start` to `end`, 0 to 1."""
    return clamp((t - start) / (end - start))


def smooth(t: float) -> float:
    """Slow, quick, slow."""
    t = clamp(t)
    return t * t * t * (t * (t * 6 - 15) + 10)


def arrive(t: float) -> float:
    """Quick, then a long settling: for things that come in."""
    return float(1 - (1 - clamp(t)) ** 3.2)


def depart(t: float) -> float:
    """Slow, then quick: for things that go out or fall."""
    return float(clamp(t) ** 2.4)


def overshoot(t: float, amount: float = 1.4) -> float:
    """Arrive a little beyond the end and come back."""
    t = clamp(t) - 1
    return 1 + (amount + 1) * t**3 + amount * t**2


def pulse(t: float) -> float:
    """One soft beat: up and down again."""
    return math.sin(math.pi * clamp(t)) ** 2


def between(first: float, second: float, t: float) -> float:
    """The number `t` of the way from `first` to `second`."""
    return first + (second - first) * t
