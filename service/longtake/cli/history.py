"""`longtake history`: the events of runs straight from the store - shown, verified, exported, judged (judging.py)."""

import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from longtake.cli.authority import authority
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.contracts.codec import to_json
from longtake.contracts.envelope import StoredEvent
from longtake.engine.audit import Audit
from longtake.errors import BrokenChain, LongtakeError
from longtake.postgres.audits import PostgresAuditStore
from longtake.settings import Settings

app = App(name="history", help="Show, verify, export and judge the events of runs.")
app.command(
    "longtake.cli.judging:judge_directory",
    name="judge",
    help="Hold what processes wrote down against the store.",
)

BRIEF_CHARACTERS = 100


class NoSuchRun(LongtakeError):
    """A run id that names nothing."""

    def __init__(self, run_id: object) -> None:
        super().__init__(f"there is no run {run_id} in this store; `longtake run list` names them")


@app.command
def show(run_id: str, *, data_dir: DataDir = None, config: Config = None, json: Json = False) -> None:
    """Print the events of a run."""
    events = run(_history(settings_of(config=config, data_dir=data_dir), run_id))
    if json:
        for event in events:
            print_json(_line(event))
        return
    print_table(
        ("seq", "recorded", "event", "hash", "data"),
        (
            (e.seq, e.recorded_at.strftime("%H:%M:%S.%f")[:-3], e.type, e.hash.hex()[:12], _brief(e.data))
            for e in events
        ),
    )


@app.command
def verify(
    run_id: str | None = None, /, *, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> int:
    """Recompute the hash chain of one run, or of all. The first break of each run is named; then the end is 1."""

    async def work() -> tuple[int, int, list[BrokenChain]]:
        events, broken, count = 0, list[BrokenChain](), 0
        async with auditing(settings_of(config=config, data_dir=data_dir)) as audit:
            async for id_, _ in chosen_runs(audit, run_id):
                count += 1
                try:
                    events += await audit.verify(id_)
                except BrokenChain as error:
                    broken.append(error)
        return count, events, broken

    runs, events, broken = run(work())
    if json:
        breaks = [{"run_id": str(e.run_id), "seq": e.seq, "reason": e.reason} for e in broken]
        print_json({"runs": runs, "events": events, "broken": breaks})
    else:
        for error in broken:
            print_line(f"BROKEN  {error}")
        if not broken:
            print_line(f"{runs} runs verify, {events} events")
    return 1 if broken else 0


@app.command
def export(
    run_id: str,
    *,
    out: Annotated[Path | None, Parameter(help="A file; standard output without it")] = None,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Write the events of a run as NDJSON, with the exact bytes that the hashes are taken over."""
    events = run(_history(settings_of(config=config, data_dir=data_dir), run_id))
    if out is None:
        for event in events:
            sys.stdout.write(to_json(_line(event)).decode() + "\n")
        return
    out.write_bytes(b"".join(to_json(_line(event)) + b"\n" for event in events))
    if json:
        print_json({"events": len(events), "file": str(out)})
    else:
        print_line(f"{len(events)} events in {out}")


@asynccontextmanager
async def auditing(settings: Settings) -> AsyncIterator[Audit]:
    """An auditor over the store."""
    async with authority(settings) as pool:
        yield Audit(PostgresAuditStore(pool))


async def chosen_runs(audit: Audit, run_id: str | None) -> AsyncIterator[tuple[uuid.UUID, str]]:
    """The one run that was named, with its tenant, or all of them. Raises NoSuchRun."""
    wanted = None if run_id is None else _identifier(run_id)
    found = False
    async for id_, tenant in audit.runs():
        if wanted in (None, id_):
            found = True
            yield id_, tenant
        if wanted == id_:
            break
    if wanted is not None and not found:
        raise NoSuchRun(run_id)


async def _history(settings: Settings, run_id: str) -> Sequence[StoredEvent]:
    id_ = _identifier(run_id)
    async with authority(settings) as pool:
        events = await PostgresAuditStore(pool).history(id_)
    if not events:
        raise NoSuchRun(run_id)
    return events


def _identifier(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise NoSuchRun(repr(text)) from error


def _line(event: StoredEvent) -> dict[str, Any]:
    return {
        "run_id": str(event.run_id),
        "seq": event.seq,
        "id": str(event.id),
        "type": event.type,
        "version": event.version,
        "recorded_at": event.recorded_at,
        "store_epoch": event.store_epoch,
        "data": msgspec.Raw(event.data),
        "meta": msgspec.Raw(event.meta),
        "hash": event.hash.hex(),
    }


def _brief(data: bytes) -> str:
    text = data.decode(errors="replace")
    return text if len(text) <= BRIEF_CHARACTERS else text[: BRIEF_CHARACTERS - 1] + "…"
