"""The client of producers and dashboards: commands in, summaries, events and artifacts out.

async with Client("http://127.0.0.1:8600", key) as client:
    run = await client.start("short.generation@1", {...}, project="p1")
    summary = await client.wait(run.run_id)
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
import msgspec

from longtake.client.answers import (
    CommandNow,
    EventPage,
    EventSeen,
    Health,
    Ledger,
    PublishedArtifact,
    Run,
    RunPage,
    StepNow,
)
from longtake.client.commands import Commands
from longtake.client.download import download
from longtake.client.http import Wire, token
from longtake.client.stream import follow
from longtake.contracts.summary import TERMINAL, Summary

PATIENCE_SECONDS = 30.0
"""How long requests are repeated while the server is away."""
POLL_SECONDS_MAX = 5.0

T = TypeVar("T")


class _Steps(msgspec.Struct):
    steps: list[StepNow]


class _Artifacts(msgspec.Struct):
    artifacts: list[PublishedArtifact]


class Client(Commands):
    """One server, one key. Refusals are raised as ProblemReceived, an absent server as ServerUnreachable."""

    def __init__(
        self, url: str, key: str | None = None, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        super().__init__(Wire(url, key, patience_seconds=patience_seconds))

    @property
    def url(self) -> str:
        """The server's address."""
        return self._wire.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of connections."""
        await self._wire.close()

    # --- reading ----------------------------------------------------------------------------------------------------

    async def command_status(self, command_id: str) -> CommandNow:
        """A command of one's own as it stands."""
        return await self._get(f"/v1/commands/{token(command_id)}", CommandNow)

    async def run(self, run_id: str) -> Run:
        """One run."""
        return await self._get(f"/v1/runs/{token(run_id)}", Run)

    async def runs(
        self,
        *,
        project: str | None = None,
        status: str | None = None,
        workflow: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> RunPage:
        """A page of runs, newest first."""
        asked = {"project": project, "status": status, "workflow": workflow, "cursor": cursor, "limit": limit}
        return await self._get("/v1/runs", RunPage, {k: v for k, v in asked.items() if v is not None})

    async def summary(self, run_id: str) -> Summary:
        """How the run is, and what may be done."""
        return await self._get(f"/v1/runs/{token(run_id)}/summary", Summary)

    async def wait(self, run_id: str, *, seconds: float | None = None) -> Summary:
        """Follow a run to its end by its summary. TimeoutError after `seconds`."""
        etag = ""
        summary: Summary | None = None
        async with asyncio.timeout(seconds):
            while True:
                headers = {"If-None-Match": etag} if etag else {}
                response = await self._wire.request(
                    "GET", f"/v1/runs/{token(run_id)}/summary", headers=headers
                )
                if response.status_code != 304:
                    etag = response.headers.get("etag", "")
                    summary = msgspec.json.decode(response.content, type=Summary)
                    if summary.status in TERMINAL:
                        return summary
                await asyncio.sleep(_pause(response.headers.get("retry-after")))

    async def steps(self, run_id: str) -> list[StepNow]:
        """Every step of the plan."""
        return (await self._get(f"/v1/runs/{token(run_id)}/steps", _Steps)).steps

    async def effects(self, run_id: str) -> list[dict[str, Any]]:
        """Every effect with its evidence, as plain values."""
        found = await self._get(f"/v1/runs/{token(run_id)}/effects", dict[str, Any])
        effects: list[dict[str, Any]] = found["effects"]
        return effects

    async def events(self, run_id: str, *, after: int = 0, limit: int = 200) -> EventPage:
        """A page of events."""
        return await self._get(
            f"/v1/runs/{token(run_id)}/events", EventPage, {"after": after, "limit": limit}
        )

    async def history(self, run_id: str) -> list[EventSeen]:
        """All events there are."""
        found: list[EventSeen] = []
        after: int | None = 0
        while after is not None:
            page = await self.events(run_id, after=after, limit=1000)
            found += page.events
            after = page.next_after
        return found

    def stream(self, run_id: str, *, after: int = 0) -> AsyncIterator[EventSeen]:
        """Events as they happen, each once, to the run's end; connections that break are made again."""
        return follow(self._wire, run_id, after=after)

    async def ledger(self, run_id: str) -> Ledger:
        """The money of a run."""
        return await self._get(f"/v1/runs/{token(run_id)}/ledger", Ledger)

    async def plan(self, run_id: str) -> dict[str, Any]:
        """The frozen plan with input and policy, as plain values."""
        return await self._get(f"/v1/runs/{token(run_id)}/plan", dict[str, Any])

    async def plan_picture(self, run_id: str) -> str:
        """The plan as a Mermaid flowchart."""
        response = await self._wire.request(
            "GET", f"/v1/runs/{token(run_id)}/plan", params={"format": "mermaid"}
        )
        text: str = response.text
        return text

    async def artifacts(self, run_id: str) -> list[PublishedArtifact]:
        """What the run published."""
        return (await self._get(f"/v1/runs/{token(run_id)}/artifacts", _Artifacts)).artifacts

    async def download(self, artifact: PublishedArtifact, path: Path) -> Path:
        """Fetch an artifact into a file, going on where an earlier try ended; its digest is checked."""
        return await download(self._wire, artifact, path)

    async def ready(self, *, seconds: float = 0.0) -> Health:
        """Wait until the server is ready."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                response = await self._wire.request("GET", "/health/ready", patient=False)
                return msgspec.json.decode(response.content, type=Health)
            except Exception:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(0.1)

    async def _get(self, path: str, shape: type[T], params: Mapping[str, Any] | None = None) -> T:
        response: httpx2.Response = await self._wire.request("GET", path, params=params)
        return msgspec.json.decode(response.content, type=shape)


def _pause(retry_after: str | None) -> float:
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else 1.0
    # The server's word is for dashboards; somebody who waits for the end looks a little more often.
    return min(max(seconds / 2, 0.2), POLL_SECONDS_MAX)
