"""`longtake ledger`: the money of runs straight from the store, held against its laws (H52)."""

import uuid

from cyclopts import App

from longtake.cli.authority import authority
from longtake.cli.history import NoSuchRun
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.postgres.audits import PostgresAuditStore
from longtake.store import MoneyViolation

app = App(name="ledger", help="Ask whether the money of runs keeps its laws.")


@app.command
def check(
    run_id: str | None = None, /, *, data_dir: DataDir = None, config: Config = None, json: Json = False
) -> int:
    """Look for charges, refunds, holds and accounts that contradict each other, of one run or of all. Any: the end is 1."""
    wanted = None if run_id is None else _identifier(run_id)

    async def work() -> list[MoneyViolation]:
        async with authority(settings_of(config=config, data_dir=data_dir)) as pool:
            store = PostgresAuditStore(pool)
            if wanted is not None and not await store.history(wanted):
                raise NoSuchRun(run_id)
            return await store.money_violations(wanted)

    found = run(work())
    if json:
        print_json({"violations": found})
    elif found:
        print_table(
            ("law", "tenant", "run", "what is wrong"),
            ((item.law, item.tenant, item.run_id or "-", item.message) for item in found),
        )
    else:
        print_line("the money keeps its laws")
    return 1 if found else 0


def _identifier(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise NoSuchRun(repr(text)) from error
