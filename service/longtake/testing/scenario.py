"""Who does what in a simulated world, and what is different in it for the sake of an experiment."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import msgspec

from longtake.contracts.principal import Principal
from longtake.memory import Defences, MemoryDatabase
from longtake.testing.commanding import CLOSING, control, give_up, meddle, start_runs
from longtake.testing.faults import Profile
from longtake.testing.nodes import Wrap
from longtake.testing.observing import Observer
from longtake.testing.outside import Outside
from longtake.testing.sessions import Session
from longtake.testing.world import World

TENANTS = ("t1", "t2")
IMPATIENT_SHARE = 0.3
"""Of the worlds: there somebody gives up a run that waits in line just as its turn may have come."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What is different from the real thing, for the sake of an experiment; nothing by default."""

    defences: Defences = Defences()
    wrap: Wrap | None = None
    """Puts something else in the place of an object of a process."""
    patch: Callable[[], Any] | None = None
    """Makes a context in which functions are patched."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Who does what in a world; the default is a crowd of clients with random plans."""

    app: Any = None
    """An application; None: the one of the random worlds."""
    script: Callable[["Stagehand"], Iterable[tuple[str, Any]]] | None = None
    """(name, coroutine) of the actors that play the clients."""


class Stagehand(msgspec.Struct, kw_only=True):
    """What a scenario's clients are made of."""

    world: World
    database: MemoryDatabase
    observer: Observer
    outside: Outside
    seed: int | str
    profile: Profile
    sessions: list[Session]

    def session(self, name: str, tenant: str) -> Session:
        """One more client."""
        made = Session(
            self.world,
            self.database,
            self.observer,
            self.outside.admit,
            name=name,
            principal=Principal(tenant=tenant, actor=name),
        )
        self.sessions.append(made)
        return made


def crowd(hand: Stagehand) -> Iterable[tuple[str, Any]]:
    """Two clients who start runs, and two who meddle with them, over one or two tenants."""
    chance = Random(f"crowd|{hand.seed}")
    until = hand.profile.safety_seconds * 0.8
    starters = [hand.session("ann", "t1"), hand.session("bob", chance.choice(TENANTS))]
    meddlers = [hand.session("eve", "t1"), hand.session("kim", chance.choice(TENANTS))]
    for number, session in enumerate(starters):
        yield session.name, start_runs(session, runs=1, seed=f"{hand.seed}|{number}")
    if Random(f"impatience|{hand.seed}").random() < IMPATIENT_SHARE:
        hand.outside.watch_lines(lambda: _lose_patience(hand, hand.sessions))
    for session in meddlers:
        yield session.name, meddle(session, starters, until=until, busy=chance.choice((4.0, 15.0, 60.0)))


def _lose_patience(hand: Stagehand, sessions: Sequence[Session]) -> None:
    """A run whose turn has come is given up while a starter looks at its line; at most once a client."""
    tables = hand.database.tables
    for session in sessions:
        if any(told.command.kind == "cancel" for told in session.told):
            continue
        for run_id in session.runs:
            waiting = tables.scope_queue.get(run_id)
            if waiting is None:
                continue
            places = [(waiting.tenant, waiting.project, scope) for scope in waiting.scopes]
            if not any(place in tables.scopes for place in places):
                hand.outside.process.spawn(f"impatient-{session.name}", give_up(session, run_id))
                return


async def close(session: Session, sessions: Sequence[Session]) -> None:
    """When nothing goes wrong any more: a person who goes through what waits, and decides about half of it."""
    runs = list(
        dict.fromkeys(
            run_id
            for other in sessions
            for run_id in other.runs
            if other.principal.tenant == session.principal.tenant
        )
    )
    for run_id in runs:
        if session.chance.random() < 0.6:
            await session.world.sleep(session.chance.random() * 30)
            await control(session, run_id, careful=True, kinds=CLOSING)
