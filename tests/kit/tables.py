"""What stands in the authority: counted for a table of cases, or row by row for a comparison of two stores."""

import re
from typing import Any

import asyncpg

COUNTED = (
    "commands", "runs", "events", "steps", "effects", "effect_claims", "late_receipts", "timers", "scopes", "inbox",
    "artifacts", "ledger_entries", "holds", "dead_letters",
)  # fmt: skip

INCIDENTAL = frozenset(
    {
        "tx_id", "position", "traceparent", "report_traceparent", "meta", "hash", "head_hash", "channel", "copied_at",
        "incarnation", "claim_id", "accepted_at", "updated_at", "recorded_at", "created_at", "published_at", "claimed_at",
        "heartbeat_at", "reported_at", "closed_at", "started_at", "ended_at", "not_before", "call_opened_at", "lease_owner",
        "lease_until", "reporter", "poll_at", "due_at", "deadline", "released_at", "owner", "receipt", "plan_checked",
    }
)  # fmt: skip
"""Columns that say when, by whom or on what way, and not what."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
"""A time inside a document, such as a deadline that was counted from now."""


async def counts(connection: asyncpg.Connection) -> dict[str, int]:
    """Rows by table."""
    parts = " union all ".join(f"select '{name}' as name, count(*) from longtake.{name}" for name in COUNTED)
    return {row["name"]: row["count"] for row in await connection.fetch(parts)}


def grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What was recorded in between; tables that stayed as they were are left out."""
    return {name: after[name] - before[name] for name in COUNTED if after[name] != before[name]}


async def runs_now(connection: asyncpg.Connection) -> list[tuple[Any, ...]]:
    """Everything of every run that a refused or ignored message must leave alone."""
    rows = await connection.fetch(
        "select run_id, revision, head_hash, status, charged, refunded, summary::text from longtake.runs order by run_id"
    )
    return [tuple(row) for row in rows]


async def contents(connection: asyncpg.Connection, tables: tuple[str, ...] = COUNTED) -> dict[str, list[Any]]:
    """All rows of the tables without their incidental columns, in an order of their own."""
    found: dict[str, list[Any]] = {}
    for name in tables:
        rows = await connection.fetch(f"select * from longtake.{name}")
        plain = [
            sorted(
                (key, _TIME.sub("then", str(value))) for key, value in row.items() if key not in INCIDENTAL
            )
            for row in rows
        ]
        found[name] = sorted(plain)
    return found
