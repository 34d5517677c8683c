"""The control plane: orders faults, lets go what a fault holds back, answers what the providers have seen.

It stands beside the providers under its own prefix and is not part of what they offer; clients never use it.
"""

import os
from collections.abc import Callable
from typing import Any

import msgspec

from videoads.providers.synthetic.asgi import Request, Response, Router, answer
from videoads.providers.synthetic.desk import Desk
from videoads.providers.synthetic.faults import STYLES, Rule, Style
from videoads.providers.synthetic.jobs import Job

WAIT_SECONDS_MAX = 120.0


class Await(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to wait for: all that is given must hold."""

    style: Style | None = None
    token: str | None = None
    state: str | None = None
    creates: int | None = None
    accepted: int | None = None
    open_jobs: int | None = None
    requests: int | None = None
    webhook_attempts: int | None = None
    settled: bool = False
    timeout_seconds: float = 30.0


class Amnesia(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The providers that forget from now on."""

    amnesiac: list[Style]


class Release(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose held answer, stalled job or delayed webhook may go on; `*` for every job there is now."""

    token: str


class ControlFace:
    """The control plane's routes."""

    def __init__(self, desk: Desk, stop: Callable[[], None]) -> None:
        self._desk = desk
        self._stop = stop

    def mount(self, router: Router) -> None:
        """Add the routes."""
        router.add("GET", "/control/health", self.health)
        router.add("GET", "/control/stats", self.stats)
        router.add("GET", "/control/jobs", self.jobs)
        router.add("GET", "/control/rules", self.rules)
        router.add("POST", "/control/rules", self.add_rule)
        router.add("DELETE", "/control/rules", self.clear_rules)
        router.add("POST", "/control/mode", self.set_mode)
        router.add("POST", "/control/release", self.release)
        router.add("POST", "/control/wait", self.wait)
        router.add("POST", "/control/stop", self.stop)

    async def health(self, request: Request) -> Response:
        """Alive."""
        return answer({"status": "ok", "profile": self._desk.profile.name, "pid": os.getpid()})

    async def stats(self, request: Request) -> Response:
        """Numbers by provider, over the whole life of the data directory."""
        return answer(
            {
                "providers": {style: self._numbers(style) for style in STYLES},
                "webhooks_sent": self._desk.courier.sent,
            }
        )

    async def jobs(self, request: Request) -> Response:
        """The jobs as they are on disk, without what would sign a webhook."""
        token = request.query.get("token")
        return answer([_shown(job) for job in self._desk.store.all() if token in (None, job.token)])

    async def rules(self, request: Request) -> Response:
        """The rules in force and what they have met."""
        return answer(self._desk.rules.states())

    async def add_rule(self, request: Request) -> Response:
        """Put one rule, or a list of them, in force."""
        try:
            decoded = msgspec.json.decode(request.body, type=Rule | list[Rule])
        except msgspec.DecodeError as error:
            return answer({"message": str(error)}, status=400)
        for rule in [decoded] if isinstance(decoded, Rule) else decoded:
            self._desk.rules.add(rule)
        return answer({"rules": len(self._desk.rules.states())})

    async def clear_rules(self, request: Request) -> Response:
        """Forget all rules."""
        self._desk.rules.clear()
        return answer({"rules": 0})

    async def set_mode(self, request: Request) -> Response:
        """Choose which providers offer no look-up."""
        try:
            amnesia = msgspec.json.decode(request.body, type=Amnesia)
        except msgspec.DecodeError as error:
            return answer({"message": str(error)}, status=400)
        self._desk.rules.set_amnesiac(frozenset(amnesia.amnesiac))
        return answer({"amnesiac": amnesia.amnesiac})

    async def release(self, request: Request) -> Response:
        """Let something go on."""
        try:
            release = msgspec.json.decode(request.body, type=Release)
        except msgspec.DecodeError as error:
            return answer({"message": str(error)}, status=400)
        everyone = {job.token for job in self._desk.store.all()}
        self._desk.rules.release(everyone if release.token == "*" else {release.token})
        await self._desk.store.announce()
        return answer({"released": release.token})

    async def wait(self, request: Request) -> Response:
        """Answer when the condition holds; `held` is false when the time was up first."""
        try:
            wanted = msgspec.json.decode(request.body, type=Await)
        except msgspec.DecodeError as error:
            return answer({"message": str(error)}, status=400)
        seconds = min(wanted.timeout_seconds, WAIT_SECONDS_MAX)
        held = await self._desk.store.wait_until(lambda: self._holds(wanted), timeout_seconds=seconds)
        return answer({"held": held})

    async def stop(self, request: Request) -> Response:
        """End the program; open jobs go on when it starts again."""
        self._stop()
        return answer({"stopping": True})

    def _numbers(self, style: Style) -> dict[str, Any]:
        tally = msgspec.to_builtins(self._desk.witness.tallies[style])
        assert isinstance(tally, dict)
        return tally | {"open_jobs": self._desk.store.open_count(style)}

    def _holds(self, wanted: Await) -> bool:
        styles = STYLES if wanted.style is None else (wanted.style,)
        tallies = [self._desk.witness.tallies[style] for style in styles]
        jobs = [
            job for job in self._desk.store.all() if job.style in styles and wanted.token in (None, job.token)
        ]
        if wanted.state is not None and not any(job.state == wanted.state for job in jobs):
            return False
        if wanted.settled and any(job.open for job in jobs):
            return False
        attempts = sum(job.webhook.attempts for job in jobs if job.webhook is not None)
        counted = (
            (wanted.creates, sum(tally.creates for tally in tallies)),
            (wanted.accepted, sum(tally.accepted for tally in tallies)),
            (wanted.requests, sum(tally.requests for tally in tallies)),
            (wanted.open_jobs, sum(job.open for job in jobs)),
            (wanted.webhook_attempts, attempts),
        )
        return all(least is None or least <= count for least, count in counted)


def _shown(job: Job) -> dict[str, Any]:
    shown = msgspec.to_builtins(job)
    assert isinstance(shown, dict)
    if job.webhook is not None:
        shown["webhook"].pop("secret")
    return shown
