"""The history of a run: its events with their hashes, and its money."""

from typing import Any

import msgspec
from litestar import Response, get

from longtake.api.answers import EventAnswer, EventPage, Ledger, LedgerEntryAnswer
from longtake.api.context import Api, Caller, Row
from longtake.api.parameters import identifier, integer
from longtake.api.problems import not_found

EVENTS_DEFAULT = 200
EVENTS_MAX = 1000
SEQ_MAX = 2**31 - 1


@get("/v1/runs/{run_id:str}/events")
async def get_events(request: Caller, api: Api, run_id: str) -> Response[EventPage]:
    """Events after a seq, oldest first."""
    after = integer(request, "after", default=0, low=0, high=SEQ_MAX)
    limit = integer(request, "limit", default=EVENTS_DEFAULT, low=1, high=EVENTS_MAX)
    id_ = identifier(run_id, "run")
    run = await api.reads.summary(request.user.tenant, id_)
    if run is None:
        raise not_found(f"run {run_id}")
    rows = await api.reads.events(request.user.tenant, id_, after=after, limit=limit + 1)
    shown = [event_answer(id_, row) for row in rows[:limit]]
    return Response(
        EventPage(run_id=id_, events=shown, next_after=shown[-1].seq if len(rows) > limit else None)
    )


@get("/v1/runs/{run_id:str}/ledger")
async def get_ledger(request: Caller, api: Api, run_id: str) -> Response[Ledger]:
    """What the run cost and gave back."""
    id_ = identifier(run_id, "run")
    run = await api.reads.run(request.user.tenant, id_)
    if run is None:
        raise not_found(f"run {run_id}")
    rows = await api.reads.ledger(request.user.tenant, id_)
    charged = sum(row["amount"] for row in rows if row["kind"] == "charge")
    refunded = sum(row["amount"] for row in rows if row["kind"] == "refund")
    return Response(
        Ledger(
            run_id=id_,
            entries=[LedgerEntryAnswer(**_columns(row)) for row in rows],
            charged=charged,
            refunded=refunded,
            net=charged - refunded,
        )
    )


def event_answer(run_id: Any, row: Row) -> EventAnswer:
    """One event as clients see it; its bytes go through untouched."""
    return EventAnswer(
        run_id=run_id,
        seq=row["seq"],
        id=row["id"],
        type=row["type"],
        version=row["version"],
        recorded_at=row["recorded_at"],
        store_epoch=row["store_epoch"],
        tx_id=row["tx_id"],
        hash=row["hash"].hex(),
        data=msgspec.Raw(row["data"]),
        meta=msgspec.Raw(row["meta"]),
    )


def _columns(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in LedgerEntryAnswer.__struct_fields__}


ROUTES = [get_events, get_ledger]
