"""An instance that kills itself at a crash point, and the harness that gives it the word: `async with armed(...) as one`.

For a single story; the crash matrix plays all points by crashing.py.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kit.instance import Instance, instance

ENVIRONMENT = "test-incidents"


class Armed:
    """`struck` is set when the process stood at its point and was given the word."""

    def __init__(self) -> None:
        self.struck = asyncio.Event()
        self.instance: Instance | None = None

    async def die(self, seconds: float = 30.0) -> None:
        """Until it has died where it was to die."""
        assert self.instance is not None
        await asyncio.wait_for(self.struck.wait(), seconds)
        await self.instance.ended(seconds)


@asynccontextmanager
async def armed(  # type: ignore[no-untyped-def]
    point: str, database, broker, folder: Path, **options: object
) -> AsyncIterator[Armed]:
    """An instance, of the environment ENVIRONMENT, that dies at the first pass of `point`."""
    folder.mkdir(exist_ok=True)
    one = Armed()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await reader.readline():
                writer.write(b"!")
                await writer.drain()
                one.struck.set()
                await reader.read()
        except ConnectionResetError:
            """It died."""
        finally:
            writer.close()

    server = await asyncio.start_unix_server(listen, folder / "harness")
    async with server, instance(
        database, broker, folder, environment=ENVIRONMENT,
        crash_point=f"{point}:kill:1:{folder / 'harness'}", **options,  # type: ignore[arg-type]
    ) as one.instance:  # fmt: skip
        yield one
