"""Logs, traces and counters of a process that serves: set up before anything else, undone at its end."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from longtake.cli.process import Stopped
from longtake.errors import LongtakeError
from longtake.settings import Settings
from longtake.telemetry.logs import LogSettings, configure_logging
from longtake.telemetry.setup import TelemetrySettings, setup_telemetry


@contextmanager
def observed(settings: Settings, *, roles: Sequence[str], to_file: bool) -> Iterator[None]:
    """Observe this process: a quiet console; the whole story in a file under the data directory."""
    directory = settings.data_dir / "log"
    level = settings.log_level.upper()
    undo = configure_logging(
        LogSettings(
            directory=directory if to_file else None,
            file_level=level,
            console_level="WARNING" if to_file else level,
            colour=False if os.environ.get("NO_COLOR") else None,
        )
    )
    telemetry = setup_telemetry(
        TelemetrySettings(
            exporter=settings.traces,  # type: ignore[arg-type]  # Settings has checked it
            directory=directory,
            otlp_endpoint=settings.otlp_endpoint or None,
            roles=tuple(roles),
            prometheus="api" in roles,
        )
    )
    try:
        yield
    except (Stopped, LongtakeError):
        raise
    except Exception as error:
        # The console gets one line from whoever ends the process; the file keeps the whole of it.
        structlog.get_logger("longtake.cli").error("longtake.process_broke", exc_info=error)
        raise
    finally:
        telemetry.shutdown()
        undo()
