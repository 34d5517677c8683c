"""Runs: the list, one run, and the summary that dashboards poll."""

import math
import uuid
from typing import Any
from urllib.parse import urlencode

import msgspec
from litestar import Response, get

from longtake.api.answers import RunAnswer, RunDetails, RunPage, links_of
from longtake.api.context import Api, Caller, Row
from longtake.api.cursor import Cursor, read_cursor, write_cursor
from longtake.api.parameters import choice, identifier, integer, text
from longtake.api.problems import not_found
from longtake.contracts.ids import revision_etag
from longtake.contracts.summary import TERMINAL, Summary, Timing
from longtake.workflow.summary import poll_after_ms

PAGE_DEFAULT = 50
PAGE_MAX = 200
STATUSES = frozenset(
    {"accepted", "running", "paused", "needs_input", "blocked", "compensating", "cancelling"} | TERMINAL
)

WAITING_LABEL = "Waiting for a slot"
"""Shown while nothing of a run is under way because the relay's window is full (P20)."""

_summaries = msgspec.json.Decoder(Summary)


@get("/v1/runs")
async def list_runs(request: Caller, api: Api) -> Response[RunPage]:
    """A page of the tenant's runs, newest first."""
    limit = integer(request, "limit", default=PAGE_DEFAULT, low=1, high=PAGE_MAX)
    query: dict[str, str | None] = {
        "tenant": request.user.tenant,
        "project": text(request, "project"),
        "status": choice(request, "status", STATUSES),
        "workflow": text(request, "workflow"),
    }
    before = None
    if (given := request.query_params.get("cursor")) is not None:
        cursor = read_cursor(api.cursor_secret, given, query=query)
        before = (cursor.accepted_at, cursor.run_id)
    rows = await api.reads.runs(
        request.user.tenant,
        project=query["project"],
        status=query["status"],
        workflow=query["workflow"],
        before=before,
        # One more than asked for says whether there is a next page.
        limit=limit + 1,
    )
    shown = rows[:limit]
    following = None
    headers = {}
    if len(rows) > limit:
        last = Cursor(shown[-1]["accepted_at"], shown[-1]["run_id"])
        following = write_cursor(api.cursor_secret, last, query=query)
        headers["Link"] = f'<{request.url.path}?{_query(query, limit, following)}>; rel="next"'
    return Response(RunPage(runs=[_listed(row) for row in shown], next_cursor=following), headers=headers)


@get("/v1/runs/{run_id:str}")
async def get_run(request: Caller, api: Api, run_id: str) -> Response[RunDetails]:
    """One run."""
    row = await run_row(api, request, run_id)
    return Response(
        RunDetails(
            **_columns(row),
            actor=row["actor"],
            account=row["account"],
            command_id=row["command_id"],
            plan_fingerprint=row["plan_fingerprint"],
            store_epoch=row["store_epoch"],
            head_hash=row["head_hash"],
            links=links_of(row["run_id"]),
        )
    )


@get("/v1/runs/{run_id:str}/summary")
async def get_summary(request: Caller, api: Api, run_id: str) -> Response[Any]:
    """How the run is and what may be done; poll_after_ms and a wait for a slot are derived now (P20) and no part of the ETag."""
    row = await api.reads.summary(request.user.tenant, identifier(run_id, "run"))
    if row is None:
        raise not_found(f"run {run_id}")
    summary = summary_now(row)
    wait = summary.timing.poll_after_ms
    etag = revision_etag(row["store_epoch"], row["revision"])
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if wait is not None:
        headers["Retry-After"] = str(math.ceil(wait / 1000))
    if matches(request.headers.get("if-none-match"), etag):
        return Response(None, status_code=304, headers=headers)
    return Response(summary, headers=headers)


def summary_now(row: Row) -> Summary:
    """The stored summary with the wait, and the wait for a slot, that are right now (P20)."""
    summary = _summaries.decode(row["summary"])
    if row["held"]:
        summary = msgspec.structs.replace(summary, label=WAITING_LABEL)
    wait = poll_after_ms(row["poll_at"], summary.status, row["now"])
    return msgspec.structs.replace(summary, timing=Timing(poll_after_ms=wait))


def matches(if_none_match: str | None, etag: str) -> bool:
    """Whether an If-None-Match header names this ETag; weak ones count, as the header compares weakly."""
    if if_none_match is None:
        return False
    given = [item.strip().removeprefix("W/") for item in if_none_match.split(",")]
    return "*" in given or etag in given


async def run_row(api: Api, request: Caller, run_id: str) -> Row:
    """The row of the caller's run. Raises Refused: not-found."""
    row = await api.reads.run(request.user.tenant, identifier(run_id, "run"))
    if row is None:
        raise not_found(f"run {run_id}")
    return row


def run_uuid(row: Row) -> uuid.UUID:
    """The id in a run's row."""
    found: uuid.UUID = row["run_id"]
    return found


def _query(query: dict[str, str | None], limit: int, cursor: str) -> str:
    kept = {name: value for name, value in query.items() if value is not None and name != "tenant"}
    return urlencode({**kept, "limit": limit, "cursor": cursor})


def _columns(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in RunAnswer.__struct_fields__}


def _listed(row: Row) -> RunAnswer:
    return RunAnswer(**_columns(row))


ROUTES = [list_runs, get_run, get_summary]
