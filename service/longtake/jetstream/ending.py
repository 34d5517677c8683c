"""Ends a task that may swallow its cancellation.

nats-py catches CancelledError in places, and `asyncio.wait_for` of Python 3.11 loses a cancellation that meets its answer, so one
`cancel()` is a request, not an end. A stop that waited for it was seen to hang for ever.
"""

import asyncio
from typing import Final

ASK_AGAIN_SECONDS: Final = 0.2


async def end_task(task: "asyncio.Task[None] | None") -> None:
    """Cancel until the task is over. Its own error, if it had one, is not ours to hide: it is raised."""
    if task is None:
        return
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=ASK_AGAIN_SECONDS)
    if not task.cancelled():
        task.result()
