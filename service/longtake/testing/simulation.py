"""One seed from beginning to end: a world is built, things go wrong for a while, then nothing does and all must come to rest.

`play` is what everything else stands on: the suite, the long command, the ablations, a user's own workflows.
"""

from functools import lru_cache
from random import Random
from typing import Any

import msgspec
import structlog

from longtake.memory import MemoryAuditStore, MemoryDatabase
from longtake.memory.store_session import DECISIONS_COMMIT
from longtake.testing.activities import Stage
from longtake.testing.catalogue import SimulatedApp, simulated_app
from longtake.testing.faults import Faults, Profile, draw_profile
from longtake.testing.nodes import Deployment
from longtake.testing.observing import Observer
from longtake.testing.outside import Outside
from longtake.testing.provider import FakeProvider
from longtake.testing.resting import PATIENT, TERMINAL, Judge
from longtake.testing.scenario import TENANTS, Experiment, Scenario, Stagehand, close, crowd
from longtake.testing.seen import Violation
from longtake.testing.storms import Storms
from longtake.testing.wires import Wires
from longtake.testing.world import MICRO, World
from longtake.workflow.plan import CompiledPlan, compile_document

LIVENESS_SECONDS = 1800.0
"""How long, in virtual time, a world may take to come to rest when nothing goes wrong any more."""
STEPS_MAX = 60_000
WAIT_SECONDS_MAX = 105.0
"""How long what is due may wait in quiet times: the longest back-off of the relay, and some more; less than the time in
which the transport swallows a message that looks like an earlier one."""
FUNDS = 1000

LAYOUTS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (
        ("api", "dispatcher", "relay", "sweeper", "worker"),
        ("api", "dispatcher", "relay", "sweeper", "worker"),
    ),
    (("api", "dispatcher", "relay", "sweeper"), ("worker",), ("worker", "dispatcher")),
    (("api",), ("dispatcher", "relay", "sweeper"), ("worker", "api", "dispatcher", "sweeper"), ("worker",)),
)
"""Roles by process; each seed draws one."""


class Result(msgspec.Struct, kw_only=True):
    """What became of a seed."""

    seed: int | str
    profile: Profile
    violations: tuple[Violation, ...]
    events: int
    steps: int
    at_rest: bool
    """Whether the liveness phase ended as it should."""
    digest: str
    happened: tuple[str, ...]
    """Every fault, by the name under which it can be left out."""
    counts: dict[str, dict[str, int]]
    """By dimension (fault, place, command, kind, join, event, answer), how often each value occurred."""
    trace: tuple[tuple[int, str, str, str], ...]
    statuses: dict[str, int]

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.violations)


_stage = Stage()


@lru_cache(maxsize=1)
def _default_app() -> SimulatedApp:
    """The application of all random worlds of this process; each sets its own stage before it runs."""
    return simulated_app(_stage)


class quiet:
    """No log while a world runs: its failures are told by invariants."""

    def __enter__(self) -> None:
        self._before = structlog.get_config()
        structlog.configure(wrapper_class=_Mute, cache_logger_on_first_use=False)

    def __exit__(self, *_: object) -> None:
        structlog.configure(**self._before)


class _Mute(structlog.BoundLoggerBase):
    """A logger that says nothing."""

    def __getattr__(self, name: str) -> Any:
        return _say_nothing


def _say_nothing(*_: object, **__: object) -> None:
    return None


def play(
    seed: int | str,
    *,
    profile: Profile | None = None,
    experiment: Experiment = Experiment(),  # noqa: B008 - frozen
    scenario: Scenario = Scenario(),  # noqa: B008 - frozen
    stop_at_first: bool = True,
    stage: Stage | None = None,
) -> Result:
    """Play a seed. Equal arguments give equal results."""
    drawn = draw_profile(seed) if profile is None else profile
    with quiet():
        if experiment.patch is None:
            return _Play(
                seed, drawn, experiment, scenario, stage or _stage, stop_at_first=stop_at_first
            ).run()
        with experiment.patch():
            return _Play(
                seed, drawn, experiment, scenario, stage or _stage, stop_at_first=stop_at_first
            ).run()


