"""The providers' jobs, each a file that is whole on disk before anyone is told about it.

The store answers questions about jobs and lets others wait for a change; what a job does is the desk's part.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from videoads.providers.synthetic.faults import ErrorName, Fault, Style

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
TERMINAL: tuple[JobState, ...] = ("succeeded", "failed", "cancelled")


class WebhookOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the provider promised to report the end of a job, and how far it has come with that."""

    url: str
    secret: str
    custom_data: dict[str, Any]
    copies: int = 1
    early: bool = False
    delivered: int = 0
    attempts: int = 0
    given_up: bool = False


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of work that was accepted and will be paid for."""

    id: str
    style: Style
    token: str
    request: dict[str, Any]
    content_digest: str
    body_sha256: str
    accepted_at: float
    cost: int
    state: JobState = "queued"
    faults: tuple[Fault, ...] = ()
    webhook: WebhookOrder | None = None
    error: ErrorName | None = None
    message: str = ""
    media: str | None = None
    media_type: str = ""
    size_bytes: int = 0
    sha256: str = ""
    report: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether the job still holds one of the provider's slots."""
        return self.state not in TERMINAL

    def fault(self, *kinds: str) -> Fault | None:
        """The first ordered fault of one of these kinds."""
        return next((fault for fault in self.faults if fault.kind in kinds), None)


class JobStore:
    """All jobs: in memory to be asked, on disk to survive a kill."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._jobs: dict[str, Job] = {}
        self._by_token: dict[tuple[Style, str], list[str]] = defaultdict(list)
        self._writing = asyncio.Lock()
        self._changed = asyncio.Condition()
        for path in sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
            self._remember(msgspec.json.decode(path.read_bytes(), type=Job))

    async def put(self, job: Job) -> Job:
        """Keep this version of a job: first on disk, then in memory."""
        async with self._writing:
            await asyncio.to_thread(write_whole, self._folder / f"{job.id}.json", msgspec.json.encode(job))
            self._remember(job)
        await self.announce()
        return job

    def get(self, style: Style, job_id: str) -> Job | None:
        """The job of this provider with this id."""
        job = self._jobs.get(job_id)
        return job if job is not None and job.style == style else None

    def all(self) -> list[Job]:
        """Every job there is, oldest first."""
        return sorted(self._jobs.values(), key=lambda job: job.accepted_at)

    def with_token(self, style: Style, token: str) -> list[Job]:
        """This provider's jobs that carry the token, oldest first."""
        jobs = [self._jobs[job_id] for job_id in self._by_token[style, token]]
        return sorted(jobs, key=lambda job: job.accepted_at)

    def open_count(self, style: Style) -> int:
        """How many of this provider's slots are taken."""
        return sum(job.open for job in self._jobs.values() if job.style == style)

    async def announce(self) -> None:
        """Wake all who wait: something they look at may have changed."""
        async with self._changed:
            self._changed.notify_all()

    async def wait_until(
        self, condition: Callable[[], bool], *, timeout_seconds: float | None = None
    ) -> bool:
        """Wait until the condition holds; False when the time was up first."""
        try:
            async with asyncio.timeout(timeout_seconds), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            return False
        return True

    def _remember(self, job: Job) -> None:
        if job.id not in self._jobs:
            self._by_token[job.style, job.token].append(job.id)
        self._jobs[job.id] = job


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file so that a kill leaves the old content or the new, synced, never a part."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as sink:
        sink.write(content)
        sink.flush()
        os.fsync(sink.fileno())
    os.replace(partial, path)
