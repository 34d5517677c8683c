"""Runs the programs that make media: a process for one medium, or one that stays for many small ones.

Both answer with status, output and complaints; what these mean is the workshop's part.
"""

import asyncio
import sys

import msgspec

PROCESS_TIMEOUT_SECONDS = 600.0
ANSWER_BYTES_MAX = 1024 * 1024
MEDIA_BY_ONE_PROCESS_MAX = 50
_MAKER = "videoads.providers.synthetic.maker"


class Ended(msgspec.Struct, frozen=True, array_like=True):
    """How one run ended."""

    status: int
    said: str
    complained: str


class NoAnswer(Exception):
    """The program could not be started, took too long, or died; nothing is known about the request."""


async def run_once(command: list[str]) -> Ended:
    """Run a program for one medium."""
    process = await _started(command, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(PROCESS_TIMEOUT_SECONDS):
            said, complained = await process.communicate()
    except TimeoutError as error:
        raise NoAnswer(f"no media after {PROCESS_TIMEOUT_SECONDS:.0f} s") from error
    finally:
        await _end(process)
    assert process.returncode is not None
    return Ended(process.returncode, said.decode("utf-8", "replace"), complained.decode("utf-8", "replace"))


class StandingMakers:
    """Processes of one module that wait for their next medium. As many stand as were ever needed at once."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._idle: list[tuple[asyncio.subprocess.Process, int]] = []

    async def run(self, arguments: list[str]) -> Ended:
        """Run the module's command line in a process that stands ready, or in a new one."""
        process, done = self._idle.pop() if self._idle else (await self._begin(), 0)
        keep = False
        try:
            ended = await _ask(process, arguments)
            keep = done + 1 < MEDIA_BY_ONE_PROCESS_MAX
        finally:
            if keep:
                self._idle.append((process, done + 1))
            else:
                await _end(process)
        return ended

    async def close(self) -> None:
        """End the processes that stand ready."""
        while self._idle:
            await _end(self._idle.pop()[0])

    async def _begin(self) -> asyncio.subprocess.Process:
        return await _started(
            [sys.executable, "-m", _MAKER, self._module], stdin=asyncio.subprocess.PIPE, stderr=None
        )


async def _ask(process: asyncio.subprocess.Process, arguments: list[str]) -> Ended:
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(PROCESS_TIMEOUT_SECONDS):
            process.stdin.write(msgspec.json.encode(arguments) + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        return msgspec.json.decode(line, type=Ended)
    except TimeoutError as error:
        raise NoAnswer(f"no media after {PROCESS_TIMEOUT_SECONDS:.0f} s") from error
    except (OSError, ValueError) as error:
        raise NoAnswer(f"the maker died: {error}") from error


async def _started(command: list[str], *, stdin: int, stderr: int | None) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=stdin, stdout=asyncio.subprocess.PIPE, stderr=stderr, limit=ANSWER_BYTES_MAX
        )
    except OSError as error:
        raise NoAnswer(f"{command[0]} can not be started: {error.strerror}") from error


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()
