"""Counting, over the OpenTelemetry API alone: free while no SDK is set up, and one call per batch where it is.

Leaves to attributes.py: which counters there are. Leaves to setup.py: where the numbers go.
"""

from collections.abc import Mapping

from opentelemetry import metrics

from longtake.telemetry.attributes import COUNTERS

_meter = metrics.get_meter("longtake")
_counters = {name: _meter.create_counter(name, description=text) for name, text in COUNTERS.items()}


def count(name: str, number: int = 1, labels: Mapping[str, str] | None = None) -> None:
    """Add to a counter of the table; KeyError for one that is not in it."""
    _counters[name].add(number, labels)
