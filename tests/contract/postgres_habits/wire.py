"""A TCP wire to a Postgres that listens on a Unix socket; it can go dead without being cut."""

import asyncio
from types import TracebackType
from typing import Self


class Wire:
    """Forwards until it is silenced; new connections are accepted and hear nothing either."""

    def __init__(self, socket_path: str) -> None:
        self._path = socket_path
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Where clients connect."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def silence(self) -> None:
        """Let nothing through and close nothing."""
        self._open.clear()

    def heal(self) -> None:
        """Let everything through again, what was held first."""
        self._open.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._tasks.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        server_reader, server_writer = await asyncio.open_unix_connection(self._path)
        self._writers.append(server_writer)
        there = asyncio.create_task(self._pump(reader, server_writer))
        back = asyncio.create_task(self._pump(server_reader, writer))
        self._tasks |= {there, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65_536):
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
            writer.close()
        except OSError:
            writer.close()
