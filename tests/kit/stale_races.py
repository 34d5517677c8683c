"""Races over one effect: a holder that was given up reports, its successor reports, leases end, a person cancels, time is up.

    races = Races(process, bench, random.Random(7))
    await races.play(runs=20)            # 20 runs of STEPS orders, each order a race
    found = await races.judge()          # [] when no receipt was lost and none had an effect that it may not have

Every race has a receipt of the first holder under a fence that may be old by then. Which of the parties is first is left to
Postgres: they run at once. Leaves to others: a provider (nobody is called), the transport (nothing is published).
"""

import asyncio
import random
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import asyncpg
import msgspec

from kit.hand_work import Bench
from kit.runtimes import PRINCIPAL, start_run
from longtake import Activity, App, Failed, NotFound, Outcome, Plan, Succeeded
from longtake.bootstrap import Runtime
from longtake.contracts.commands import Command
from longtake.contracts.effects import ClaimedEffect, Report
from longtake.engine.dispatcher import Dispatcher, Pointers
from longtake.workflow.step import Retry

STEPS = 25
PASSES = 6
CHUNK = 25
TURNS_MAX = 12
PRICE = 7
SUCCEEDED = msgspec.json.encode(Succeeded())
FAILED = msgspec.json.encode(Failed(error_class="transient", message="not today"))
ABSENT = msgspec.json.encode(NotFound(evidence="no such order"))


class Paid(Activity):
    """A paid call; the races answer it by hand."""

    name = "paid@1"
    paid = True

    async def execute(self, call: Any) -> Outcome:
        raise AssertionError("the races are run by hand")

    async def reconcile(self, call: Any) -> Outcome:
        raise AssertionError("the races are run by hand")


app = App("races")
app.add(Paid())


@app.workflow("race", version=1)
def build(input: Any, policy: Any) -> Plan:
    """STEPS orders at once, each tried twice."""
    plan = Plan()
    for number in range(STEPS):
        plan = plan.step(f"s:{number}", activity="paid@1", price=PRICE, retry=Retry(max_attempts=2))
    return plan


