"""Capture one run out of a store as a file for tests/histories, which later code must replay unchanged.

    python tools/capture_history.py RUN_ID --data-dir .longtake --what "the demo" --out tests/histories/demo.jsonl.gz

A file holds a header (whose run, its plan to the byte), every event with the exact bytes its hash covers, and last what
the store said of the run then: run row, summary, step rows, ledger. Leaves to others: replaying it
(tests/histories/test_replay.py). Look at a file before it is checked in: what a run was told stands in it.
"""

import argparse
import asyncio
import gzip
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

FORMAT = 1
"""Raised when the lines of a file get another shape."""

HEADER = """
select r.tenant_id as tenant, r.run_id, r.workflow, r.workflow_version, p.fingerprint, p.plan, p.input, p.policy
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
where r.run_id = $1
"""
EVENTS = """
select seq, id, type, version, data, meta, recorded_at, store_epoch, encode(hash, 'hex') as hash
from longtake.events where run_id = $1 order by seq
"""
RUN = "select *, encode(head_hash, 'hex') as head from longtake.runs where run_id = $1"
STEPS = "select * from longtake.steps where run_id = $1 order by ordinal"
LEDGER = """
select key, account, kind, debit, credit, amount, step, cycle, seq, recorded_at
from longtake.ledger_entries where run_id = $1 order by seq, key
"""
LEFT_OUT = {"head_hash", "summary"}
"""Columns of a run that stand elsewhere: `head` in hex, and the summary with its own name."""


async def capture(connection: asyncpg.Connection, run_id: uuid.UUID, *, what: str) -> list[dict[str, Any]]:
    """The lines of one run's file. Raises LookupError when the store has no such run."""
    header = await connection.fetchrow(HEADER, run_id)
    run = await connection.fetchrow(RUN, run_id)
    if header is None or run is None:
        raise LookupError(f"there is no run {run_id} in this store")
    events = [{"line": "event", **_plain(row)} for row in await connection.fetch(EVENTS, run_id)]
    end = {
        "line": "end",
        "run": {name: _value(value) for name, value in run.items() if name not in LEFT_OUT},
        "summary": msgspec.json.decode(run["summary"]),
        "steps": [_plain(row) for row in await connection.fetch(STEPS, run_id)],
        "ledger": [_plain(row) for row in await connection.fetch(LEDGER, run_id)],
    }
    return [{"line": "header", "format": FORMAT, "what": what, **_plain(header)}, *events, end]


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write a file; the same lines give the same bytes."""
    plain = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    path.write_bytes(gzip.compress(plain, mtime=0) if path.suffix == ".gz" else plain)


def _plain(row: asyncpg.Record) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode()
        case uuid.UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case _:
            return value


async def _main(arguments: argparse.Namespace) -> None:
    from longtake.cli.authority import authority
    from longtake.cli.place import settings_of

    async with authority(settings_of(data_dir=arguments.data_dir)) as pool, pool.acquire() as connection:
        lines = await capture(connection, arguments.run_id, what=arguments.what)
    write(arguments.out, lines)
    print(f"{len(lines) - 2} events in {arguments.out}, {arguments.out.stat().st_size} bytes")


def main() -> None:
    """Capture what the command line names."""
    parser = argparse.ArgumentParser(description="Capture one run for tests/histories.")
    parser.add_argument("run_id", type=uuid.UUID)
    parser.add_argument("--what", required=True, help="what the run shows, in a few words")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, default=None)
    asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
