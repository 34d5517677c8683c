"""A task that swallows its cancellation ends all the same."""

import asyncio
from contextlib import suppress

import pytest

from kit.transports import begun
from longtake.jetstream.ending import end_task


async def deaf(times: int) -> None:
    """Ignores so many cancellations, as some places in nats-py do."""
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    await asyncio.Event().wait()


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_a_task_is_asked_until_it_is_over(times: int) -> None:
    task = await begun(deaf(times))
    async with asyncio.timeout(5):
        await end_task(task)

    assert task.cancelled()


async def test_asking_once_does_not_end_a_deaf_task() -> None:
    """The broken variant."""
    task = await begun(deaf(1))
    task.cancel()
    await asyncio.wait((task,), timeout=0.05)

    assert not task.done()
    await end_task(task)


async def test_the_error_of_the_task_is_not_hidden() -> None:
    async def broken() -> None:
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        await end_task(await begun(broken()))


async def test_no_task_is_no_work() -> None:
    await end_task(None)
