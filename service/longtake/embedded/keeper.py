"""Keeps one server running: starts it, waits until it answers, starts it again when it dies, stops it.

A server that comes back keeps its address, so clients only see a short outage.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import structlog

from .errors import EmbeddedError, ServerFailed
from .process import POLL_SECONDS, end, log_tail, spawn

log = structlog.get_logger("longtake.embedded")

START_SECONDS_MAX = 120.0
RESTARTS_IN_A_ROW_MAX = 20
RESTART_DELAYS_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0)
STEADY_SECONDS = 30.0


class Server(Protocol):
    """What the keeper must know of a server."""

    @property
    def name(self) -> str:
        """Its name in logs and errors."""

    @property
    def log_file(self) -> Path:
        """Where its output goes."""

    @property
    def stop_signals(self) -> Sequence[tuple[signal.Signals, float]]:
        """How it is asked to end, gently first, with the seconds each may take."""

    async def heal(self) -> None:
        """Remove what a killed predecessor left, before every start."""

    def command(self) -> list[str]:
        """The command line."""

    async def answers(self) -> bool:
        """Whether clients are served."""

    def clean(self) -> None:
        """Remove what only a running server needs, after the last stop."""


class Keeper:
    """Start once, stop as often as you like."""

    def __init__(self, server: Server, on_failure: Callable[[EmbeddedError], None]) -> None:
        self._server = server
        self._on_failure = on_failure
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._restarts = 0

    @property
    def pid(self) -> int | None:
        """The process of the server, None while there is none."""
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def restarts(self) -> int:
        """How often the server had to be started again."""
        return self._restarts

    async def start(self) -> None:
        """Start the server and return when it answers."""
        if self._watch is not None:
            return
        try:
            await self._launch()
        except BaseException:
            await self.stop()
            raise
        self._watch = asyncio.create_task(self._keep(), name=f"longtake.embedded.{self._server.name}")

    async def stop(self) -> None:
        """End the server cleanly; nothing happens the second time."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        process, self._process = self._process, None
        if process is not None:
            await end(process, self._server.stop_signals)
            self._server.clean()

    async def _launch(self) -> None:
        await self._server.heal()
        self._server.log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        spawning = asyncio.ensure_future(spawn(self._server.command(), self._server.log_file))
        try:
            self._process = await asyncio.shield(spawning)
        except asyncio.CancelledError:
            # A child that is being born when we are told to stop must not be forgotten.
            self._process = await spawning
            raise
        await self._wait_until_it_answers(self._process)

    async def _wait_until_it_answers(self, process: asyncio.subprocess.Process) -> None:
        # Both are awaited at once: a call to a server that dies meanwhile may take long to fail.
        answer = asyncio.create_task(self._ask_until_it_answers())
        death = asyncio.create_task(process.wait())
        try:
            await asyncio.wait(
                (answer, death), timeout=START_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
            )
            if answer.done():
                answer.result()
                return
        finally:
            for task in (answer, death):
                task.cancel()
            await asyncio.gather(answer, death, return_exceptions=True)
        if process.returncode is not None:
            raise self._failure(f"it ended with status {process.returncode} while starting")
        await end(process, self._server.stop_signals)
        raise self._failure(f"it did not answer within {START_SECONDS_MAX:.0f} s")

    async def _ask_until_it_answers(self) -> None:
        while not await self._server.answers():
            await asyncio.sleep(POLL_SECONDS)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        in_a_row = 0
        while in_a_row < RESTARTS_IN_A_ROW_MAX:
            process = self._process
            assert process is not None, "the watch runs only after a start"
            steady_from = loop.time()
            status = await process.wait()
            if loop.time() - steady_from > STEADY_SECONDS:
                in_a_row = 0
            log.warning(
                "longtake.embedded_server_died", server=self._server.name, pid=process.pid, status=status
            )
            died_at = loop.time()
            await asyncio.sleep(RESTART_DELAYS_SECONDS[min(in_a_row, len(RESTART_DELAYS_SECONDS) - 1)])
            in_a_row += 1
            try:
                await self._launch()
            except EmbeddedError as error:
                # The dead process is still the current one, so the next round begins at once, with a longer delay.
                log.warning("longtake.embedded_restart_failed", server=self._server.name, reason=str(error))
            else:
                self._restarts += 1
                outage = round(loop.time() - died_at, 3)
                log.warning(
                    "longtake.embedded_server_restarted", server=self._server.name, outage_seconds=outage
                )
        failure = self._failure(f"it died {RESTARTS_IN_A_ROW_MAX} times in a row")
        log.error("longtake.embedded_server_given_up", server=self._server.name, reason=failure.reason)
        self._on_failure(failure)

    def _failure(self, reason: str) -> ServerFailed:
        return ServerFailed(self._server.name, reason, self._server.log_file, log_tail(self._server.log_file))