class _Play:
    def __init__(
        self,
        seed: int | str,
        profile: Profile,
        experiment: Experiment,
        scenario: Scenario,
        stage: Stage,
        *,
        stop_at_first: bool,
    ) -> None:
        self.seed = seed
        self.profile = profile
        self._stop_at_first = stop_at_first
        self.world = world = World(seed)
        self.faults = faults = Faults(seed, profile)
        self.database = database = MemoryDatabase(
            world,
            hooks=_Hooks(world, faults),
            defences=experiment.defences,
            faults=_AuthorityFaults(world, faults),
        )
        app = scenario.app if scenario.app is not None else _default_app()
        if isinstance(app, SimulatedApp):
            app.digest, app.drifts = "a" * 64, False
        self.provider = FakeProvider(world, faults)
        self.wires = Wires(world, faults, app.pools)
        self.deployment = Deployment(
            world, database, self.wires, self.provider, faults, app, wrap=experiment.wrap
        )
        stage.set(world, faults, self._plan_of)
        self.observer = Observer(world, database, self.provider)
        self.deployment.broken = self.observer.broken
        self.outside = Outside(self.deployment)
        self.storms = Storms(self.deployment, self.observer)
        self.funded = {(tenant, "main"): FUNDS for tenant in TENANTS}
        for tenant, account in self.funded:
            database.fund(tenant=tenant, account=account, credits=FUNDS)
        chance = Random(f"layout|{seed}")
        layout = chance.choice(LAYOUTS)
        for number, roles in enumerate(layout, start=1):
            self.deployment.node(f"n{number}", roles).start()
        self.storms.arm()
        self.hand = Stagehand(
            world=world,
            database=database,
            observer=self.observer,
            outside=self.outside,
            seed=seed,
            profile=profile,
            sessions=[],
        )
        for name, actor in (scenario.script or crowd)(self.hand):
            self.outside.process.spawn(name, actor)
        self.judge = Judge(
            database, MemoryAuditStore(database), self.observer, self.provider, funded=self.funded
        )

    def _plan_of(self, run_id: Any) -> CompiledPlan:
        row = self.database.tables.runs[run_id]
        return compile_document(bytes(self.database.tables.plans[row.tenant, row.fingerprint].plan))

    def run(self) -> Result:
        safety = self.profile.safety_seconds
        stopped = self._go(safety)
        at_rest = False
        if not stopped:
            self.storms.calm()
            for session in self.hand.sessions[:1]:
                self.outside.process.spawn("closer", close(session, self.hand.sessions))
            calm_at = self.world.monotonic()
            end = calm_at + LIVENESS_SECONDS
            while (
                not stopped and not at_rest and self.world.monotonic() < end and self.world.steps < STEPS_MAX
            ):
                stopped = self._go(self.world.monotonic() + 20)
                at_rest = self._rests()
                if not at_rest and self.world.monotonic() > calm_at + WAIT_SECONDS_MAX:
                    self._judge_waits()
            if not stopped and not at_rest:
                self.observer.broken("I35", f"not at rest after {LIVENESS_SECONDS:.0f} s: {self._restless()}")
            if at_rest:
                self.judge.judge()
                self.judge.strays(self.wires.settled_strays)
                for session in self.hand.sessions:
                    session.judge(self.judge.offered_at)
        self._note_defects()
        self.world.end()
        return self._result(at_rest)

    def _go(self, until: float) -> bool:
        """Run to a time; whether a violation stopped it."""
        world, observer = self.world, self.observer
        world.after_step = observer.look
        done = (lambda: bool(observer.violations or world.defects)) if self._stop_at_first else None
        return world.run(until_us=int(until * MICRO), steps_max=STEPS_MAX, done=done)

    def _note_defects(self) -> None:
        for defect in self.world.defects[:3]:
            self.observer.broken("defect", defect)

    def _judge_waits(self) -> None:
        """When nothing goes wrong, nothing that is due waits long for a worker (I14)."""
        tables, now = self.database.tables, self.world.now()
        deployed = tables.store[0].application
        for run_id, ids in tables.open_effects.items():
            row = tables.runs[run_id]
            if row.poisoned or "plan_drift" in row.blockers or row.plan_checked != deployed:
                continue
            for effect in map(tables.effects.__getitem__, ids):
                since = max(effect.not_before, effect.created_at)
                if effect.state == "queued" and (now - since).total_seconds() > WAIT_SECONDS_MAX:
                    self.observer.broken(
                        "I14", f"{effect.kind} of {effect.step} is due since {since} and nobody is told of it"
                    )

    def _rests(self) -> bool:
        return not self._restless()

    def _restless(self) -> str:
        """What still moves; empty when every run is over or waits for a person, and nothing is behind."""
        tables = self.database.tables
        now = self.world.now()
        for run_id, row in tables.runs.items():
            open_effects = [tables.effects[id_] for id_ in tables.open_effects.get(run_id, ())]
            if any(effect.receipt is not None or effect.state == "expired" for effect in open_effects):
                return f"receipts of {run_id} wait"
            if tables.open_inbox.get(run_id):
                return f"callbacks of {run_id} wait"
            if tables.open_signals.get(run_id):
                return f"signals of {run_id} wait"
            if row.status in TERMINAL:
                if open_effects:
                    return f"{run_id} is {row.status} with {len(open_effects)} open effects"
                continue
            if row.status == "accepted" and not open_effects and self._queued(run_id):
                continue
            if "plan_drift" in row.blockers and self._was_planned_by_drifted_code(run_id):
                continue
            if not open_effects and self._waits(run_id):
                continue
            if open_effects or row.status not in PATIENT:
                states = [(e.step, e.kind, e.state, e.attempt, e.generation, e.leases) for e in open_effects]
                return f"{run_id} is {row.status} {row.blockers} with {states}"
            for key, timer in tables.timers.items():
                if key[0] == run_id and (timer.due_at - now).total_seconds() < 600:
                    return (
                        f"timer {key[1]} of {run_id} is due in {(timer.due_at - now).total_seconds():.0f} s"
                    )
        return self.wires.backlog()

    def _was_planned_by_drifted_code(self, run_id: Any) -> bool:
        """Such a run waits for an operator when the build that it was accepted with is gone."""
        seen = self.observer.runs.get(run_id)
        return seen is not None and seen.application in self.observer.drifted

    def _waits(self, run_id: Any) -> bool:
        """Some step stands at a gate that the plan declares: an event, an answer, or a child that waits itself."""
        tables = self.database.tables
        due = [timer.due_at for key, timer in tables.timers.items() if key[0] == run_id]
        if any((at - self.world.now()).total_seconds() < 600 for at in due):
            return False
        statuses = {row.status for (run, _), row in tables.steps.items() if run == run_id}
        return bool(statuses & {"waiting_event", "needs_input", "blocked"}) or "waiting_external" in statuses

    def _queued(self, run_id: Any) -> bool:
        """A queued run waits for a holder of its scopes, which waits for a person."""
        seen = self.observer.runs.get(run_id)
        return (
            seen is not None
            and seen.queued
            and any(
                row.status not in TERMINAL and other != run_id
                for other, row in self.database.tables.runs.items()
            )
        )

    def _result(self, at_rest: bool) -> Result:
        tables = self.database.tables
        kinds: dict[str, int] = {}
        joins: dict[str, int] = {}
        for seen in self.observer.runs.values():
            for step in seen.plan.steps:
                kind = getattr(step, "kind", "activity")
                kinds[kind] = kinds.get(kind, 0) + 1
                if step.depends_on:
                    join = getattr(step, "join", "all_succeeded")
                    joins[join] = joins.get(join, 0) + 1
        commands: dict[str, int] = {}
        answers: dict[str, int] = {}
        for session in self.hand.sessions:
            for name, count in session.kinds.items():
                commands[name] = commands.get(name, 0) + count
            for name, count in session.answers.items():
                answers[name] = answers.get(name, 0) + count
        statuses: dict[str, int] = {}
        for row in tables.runs.values():
            statuses[row.status] = statuses.get(row.status, 0) + 1
        return Result(
            seed=self.seed,
            profile=self.profile,
            violations=tuple(self.observer.violations),
            events=sum(self.observer.event_types.values()),
            steps=self.world.steps,
            at_rest=at_rest,
            digest=self.world.digest() if self.observer.violations else "",
            happened=tuple(self.faults.happened),
            counts={
                "fault": dict(self.faults.counts),
                "place": dict(self.faults.places),
                "command": commands,
                "kind": kinds,
                "join": joins,
                "event": dict(self.observer.event_types),
                "answer": answers,
            },
            trace=tuple(self.world.trace),
            statuses=statuses,
        )


class _Hooks:
    """Where a statement goes that waits for a lock."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults

    async def wait(self, reason: str) -> None:
        """Let others go on; between a decision and what should have been written with it, one may die."""
        if reason == "outbox" and self._faults.draw("authority.outbox") is not None:
            await self._world.die("authority.outbox", seconds=5.0)
        await self._world.pause(f"lock {reason}")


class _AuthorityFaults:
    """What a port cannot do to a call: rows that somebody else holds, and readers that are a moment behind."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults

    def strike(self, statement: str) -> Any:
        """Now and then every row that may be skipped is held by somebody else; never what a transaction has locked itself."""
        current = self._world.current
        if statement == DECISIONS_COMMIT and (current is None or "/dispatcher" not in current.name):
            return None
        return "conflict" if self._faults.happens("conflict", f"rows.{statement}") else None

    def hides(self, statement: str, run_id: Any) -> bool:
        """Now and then a reader of many runs does not see the last of one yet."""
        return self._faults.happens("hidden", f"rows.{statement}")
