"""Services start in order, stop in the opposite one, and a failed start leaves none running."""

import asyncio

import pytest

from longtake.lifecycle import LoopService, first_failure, running, start_all, stop_all


class Recorded:
    """A service that writes down what is done to it, and may refuse."""

    def __init__(self, name: str, story: list[str], *, refuses: str = "") -> None:
        self.name = name
        self.story = story
        self.refuses = refuses

    async def start(self) -> None:
        self.story.append(f"start {self.name}")
        if self.refuses == "start":
            raise ValueError(self.name)

    async def started(self) -> None:
        """Nothing to wait for."""

    async def stop(self) -> None:
        self.story.append(f"stop {self.name}")
        if self.refuses == "stop":
            raise ValueError(self.name)


async def test_services_stop_in_the_opposite_order() -> None:
    story: list[str] = []
    async with running(Recorded("a", story), Recorded("b", story)):
        story.append("work")

    assert ["start a", "start b", "work", "stop b", "stop a"] == story


async def test_a_failed_start_stops_those_before_it_and_itself() -> None:
    story: list[str] = []
    services = [Recorded("a", story), Recorded("b", story, refuses="start"), Recorded("c", story)]

    with pytest.raises(ValueError, match="b"):
        await start_all(services)
    assert ["start a", "start b", "stop b", "stop a"] == story


async def test_a_failing_roll_back_does_not_hide_the_first_error() -> None:
    story: list[str] = []
    services = [Recorded("a", story, refuses="stop"), Recorded("b", story, refuses="start")]

    with pytest.raises(ValueError, match="b") as failure:
        await start_all(services)
    assert "while stopping" in failure.value.__notes__[0]


async def test_one_that_does_not_stop_keeps_no_other_running() -> None:
    story: list[str] = []
    services = [
        Recorded("a", story),
        Recorded("b", story, refuses="stop"),
        Recorded("c", story, refuses="stop"),
    ]

    with pytest.raises(ExceptionGroup) as failures:
        await stop_all(services)
    assert ["stop c", "stop b", "stop a"] == story
    assert 2 == len(failures.value.exceptions)


async def test_a_loop_is_told_to_stop_and_may_finish_its_work() -> None:
    story: list[str] = []

    async def work(stopping: asyncio.Event) -> None:
        await stopping.wait()
        story.append("finished")

    service = LoopService("loop", work)
    await service.stop()
    for _ in range(50):
        await service.start()
        await service.start()
        await service.started()
        await service.stop()
        await service.stop()

    assert 50 == story.count("finished")


async def test_a_loop_that_does_not_listen_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def work(_: asyncio.Event) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    service = LoopService("deaf", work, stop_seconds=0.01)
    await service.start()
    await service.stop()

    assert cancelled.is_set()


async def test_what_a_loop_raised_is_not_lost() -> None:
    async def work(_: asyncio.Event) -> None:
        raise LookupError("broken")

    service = LoopService("broken", work)
    await service.start()
    with pytest.raises(LookupError):
        await service.failed()
    with pytest.raises(LookupError):
        await service.stop()
    await service.stop()


async def test_the_first_loop_that_breaks_is_told_and_one_that_ends_by_itself_is_not() -> None:
    broken = asyncio.Event()

    async def ends(_stopping: asyncio.Event) -> None:
        return

    async def breaks(_stopping: asyncio.Event) -> None:
        await broken.wait()
        raise RuntimeError("a fault")

    services = [LoopService("ends", ends), LoopService("breaks", breaks)]
    await start_all(services)
    watching = asyncio.create_task(first_failure(services))
    # As long as nothing broke, nothing is told.
    assert await asyncio.wait({watching}, timeout=0.05) == (set(), {watching})
    broken.set()

    assert str(await asyncio.wait_for(watching, 5)) == "a fault"
    with pytest.raises(ExceptionGroup):
        await stop_all(services)
