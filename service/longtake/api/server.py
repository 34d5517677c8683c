"""uvicorn as a Service: it binds before anything is promised, has no signal handlers, and ends its streams on stop."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from litestar.types import ASGIApp

from longtake.errors import ConfigurationError

BACKLOG = 512
KEEP_ALIVE_SECONDS = 30


class _Server(uvicorn.Server):
    """A server that leaves signals to the process it lives in and says when it runs."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.runs = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.runs.set()


class ApiServer:
    """Serves an ASGI application on one address."""

    def __init__(self, *, host: str, port: int, stopping: asyncio.Event, stop_seconds: float = 5.0) -> None:
        """Bind at once, so that the address is known and a taken port is told before anything else starts."""
        self._host = host
        self._stopping = stopping
        self._stop_seconds = stop_seconds
        self._socket = _bind(host, port)
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self.app: ASGIApp | None = None
        """What is served; set before `start`."""

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """An address of this server that works on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self._host, self._host)
        return (
            f"http://[{host}]:{self.port}"
            if ":" in host and "[" not in host
            else f"http://{host}:{self.port}"
        )

    async def start(self) -> None:
        """Begin to serve; returns when connections are taken."""
        if self._task is not None:
            return
        assert self.app is not None, "bootstrap sets the application before it starts the server"
        self._stopping.clear()
        config = uvicorn.Config(
            self.app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            ws="none",
            http="h11",
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=max(1, round(self._stop_seconds)),
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="api-server")
        ready = asyncio.create_task(self._server.runs.wait())
        await asyncio.wait([self._task, ready], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done():
            await self._task

    async def started(self) -> None:
        """Return once connections are taken."""
        if self._server is not None:
            await self._server.runs.wait()

    async def stop(self) -> None:
        """End streams, let requests finish, release the address. May be called twice."""
        self._stopping.set()
        task, self._task = self._task, None
        if task is not None and self._server is not None:
            self._server.should_exit = True
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
        self._socket.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.strip("[]"), port))
        bound.listen(BACKLOG)
        bound.setblocking(False)
        return bound
    except OSError as error:
        bound.close()
        raise ConfigurationError(
            f"the API cannot listen on {host}:{port}: {error.strerror or error}. "
            "Use --port 0 for a free one, or LONGTAKE_HOST and LONGTAKE_PORT."
        ) from error
