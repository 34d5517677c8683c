"""The OpenAPI document is true: it names the routes there are, and no request it allows makes the server stumble."""

import asyncio

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from litestar import Litestar

from longtake.api import build_api
from longtake.api.openapi import OPERATIONS, openapi_document

EXAMPLES = 8


def _routes(api: Litestar) -> set[tuple[str, str]]:
    return {
        (method.lower(), route.path_format)
        for route in api.routes
        for method in getattr(route, "route_handler_map", {})
        if method != "OPTIONS"
    }


def test_the_document_names_exactly_the_routes_there_are():
    """A table that lacks one would be noticed."""
    from types import SimpleNamespace

    there = _routes(build_api(SimpleNamespace(keys=None)))
    named = {(operation.method, operation.path) for operation in OPERATIONS}

    assert named == there
    assert named - {("get", "/v1/runs")} != there


async def test_no_request_that_the_document_allows_breaks_the_server(counter):
    """Generated requests for every address: no 5xx, every refusal a problem, every answer of its schema."""
    await counter.start("seed")
    key = counter.http.headers["authorization"]
    document = {**openapi_document(), "servers": [{"url": counter.url}]}
    schema = schemathesis.openapi.from_dict(document)

    def ask_all() -> int:
        asked = 0
        for result in schema.get_all_operations():
            operation = result.ok()

            @given(case=operation.as_strategy())
            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def ask(case):
                nonlocal asked
                asked += 1
                response = case.call(base_url=counter.url, headers={"Authorization": key}, timeout=10)
                told = f"{case.method} {case.formatted_path}: {response.status_code} {response.text[:300]}"
                assert response.status_code < 500, told
                if response.status_code >= 400:
                    assert response.headers["content-type"][0] == "application/problem+json", told

            ask()
        return asked

    async with asyncio.timeout(60):
        assert await asyncio.to_thread(ask_all) > len(OPERATIONS)
