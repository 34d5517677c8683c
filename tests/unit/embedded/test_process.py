"""A short command that is given up is ended with all that it started."""

import asyncio
from pathlib import Path

import pytest

from kit.probe import eventually
from longtake.embedded.process import alive, run


async def test_a_cancelled_command_and_its_children_are_gone_when_the_cancel_is(tmp_path: Path) -> None:
    """An initdb that went on writing would meet the next one in the same folder."""
    script = f"tail -f /dev/null & echo $! > '{tmp_path}/child'; echo $$ > '{tmp_path}/parent'; wait"
    task = asyncio.create_task(run(["sh", "-c", script]))
    await eventually(
        lambda: (tmp_path / "parent").exists() and (tmp_path / "parent").read_text().strip(), "it runs"
    )
    pids = [int((tmp_path / name).read_text()) for name in ("parent", "child")]
    assert all(alive(pid) for pid in pids)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not any(alive(pid) for pid in pids)


async def test_a_command_that_ends_tells_its_status_and_its_words() -> None:
    """Both of its outputs, in their order."""
    assert await run(["sh", "-c", "echo one; echo two >&2; exit 3"]) == (3, "one\ntwo")
