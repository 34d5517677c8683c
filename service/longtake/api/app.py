"""The application object: all routes over one context."""

from typing import Any

from litestar import Litestar, Response, Router, get
from litestar.di import Provide
from litestar.types import ASGIApp

from longtake.api import artifacts, callbacks, commands, health, history, runs, steps, stream
from longtake.api.auth import Authenticator, requires_key
from longtake.api.context import ApiContext
from longtake.api.edge import Edge
from longtake.api.openapi import openapi_document
from longtake.api.problems import exception_handlers

BODY_BYTES_MAX = 64 * 1024
"""For addresses that say nothing else; commands and callbacks have limits of their own."""


@get("/openapi.json")
async def get_openapi() -> Response[dict[str, Any]]:
    """The description of this API."""
    return Response(openapi_document())


def build_api(context: ApiContext) -> Litestar:
    """All routes, ready to be served behind `Edge`."""
    with_key = Router(
        path="/",
        guards=[requires_key(Authenticator(context.keys))],
        route_handlers=[
            *commands.ROUTES,
            *runs.ROUTES,
            *steps.ROUTES,
            *history.ROUTES,
            *stream.ROUTES,
            *artifacts.ROUTES,
        ],
    )
    return Litestar(
        route_handlers=[with_key, *callbacks.ROUTES, *health.ROUTES, get_openapi],
        dependencies={"api": Provide(lambda: context, sync_to_thread=False)},
        exception_handlers=exception_handlers(),
        request_max_body_size=BODY_BYTES_MAX,
        openapi_config=None,
        logging_config=None,
        debug=False,
    )


def build_asgi(context: ApiContext) -> ASGIApp:
    """The whole API as a server runs it."""
    return Edge(build_api(context), hosts=context.hosts)
