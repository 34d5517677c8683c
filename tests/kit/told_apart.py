"""What a service did, without when, by whom and in which order siblings came: two such tellings can be compared.

Times, ids and attempts are dropped; what is left is told per step, and steps are sorted by their keys. An event
that speaks of several steps at once is told once for each, for which siblings share a decision is chance.
"""

from typing import Any

import asyncpg
import msgspec

Told = dict[str, Any]
"""Of one run: its outcome, its events per step ("" for those of the run itself), its ledger."""

DROPPED = frozenset(
    {
        "attempt", "command_id", "effect_id", "next_effect_id", "poll_effect_id", "reconcile_effect_id", "inbox_id",
        "external_ref", "key", "ordinal", "work", "due_at", "look_at", "poll_at", "retry_at", "settle_until", "external_until",
    }
)  # fmt: skip
"""Fields of events that hold a time, an id or an attempt."""


async def told(connection: asyncpg.Connection, name: str) -> dict[str, Told]:
    """Every run whose command is called `name-...`, by the rest of that id."""
    runs: dict[str, Told] = {}
    by_id: dict[Any, Told] = {}
    mine = "from longtake.runs where starts_with(command_id, $1)"
    for row in await connection.fetch(f"select run_id, command_id, status {mine}", f"{name}-"):
        run: Told = {"status": row["status"], "events": {}, "ledger": []}
        runs[row["command_id"].removeprefix(f"{name}-")] = by_id[row["run_id"]] = run
    rows = f"where run_id in (select run_id {mine}) order by run_id, seq"
    for row in await connection.fetch(f"select run_id, type, data from longtake.events {rows}", f"{name}-"):
        for step, what in _by_step(row["type"], msgspec.json.decode(row["data"])):
            by_id[row["run_id"]]["events"].setdefault(step, []).append(what)
    fields = "account, kind, debit, credit, amount, step, cycle"
    for row in await connection.fetch(
        f"select run_id, {fields} from longtake.ledger_entries {rows}", f"{name}-"
    ):
        by_id[row["run_id"]]["ledger"].append(tuple(str(value) for value in list(row.values())[1:]))
    for run in runs.values():
        run["ledger"].sort()
    return runs


def _by_step(kind: str, data: dict[str, Any]) -> list[tuple[str, Any]]:
    plain = _plain(data)
    steps = data.get("steps")
    if not steps:
        return [(data.get("step") or "", (kind, plain))]
    rest = {name: value for name, value in plain.items() if name != "steps"}
    return [
        (
            step if isinstance(step, str) else step["step"],
            (kind, rest, "" if isinstance(step, str) else _plain(step)),
        )
        for step in steps
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if name not in DROPPED}
    return [_plain(part) for part in value] if isinstance(value, list) else value