class Races:
    """Plays and remembers. `told` counts what the commands were answered."""

    def __init__(self, process: Runtime, bench: Bench, chance: random.Random) -> None:
        self._process = process
        self._bench = bench
        self._chance = chance
        self._sent: set[tuple[uuid.UUID, int, str]] = set()
        self._disturbed: set[uuid.UUID] = set()
        """Effects whose run was cancelled or whose time was over: their receipts may be too late."""
        self._opened: set[uuid.UUID] = set()
        self.runs: list[uuid.UUID] = []
        self.races = 0
        self.told: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()

    async def play(self, *, runs: int) -> None:
        """One round; every run is over afterwards."""
        first = len(self.runs)
        for number in range(first, first + runs):
            self.runs.append(
                uuid.UUID(str((await start_run(self._process, f"race-{number}", "race@1")).run_id))
            )
        held = await self._bench.claim(owner="one")
        self.races += len(held)
        chance = self._chance
        chance.shuffle(held)
        opened = [effect for effect in held if chance.random() < 0.3]
        for effect in opened:
            await self._bench.effects.open_call(effect_id=effect.id, fence=effect.fence)
        self._opened |= {effect.id for effect in opened}
        cancelled = set(chance.sample(self.runs[first:], runs // 5))
        overdue = chance.sample(held, len(held) // 10)
        self._disturbed |= {effect.id for effect in held if effect.run_id in cancelled}
        self._disturbed |= {effect.id for effect in overdue}
        early, late = held[: len(held) * 2 // 3], held[len(held) * 2 // 3 :]
        await self._bench.pool.execute(
            "update longtake.effects set lease_until = clock_timestamp() where state = 'leased'"
        )
        await asyncio.gather(
            self._report_all(early, "one"),
            self._take_over(),
            self._command("cancel", sorted(cancelled)),
            self._command("retry", chance.sample(self.runs[first:], runs // 5)),
            self._let_time_pass([effect.id for effect in overdue]),
        )
        await self._report_all(late, "one")
        await self._finish()

    async def _report_all(self, effects: Sequence[ClaimedEffect], owner: str) -> None:
        dispatcher = self._bench.new_dispatcher()
        for start in range(0, len(effects), CHUNK):
            chunk = effects[start : start + CHUNK]
            await self._report([(effect, self._drawn(effect)) for effect in chunk], owner)
            await _decide(dispatcher, [effect.id for effect in chunk])

    def _drawn(self, effect: ClaimedEffect) -> bytes:
        if effect.kind == "reconcile":
            return self._chance.choice((SUCCEEDED, ABSENT))
        return SUCCEEDED if self._chance.random() < 0.7 else FAILED

    async def _report(self, answers: Sequence[tuple[ClaimedEffect, bytes]], owner: str) -> None:
        if answers:
            self._sent |= {(effect.id, effect.fence, owner) for effect, _ in answers}
            await self._bench.effects.report(
                [
                    Report(effect_id=effect.id, fence=effect.fence, owner=owner, outcome=outcome)
                    for effect, outcome in answers
                ]
            )

    async def _take_over(self) -> None:
        """Leases end and go to another, which reports some of what it got."""
        dispatcher = self._bench.new_dispatcher()
        for _ in range(PASSES):
            ended = await self._process.sweep.expire_leases(
                leases_max=5, authority_up_seconds=0.0, connected=True
            )
            await _decide(dispatcher, [lease.id for lease in ended])
            taken = [effect for effect in await self._bench.claim(owner="two") if self._chance.random() < 0.5]
            await self._report([(effect, self._drawn(effect)) for effect in taken], "two")
            await _decide(dispatcher, [effect.id for effect in taken])

    async def _command(self, kind: Any, runs: Sequence[uuid.UUID]) -> None:
        for run_id in runs:
            command = Command(
                kind=kind,
                project="p1",
                targets=(str(run_id),),
                client_command_id=f"{kind}-{run_id}",
                expected_revision=1,
            )
            answer = await self._process.admission.admit(
                PRINCIPAL, command, channel="local", traceparent=None
            )
            problem = answer.receipt.problem
            self.told[f"{kind}: {problem.slug if problem else 'applied'}"] += 1

    async def _let_time_pass(self, ids: Sequence[uuid.UUID]) -> None:
        dispatcher = self._bench.new_dispatcher()
        for start in range(0, len(ids), CHUNK):
            chunk = list(ids[start : start + CHUNK])
            await self._insist(
                "update longtake.effects set deadline = clock_timestamp() where id = any($1) and receipt is null",
                chunk,
            )
            await _decide(dispatcher, chunk)

    async def _insist(self, statement: str, *arguments: object) -> None:
        """Ours is no statement of the service's: what stands in its way goes on, and it comes again."""
        while True:
            with suppress(asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
                await self._bench.pool.execute(statement, *arguments)
                return

    async def _finish(self) -> None:
        """Whatever is open is done, whoever holds it."""
        dispatcher = self._bench.new_dispatcher()
        for _ in range(TURNS_MAX):
            await self._bench.pool.execute(
                "update longtake.effects set not_before = clock_timestamp(), lease_until = clock_timestamp() "
                "where closed_at is null and receipt is null"
            )
            ended = await self._process.sweep.expire_leases(
                leases_max=99, authority_up_seconds=0.0, connected=True
            )
            await _decide(dispatcher, [lease.id for lease in ended])
            rest = await self._bench.claim(owner="last")
            await self._report([(effect, SUCCEEDED) for effect in rest], "last")
            left = await self._bench.pool.fetch("select id from longtake.effects where closed_at is null")
            if not left:
                return
            await _decide(dispatcher, [row["id"] for row in left])

    async def judge(self) -> list[str]:
        """What is wrong: receipts that are nowhere, that were not looked at, that counted twice or not at all."""
        pool, found = self._bench.pool, []
        kept = {
            (row["id"], row["fence"], row["owner"])
            for row in await pool.fetch(
                "select id, report_fence as fence, reporter as owner from longtake.effects where receipt is not null "
                "union all select effect_id, fence, owner from longtake.late_receipts"
            )
        }
        found += [f"the receipt {sent} is nowhere" for sent in sorted(self._sent - kept, key=str)]
        closing: dict[tuple[uuid.UUID, str, int], list[str]] = defaultdict(list)
        for row in await pool.fetch(
            "select run_id, data->>'step' as step, (data->>'attempt')::integer as attempt, type from longtake.events "
            "where type = any($1) order by run_id, seq",
            list(CLOSING),
        ):
            closing[row["run_id"], row["step"], row["attempt"]].append(row["type"])
        for key, types in closing.items():
            # A step that waits for a person afterwards has ended once all the same.
            if len(ends := [type_ for type_ in types if type_ != "step_blocked"]) > 1:
                found.append(f"the attempt {key} ended as {ends}")
        for row in await pool.fetch(
            "select id, run_id, step, attempt, disposition, report_fence < fence as old from longtake.effects "
            "where kind = 'execute' and receipt is not null"
        ):
            self.ended[f"{row['disposition']}, fence {'old' if row['old'] else 'current'}"] += 1
            if row["disposition"] is None:
                found.append(f"nobody looked at the receipt of {row['id']}")
            elif row["disposition"] != "applied" and row["id"] not in self._disturbed:
                key = (row["run_id"], row["step"], row["attempt"])
                if row["id"] not in self._opened or key not in closing:
                    found.append(f"the receipt of the current attempt {key} was {row['disposition']}")
        for run_id in self.runs:
            found += [f"money: {problem}" for problem in await self._process.audit.prove(run_id, "acme")]
        return found


CLOSING = frozenset({"step_succeeded", "attempt_failed", "step_failed", "step_blocked"})
"""Events that end an attempt, each with its step and attempt."""


async def _decide(dispatcher: Dispatcher, ids: Sequence[uuid.UUID]) -> None:
    if ids:
        await dispatcher.handle(Pointers(effects=dict.fromkeys(ids)))
