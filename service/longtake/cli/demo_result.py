"""What is left of a finished demo: files, and the numbers of the run. Everything is read over the API.

Leaves to others: how it is printed (demo.py), the page itself (the application's showcase).
"""

import mimetypes
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from longtake.cli.showcase import Showcase
from longtake.client import Client, EventSeen, Ledger, PublishedArtifact, StepNow
from longtake.contracts.summary import Summary

PUBLISHED = re.compile(
    r"^longtake_transport_published(?:_total)?\{(?P<labels>[^}]*)\}\s+(?P<number>\S+)", re.MULTILINE
)
SUFFIXES = {"video/mp4": ".mp4", "video/webm": ".webm", "image/jpeg": ".jpg", "application/json": ".json"}
HISTORY_FILE = "history.ndjson"
REPORT_FILE = "report.html"


class DemoResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run as it ended."""

    summary: Summary
    steps: list[StepNow]
    effects: list[dict[str, Any]]
    ledger: Ledger
    events: list[EventSeen]
    artifacts: list[PublishedArtifact]

    @property
    def transactions(self) -> int:
        """How many transactions decided this run."""
        return len({event.tx_id for event in self.events})

    def published(self, name: str) -> PublishedArtifact | None:
        """The artifact of this name that was published last."""
        found = [artifact for artifact in self.artifacts if artifact.name == name]
        return max(found, key=lambda artifact: artifact.published_at) if found else None

    def phase_seconds(self) -> dict[str, float]:
        """Seconds between the first wish and the last answer of each phase, in the order of the plan."""
        phase_of = {step.key: step.phase for step in self.steps}
        spans: dict[str, tuple[datetime, datetime]] = {}
        for row in attempts_of(self.effects):
            phase, begun, ended = phase_of[row["step"]], row["queued_at"], row["finished_at"]
            if ended is not None:
                first, last = spans.get(phase, (begun, ended))
                spans[phase] = (min(first, begun), max(last, ended))
        order = dict.fromkeys(step.phase for step in self.steps)
        return {
            phase: (spans[phase][1] - spans[phase][0]).total_seconds() for phase in order if phase in spans
        }


async def read_result(client: Client, run_id: str) -> DemoResult:
    """Ask for everything."""
    return DemoResult(
        summary=await client.summary(run_id),
        steps=await client.steps(run_id),
        effects=await client.effects(run_id),
        ledger=await client.ledger(run_id),
        events=await client.history(run_id),
        artifacts=await client.artifacts(run_id),
    )


async def write_files(client: Client, result: DemoResult, showcase: Showcase, out: Path) -> dict[str, Path]:
    """Fetch the deliveries, write history and report; returns name to path, what was asked for first."""
    out.mkdir(parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    for name in showcase.deliveries:
        artifact = result.published(name)
        if artifact is not None:
            path = out / f"{name}{suffix_of(artifact.content_type)}"
            path.unlink(missing_ok=True)
            files[name] = await client.download(artifact, path)
    if len(files) == len(showcase.deliveries):
        showcase.write_report(
            out / REPORT_FILE,
            summary=_plain(result.summary),
            steps=_plain(result.steps),
            attempts=_plain(attempts_of(result.effects)),
            ledger=_plain(result.ledger.entries),
            events=_plain(result.events),
            files=files,
        )
        files["report"] = out / REPORT_FILE
    history = out / HISTORY_FILE
    history.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in result.events))
    files["history"] = history
    return files


def attempts_of(effects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row an attempt, from its first effect to its last: {step, attempt, status, queued_at, started_at, ...}."""
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for effect in sorted(effects, key=lambda effect: str(effect["created_at"])):
        receipt = effect["receipt"]
        status = receipt.get("outcome", receipt.get("type", "")) if isinstance(receipt, Mapping) else ""
        started = _moment(effect["call_opened_at"]) or _moment(effect["claimed_at"])
        ended = _moment(effect["closed_at"]) or _moment(effect["reported_at"])
        row = rows.setdefault(
            (effect["step"], effect["attempt"]),
            {
                "step": effect["step"],
                "attempt": effect["attempt"],
                "status": "",
                "queued_at": _moment(effect["created_at"]),
                "started_at": started,
                "finished_at": None,
            },
        )
        row["started_at"] = row["started_at"] or started
        row["finished_at"] = ended or row["finished_at"]
        row["status"] = status or row["status"] or effect["state"]
    return list(rows.values())


def messages_published(metrics: str) -> int:
    """Messages that NATS stored, of a page of counters."""
    return sum(
        int(float(found["number"]))
        for found in PUBLISHED.finditer(metrics)
        if 'result="stored"' in found["labels"]
    )


def suffix_of(content_type: str) -> str:
    """The ending of a file of that type."""
    return SUFFIXES.get(content_type) or mimetypes.guess_extension(content_type) or ".bin"


def _moment(value: Any) -> datetime | None:
    return value if value is None or isinstance(value, datetime) else datetime.fromisoformat(value)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
