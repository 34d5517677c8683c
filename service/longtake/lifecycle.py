"""The one lifecycle of everything that runs: start, started, stop (floor 2).

A service can be stopped twice, and stopped without having been started. Several are started in order and stopped
in the opposite order; when one does not start, those before it are stopped and the error goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol


class Service(Protocol):
    """Something that runs until it is stopped."""

    async def start(self) -> None:
        """Begin, and return when the work is under way. Starting twice changes nothing."""
        ...

    async def started(self) -> None:
        """Return as soon as the service runs; wait until then."""
        ...

    async def stop(self) -> None:
        """End and release everything, and return when that is done. Stopping twice changes nothing."""
        ...


async def start_all(services: Sequence[Service]) -> None:
    """Start in order; if one fails, stop those before it, last one first, and raise its error."""
    begun: list[Service] = []
    try:
        for service in services:
            begun.append(service)
            await service.start()
    except BaseException as failure:
        try:
            await asyncio.shield(stop_all(begun))
        except ExceptionGroup as also:
            failure.add_note(f"and while stopping what had been started: {also.exceptions!r}")
        raise


async def stop_all(services: Sequence[Service]) -> None:
    """Stop in the opposite order; each is stopped even if another fails to; the failures come as one group."""
    failures: list[Exception] = []
    for service in reversed(services):
        try:
            await service.stop()
        except Exception as failure:  # noqa: BLE001 - collected, and raised below
            failures.append(failure)
    if failures:
        raise ExceptionGroup("services failed to stop", failures)


@asynccontextmanager
async def running(*services: Service) -> AsyncIterator[None]:
    """`async with running(a, b):` starts both and stops both, whatever happens between."""
    await start_all(services)
    try:
        yield
    finally:
        await stop_all(services)


async def first_failure(services: Sequence[Service]) -> BaseException:
    """Wait until one of the services that are loops ends by an error, and return it; for ever when none does."""
    watched = {
        asyncio.create_task(service.failed()) for service in services if isinstance(service, LoopService)
    }
    try:
        while watched:
            done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if not task.cancelled() and (error := task.exception()) is not None:
                    return error
        await asyncio.Event().wait()
        raise AssertionError("unreachable: nobody sets the event")
    finally:
        for task in watched:
            task.cancel()


class LoopService:
    """A service made of one coroutine that runs until it is told to stop.

    `work` gets the event that tells it. It is asked first, and cancelled when it does not end within
    `stop_seconds`. What it raises is kept, and raised by `failed` and by `stop`.
    """

    def __init__(
        self, name: str, work: Callable[[asyncio.Event], Awaitable[None]], *, stop_seconds: float = 10.0
    ) -> None:
        self.name = name
        self._work = work
        self._stop_seconds = stop_seconds
        self._stopping = asyncio.Event()
        self._started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin the work in a task of its own."""
        if self._task is None:
            self._stopping.clear()
            self._task = asyncio.create_task(self._run(), name=self.name)
            await self._started.wait()

    async def started(self) -> None:
        """Return once the work has begun."""
        await self._started.wait()

    async def stop(self) -> None:
        """Tell the work to end, wait, cancel if need be; raises what the work raised."""
        task, self._task = self._task, None
        self._started.clear()
        if task is None:
            return
        self._stopping.set()
        done, _ = await asyncio.wait([task], timeout=self._stop_seconds)
        if not done:
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    async def failed(self) -> None:
        """Wait for the end of the work and raise what it raised; returns when it ended by itself."""
        task = self._task
        if task is not None:
            await asyncio.shield(task)

    async def _run(self) -> None:
        self._started.set()
        await self._work(self._stopping)
