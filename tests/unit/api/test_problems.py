"""Whatever breaks becomes a problem: away is 503, unforeseen is 500 without our inside, and the trace is named."""

import httpx2
import pytest

from longtake.api import ApiContext, build_asgi
from longtake.contracts.principal import Principal
from longtake.errors import AuthorityUnavailable
from longtake.telemetry import tracing
from longtake.telemetry.setup import TelemetrySettings, setup_telemetry

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Breaking:
    """Reads of which each raises what it is told to."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str):
        async def broken(*arguments: object, **options: object):
            raise self._error

        return broken


class OneKey:
    async def principal(self, text: str) -> Principal | None:
        return Principal(tenant="acme", actor="a")


def _http(error: Exception) -> httpx2.AsyncClient:
    context = ApiContext(
        admission=Breaking(error),
        inbox=Breaking(error),
        reads=Breaking(error),
        keys=OneKey(),
        objects=Breaking(error),
        store_epoch=1,
        cursor_secret=b"x" * 32,
    )
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(build_asgi(context)),
        base_url="http://127.0.0.1",
        headers={"Authorization": "Bearer lt_x", "Idempotency-Key": "k", "Content-Type": "application/json"},
    )


RUN = "/v1/runs/00000000-0000-0000-0000-000000000001"
REQUESTS = [
    ("POST", "/v1/commands"),
    ("GET", "/v1/commands/k"),
    ("GET", "/v1/runs"),
    ("GET", RUN),
    *(
        ("GET", f"{RUN}/{name}")
        for name in ("summary", "steps", "effects", "events", "events/stream", "plan", "ledger")
    ),
    ("GET", "/v1/artifacts/00000000-0000-0000-0000-000000000001"),
    ("POST", "/v1/callbacks/studio/token"),
    ("GET", "/health/ready"),
]
BODY = b'{"kind":"generation","project":"p","payload":{"workflow":"w@1"}}'


@pytest.mark.parametrize(("method", "address"), REQUESTS)
async def test_an_authority_that_is_away_is_503_with_when_to_come_back(method, address):
    async with _http(AuthorityUnavailable("connection refused at /secret/socket")) as http:
        response = await http.request(method, address, content=BODY if method == "POST" else None)

    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["type"].endswith("/unavailable")
    assert "secret" not in response.text


@pytest.mark.parametrize(("method", "address"), REQUESTS)
async def test_what_nobody_foresaw_is_500_and_tells_nothing_of_our_inside(method, address):
    async with _http(RuntimeError("password=hunter2 at line 7")) as http:
        response = await http.request(method, address, content=BODY if method == "POST" else None)

    assert (response.status_code, response.json()["type"].rpartition("/")[2]) == (500, "internal")
    assert "hunter2" not in response.text and "RuntimeError" not in response.text


async def test_a_live_process_is_live_without_its_authority():
    async with _http(AuthorityUnavailable("away")) as http:
        assert (await http.get("/health/live")).status_code == 200


async def test_a_problem_names_the_trace_of_its_request_and_the_span_its_route():
    telemetry = setup_telemetry(TelemetrySettings(exporter="memory"))
    try:
        async with _http(AuthorityUnavailable("away")) as http:
            refused = await http.get(f"{RUN}/summary", headers={"traceparent": TRACEPARENT})
            await http.get("/nowhere")
        assert refused.json()["trace_id"] == TRACEPARENT.split("-")[1]
        spans = telemetry.finished_spans()
        assert [span.name for span in spans] == ["GET /v1/runs/{run_id}/summary", "GET"]
        assert spans[0].parent.span_id == int(TRACEPARENT.split("-")[2], 16)
        assert spans[0].attributes["http.response.status_code"] == 503
    finally:
        telemetry.shutdown()
    assert not tracing.is_enabled()
