"""`longtake projection`: the read model beside a fold of the events - compared, or made anew."""

import uuid

from cyclopts import App

from longtake.cli.history import auditing, chosen_runs
from longtake.cli.output import Json, print_json, print_line
from longtake.cli.place import Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.engine.audit import Audit, Difference
from longtake.errors import BrokenChain

app = App(name="projection", help="Compare the read model with the events, or make it anew.")

LOOKS_MAX = 3
"""A run that moves while it is looked at differs from itself; it is looked at again."""


@app.command
def prove(
    run_id: str | None = None, /, *, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> int:
    """Fold the events of one run, or of all, and compare every row. Each difference names run and seq."""

    async def work() -> tuple[int, list[Difference], list[BrokenChain]]:
        count, differences, broken = 0, list[Difference](), list[BrokenChain]()
        async with auditing(settings_of(config=config, data_dir=data_dir)) as audit:
            async for id_, tenant in chosen_runs(audit, run_id):
                count += 1
                try:
                    differences += await _difference(audit, id_, tenant)
                except BrokenChain as error:
                    broken.append(error)
        return count, differences, broken

    runs, differences, broken = run(work())
    if json:
        unread = [{"run_id": str(e.run_id), "seq": e.seq, "reason": e.reason} for e in broken]
        print_json({"runs": runs, "differences": differences, "broken": unread})
    else:
        for found in differences:
            print_line(
                f"DIFFERS  run {found.run_id} seq {found.seq}: {found.place} is {found.stored}, "
                f"the events say {found.folded}"
            )
        for error in broken:
            print_line(f"BROKEN   {error}")
        if not differences and not broken:
            print_line(f"{runs} runs are as their events say")
    return 1 if differences or broken else 0


@app.command
def rebuild(
    run_id: str | None = None, /, *, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> int:
    """Put the fold in the place of the read model, for one run or all. A run that moves meanwhile is tried again."""

    async def work() -> tuple[int, list[str]]:
        rebuilt, moving = 0, list[str]()
        async with auditing(settings_of(config=config, data_dir=data_dir)) as audit:
            async for id_, tenant in chosen_runs(audit, run_id):
                for _ in range(LOOKS_MAX):
                    if await audit.rebuild(id_, tenant):
                        rebuilt += 1
                        break
                else:
                    moving.append(str(id_))
        return rebuilt, moving

    rebuilt, moving = run(work())
    if json:
        print_json({"rebuilt": rebuilt, "moving": moving})
    else:
        print_line(f"{rebuilt} runs rebuilt")
        for id_ in moving:
            print_line(f"run {id_} is at work and was left as it is; its own decisions keep it right")
    return 1 if moving else 0


async def _difference(audit: Audit, run_id: uuid.UUID, tenant: str) -> list[Difference]:
    found: list[Difference] = []
    for _ in range(LOOKS_MAX):
        found = await audit.prove(run_id, tenant)
        if not found:
            break
    return found
