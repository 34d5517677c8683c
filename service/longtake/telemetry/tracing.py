"""Spans in and out of W3C `traceparent` strings, over the OpenTelemetry API alone.

Work crosses rows and queues, so the context travels as text: a span takes its parent as a string and gives its own as one.
While tracing is off nothing is allocated but the small object below, and the caller's `traceparent` goes through unchanged: a
trace that a client started arrives at the provider even when we record none of it. Leaves to setup.py: the SDK.
"""

import re
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Final, Literal, Protocol, Self

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from longtake.telemetry.attributes import ERROR_TYPE

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attribute = str | bool | int | float

TRACEPARENT: Final = "traceparent"
LINKS_MAX: Final = 64
"""A batch may stand for thousands of traces; a span links to the first of them."""

_PATTERN = re.compile(r"^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$")
_KINDS: Final[dict[Kind, SpanKind]] = {
    "internal": SpanKind.INTERNAL,
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}
_SCOPE = "longtake"

_tracer: trace.Tracer | None = None
_passed_through: ContextVar[str | None] = ContextVar("longtake_traceparent", default=None)


def enable(provider: trace.TracerProvider) -> None:
    """Record spans with this provider from now on."""
    global _tracer
    _tracer = provider.get_tracer(_SCOPE)


def disable() -> None:
    """Record nothing; contexts go through unchanged."""
    global _tracer
    _tracer = None


def is_enabled() -> bool:
    """Whether spans are recorded at all."""
    return _tracer is not None


class Span:
    """One hop of work. Use it as a context manager; make it with `span`."""

    __slots__ = (
        "_attributes",
        "_context_token",
        "_kind",
        "_links",
        "_name",
        "_otel",
        "_parent",
        "_passed_token",
    )

    def __init__(
        self,
        name: str,
        *,
        kind: Kind,
        parent: str | None,
        links: Sequence[str],
        attributes: Mapping[str, Attribute] | None,
    ) -> None:
        self._name = name
        self._kind: Kind = kind
        self._parent = parent
        self._links = links
        self._attributes = attributes
        self._otel: trace.Span | None = None
        self._context_token: Token[otel_context.Context] | None = None
        self._passed_token: Token[str | None] | None = None

    @property
    def traceparent(self) -> str | None:
        """This span's own context, to be stored beside the work it causes."""
        if self._otel is None:
            return self._parent or _passed_through.get()
        return _format(self._otel.get_span_context())

    def set(self, name: str, value: Attribute) -> None:
        """Add what was learned on the way."""
        if self._otel is not None:
            self._otel.set_attribute(name, value)

    def rename(self, name: str) -> None:
        """Give the hop the name that was not known when it began."""
        if self._otel is not None:
            self._otel.update_name(name)

    def link(self, traces: Iterable[str | None]) -> None:
        """Link to traces that became known on the way, at most LINKS_MAX; unreadable ones are left out."""
        if self._otel is None:
            return
        known = dict.fromkeys(self._links)
        fresh = [text for text in dict.fromkeys(traces) if text is not None and text not in known]
        self._links = [*known, *fresh][:LINKS_MAX]
        for text in self._links[len(known) :]:
            if (context := parse_traceparent(text)) is not None:
                self._otel.add_link(context)

    def fail(self, error_type: str) -> None:
        """Mark the hop as failed where no exception says so."""
        if self._otel is not None:
            self._otel.set_attribute(ERROR_TYPE, error_type)
            self._otel.set_status(Status(StatusCode.ERROR))

    def __enter__(self) -> Self:
        if self._parent is not None:
            self._passed_token = _passed_through.set(self._parent)
        if _tracer is None:
            return self
        parent = parse_traceparent(self._parent)
        context = None if parent is None else trace.set_span_in_context(NonRecordingSpan(parent))
        self._otel = _tracer.start_span(
            self._name,
            context,
            kind=_KINDS[self._kind],
            attributes=dict(self._attributes) if self._attributes else None,
            links=[Link(link) for text in self._links[:LINKS_MAX] if (link := parse_traceparent(text))],
            record_exception=False,
            set_status_on_exception=False,
        )
        self._context_token = otel_context.attach(trace.set_span_in_context(self._otel))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        if self._passed_token is not None:
            _passed_through.reset(self._passed_token)
        if self._otel is None:
            return
        if kind is not None:
            self.fail(kind.__name__)
        if self._context_token is not None:
            otel_context.detach(self._context_token)
        self._otel.end()


def span(
    name: str,
    *,
    kind: Kind = "internal",
    parent: str | None = None,
    links: Sequence[str] = (),
    attributes: Mapping[str, Attribute] | None = None,
) -> Span:
    """Make a span below `parent`, or below the current one when there is none; unreadable parents and links are left out."""
    return Span(name, kind=kind, parent=parent, links=links, attributes=attributes)


def current_traceparent() -> str | None:
    """The context to hand on now: the current span's, else the one that goes through, else None."""
    if _tracer is not None:
        current = trace.get_current_span().get_span_context()
        if current.is_valid:
            return _format(current)
    return _passed_through.get()


def inject(headers: MutableMapping[str, str]) -> None:
    """Put the current context into outgoing headers, unless they bring one already."""
    if TRACEPARENT not in headers and (text := current_traceparent()) is not None:
        headers[TRACEPARENT] = text


def extract(headers: Mapping[str, str] | None) -> str | None:
    """Read the context of incoming headers; None when there is none or it is malformed."""
    if not headers:
        return None
    text = headers.get(TRACEPARENT)
    if text is None:
        text = next((value for name, value in headers.items() if name.lower() == TRACEPARENT), None)
    return text if parse_traceparent(text) is not None else None


class Traced(Protocol):
    """Anything that a trace came along with."""

    @property
    def traceparent(self) -> str | None: ...


def traces_of(things: Iterable[Traced]) -> Sequence[str]:
    """The distinct traces of a batch, to link its one span to, at most LINKS_MAX; nothing while tracing is off."""
    if _tracer is None:
        return ()
    traces: dict[str, None] = {}
    for thing in things:
        if thing.traceparent is not None:
            traces[thing.traceparent] = None
            if len(traces) == LINKS_MAX:
                break
    return list(traces)


def trace_id_of(traceparent: str | None) -> str | None:
    """The trace's id of a readable `traceparent`."""
    context = parse_traceparent(traceparent)
    return None if context is None else trace.format_trace_id(context.trace_id)


def parse_traceparent(text: str | None) -> SpanContext | None:
    """Read W3C trace context, level 1: unknown versions are read by their first four fields, version ff never."""
    match = _PATTERN.fullmatch(text) if text else None
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest):
        return None
    context = SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
    return context if context.is_valid else None


def _format(context: SpanContext) -> str | None:
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
