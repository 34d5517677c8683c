"""What the rest of longtake may say about itself: spans, counters and log lines.

Nothing here needs the OpenTelemetry SDK but setup.py, which only bootstrap imports.
"""

from longtake.telemetry.logs import get_logger
from longtake.telemetry.metrics import count
from longtake.telemetry.tracing import (
    Span,
    current_traceparent,
    extract,
    inject,
    is_enabled,
    span,
    trace_id_of,
    traces_of,
)

__all__ = [
    "Span",
    "count",
    "current_traceparent",
    "extract",
    "get_logger",
    "inject",
    "is_enabled",
    "span",
    "trace_id_of",
    "traces_of",
]
