"""Waiting in tests: for a fact, with an end, never for a time."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.01
WAIT_SECONDS_MAX = 20.0

_never = threading.Event()


async def eventually(
    probe: Callable[[], T | Awaitable[T]], what: str, seconds: float = WAIT_SECONDS_MAX
) -> T:
    """Ask `probe` until its answer is true and return the answer; fail saying `what` was awaited."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        answer = probe()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        if loop.time() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}; last answer {answer!r}")
        await asyncio.sleep(POLL_SECONDS)


def eventually_sync(probe: Callable[[], T], what: str, seconds: float = WAIT_SECONDS_MAX) -> T:
    """The same where no event loop runs."""
    deadline = time.monotonic() + seconds
    while not (answer := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}; last answer {answer!r}")
        _never.wait(POLL_SECONDS)
    return answer
