"""Log lines: a JSON file for machines, a quiet console for people."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.promises import promise
from longtake.telemetry import get_logger, span, tracing
from longtake.telemetry.logs import LOG_FILE_NAME, LogSettings, configure_logging

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"

log = get_logger("longtake.test")


class Logs:
    """Both ends of a configured logging."""

    def __init__(self, directory: Path, console: io.TextIOWrapper) -> None:
        self._directory = directory
        self._console = console

    @property
    def console(self) -> str:
        self._console.flush()
        return self._console.buffer.getvalue().decode()  # type: ignore[attr-defined] # a BytesIO, see the fixture

    @property
    def lines(self) -> list[dict[str, Any]]:
        path = self._directory / LOG_FILE_NAME
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _configured(directory: Path, *, colour: bool | None = None, encoding: str = "utf-8") -> Iterator[Logs]:
    console = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    undo = configure_logging(LogSettings(directory=directory, colour=colour), console=console)
    tracing.disable()
    try:
        yield Logs(directory, console)
    finally:
        undo()


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    yield from _configured(tmp_path)


@pytest.fixture
def ascii_logs(tmp_path: Path) -> Iterator[Logs]:
    yield from _configured(tmp_path, encoding="ascii")


@pytest.fixture
def coloured_logs(tmp_path: Path) -> Iterator[Logs]:
    yield from _configured(tmp_path, colour=True)


@promise("W05")
def test_the_console_shows_retries_and_failures_and_is_silent_about_what_was_expected(logs: Logs) -> None:
    log.debug("effect.duplicate", effect_id="e0")
    log.info("effect.settled", effect_id="e1")
    log.warning("effect.retry_scheduled", effect_id="e2")
    log.error("effect.failed", effect_id="e3")

    assert [line["event"] for line in logs.lines] == [
        "effect.settled",
        "effect.retry_scheduled",
        "effect.failed",
    ]
    assert "e1" not in logs.console
    assert "effect.retry_scheduled effect_id=e2" in logs.console
    assert "effect.failed effect_id=e3" in logs.console


@promise("W05")
def test_a_line_names_the_trace_it_belongs_to(logs: Logs) -> None:
    with span("effect.execute", parent=PARENT):
        log.info("effect.settled")
    log.info("effect.settled")
    inside, outside = logs.lines

    assert (inside["trace_id"], inside["span_id"]) == (TRACE, "b7ad6b7169203331")
    assert "trace_id" not in outside


def test_lines_of_libraries_are_json_too_and_only_from_warning_up(logs: Logs) -> None:
    logging.getLogger("httpx2").info("HTTP Request: GET %s", "http://x/")
    logging.getLogger("nats.aio.client").warning("slow consumer %s", "s")

    assert [(line["logger"], line["event"]) for line in logs.lines] == [
        ("nats.aio.client", "slow consumer s")
    ]


def test_an_exception_keeps_its_frames_in_the_file_and_its_last_line_on_the_console(logs: Logs) -> None:
    try:
        api_key = "lt_live_do_not_tell"
        raise ValueError(f"no such thing, {len(api_key)} letters")
    except ValueError:
        log.exception("service.handler_failed")
    (line,) = logs.lines

    assert line["exception"][0]["exc_type"] == "ValueError"
    assert line["exception"][0]["frames"]
    assert "ValueError: no such thing" in logs.console
    assert "Traceback" not in logs.console


def test_an_error_of_the_nats_client_is_a_warning_of_one_line_for_we_reconnect(logs: Logs) -> None:
    try:
        raise ConnectionResetError("by peer")
    except ConnectionResetError as error:
        logging.getLogger("nats.aio.client").error("nats: encountered error", exc_info=error)
    (line,) = logs.lines

    assert (line["level"], line["event"]) == (
        "warning",
        "nats: encountered error: ConnectionResetError: by peer",
    )
    assert "exception" not in line
    assert "Traceback" not in logs.console


def test_local_variables_are_never_written(logs: Logs) -> None:
    try:
        api_key = "lt_live_do_not_tell"
        raise ValueError(str(len(api_key)))
    except ValueError:
        log.exception("service.handler_failed")

    assert "do_not_tell" not in json.dumps(logs.lines) + logs.console


def test_an_ascii_console_gets_escapes_and_the_file_the_true_letters(ascii_logs: Logs) -> None:
    log.warning("brief.odd", line="Frühstück")

    assert "Fr\\xfchst\\xfcck" in ascii_logs.console
    assert ascii_logs.lines[0]["line"] == "Frühstück"


def test_colours_appear_only_where_they_were_asked_for(coloured_logs: Logs) -> None:
    log.warning("effect.retry_scheduled")

    assert "\x1b[" in coloured_logs.console


def test_a_console_that_is_no_terminal_has_no_colours(logs: Logs) -> None:
    log.warning("effect.retry_scheduled")

    assert "\x1b[" not in logs.console


def test_values_that_json_does_not_know_are_written_as_text(logs: Logs) -> None:
    log.warning("brief.odd", where=Path("/somewhere"))

    assert logs.lines[0]["where"] == "/somewhere"


def test_importing_telemetry_does_not_load_the_sdk() -> None:
    """The promise of "API only": what the engine imports costs nobody the SDK."""
    code = (
        "import sys, longtake.telemetry; sys.exit(any('opentelemetry.sdk' in name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, env={"PYTHONPATH": ":".join(sys.path)})

    assert done.returncode == 0
