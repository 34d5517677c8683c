"""Storms: what happens to a whole server or process at once, a few times a seed (reliability.md 4.4, in one process).

The authority is away, or is restored from a backup; the transport loses what it had acknowledged, restarts, is deleted or
purged; a process is killed; a clock steps; new code is deployed.
"""

from collections.abc import Callable
from datetime import timedelta

from longtake.memory.store_session import Snapshot
from longtake.testing.catalogue import SimulatedApp
from longtake.testing.nodes import Deployment
from longtake.testing.observing import Observer

SNAPSHOT_SECONDS = 15.0
MICRO = 1_000_000


class Storms:
    """Raises the storms of a profile at their times."""

    def __init__(self, deployment: Deployment, observer: Observer) -> None:
        self._all = deployment
        self._world = deployment.world
        self._faults = deployment.faults
        self._observer = observer
        self._snapshots: list[Snapshot] = []
        self._deployments = 0
        self._epoch = deployment.database.store_epoch
        self._kinds: dict[str, Callable[[], None]] = {
            "authority_outage": self._authority_outage,
            "transport_outage": self._transport_outage,
            "power_loss": lambda: self._all.wires.power_loss(self._faults.number("power", 1, 30)),
            "transport_restart": lambda: self._all.wires.restart(),
            "stream_deleted": lambda: self._all.wires.delete_stream(self._stream()),
            "stream_purged": lambda: self._all.wires.purge_stream(self._stream()),
            "consumer_deleted": lambda: self._all.wires.delete_consumer(self._world.random.random()),
            "process_killed": self._process_killed,
            "clock_step": self._clock_step,
            "store_rewound": self._store_rewound,
            "deployed": self._deployed,
        }

    def arm(self) -> None:
        """Set every storm of the profile to its time."""
        storms = self._faults.storms()
        for at, name in storms:
            self._world.later(at, lambda name=name: self._strike(name))  # type: ignore[misc]  # bound per storm
        if any(name == "store_rewound" for _, name in storms):
            self._keep_backups()

    def _strike(self, name: str) -> None:
        if not self._faults.on:
            return
        self._faults.note(name)
        self._world.trace.append((self._world.now_us, "storm", name, name))
        self._kinds[name]()

    def calm(self) -> None:
        """Everything is reachable again, every process runs, and the code plans as it did."""
        self._faults.on = False
        app = self._all.app
        if isinstance(app, SimulatedApp) and app.drifts:
            self._deploy(app, drifts=False)
        self._faults.away_until.clear()
        self._all.wires.calm()
        for process in self._world.processes.values():
            process.frozen_until = min(process.frozen_until, self._world.now_us)
            process.start()

    def _stream(self) -> str:
        return self._world.random.choice(("LT_EFFECT", "LT_CALLBACK", "LT_COMMAND"))

    def _authority_outage(self) -> None:
        seconds = self._faults.number("outage", 1, 45)
        self._faults.away_until["authority"] = self._world.now_us + int(seconds * MICRO)
        self._all.database.crash()
        self._world.later(seconds, self._all.database.crash)

    def _transport_outage(self) -> None:
        seconds = self._faults.number("outage", 1, 45)
        self._faults.away_until["transport"] = self._world.now_us + int(seconds * MICRO)

    def _process_killed(self) -> None:
        alive = [
            process
            for process in self._world.processes.values()
            if process.alive and process.name != "outside"
        ]
        if alive:
            process = self._world.random.choice(alive)
            process.kill()
            self._world.later(self._faults.down_seconds("storm"), process.start)

    def _clock_step(self) -> None:
        self._observer.clock_stepped = True
        self._world.skew += timedelta(seconds=self._faults.number("clock", -60, 120))

    def _keep_backups(self) -> None:
        self._snapshots.append(self._all.database.snapshot())
        if self._faults.on:
            self._world.later(SNAPSHOT_SECONDS, self._keep_backups)

    def _store_rewound(self) -> None:
        """Restore a backup that is older than what the outside and the transport know (F70)."""
        nodes = [process for process in self._world.processes.values() if process.name != "outside"]
        for process in nodes:
            process.kill()  # a store is restored while nobody is connected
        back = self._snapshots[-min(len(self._snapshots), 1 + int(self._world.random.random() * 2))]
        self._all.database.restore(back)
        # A backup may be restored twice: the epoch goes above every one there ever was, not just above the backup's.
        self._epoch += 1
        while self._all.database.store_epoch < self._epoch:
            self._all.database.raise_store_epoch()
        self._observer.rewound()
        self._all.wires.settled_strays.clear()
        for process in nodes:
            self._world.later(0.5 + self._world.random.random() * 3, process.start)

    def _deployed(self) -> None:
        """New code, which may plan otherwise: every run is compared with it before anything of it is decided."""
        app = self._all.app
        if not isinstance(app, SimulatedApp):
            return
        drifts = self._faults.chance("deployed", 0.4)
        self._deploy(app, drifts=drifts)
        if drifts:
            # The build that plans as before comes back after a while.
            self._world.later(
                self._faults.number("deployed", 10, 60), lambda: self._deploy(app, drifts=False)
            )

    def _deploy(self, app: SimulatedApp, *, drifts: bool) -> None:
        self._deployments += 1
        app.digest, app.drifts = f"{self._deployments:064d}", drifts
        if drifts:
            self._observer.drifted |= {app.digest}
        for process in self._world.processes.values():
            if process.alive and process.name != "outside":
                process.kill()
                self._world.later(0.2 + self._world.random.random() * 5, process.start)
