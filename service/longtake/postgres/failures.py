"""Failures of Postgres, translated once: which are tried again at once, which mean that the authority is away.

The two lists are the whole policy; nobody else looks at a driver's error (style: errors).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import asyncpg

from longtake.errors import AuthorityUnavailable, DecisionRefused, LockTimeout

T = TypeVar("T")

CONTENTION = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
)
"""Another transaction was in the way: the same work is tried again on fresh state (F35)."""

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.QueryCanceledError,
)
"""The authority did not answer. Whether a statement under way was committed is not known; every one of ours can be
repeated."""

REFUSED = (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError)
"""The rows themselves are wrong: a value that its column cannot hold, a broken constraint. No other try will differ."""

TRIES_MAX = 5
_DELAY_SECONDS_MAX = 0.2


@contextmanager
def translated() -> Iterator[None]:
    """Turn a driver's "not reachable" into AuthorityUnavailable."""
    try:
        yield
    except AWAY as error:
        raise AuthorityUnavailable(f"{type(error).__name__}: {error}") from error


@contextmanager
def definite() -> Iterator[None]:
    """Translate whatever ends a transaction of several statements, which its owner begins anew or gives up.

    Contention is AuthorityUnavailable: nothing of the transaction stands, and another try may find the way free; a wait
    that passed the lock timeout is LockTimeout (P23). Rows that break a rule are DecisionRefused.
    """
    try:
        with translated():
            yield
    except asyncpg.LockNotAvailableError as error:
        raise LockTimeout(f"another transaction held it too long: {error}") from error
    except CONTENTION as error:
        raise AuthorityUnavailable(f"another transaction was in the way: {error}") from error
    except REFUSED as error:
        raise DecisionRefused(f"{type(error).__name__}: {error}") from error


async def repeated(work: Callable[[], Awaitable[T]]) -> T:
    """Run work that decides nothing twice: again after contention, at most TRIES_MAX times, with full jitter.

    Raises AuthorityUnavailable when the authority is away, or contention does not end.
    """
    for attempt in range(1, TRIES_MAX + 1):
        try:
            with translated():
                return await work()
        except CONTENTION as error:
            if attempt == TRIES_MAX:
                raise AuthorityUnavailable(f"still contended after {TRIES_MAX} tries: {error}") from error
            await asyncio.sleep(random.uniform(0, _DELAY_SECONDS_MAX * attempt / TRIES_MAX))
    raise AssertionError("unreachable: the loop returns or raises")
