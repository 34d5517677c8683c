"""Runs the providers as a server: one owner per data directory, a stable port, and an end only when told.

It leaves the session of whoever started it, so that nothing which kills a service takes it along.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from videoads.providers.synthetic.asgi import Router
from videoads.providers.synthetic.callbacks import Courier
from videoads.providers.synthetic.control import ControlFace
from videoads.providers.synthetic.desk import Desk
from videoads.providers.synthetic.faults import RuleBook
from videoads.providers.synthetic.jobs import JobStore, write_whole
from videoads.providers.synthetic.ledger import WitnessFile
from videoads.providers.synthetic.making import Recipes, Workshop
from videoads.providers.synthetic.orders import Shelf
from videoads.providers.synthetic.profiles import Profile
from videoads.providers.synthetic.renders import RenderFace
from videoads.providers.synthetic.sounds import SoundFace
from videoads.providers.synthetic.tasks import TaskFace

HOST = "127.0.0.1"
PARENT_LOOK_SECONDS = 1.0
GRACE_SECONDS = 1
BACKLOG = 1024


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to run."""

    data: Path
    port: int
    port_file: Path | None
    parent_pid: int | None
    profile: Profile
    speed: float
    tiny: bool
    makers_max: int
    recipes: Recipes
    detach: bool = False


class DataInUse(Exception):
    """Another process owns the data directory."""


class PortTaken(Exception):
    """The port that was asked for belongs to someone else."""


def run(options: ServerOptions) -> None:
    """Serve until told to stop."""
    options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _sole_owner(options.data) as lock, _bound_socket(options) as bound:
        if options.detach and os.fork() > 0:
            # Lock and socket belong to the child now; going without clean-up leaves them to it.
            os._exit(0)
        with contextlib.suppress(PermissionError):
            # Refused to a process that leads its session or group already; then there is nothing to leave.
            os.setsid()
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        asyncio.run(_serve(options, bound))


async def _serve(options: ServerOptions, bound: socket.socket) -> None:
    desk = build_desk(options)
    router = Router()
    config = uvicorn.Config(
        router,
        http=HangUpProtocol,
        loop="none",
        lifespan="off",
        ws="none",
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True

    for face in (TaskFace(desk, "clips"), TaskFace(desk, "stills"), SoundFace(desk, "voice")):
        face.mount(router)
    SoundFace(desk, "music").mount(router)
    RenderFace(desk).mount(router)
    ControlFace(desk, stop).mount(router)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    watch = asyncio.create_task(_watch_parent(options.parent_pid, stop))
    await desk.resume()
    server.announce_in = (options.data / "port", options.port_file)
    try:
        await server.serve(sockets=[bound])
    finally:
        watch.cancel()
        await desk.stop()


def build_desk(options: ServerOptions) -> Desk:
    """Everything of the providers that is not HTTP, from what is on disk."""
    data = options.data
    store = JobStore(data / "jobs")
    return Desk(
        store=store,
        witness=WitnessFile(data / "witness.ndjson"),
        rules=RuleBook(data / "temper.json", amnesiac=options.profile.amnesiac),
        workshop=Workshop(data / "media", recipes=options.recipes, makers_max=options.makers_max),
        shelf=Shelf(data / "assets"),
        courier=Courier(store, speed=options.speed),
        profile=options.profile,
        speed=options.speed,
        tiny=options.tiny,
    )


class HangUpProtocol(H11Protocol):
    """HTTP/1.1 that lends every request the power to cut its connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent does
        """Remember how to cut this connection."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "hang_up": transport.abort}


class _Server(uvicorn.Server):
    """Announces its port once it listens, and leaves signals to us."""

    announce_in: tuple[Path | None, ...] = ()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for path in self.announce_in:
            if path is not None and sockets:
                write_whole(path, f"{sockets[0].getsockname()[1]}\n".encode())


@contextlib.contextmanager
def _sole_owner(data: Path) -> Iterator[TextIO]:
    with (data / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            raise DataInUse(f"{data} is used by process {lock.read().strip() or 'unknown'}") from error
        yield lock


@contextlib.contextmanager
def _bound_socket(options: ServerOptions) -> Iterator[socket.socket]:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            bound.bind((HOST, options.port or _last_port(options.data)))
        except OSError as error:
            if options.port:
                raise PortTaken(
                    f"port {options.port} is taken; another one, or 0 for any, would do"
                ) from error
            bound.bind((HOST, 0))
        yield bound
    finally:
        bound.close()


def _last_port(data: Path) -> int:
    """The port of the last run, so that clients find a restarted provider where it was."""
    try:
        return int((data / "port").read_text())
    except (OSError, ValueError):
        return 0


async def _watch_parent(parent: int | None, stop: Callable[[], None]) -> None:
    if parent is None:
        return
    while _is_alive(parent):
        await asyncio.sleep(PARENT_LOOK_SECONDS)
    print(f"process {parent} has ended, so the providers end", file=sys.stderr)
    stop()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
