"""Ports between actors and the outside: every call is a place where others come between, and where things go wrong.

A call may not be executed, be executed while its answer is lost, or be the last thing its process does, before or after it.
Which of these happens is drawn by the faults of the world; without faults only the order is.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from types import TracebackType
from typing import Any

from longtake.testing.faults import Faults
from longtake.testing.world import Process


@lru_cache(maxsize=256)
def awaited_methods(kind: type) -> tuple[str, ...]:
    """The public methods of a class that are awaited, by name."""
    return tuple(
        name
        for name in dir(kind)
        if not name.startswith("_") and inspect.iscoroutinefunction(inspect.getattr_static(kind, name))
    )


class Port:
    """Stands before an object of one process; everything that is not awaited goes through untouched."""

    def __init__(
        self,
        process: Process,
        name: str,
        target: Any,
        faults: Faults,
        *,
        away: Callable[[str], Exception],
        outage: str = "",
    ) -> None:
        """`away` makes the error of an unreachable outside; `outage` names whose absence meets all its calls."""
        self._target = target
        for method in awaited_methods(type(target)):  # type: ignore[arg-type]  # a class is hashable
            place = f"{name}.{method}"
            setattr(self, method, _guarded(process, place, getattr(target, method), faults, away, outage))

    def __getattr__(self, name: str) -> Any:
        """What is not awaited is the object's own."""
        return getattr(self._target, name)


def _guarded(
    process: Process,
    place: str,
    method: Callable[..., Any],
    faults: Faults,
    away: Callable[[str], Exception],
    outage: str,
) -> Callable[..., Any]:
    world = process.world

    async def call(*args: Any, **kwargs: Any) -> Any:
        fault = faults.draw(place)
        await world.pause(place, fault or "")
        if outage and faults.is_away(outage, world.now_us):
            raise away(f"{place}: nobody answers")
        if fault is None:
            return await method(*args, **kwargs)
        match fault:
            case "crash_before":
                await world.die(place, seconds=faults.down_seconds(place))
            case "crash_after":
                await method(*args, **kwargs)
                await world.die(place, seconds=faults.down_seconds(place))
            case "not_executed":
                raise away(f"{place} was not executed")
            case "executed_and_lost":
                answer = await method(*args, **kwargs)
                del answer
                raise away(f"the answer of {place} was lost")
            case "frozen":
                process.frozen_until = world.now_us + int(faults.frozen_seconds(place) * 1_000_000)
                await world.pause(place)
                return await method(*args, **kwargs)
            case _:
                raise AssertionError(f"no such fault: {fault}")

    return call


class TransactionPort:
    """Stands before something that opens transactions: their steps, and their commit, are port calls."""

    def __init__(
        self,
        process: Process,
        name: str,
        target: Any,
        faults: Faults,
        *,
        away: Callable[[str], Exception],
        on_begin: Callable[[], None] | None = None,
    ) -> None:
        """`on_begin` is called as each transaction begins: for those who come just in between."""
        self._process = process
        self._name = name
        self._target = target
        self._faults = faults
        self._away = away
        self._on_begin = on_begin

    def transaction(self, *args: Any, **kwargs: Any) -> AbstractAsyncContextManager[Any]:
        """Open one."""
        if self._on_begin is not None:
            self._on_begin()
        inner = self._target.transaction(*args, **kwargs)
        return _Transaction(self._process, self._name, inner, self._faults, self._away)


class _Transaction:
    def __init__(
        self,
        process: Process,
        name: str,
        inner: AbstractAsyncContextManager[Any],
        faults: Faults,
        away: Callable[[str], Exception],
    ) -> None:
        self._process, self._name, self._inner, self._faults, self._away = process, name, inner, faults, away

    async def __aenter__(self) -> Any:
        place = f"{self._name}.begin"
        fault = self._faults.draw(place)
        await self._process.world.pause(place, fault or "")
        if fault in ("not_executed", "executed_and_lost") or self._faults.is_away(
            "authority", self._process.world.now_us
        ):
            raise self._away(f"{place} was not executed")
        if fault is not None and fault.startswith("crash"):
            await self._process.world.die(place, seconds=self._faults.down_seconds(place))
        opened = await self._inner.__aenter__()
        return Port(self._process, self._name, opened, self._faults, away=self._away, outage="authority")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        world, place = self._process.world, f"{self._name}.end"
        if kind is not None or world.dying:
            return await self._inner.__aexit__(kind, error, trace)
        fault = self._faults.draw(place)
        try:
            await world.pause(place, fault or "")
            if fault == "crash_before":
                await world.die(place, seconds=self._faults.down_seconds(place))
            if fault == "not_executed" or self._faults.is_away("authority", world.now_us):
                raise self._away(f"{place} was not executed")
        except BaseException as failure:
            await self._inner.__aexit__(type(failure), failure, failure.__traceback__)
            raise
        answer = await self._inner.__aexit__(None, None, None)
        if fault == "crash_after":
            await world.die(place, seconds=self._faults.down_seconds(place))
        if fault == "executed_and_lost":
            raise self._away(f"the answer of {place} was lost")
        return answer
