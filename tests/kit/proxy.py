"""A TCP proxy that misbehaves on command: cut, blackhole, delay, cut after so many bytes, say something wrong.

async with TcpProxy("127.0.0.1", 4222) as proxy:
    client = await nats.connect(f"nats://127.0.0.1:{proxy.port}")
    proxy.blackhole()      # half-open: both ends keep their connection, nothing gets through
"""

import asyncio
import socket
import struct
from contextlib import suppress
from types import TracebackType
from typing import Self

CHUNK_BYTES = 65_536


class TcpProxy:
    """Forwards to one address, with faults that hold for open and new connections alike."""

    def __init__(self, host: str, port: int) -> None:
        """`host` may be a directory with the unix socket of a Postgres, as libpq has it."""
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._links: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._delay_seconds = 0.0
        self._bytes_left: dict[bool, int] = {}
        self._refusing = False
        self.cuts_in_the_middle = 0
        """How often `cut_after` or `cut_reply_after` came to pass."""
        self.accepted = 0
        """How many connections there were."""
        self.passed = {True: 0, False: 0}
        """Bytes that got through so far: to the server (True), to clients (False)."""

    @property
    def port(self) -> int:
        """Where clients connect."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        self._open.set()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def links(self) -> int:
        """How many connections are open through it."""
        return len(self._links)

    def cut(self) -> None:
        """Reset all open connections."""
        for client, server in list(self._links):
            _reset(client)
            _reset(server)

    def refuse(self) -> None:
        """Reset open and new connections until `heal`."""
        self._refusing = True
        self.cut()

    def aim(self, host: str, port: int) -> None:
        """Lead new connections to another server, and `heal` what refused them."""
        self._target = (host, port)
        self.heal()

    def blackhole(self) -> None:
        """Let nothing through, in either direction, and close nothing, until `heal`."""
        self._open.clear()

    def delay(self, seconds: float) -> None:
        """Hold every chunk for so long."""
        self._delay_seconds = seconds

    def cut_after(self, bytes_to_server: int) -> None:
        """Reset the connection that carries this many more bytes to the server, in the middle of whatever it is saying."""
        self._bytes_left[True] = bytes_to_server

    def cut_reply_after(self, bytes_to_client: int) -> None:
        """The same where the server speaks: what it was told has been done, and the answer is torn."""
        self._bytes_left[False] = bytes_to_client

    def heal(self) -> None:
        """End every fault. What was held goes through now, as it does when a network comes back."""
        self._refusing = False
        self._delay_seconds = 0.0
        self._bytes_left.clear()
        self._open.set()

    def say_to_clients(self, words: bytes) -> None:
        """Put words into the server's mouth."""
        for client, _ in list(self._links):
            client.write(words)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._refusing:
            _reset(writer)
            return
        try:
            server_reader, server_writer = await self._reach_server()
        except OSError:
            _reset(writer)
            return
        link = (writer, server_writer)
        self._links.add(link)
        there = asyncio.create_task(self._pump(reader, server_writer, to_server=True))
        back = asyncio.create_task(self._pump(server_reader, writer, to_server=False))
        self._tasks |= {there, back}
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._links.discard(link)
            for task in (there, back):
                task.cancel()
                self._tasks.discard(task)
            for end in link:
                _reset(end)

    async def _reach_server(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = self._target
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                if self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                await self._open.wait()
                left = self._bytes_left.get(to_server)
                if left is not None:
                    if len(chunk) > left:
                        del self._bytes_left[to_server]
                        self.cuts_in_the_middle += 1
                        writer.write(chunk[:left])
                        await writer.drain()
                        return
                    self._bytes_left[to_server] = left - len(chunk)
                writer.write(chunk)
                self.passed[to_server] += len(chunk)
                await writer.drain()


def _reset(end: asyncio.StreamWriter) -> None:
    # Without lingering the kernel sends RST; a plain abort would say a polite FIN.
    wire = end.get_extra_info("socket")
    if wire is not None and not end.transport.is_closing():
        with suppress(OSError):
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end.transport.abort()
