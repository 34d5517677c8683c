"""Health and counters: what a supervisor and a scraper ask. No key is needed and no tenant is named."""

from litestar import Response, get
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from longtake.api.answers import Live, Ready
from longtake.api.context import Api


@get("/health/live")
async def get_live() -> Response[Live]:
    """The process answers."""
    return Response(Live(status="live"), headers={"Cache-Control": "no-store"})


@get("/health/ready")
async def get_ready(api: Api) -> Response[Ready]:
    """The authority answers; a 503 otherwise. Without NATS commands are still admitted, hints come late."""
    await api.reads.ready()
    return Response(
        Ready(
            status="ready",
            postgres="up",
            nats=api.nats_health(),
            store_epoch=api.store_epoch,
        ),
        headers={"Cache-Control": "no-store"},
    )


@get("/metrics")
async def get_metrics() -> Response[bytes]:
    """Counters in Prometheus' text form."""
    return Response(generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


ROUTES = [get_live, get_ready, get_metrics]
