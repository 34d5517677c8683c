"""Sets up the OpenTelemetry SDK. Only bootstrap (and tests) import this; everybody else speaks to tracing.py and metrics.py.

Without a collector a trace can still be looked at: the `file` exporter writes one JSON span a line under `.longtake/log`.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from longtake.errors import ConfigurationError
from longtake.telemetry import tracing

TRACE_FILE_NAME: Final = "traces.ndjson"
TRACE_FILE_BYTES_MAX: Final = 64 << 20
FLUSH_MILLISECONDS: Final = 2_000

Exporter = Literal["none", "memory", "file", "otlp"]


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to record and where to send it."""

    exporter: Exporter = "none"
    directory: Path | None = None
    """Where the `file` exporter writes `traces.ndjson`."""
    otlp_endpoint: str | None = None
    """The base address of a collector, such as `http://127.0.0.1:4318`; None leaves it to the OTEL_ variables."""
    sample_ratio: float = 1.0
    """The share of new traces that are recorded; a caller's own decision is always kept."""
    service_name: str = "longtake"
    service_version: str = "0.1.0"
    roles: tuple[str, ...] = ()
    prometheus: bool = False
    """Register the counters with the process's Prometheus registry, for `GET /metrics`."""


class Telemetry:
    """What was set up, to be shut down at the end of the process."""

    def __init__(self, provider: TracerProvider | None, memory: InMemorySpanExporter | None) -> None:
        self._provider = provider
        self._memory = memory

    def finished_spans(self) -> tuple[ReadableSpan, ...]:
        """The ended spans of the `memory` exporter; empty for the others."""
        return self._memory.get_finished_spans() if self._memory is not None else ()

    def flush(self) -> None:
        """Hand over what is not yet exported, within bounded time."""
        if self._provider is not None:
            self._provider.force_flush(FLUSH_MILLISECONDS)

    def shutdown(self) -> None:
        """Stop recording and hand over the rest. May be called twice."""
        tracing.disable()
        provider, self._provider = self._provider, None
        if provider is not None:
            provider.force_flush(FLUSH_MILLISECONDS)
            provider.shutdown()


def setup_telemetry(settings: TelemetrySettings) -> Telemetry:
    """Set up tracing and counting for this process. ConfigurationError for settings that make no sense."""
    if not 0.0 <= settings.sample_ratio <= 1.0:
        raise ConfigurationError(
            f"telemetry sample_ratio is {settings.sample_ratio}; it is a share between 0 (nothing) and 1 (everything)"
        )
    if settings.prometheus:
        _setup_counters(settings)
    if settings.exporter == "none":
        return Telemetry(None, None)
    exporter = _EXPORTERS[settings.exporter](settings)
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.sample_ratio)),
        resource=_resource(settings),
        shutdown_on_exit=False,
    )
    memory = exporter if isinstance(exporter, InMemorySpanExporter) else None
    processor = SimpleSpanProcessor(exporter) if memory is not None else BatchSpanProcessor(exporter)
    provider.add_span_processor(processor)
    tracing.enable(provider)
    # Instrumentations of libraries look for the global provider; the first one of a process stays.
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(provider)
    return Telemetry(provider, memory)


class NdjsonSpanExporter(SpanExporter):
    """Writes one span a line; at 64 MiB the file is put aside as `.1`, and the one before is forgotten."""

    def __init__(self, path: Path, *, bytes_max: int = TRACE_FILE_BYTES_MAX) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append; a full disk loses spans, not work."""
        lines = "".join(f"{span.to_json(indent=None)}\n" for span in spans)
        with self._lock:
            if self._file.closed:
                return SpanExportResult.FAILURE
            try:
                self._turn_over(len(lines))
                self._file.write(lines)
                self._file.flush()
            except OSError:
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _turn_over(self, more: int) -> None:
        if self._file.tell() and self._file.tell() + more > self._bytes_max:
            self._file.close()
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._file = self._path.open("a", encoding="utf-8")


def _memory(_settings: TelemetrySettings) -> SpanExporter:
    return InMemorySpanExporter()


def _file(settings: TelemetrySettings) -> SpanExporter:
    if settings.directory is None:
        raise ConfigurationError("telemetry exporter 'file' needs a directory to write traces.ndjson to")
    return NdjsonSpanExporter(settings.directory / TRACE_FILE_NAME)


def _otlp(settings: TelemetrySettings) -> SpanExporter:
    # Imported here: it brings requests and protobuf along, which nobody pays for who does not export.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if settings.otlp_endpoint is None:
        return OTLPSpanExporter()
    return OTLPSpanExporter(endpoint=f"{settings.otlp_endpoint.rstrip('/')}/v1/traces")


_EXPORTERS: Final[dict[str, Callable[[TelemetrySettings], SpanExporter]]] = {
    "memory": _memory,
    "file": _file,
    "otlp": _otlp,
}


def _resource(settings: TelemetrySettings) -> Resource:
    return Resource.create(
        {
            "service.name": settings.service_name,
            "service.version": settings.service_version,
            "longtake.roles": list(settings.roles),
        }
    )


def _setup_counters(settings: TelemetrySettings) -> None:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader

    if isinstance(metrics.get_meter_provider(), MeterProvider):
        return
    reader: MetricReader = PrometheusMetricReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader], resource=_resource(settings)))
