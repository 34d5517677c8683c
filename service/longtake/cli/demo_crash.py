"""`longtake demo --crash`: the service and its servers are killed on the way, and what is left is judged.

A bench is one data directory with its service and its outsiders; `make crash` sends many seeds through one bench.
Leaves to others: which kills (demo_kills.py), the verdict (demo_verdict.py).
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from longtake.cli.demo_kills import Kill, Progress, kills_of
from longtake.cli.demo_service import DemoService
from longtake.cli.demo_verdict import Check, judge_run
from longtake.cli.place import settings_of
from longtake.cli.showcase import Outsiders, Showcase
from longtake.client import Client
from longtake.contracts.summary import TERMINAL, Summary
from longtake.embedded import running_pids
from longtake.settings import Settings

LOOK_SECONDS = 0.04
RUN_SECONDS_MAX = 150.0
ENVIRONMENT = {
    "LONGTAKE_LEASE_SECONDS": "2",
    "LONGTAKE_HEARTBEAT_SECONDS": "0.5",
    "LONGTAKE_GRACE_SECONDS": "0.5",
    "LONGTAKE_IDLE_SECONDS": "1",
}
"""Leases of seconds: what a killed worker held is taken up at once."""


class Struck(msgspec.Struct, frozen=True, kw_only=True):
    """One kill as it happened."""

    kill: Kill
    events: int
    steps: tuple[str, ...]
    phases: tuple[str, ...]
    open_requests: Mapping[str, int]
    recovery_seconds: float

    @property
    def line(self) -> str:
        """What was killed, when, what was in flight, and how long it was away."""
        flight = ", ".join(self.steps) or "nothing"
        bought = ", ".join(f"{provider} {n}" for provider, n in self.open_requests.items()) or "none"
        return (
            f"SIGKILL {self.kill.target} {self.kill.words(self.open_requests)} (event {self.events}); in flight: {flight}; "
            f"open paid requests: {bought}; back after {self.recovery_seconds:.1f} s"
        )


class CrashReport(msgspec.Struct, frozen=True, kw_only=True):
    """One seed."""

    seed: int
    run_id: str
    kills: tuple[Struck, ...]
    checks: tuple[Check, ...]
    seconds: float

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return all(check.kept for check in self.checks)


class CrashBench:
    """Runs of the small order, one after another, each under its own kills."""

    def __init__(
        self, showcase: Showcase, service: DemoService, outsiders: Outsiders, settings: Settings
    ) -> None:
        self._showcase = showcase
        self._service = service
        self._outsiders = outsiders
        self._settings = settings

    async def run(self, seed: int, say: Callable[[str], None] = lambda _: None) -> CrashReport:
        """One run under the kills of a seed; `say` is told each of them."""
        begun = time.monotonic()
        project = f"crash-{seed}-{os.urandom(3).hex()}"
        order = self._showcase.small_order()
        created_before = (await self._outsiders.now()).created
        await self._outsiders.forget_holds()
        async with self._service.client() as client:
            kills = kills_of(seed, phases=self._showcase.phases, providers=self._showcase.providers)
            await self._outsiders.hold_answers([kill.place for kill in kills if kill.at == "request"])
            posted = await client.start(self._showcase.workflow, order.input, project=project)
            assert posted.run_id is not None, "a generation has a run"
            struck: list[Struck] = []
            late = ""
            try:
                async with asyncio.timeout(RUN_SECONDS_MAX):
                    while kills:
                        kill, seen = await self._moment(client, posted.run_id, kills, created_before)
                        kills.remove(kill)
                        struck.append(await self._strike(kill, seen))
                        say(struck[-1].line)
                        await self._outsiders.release_answers()
                    await self._outsiders.forget_holds()
                    await _settled(client, posted.run_id)
            except TimeoutError:
                late = f"it did not end within {RUN_SECONDS_MAX:.0f} s"
            accepted = (await self._outsiders.now()).accepted_by_token
            checks = await judge_run(
                client, self._settings, posted.run_id, project=project, accepted_by_token=accepted
            )
        if late:
            checks.insert(0, Check(name="the run ends", kept=False, found=late))
        return CrashReport(
            seed=seed,
            run_id=posted.run_id,
            kills=tuple(struck),
            checks=tuple(checks),
            seconds=time.monotonic() - begun,
        )

    async def _moment(
        self, client: Client, run_id: str, kills: Sequence[Kill], before: Mapping[str, int]
    ) -> tuple[Kill, Progress]:
        """Wait until it is time for one of the kills; return it with what was seen then.

        Whichever comes first: an answer that is held keeps the run from the moments after it.
        """
        while True:
            now = await self._outsiders.now()
            summary = await client.summary(run_id)
            seen = Progress(
                events=summary.revision,
                steps=await client.steps(run_id),
                created={name: count - before.get(name, 0) for name, count in now.created.items()},
                open=now.open,
            )
            ended = summary.status in TERMINAL or summary.status == "blocked"
            for kill in kills:
                if ended or kill.is_due(seen):
                    return kill, seen
            await asyncio.sleep(LOOK_SECONDS)

    async def _strike(self, kill: Kill, seen: Progress) -> Struck:
        """Kill, start again, and measure until the service is ready."""
        pids = running_pids(self._service.data_dir)
        also = {"service and postgres": pids.postgres, "service and nats-server": pids.nats}.get(kill.target)
        begun = time.monotonic()
        if also is not None:
            with suppress(ProcessLookupError):
                os.kill(also, signal.SIGKILL)
        await self._service.kill()
        await self._service.start()
        return Struck(
            kill=kill,
            events=seen.events,
            steps=tuple(f"{step.key} ({step.status.replace('_', ' ')})" for step in seen.in_flight),
            phases=tuple(seen.phases),
            open_requests=dict(seen.open),
            recovery_seconds=time.monotonic() - begun,
        )


@asynccontextmanager
async def crash_bench(showcase: Showcase, app: str, data_dir: Path) -> AsyncIterator[CrashBench]:
    """A bench in this directory; nothing of it runs afterwards."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = data_dir / "providers"
    environment = {
        **ENVIRONMENT,
        "VIDEOADS_PROVIDERS_DIR": str(directory),
        "VIDEOADS_PROVIDERS_ARGS": f"--parent-pid {os.getpid()}",
    }
    service = DemoService(data_dir, app=app, environment=environment)
    await service.start()
    try:
        outsiders = await showcase.outsiders(directory, small=True, parent_pid=os.getpid())
        try:
            yield CrashBench(showcase, service, outsiders, settings_of(data_dir=data_dir, app=app))
        finally:
            # In this order: a service at work would start its outside world again.
            await service.stop()
            await outsiders.stop()
    finally:
        await service.stop()


async def _settled(client: Client, run_id: str) -> Summary:
    """Wait until a run has ended or waits for a person."""
    while True:
        summary = await client.summary(run_id)
        if summary.status in TERMINAL or summary.status == "blocked":
            return summary
        await asyncio.sleep(LOOK_SECONDS)
