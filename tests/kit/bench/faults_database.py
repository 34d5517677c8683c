"""A database that dies, restarts, hangs, is full of locks, and whose connections break: N07, N08, N10 to N13, N15."""

import asyncio
import os
import signal
from contextlib import suppress

import asyncpg

from kit.bench.cluster import Bench

LOCKED_SECONDS = 3.0
SILENT_SECONDS = 5.0
TERMINATED_AT_ONCE = 12
CUTS = 12


class PostmasterKilled:
    """SIGKILL, or the immediate shutdown; the keeper of the server begins another, which recovers."""

    def __init__(self, name: str, what: str, number: signal.Signals) -> None:
        self.name = name
        self.what = what
        self.struck = 0
        self._number = number

    async def strike(self, bench: Bench) -> None:
        """Kill it and wait until another answers."""
        before = bench.servers.pids.postgres
        restarts = bench.servers.restarts["postgres"]
        assert before is not None, "it runs when it is struck"
        os.kill(before, self._number)
        while bench.servers.restarts["postgres"] == restarts:
            await asyncio.sleep(0.01)  # its keeper has to notice
        self.struck += 1
        await (await bench.connect()).close()

    async def heal(self, bench: Bench) -> None:
        """The keeper begins another."""


class BackendsTerminated:
    """pg_terminate_backend for a dozen connections drawn at random."""

    name = "N10"
    what = "terminate random backends"

    def __init__(self) -> None:
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """End their sessions."""
        connection = await bench.connect()
        try:
            backends = await connection.fetch(
                "select pid from pg_stat_activity where application_name like 'longtake%' order by pid"
            )
            chosen = bench.chance.sample(backends, min(TERMINATED_AT_ONCE, len(backends)))
            for row in chosen:
                self.struck += await connection.fetchval("select pg_terminate_backend($1)", row["pid"])
        finally:
            await connection.close()

    async def heal(self, bench: Bench) -> None:
        """Pools open others."""


class CutInTheMiddle:
    """Connections are reset after a drawn number of bytes, in the middle of whatever they were saying (F31)."""

    name = "N11"
    what = "RST at a drawn byte of what Postgres is told or answers"

    def __init__(self) -> None:
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """A dozen times, each wherever the stream happens to be."""
        proxy = bench.postgres_proxy
        for _ in range(CUTS):
            before = proxy.cuts_in_the_middle
            cut = proxy.cut_after if bench.chance.random() < 0.5 else proxy.cut_reply_after
            cut(bench.chance.randint(1, 4000))
            async with asyncio.timeout(10):
                while proxy.cuts_in_the_middle == before:
                    await asyncio.sleep(0.01)  # bytes come when somebody speaks
            self.struck += 1

    async def heal(self, bench: Bench) -> None:
        """Cut no more."""
        bench.postgres_proxy.heal()


class Silence:
    """Nothing gets through to Postgres or back, and nothing is closed: longer than a lease."""

    name = "N12"
    what = "blackhole to Postgres"

    def __init__(self) -> None:
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """Until healed."""
        bench.postgres_proxy.blackhole()
        await asyncio.sleep(SILENT_SECONDS)
        self.struck += 1

    async def heal(self, bench: Bench) -> None:
        """What was held goes through now."""
        bench.postgres_proxy.heal()


class LockStorm:
    """Somebody holds the tables that everybody writes, for longer than a lock timeout."""

    name = "N13"
    what = "lock storm over runs and effects"

    def __init__(self) -> None:
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """Take the locks in turn; it counts when somebody was seen to wait."""
        watch = await bench.connect()
        holder = await bench.connect()
        try:
            for table in ("longtake.runs", "longtake.effects"):
                async with holder.transaction():
                    await holder.execute(f"lock table {table} in exclusive mode")
                    await asyncio.sleep(LOCKED_SECONDS / 2)
                    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                    self.struck += await watch.fetchval(waiting) > 0
        finally:
            await holder.close()
            await watch.close()

    async def heal(self, bench: Bench) -> None:
        """The locks ended with their transaction."""


INJECTOR = """
create function longtake.bench_conflict() returns trigger language plpgsql as $$
begin
    if random() < 0.1 then
        perform nextval('longtake.bench_conflicts');
        if random() < 0.5 then
            raise exception 'injected' using errcode = '40001';
        end if;
        raise exception 'injected' using errcode = '40P01';
    end if;
    return null;
end
$$
"""


class Conflicts:
    """One statement in ten that touches runs or effects fails as a serialization failure or a deadlock does (F35)."""

    name = "N15"
    what = "40001 and 40P01 in one statement of ten"

    def __init__(self) -> None:
        self.struck = 0

    async def strike(self, bench: Bench) -> None:
        """Put triggers on the tables; the numbers of a sequence count, for they are not rolled back."""
        connection = await bench.connect()
        try:
            if not await connection.fetchval("select to_regclass('longtake.bench_conflicts') is not null"):
                await connection.execute("create sequence longtake.bench_conflicts")
                await connection.execute("grant usage on sequence longtake.bench_conflicts to public")
                await connection.execute(INJECTOR)
            for table in ("runs", "effects"):
                await connection.execute(
                    f"create trigger bench_conflict before insert or update on longtake.{table} "
                    "for each statement execute function longtake.bench_conflict()"
                )
        finally:
            await connection.close()
        await asyncio.sleep(3.0)

    async def heal(self, bench: Bench) -> None:
        """Take them away, and count."""
        connection = await bench.connect()
        try:
            for table in ("runs", "effects"):
                await connection.execute(f"drop trigger if exists bench_conflict on longtake.{table}")
            with suppress(asyncpg.UndefinedTableError):
                row = await connection.fetchrow("select last_value, is_called from longtake.bench_conflicts")
                self.struck = row["last_value"] if row["is_called"] else 0
        finally:
            await connection.close()


def faults() -> list[object]:
    """New ones of this module."""
    return [
        PostmasterKilled("N07", "kill -9 postmaster", signal.SIGKILL),
        PostmasterKilled("N08", "immediate restart of Postgres", signal.SIGQUIT),
        BackendsTerminated(),
        CutInTheMiddle(),
        Silence(),
        LockStorm(),
        Conflicts(),
    ]
