"""The HTTP API (floor 5): routes over the engine's admission and the authority's reads. No decision is made here."""

from longtake.api.app import build_api, build_asgi
from longtake.api.context import ApiContext
from longtake.api.requests import NatsRequests
from longtake.api.server import ApiServer

__all__ = ["ApiContext", "ApiServer", "NatsRequests", "build_api", "build_asgi"]
