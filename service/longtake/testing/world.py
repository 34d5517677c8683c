"""The world: actors driven by hand through virtual time (reliability.md 4.1). No event loop, no real clock.

A heap of (virtual time, seeded tie-break, actor). Whatever an actor awaits of the outside is a request to this world: to let
others go first, to sleep, to wait for a sound. A process is a set of actors with shared memory: it is killed at any such
place and starts again with nothing but its name. Equal seeds give equal traces.
Leaves to others: what may go wrong at a port (faults.py), who the actors are (nodes.py), what must hold (invariants.py).
"""

import hashlib
import heapq
import traceback
import types
from collections.abc import Callable, Coroutine, Generator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
MICRO = 1_000_000
LATENCY_US = 3_000
"""The longest that one ordinary port call takes."""


class Pause:
    """Let others go first: the place just before a port call."""

    __slots__ = ("microseconds",)

    def __init__(self, microseconds: int) -> None:
        self.microseconds = microseconds


class Listen:
    """Wait for a sound, at most so long."""

    __slots__ = ("microseconds", "sounds")

    def __init__(self, sounds: tuple[str, ...], microseconds: int) -> None:
        self.sounds = sounds
        self.microseconds = microseconds


class Die:
    """The process of this actor is killed right here."""

    __slots__ = ("seconds",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


@types.coroutine
def _ask(request: "Pause | Listen | Die") -> Generator["Pause | Listen | Die", Any, Any]:
    return (yield request)


class Defect(Exception):
    """An actor ended by an error that nothing of its program expects."""


class Actor:
    """One coroutine of one process."""

    __slots__ = ("coroutine", "name", "process", "sounds", "token")

    def __init__(self, name: str, process: "Process", coroutine: Coroutine[Any, Any, Any]) -> None:
        self.name = name
        self.process = process
        self.coroutine = coroutine
        self.token = 0
        """Rises whenever the actor goes on, so that an old alarm does not wake it again."""
        self.sounds: tuple[str, ...] = ()


class Process:
    """Actors that share memory and die together; `boot` makes them anew at every start."""

    def __init__(self, world: "World", name: str, boot: Callable[["Process"], None]) -> None:
        self.world = world
        self.name = name
        self.starts = 0
        self.alive = False
        self.frozen_until = 0
        """A stopped process (SIGSTOP): nothing of it goes on before that time."""
        self._boot = boot
        self.actors: dict[Actor, None] = {}
        self.memory: dict[str, Any] = {}
        """What the actors share; gone at a kill."""
        self.on_death: list[Callable[[], None]] = []

    def start(self) -> None:
        """Begin with an empty memory; nothing happens while it lives."""
        if self.alive:
            return
        self.alive = True
        self.starts += 1
        self.memory = {}
        self._boot(self)

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> Actor:
        """Begin another actor in this process."""
        actor = Actor(f"{self.name}/{name}", self, coroutine)
        self.actors[actor] = None
        self.world.wake(actor, self.world.jitter())
        return actor

    def kill(self) -> None:
        """Stop everything where it stands; nothing of it is tidied up but what the authority does by itself."""
        if not self.alive:
            return
        self.alive = False
        actors, self.actors = list(self.actors), {}
        callbacks, self.on_death = self.on_death, []
        world = self.world
        for actor in actors:
            actor.token += 1
            world.forget_listener(actor)
            world.dying = True
            try:
                actor.coroutine.close()
            except RuntimeError:
                # A coroutine that awaits on its way out is simply gone.
                pass
            finally:
                world.dying = False
        for callback in callbacks:
            callback()


class World:
    """Virtual time, chance, and whoever moves in it."""

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self.random = Random(f"world|{seed}")
        self.now_us = 0
        self.skew = timedelta(0)
        """A step of the authority's clock."""
        self.steps = 0
        self.dying = False
        """A process is being killed: what its coroutines still ask for does not happen."""
        self.processes: dict[str, Process] = {}
        self.trace: list[tuple[int, str, str, str]] = []
        """(virtual microseconds, actor, place, fault or empty)."""
        self.defects: list[str] = []
        self.current: Actor | None = None
        self.after_step: Callable[[], None] | None = None
        """Looks at the world after every step of an actor."""
        self._heap: list[tuple[int, int, int, Actor | None, int, Callable[[], None] | None]] = []
        self._count = 0
        self._listeners: dict[str, dict[Actor, None]] = {}

    # --- time -----------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """Virtual time on the authority's clock."""
        return START + timedelta(microseconds=self.now_us) + self.skew

    def monotonic(self) -> float:
        """Virtual seconds since the beginning; no step of a clock moves it."""
        return self.now_us / MICRO

    def jitter(self) -> int:
        """A short while in microseconds, drawn."""
        return int(self.random.random() * LATENCY_US)

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Call a function at a time to come."""
        self._count += 1
        due = self.now_us + max(0, int(seconds * MICRO))
        heapq.heappush(self._heap, (due, int(self.random.random() * 65536), self._count, None, 0, what))

    def wake(self, actor: Actor, after_us: int) -> None:
        """Let an actor go on after so many microseconds, unless it went on before."""
        self._count += 1
        heapq.heappush(
            self._heap,
            (
                self.now_us + after_us,
                int(self.random.random() * 65536),
                self._count,
                actor,
                actor.token,
                None,
            ),
        )

    # --- what actors await ------------------------------------------------------------------------------------------

    async def pause(self, place: str, fault: str = "") -> None:
        """Let others go first; `place` is told in the trace."""
        if self.dying:
            raise GeneratorExit
        current = self.current
        self.trace.append((self.now_us, current.name if current is not None else "", place, fault))
        await _ask(Pause(int(self.random.random() * LATENCY_US)))

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        if self.dying:
            raise GeneratorExit
        await _ask(Pause(max(1, int(seconds * MICRO))))

    async def listen(self, *sounds: str, seconds: float) -> bool:
        """Wait for one of the sounds; False when the time is over."""
        if self.dying:
            raise GeneratorExit
        return bool(await _ask(Listen(sounds, max(1, int(seconds * MICRO)))))

    async def die(self, place: str, *, seconds: float) -> None:
        """Kill the process of the current actor; it starts again after so many seconds."""
        current = self.current
        self.trace.append((self.now_us, current.name if current is not None else "", place, "crash"))
        await _ask(Die(seconds))

    def sound(self, name: str) -> None:
        """Wake whoever listens for it."""
        for actor in list(self._listeners.get(name, ())):
            self.forget_listener(actor)
            actor.token += 1
            actor.sounds = (name,)
            self.wake(actor, self.jitter())

    def forget_listener(self, actor: Actor) -> None:
        """The actor listens no more."""
        for name in actor.sounds:
            listeners = self._listeners.get(name)
            if listeners is not None:
                listeners.pop(actor, None)
        actor.sounds = ()

    # --- running ----------------------------------------------------------------------------------------------------

    def process(self, name: str, boot: Callable[[Process], None]) -> Process:
        """Add a process, not yet started."""
        made = self.processes[name] = Process(self, name, boot)
        return made

    def run(self, *, until_us: int, steps_max: int, done: Callable[[], bool] | None = None) -> bool:
        """Go on until the time, the number of steps, or `done`; whether it was `done`."""
        heap = self._heap
        while heap and self.steps < steps_max:
            if heap[0][0] > until_us:
                self.now_us = until_us
                return False
            due, _, _, actor, token, function = heapq.heappop(heap)
            self.now_us = max(self.now_us, due)
            if actor is None:
                assert function is not None, "an entry is an actor or a function"
                function()
                if done is not None and done():
                    return True
                continue
            if token != actor.token or not actor.process.alive:
                continue
            if actor.process.frozen_until > self.now_us:
                self._count += 1
                heapq.heappush(
                    heap,
                    (
                        actor.process.frozen_until,
                        int(self.random.random() * 65536),
                        self._count,
                        actor,
                        token,
                        None,
                    ),
                )
                continue
            self.steps += 1
            self._step(actor)
            if self.after_step is not None:
                self.after_step()
                if done is not None and done():
                    return True
        return False

    def _step(self, actor: Actor) -> None:
        heard = bool(actor.sounds) and actor not in self._listeners.get(actor.sounds[0], ())
        self.forget_listener(actor)
        actor.token += 1
        self.current = actor
        try:
            request = actor.coroutine.send(heard or None)
        except StopIteration:
            actor.process.actors.pop(actor, None)
            return
        except Exception as error:  # noqa: BLE001 - whatever an actor ends by is the finding
            actor.process.actors.pop(actor, None)
            where = "".join(traceback.format_exception(error, limit=-6))
            self.defects.append(f"{actor.name} ended by {type(error).__name__}: {error}\n{where}")
            return
        finally:
            self.current = None
        match request:
            case Pause():
                self.wake(actor, request.microseconds)
            case None:
                self.wake(actor, 1)  # a bare yield, such as asyncio.sleep(0)
            case Listen():
                actor.sounds = request.sounds
                for name in request.sounds:
                    self._listeners.setdefault(name, {})[actor] = None
                self.wake(actor, request.microseconds)
            case Die():
                process = actor.process
                process.kill()
                self.later(request.seconds, process.start)
            case _:
                self.defects.append(f"{actor.name} awaits {request!r}, which is of no simulated world")

    def end(self) -> None:
        """Let go of every actor."""
        for process in self.processes.values():
            process.kill()

    def digest(self) -> str:
        """What happened, as one number: equal for equal seeds."""
        lines = "\n".join(f"{at} {who} {place} {fault}" for at, who, place, fault in self.trace)
        return hashlib.sha256(lines.encode()).hexdigest()
