"""What a checker is given, and what it finds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec

from longtake.telemetry.recorder import Op
from longtake.testing.checking.history import Call, calls
from longtake.testing.checking.store import StoreDump
from longtake.testing.checking.witness import WitnessLine

T = TypeVar("T")


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that does not hold: which (I1 to I36 of the reliability rules), what was found, and where."""

    invariant: str
    what: str
    where: str
    """A run and seq, an op, a key: the place to look at."""
    trace: tuple[str, ...] = ()
    """The few ops or rows that contradict each other."""

    def __str__(self) -> str:
        return "\n".join(
            [f"{self.invariant}  {self.what}  [{self.where}]", *(f"      {line}" for line in self.trace)]
        )


class Evidence:
    """Everything that is judged."""

    def __init__(
        self,
        history: Sequence[Op],
        store: StoreDump,
        witness: Sequence[WitnessLine] = (),
        *,
        ok_floor: float = 0.0,
        fault_windows: Sequence[tuple[float, float]] = (),
        funded: Mapping[tuple[str, str], int] | None = None,
        all_clients: bool = True,
        settled: bool = True,
        restore_may_lose: bool = False,
    ) -> None:
        self.history = history
        self.store = store
        self.witness = witness
        self.ok_floor = ok_floor
        self.funded = funded
        self.all_clients = all_clients
        self.settled = settled
        self.restore_may_lose = restore_may_lose
        self.passed_over = 0
        """Calls that were not judged by their order: too many of one run, or in too many ways."""
        self.fault_windows = [*fault_windows, *self._struck()]

    @cached_property
    def calls(self) -> list[Call]:
        """Calls in the order in which they began."""
        return calls(self.history)

    @cached_property
    def restores(self) -> list[float]:
        """When the store was taken back, in the history's time."""
        return [call.ended for call in self.calls if call.f == "restore" and call.type == "ok"]

    @cached_property
    def moving(self) -> set[str]:
        """Runs that go on by themselves: none that an operator must mend first, by his code or by hand."""
        return {run.run for run in self.store.runs if not run.poisoned and "plan_drift" not in run.blockers}

    def past(self, moment: float) -> int:
        """How often the store had been taken back at a moment: what was told in different pasts cannot be compared."""
        return sum(1 for at in self.restores if at < moment)

    def one_past(self, call: Call) -> bool:
        """The call began and ended in one past."""
        return self.past(call.begun) == self.past(call.ended)

    def _struck(self) -> list[tuple[float, float]]:
        return [(call.begun, call.ended) for call in self.calls if call.f == "fault"]


class Unfollowable(Exception):
    """A history that no model can follow; says why."""


def followed(work: Callable[[], T]) -> T:
    """Do the work. An altered event may break a model in any way: raises Unfollowable for whatever it raises."""
    try:
        return work()
    except Exception as error:
        raise Unfollowable(f"{type(error).__name__}: {error}") from error


Checker = Callable[[Evidence], Iterator[Violation]]
