"""One living client of NATS for one role, whatever happens to the last one.

nats-py reconnects by itself and that is the common case. When the watchdog finds the client dead, it is torn down and another one is
built in the same process. Whoever holds a `Connection` asks it for the client at each use and is told of every new link, so
subscriptions live on as objects and subscribe again. Nothing is buffered while there is no link: publishing then fails at once.

No `drain()`: with pull subscriptions it can hang for its whole timeout. Stopping is: stop fetching, flush, close.
Leaves to others: what is subscribed (subscriber.py, doorbell.py, services.py).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from longtake.errors import TransportUnavailable
from longtake.jetstream.ending import end_task
from longtake.jetstream.watchdog import WatchdogOptions, watch
from longtake.telemetry import count, get_logger

log = get_logger(__name__)

T = TypeVar("T")

CLOSE_SECONDS: Final = 2.0
JETSTREAM_ANSWER_SECONDS: Final = 5.0
PING_ABANDONED_SECONDS: Final = 600
"""Far beyond the watchdog's patience: by then the client is long gone."""

LinkHook = Callable[[Client], Awaitable[None]]
"""Called with the client after each new link: the same client after a reconnection, another one after a rebuild."""
LossHook = Callable[[], None]
"""Called when the link is lost."""


class ConnectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where NATS is, who we are, and how long we wait."""

    servers: tuple[str, ...]
    role: str
    """Names the client and prefixes its inboxes, so that rights can be given by role."""
    token: str | None = None
    user: str | None = None
    password: str | None = None
    connect_seconds: float = 3.0
    reconnect_seconds: float = 0.5
    ping_seconds: float = 5.0
    pings_outstanding_max: int = 2
    watchdog: WatchdogOptions = WatchdogOptions()


class Connection:
    """Keeps one client connected from `start` to `stop`."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self._client: Client | None = None
        self._hooks: list[LinkHook] = []
        self._loss_hooks: list[LossHook] = []
        self._linked = asyncio.Event()
        self._lost = asyncio.Event()
        self._lost.set()
        self._keeper: asyncio.Task[None] | None = None
        self._loose: set[asyncio.Task[None]] = set()
        self._pings: set[asyncio.Task[float]] = set()
        self.links = 0
        """How many links there were so far; a change means that what the server held for us is gone."""

    async def start(self) -> None:
        """Begin to connect. Returns at once: a process may start before its NATS does."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name=f"nats-connection-{self.options.role}")

    async def stop(self) -> None:
        """Flush what was said and close, within bounded time. May be called twice."""
        keeper, self._keeper = self._keeper, None
        await end_task(keeper)
        client, self._client = self._client, None
        self._mark_lost()
        if client is not None:
            with suppress(NatsError, OSError, TimeoutError):
                if client.is_connected:
                    await client.flush(1)
            await _close(client)
        self._forget_pings()
        # After the close: what is still open aside can only be closing, and that is bounded.
        await asyncio.gather(*self._loose, return_exceptions=True)

    @property
    def is_linked(self) -> bool:
        """Whether there is a link now, as far as the client knows."""
        return self._client is not None and self._client.is_connected

    @property
    def client(self) -> Client:
        """The client; TransportUnavailable while there is no link."""
        client = self._client
        if client is None or not client.is_connected:
            # nats-py calls back only after the old socket is closed. Whoever waits for a link and tries again must not
            # find the old one still announced: that loop would never let the reconnection run.
            self._mark_lost()
            raise TransportUnavailable(f"no connection to NATS at {', '.join(self.options.servers)}")
        return client

    async def wait_linked(self, timeout_seconds: float) -> bool:
        """Wait for a link; False when there is none in time."""
        return await _within(self._linked, timeout_seconds)

    async def wait_lost(self, timeout_seconds: float) -> bool:
        """Wait until the link is lost; False when it is still there."""
        return await _within(self._lost, timeout_seconds)

    async def while_linked(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that waits for the server; TransportUnavailable as soon as the link is lost, not at its timeout."""
        task = asyncio.ensure_future(work)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait((task, lost), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise TransportUnavailable("the connection to NATS was lost before the answer")
            return task.result()
        finally:
            task.cancel()
            lost.cancel()

    async def on_link(self, hook: LinkHook) -> None:
        """Call this after every new link, and now when there is one."""
        self._hooks.append(hook)
        if self.is_linked and self._client is not None:
            await self._run_hook(hook, self._client)

    def off_link(self, hook: LinkHook) -> None:
        """Call this no longer."""
        with suppress(ValueError):
            self._hooks.remove(hook)

    def on_loss(self, hook: LossHook) -> None:
        """Call this whenever the link is lost."""
        self._loss_hooks.append(hook)

    def off_loss(self, hook: LossHook) -> None:
        """Call this no longer."""
        with suppress(ValueError):
            self._loss_hooks.remove(hook)

    # --- keeping it ---------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        while True:
            client = await self._connect()
            reason = await self._watch(client)
            self._mark_lost()
            self._client = None
            count("longtake.transport.rebuilds", 1, {"role": self.options.role})
            log.warning("nats.connection_rebuilt", role=self.options.role, reason=reason)
            # The dead client is closed aside: its close may hang on the very socket that killed it.
            self._aside(_close(client))
            self._forget_pings()

    async def _connect(self) -> Client:
        told = ""
        while True:
            client = Client()
            try:
                # nats-py tries for ever by itself, which is right for a link that was lost and wrong here: a new client
                # is cheap, and one that cannot even begin is not worth keeping.
                async with asyncio.timeout(self.options.connect_seconds * 2):
                    await self._begin(client)
            except (NatsError, OSError, TimeoutError) as error:
                reason = _reason(client.last_error or error)
                await _close(client)
                if reason != told:  # a server that is away is said once, not twice a second
                    log.warning("nats.connect_failed", role=self.options.role, error=reason)
                    told = reason
                await asyncio.sleep(self.options.reconnect_seconds * random.uniform(0.5, 1.5))
            except asyncio.CancelledError:
                await _close(client)
                raise
            else:
                self._client = client
                await self._mark_linked(client)
                return client

    async def _begin(self, client: Client) -> None:
        options = self.options

        # A callback that raises would end reconnection, or the read loop, for ever: none of these can.
        async def on_error(error: Exception) -> None:
            log.debug("nats.client_error", role=options.role, error=_reason(error))

        async def on_disconnected() -> None:
            if self._client is client:
                self._mark_lost()

        async def on_reconnected() -> None:
            if self._client is client:
                # Beside the reconnection task: a hook may need round trips that wait for it.
                self._aside(self._mark_linked(client))

        async def on_closed() -> None:
            if self._client is client:
                self._mark_lost()

        await client.connect(
            servers=list(options.servers),
            name=f"longtake-{options.role}",
            inbox_prefix=f"_INBOX_{options.role}",
            token=options.token,
            user=options.user,
            password=options.password,
            max_reconnect_attempts=-1,
            reconnect_time_wait=options.reconnect_seconds,  # type: ignore[arg-type] # annotated int, slept as a float
            connect_timeout=options.connect_seconds,  # type: ignore[arg-type] # annotated int, used as a float
            ping_interval=options.ping_seconds,  # type: ignore[arg-type] # annotated int, slept as a float
            max_outstanding_pings=options.pings_outstanding_max,
            pending_size=0,
            error_cb=on_error,
            disconnected_cb=on_disconnected,
            reconnected_cb=on_reconnected,
            closed_cb=on_closed,
        )

    async def _watch(self, client: Client) -> str:
        async def probe(seconds: float) -> None:
            if not client.is_connected:
                raise TransportUnavailable("still reconnecting")
            # The ping is waited for but never cancelled: a PONG that finds a cancelled future kills nats-py's read
            # loop, so a probe with a timeout of its own would break the connection that it finds merely slow.
            ping = asyncio.create_task(client.rtt(PING_ABANDONED_SECONDS))
            self._pings.add(ping)
            await asyncio.wait((ping,), timeout=seconds)
            if not ping.done():
                raise TimeoutError(f"no answer to a ping within {seconds} s")
            self._pings.discard(ping)
            ping.result()

        return await watch(probe, self.options.watchdog)

    def _forget_pings(self) -> None:
        # Only now, for their client is closed or closing and reads no PONG any more.
        for ping in self._pings:
            ping.cancel()
        self._pings.clear()

    async def _mark_linked(self, client: Client) -> None:
        if not client.is_connected:
            return  # lost again before this ran: whoever waits for the loss must hear of it
        self.links += 1
        self._lost.clear()
        self._linked.set()
        for hook in list(self._hooks):
            await self._run_hook(hook, client)

    def _mark_lost(self) -> None:
        self._linked.clear()
        if not self._lost.is_set():
            self._lost.set()
            for hook in list(self._loss_hooks):
                try:
                    hook()
                except Exception:
                    # We are inside a callback of nats-py, which would never reconnect after an error of it (#204).
                    log.exception("nats.loss_hook_broke", role=self.options.role)

    async def _run_hook(self, hook: LinkHook, client: Client) -> None:
        try:
            await hook(client)
        except (NatsError, OSError, TimeoutError, TransportUnavailable) as error:
            # The link broke again meanwhile; the next one runs the hook anew.
            log.warning(
                "nats.link_hook_failed", role=self.options.role, error=f"{type(error).__name__}: {error}"
            )
        except Exception:
            # A defect of whoever hooked in; it must not end the keeping of the connection for all others.
            log.exception("nats.link_hook_broke", role=self.options.role)

    def _aside(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        task = asyncio.create_task(run())
        self._loose.add(task)
        task.add_done_callback(self._loose.discard)


async def _close(client: Client) -> None:
    """Close within bounded time, whatever the socket does."""
    # nats-py has no public way to cut a connection, and its close waits for the socket without a bound.
    transport = getattr(getattr(client, "_transport", None), "_io_writer", None)
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()
    except (NatsError, OSError, TimeoutError, AttributeError, AssertionError):
        log.debug("nats.close_gave_up")
    if transport is not None:
        transport.transport.abort()


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


async def _within(event: asyncio.Event, timeout_seconds: float) -> bool:
    try:
        async with asyncio.timeout(timeout_seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
