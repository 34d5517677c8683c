"""Log lines: JSON in a file that turns over, and a quiet console for people.

The policy. A permanent failure is an error. Something that will be tried again is a warning. An expected no-op - a duplicate, a
stale pointer, a poll that found nothing - is silent. A line is a dotted fact with fields, `effect.settled effect_id=...`, never
a sentence with values in it. Every line carries the trace it belongs to.

Other people's loggers (nats, httpx2, uvicorn, litestar, asyncpg) come through the same two handlers, at warning and above.
Leaves to bootstrap: when and with what settings `configure_logging` is called.
"""

import logging
import sys
from collections.abc import Callable, MutableMapping
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
import structlog

from longtake.telemetry.tracing import current_traceparent, parse_traceparent

LOG_FILE_NAME: Final = "longtake.log"
LOG_BYTES_MAX: Final = 16 << 20
LOG_FILES_KEPT: Final = 4

QUIET_LOGGERS: Final = (
    "asyncio",
    "asyncpg",
    "httpcore2",
    "httpx2",
    "litestar",
    "nats",
    "opentelemetry",
    "uvicorn",
)
"""Libraries that tell more than anybody wants; heard from warning up."""

# Event dictionaries are structlog's open mapping: any value that a line may carry.
EventDict = MutableMapping[str, Any]
Processor = Callable[[Any, str, EventDict], Any]


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where lines go and how the console looks."""

    directory: Path | None = None
    """Where `longtake.log` is kept; None writes no file."""
    file_level: str = "INFO"
    console_level: str = "WARNING"
    colour: bool | None = None
    """None: colours on a terminal only. `NO_COLOR` is read by whoever makes these settings."""


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """The logger of a module; cheap before configuration too."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def configure_logging(settings: LogSettings, *, console: TextIO | None = None) -> Callable[[], None]:
    """Send all log lines of this process where `settings` says; returns how to undo it."""
    stream = console if console is not None else sys.stderr
    handlers: list[logging.Handler] = [_console_handler(settings, stream)]
    if settings.directory is not None:
        handlers.append(_file_handler(settings.directory, settings.file_level))
    for handler in handlers:
        handler.addFilter(_OurRetry())
    root = logging.getLogger()
    before = (root.handlers[:], root.level, {name: logging.getLogger(name).level for name in QUIET_LOGGERS})
    root.handlers = handlers
    root.setLevel(min(handler.level for handler in handlers))
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # Loggers of modules are made before this runs and must notice a second configuration (tests, `undo`).
        cache_logger_on_first_use=False,
    )

    def undo() -> None:
        root.handlers, level, levels = before
        root.setLevel(level)
        for name, quiet_level in levels.items():
            logging.getLogger(name).setLevel(quiet_level)
        structlog.reset_defaults()
        for handler in handlers:
            handler.close()

    return undo


class _OurRetry(logging.Filter):
    """nats-py calls the end of a socket an error and prints its stack; we reconnect, so it is a warning of one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("nats.") and record.exc_info:
            error = record.exc_info[1]
            record.msg = f"{record.getMessage()}: {type(error).__name__}: {error}"
            record.args, record.exc_info = (), None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def add_trace(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Say which trace and span a line belongs to."""
    context = parse_traceparent(current_traceparent())
    if context is not None:
        event.setdefault("trace_id", f"{context.trace_id:032x}")
        event.setdefault("span_id", f"{context.span_id:016x}")
    return event


def shorten_warnings(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A warning is about something that is tried again: its error is one field, not a page (asyncpg's pool sends pages)."""
    if event.get("level") == "warning" and (given := event.get("exc_info")):
        error = (
            given[1]
            if isinstance(given, tuple)
            else given
            if isinstance(given, BaseException)
            else sys.exc_info()[1]
        )
        event.pop("exc_info")
        if error is not None:
            event.setdefault("error", f"{type(error).__name__}: {error}")
    return event


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        add_trace,
        shorten_warnings,
    ]


def _file_handler(directory: Path, level: str) -> logging.Handler:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = RotatingFileHandler(
        directory / LOG_FILE_NAME,
        maxBytes=LOG_BYTES_MAX,
        backupCount=LOG_FILES_KEPT,
        encoding="utf-8",
        delay=True,
    )
    handler.setLevel(level)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                # Never with local variables: they hold keys, payloads and people's words.
                structlog.processors.ExceptionRenderer(
                    structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
                ),
                structlog.processors.UnicodeDecoder(),
                structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
            ],
        )
    )
    return handler


def _console_handler(settings: LogSettings, stream: TextIO) -> logging.Handler:
    colour = settings.colour if settings.colour is not None else stream.isatty()
    handler = logging.StreamHandler(stream)
    handler.setLevel(settings.console_level)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _console_fields,
                structlog.dev.ConsoleRenderer(
                    colors=colour,
                    sort_keys=False,
                    pad_event_to=0,
                    timestamp_key="time",
                    # A person at the console gets the last line of an error; the file keeps the whole of it.
                    exception_formatter=_last_line,
                ),
                _only_what_prints(stream),
            ],
        )
    )
    return handler


def _console_fields(_logger: Any, _method: str, event: EventDict) -> EventDict:
    for name in ("trace_id", "span_id", "logger"):
        event.pop(name, None)
    event["time"] = str(event.get("time", ""))[11:19]
    return event


def _last_line(stream: TextIO, info: Any) -> None:
    error = info[1] if isinstance(info, tuple) else info
    if error is not None:
        stream.write(f"  {type(error).__name__}: {error}")


def _only_what_prints(stream: TextIO) -> Processor:
    encoding = getattr(stream, "encoding", None) or "utf-8"

    def encode(_logger: Any, _method: str, line: Any) -> Any:
        return line.encode(encoding, "backslashreplace").decode(encoding)

    return encode
