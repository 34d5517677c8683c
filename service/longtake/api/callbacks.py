"""Callbacks of providers: raw bytes, verified before anything is kept (P4). No API key: the token and the signature prove."""

from typing import Any

from litestar import Request, Response, post

from longtake.api.answers import CallbackReceived
from longtake.api.context import Api
from longtake.crash_points import reach
from longtake.engine.inbox import CALLBACK_BYTES_MAX
from longtake.telemetry.tracing import current_traceparent

TOKEN_CHARACTERS_MAX = 1024


@post("/v1/callbacks/{provider:str}/{token:str}", status_code=200, request_max_body_size=CALLBACK_BYTES_MAX)
async def post_callback(
    request: Request[Any, Any, Any], api: Api, provider: str, token: str
) -> Response[CallbackReceived]:
    """Keep one callback; the answer comes after the commit."""
    raw = await request.body()
    headers = {name.lower(): value for name, value in request.headers.items()}
    kept = await api.inbox.receive(
        provider, token[:TOKEN_CHARACTERS_MAX], headers, raw, traceparent=current_traceparent()
    )
    reach("inbox.before_2xx")
    return Response(CallbackReceived(inbox_id=kept.inbox_id, duplicate=kept.duplicate))


ROUTES = [post_callback]
