"""A process that runs until it is told to stop: by a signal, or by the death of whoever started it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

PARENT_POLL_SECONDS = 0.5

_parent = os.getppid()
"""Who started us, read as early as possible: a parent that died since is known by its absence."""


class Stopped(Exception):
    """We were told to stop before the work was done."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop where there is one."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(work)


def run_until_stopped(work: Callable[["StopSignal"], Awaitable[None]], *, with_parent: bool = True) -> None:
    """Run `work`, which gets what tells it to stop. SIGINT and SIGTERM end it in good order."""

    async def main() -> None:
        stop = StopSignal()
        loop = asyncio.get_running_loop()
        for which in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(which, stop.set, f"signal {which.name}")
        # A closed terminal ends us the same way; nohup has it ignored, and so do we then.
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            loop.add_signal_handler(signal.SIGHUP, stop.set, "signal SIGHUP")
        watch = asyncio.create_task(_watch_parent(stop)) if with_parent else None
        try:
            with contextlib.suppress(Stopped):
                await work(stop)
        finally:
            if watch is not None:
                watch.cancel()

    run(main())


class StopSignal:
    """An event with a reason."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason = ""

    def set(self, reason: str) -> None:
        """Ask for the end; the first reason stands."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    async def wait(self) -> None:
        """Wait until somebody asks."""
        await self._event.wait()

    async def before(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work unless we are told to stop; then it is cancelled and Stopped is raised."""
        task = asyncio.create_task(work)
        stop = asyncio.create_task(self._event.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return await task
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
            raise Stopped(self.reason)
        finally:
            stop.cancel()


async def _watch_parent(stop: StopSignal) -> None:
    """A parent that was SIGKILLed tells nobody; its children see another parent. Init as a parent is for ever."""
    while _parent > 1:
        if os.getppid() != _parent:
            stop.set("the process that started us is gone")
            return
        await asyncio.sleep(PARENT_POLL_SECONDS)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform != "win32":
        with contextlib.suppress(ImportError):
            import uvloop

            return uvloop.new_event_loop
    return asyncio.new_event_loop
