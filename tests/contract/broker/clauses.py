"""What a clause is: a promise of a broker, pleasant or not, and the one habit without which a fake would break it."""

from collections.abc import Awaitable, Callable

import msgspec

from contract.broker.bench import Bench
from longtake.memory.broker_habits import Habits

Body = Callable[[Bench], Awaitable[None]]


class Clause(msgspec.Struct, frozen=True):
    """One promise, named by its function."""

    name: str
    body: Body
    wrong: str
    """The habit that the wrong fake of this clause has not got."""
    alone: bool
    """Whether it needs a server that it may restart."""

    def wrong_habits(self) -> Habits:
        """All habits but one."""
        return Habits(**{self.wrong: False})


CLAUSES: list[Clause] = []


def clause(wrong: str, *, alone: bool = False) -> Callable[[Body], Body]:
    """Add a clause that finds out the fake without this habit."""
    assert wrong in Habits.__struct_fields__, f"there is no habit {wrong!r}"

    def add(body: Body) -> Body:
        CLAUSES.append(Clause(getattr(body, "__name__", "").strip("_"), body, wrong, alone))
        return body

    return add
