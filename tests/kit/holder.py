"""Embedded servers in another process, to be killed: `async with holder(data_dir) as (process, facts)`.

The program, `holder.py DATA_DIR`, prints one JSON line when both servers answer and stops cleanly when its input ends.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import structlog

from longtake.embedded import THROWAWAY, EmbeddedServers

SERVICE = Path(__file__).parents[2] / "service"


@asynccontextmanager
async def holder(
    data_dir: Path, *, prefix: Sequence[str] = (), environ: dict[str, str] | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, Any]]]:
    """Another process that holds servers, with what it reported."""
    process = await asyncio.create_subprocess_exec(
        *(*prefix, sys.executable, __file__, str(data_dir)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**(os.environ if environ is None else environ), "PYTHONPATH": str(SERVICE)},
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        assert line, "the holder ended before its servers answered"
        yield process, json.loads(line)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def hold(data_dir: Path) -> None:
    """Start, report, wait for the end of the input, stop."""
    async with EmbeddedServers(data_dir, profile=THROWAWAY) as servers:
        connection = await asyncpg.connect(**servers.postgres_connect_kwargs())
        try:
            version = await connection.fetchval("show server_version")
        finally:
            await connection.close()
        facts = {
            "pid": os.getpid(),
            "postgres": servers.pids.postgres,
            "nats": servers.pids.nats,
            "nats_url": servers.nats_url,
            "version": version,
            "uid": os.geteuid(),
        }
        print(json.dumps(facts), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(hold(Path(sys.argv[1])))
