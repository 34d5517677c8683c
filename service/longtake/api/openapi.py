"""The OpenAPI 3.1 document, from a table of addresses and the very structs that are sent.

Written by hand rather than guessed from handlers: bodies are read as bytes, and every address names its problems. A
test holds the table to the routes that exist.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from longtake.api import answers
from longtake.contracts.commands import Command
from longtake.contracts.ids import NAME_PATTERN
from longtake.contracts.problems import CATALOGUE, Problem
from longtake.contracts.summary import RunStatus, Summary

VERSION = "1"
_REF = "#/components/schemas/{name}"
_UUID = {"type": "string", "format": "uuid"}


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One address and method."""

    method: str
    path: str
    id: str
    summary: str
    answers: Mapping[int, tuple[str, str, Any]]
    """Status to (what it means, media type, type of the body or None)."""
    problems: Sequence[str] = ()
    parameters: Sequence[str] = ()
    body: tuple[str, Any] | None = None
    key: bool = True


def _json(type_: Any, what: str = "As asked") -> tuple[str, str, Any]:
    return what, "application/json", type_


_EMPTY = ("Nothing new", "", None)
_BYTES = ("The bytes", "application/octet-stream", bytes)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="post",
        path="/v1/commands",
        id="postCommand",
        summary="Admit a command",
        answers={202: _json(answers.ReceiptAnswer, "Decided and kept; the same for every repeat")},
        problems=(
            "malformed", "idempotency-key-missing", "forbidden", "not-found", "command-in-progress",
            "action-not-available", "scope-conflict", "insufficient-funds", "stale-revision", "too-large",
            "unsupported-media-type", "invalid-command", "invalid-plan", "command-conflict", "unknown-workflow",
            "precondition-missing", "invalid-parameter",
        ),
        parameters=("Idempotency-Key", "If-Match", "traceparent"),
        body=("application/json", Command),
    ),
    Operation(
        method="get",
        path="/v1/commands/{command_id}",
        id="getCommand",
        summary="A command of one's own, with the status it has now",
        answers={200: _json(answers.CommandAnswer)},
        problems=("not-found",),
        parameters=("command_id",),
    ),
    Operation(
        method="get",
        path="/v1/runs",
        id="listRuns",
        summary="Runs, newest first",
        answers={200: _json(answers.RunPage)},
        problems=("bad-cursor", "invalid-parameter"),
        parameters=("project", "status", "workflow", "cursor", "limit"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}",
        id="getRun",
        summary="One run",
        answers={200: _json(answers.RunDetails)},
        problems=("not-found",),
        parameters=("run_id",),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/summary",
        id="getSummary",
        summary="How a run is and what may be done",
        answers={200: _json(Summary), 304: _EMPTY},
        problems=("not-found",),
        parameters=("run_id", "If-None-Match"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/steps",
        id="getSteps",
        summary="Every step of the plan, with attempts and claims",
        answers={200: _json(answers.Steps)},
        problems=("not-found",),
        parameters=("run_id",),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/effects",
        id="getEffects",
        summary="Every effect with its evidence",
        answers={200: _json(answers.Effects)},
        problems=("not-found",),
        parameters=("run_id",),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/plan",
        id="getPlan",
        summary="The frozen plan, as data or as a Mermaid flowchart",
        answers={200: _json(answers.PlanAnswer)},
        problems=("not-found", "invalid-parameter"),
        parameters=("run_id", "format"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/events",
        id="getEvents",
        summary="Events with their hashes",
        answers={200: _json(answers.EventPage)},
        problems=("not-found", "invalid-parameter"),
        parameters=("run_id", "after", "events_limit"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/events/stream",
        id="streamEvents",
        summary="Events as they happen (SSE); frames are named by event type, the last one `end`",
        answers={200: ("Frames", "text/event-stream", str), 204: ("The run has ended and all was told", "", None)},
        problems=("not-found", "invalid-parameter"),
        parameters=("run_id", "after", "Last-Event-ID"),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/ledger",
        id="getLedger",
        summary="The money of a run",
        answers={200: _json(answers.Ledger)},
        problems=("not-found",),
        parameters=("run_id",),
    ),
    Operation(
        method="get",
        path="/v1/runs/{run_id}/artifacts",
        id="listArtifacts",
        summary="What a run published",
        answers={200: _json(answers.Artifacts)},
        problems=("not-found",),
        parameters=("run_id",),
    ),
    Operation(
        method="get",
        path="/v1/artifacts/{artifact_id}",
        id="getArtifact",
        summary="The bytes of an artifact, whole or in part",
        answers={200: _BYTES, 206: _BYTES, 304: _EMPTY},
        problems=("not-found", "range-not-satisfiable"),
        parameters=("artifact_id", "Range", "If-None-Match"),
    ),
    Operation(
        method="head",
        path="/v1/artifacts/{artifact_id}",
        id="headArtifact",
        summary="Size, type and digest of an artifact",
        answers={200: ("Headers only", "", None), 206: ("Headers only", "", None), 304: _EMPTY},
        problems=("not-found", "range-not-satisfiable"),
        parameters=("artifact_id", "Range", "If-None-Match"),
    ),
    Operation(
        method="post",
        path="/v1/callbacks/{provider}/{token}",
        id="postCallback",
        summary="A provider's webhook; verified over its raw bytes before anything is kept",
        answers={200: _json(answers.CallbackReceived, "Kept, or a copy of one that was")},
        problems=("bad-signature", "not-found", "too-large"),
        parameters=("provider", "token"),
        body=("*/*", bytes),
        key=False,
    ),
    Operation(
        method="get",
        path="/health/live",
        id="getLive",
        summary="The process answers",
        answers={200: _json(answers.Live)},
        key=False,
    ),
    Operation(
        method="get",
        path="/health/ready",
        id="getReady",
        summary="The authority answers",
        answers={200: _json(answers.Ready)},
        problems=("unavailable",),
        key=False,
    ),
    Operation(
        method="get",
        path="/metrics",
        id="getMetrics",
        summary="Counters in Prometheus' text form",
        answers={200: ("Counters", "text/plain", str)},
        key=False,
    ),
    Operation(
        method="get",
        path="/openapi.json",
        id="getOpenapi",
        summary="This document",
        answers={200: ("This document", "application/json", dict[str, Any])},
        key=False,
    ),
)  # fmt: skip


def _whole(low: int, high: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high, "default": default}


_PARAMETERS: dict[str, tuple[str, str, bool, dict[str, Any], str]] = {
    "command_id": ("command_id", "path", True, {"type": "string", "pattern": NAME_PATTERN}, "The client's id"),
    "run_id": ("run_id", "path", True, _UUID, "The run"),
    "artifact_id": ("artifact_id", "path", True, _UUID, "The artifact"),
    "provider": ("provider", "path", True, {"type": "string"}, "The provider's name"),
    "token": ("token", "path", True, {"type": "string"}, "Signed: run, step and attempt"),
    "project": (
        "project", "query", False, {"type": "string", "minLength": 1, "maxLength": 256}, "Of this project only",
    ),
    "status": ("status", "query", False, msgspec.json.schema(RunStatus), "In this status only"),
    "workflow": (
        "workflow", "query", False, {"type": "string", "minLength": 1, "maxLength": 256}, "Of this workflow only",
    ),
    "cursor": ("cursor", "query", False, {"type": "string", "maxLength": 512}, "next_cursor of the page before"),
    "limit": ("limit", "query", False, _whole(1, 200, 50), "Runs a page"),
    "events_limit": ("limit", "query", False, _whole(1, 1000, 200), "Events a page"),
    "after": ("after", "query", False, _whole(0, 2**31 - 1, 0), "Only events after this seq"),
    "format": ("format", "query", False, {"enum": ["json", "mermaid"], "default": "json"}, "Form of the plan"),
    "Idempotency-Key": (
        "Idempotency-Key", "header", False, {"type": "string", "pattern": NAME_PATTERN},
        "The client's id of the command; the body's client_command_id may say the same",
    ),
    "If-Match": ("If-Match", "header", False, {"type": "string"}, "ETag of the summary that was seen"),
    "If-None-Match": ("If-None-Match", "header", False, {"type": "string"}, "ETag that is already here"),
    "Last-Event-ID": ("Last-Event-ID", "header", False, {"type": "string"}, "Go on after this frame"),
    "Range": ("Range", "header", False, {"type": "string"}, "One range of bytes"),
    "traceparent": ("traceparent", "header", False, {"type": "string"}, "W3C trace context"),
}  # fmt: skip


@lru_cache(maxsize=1)
def openapi_document() -> dict[str, Any]:
    """The whole document as plain JSON values."""
    schemas = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "longtake",
            "version": VERSION,
            "description": "Durable workflows: commands in, events out, money and evidence in between.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "bearerFormat": "lt_<id>_<secret>"}
            },
        },
    }


def _schemas() -> dict[str, Any]:
    types: list[Any] = [Problem, Command]
    for operation in OPERATIONS:
        types += [type_ for _, _, type_ in operation.answers.values() if _is_struct(type_)]
    _, found = msgspec.json.schema_components(list(dict.fromkeys(types)), ref_template=_REF)
    return dict(sorted(found.items()))


def _operation(operation: Operation) -> dict[str, Any]:
    responses = {str(status): _response(*said) for status, said in operation.answers.items()}
    if operation.id == "getPlan":
        responses["200"]["content"]["text/vnd.mermaid"] = {"schema": {"type": "string"}}
    slugs = [*operation.problems, "bad-host", "internal", "unavailable"]
    if operation.key:
        slugs.append("unauthenticated")
    by_status: dict[int, list[str]] = {}
    for slug in dict.fromkeys(slugs):
        by_status.setdefault(CATALOGUE[slug][1], []).append(slug)
    for status, names in sorted(by_status.items()):
        responses[str(status)] = _refusal(names, body=operation.method != "head")
    made: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": responses,
    }
    if operation.parameters:
        made["parameters"] = [_parameter(*_PARAMETERS[name]) for name in operation.parameters]
    if operation.body is not None:
        media, type_ = operation.body
        made["requestBody"] = {"required": True, "content": {media: {"schema": _schema(type_)}}}
    if operation.key:
        made["security"] = [{"key": []}]
    return made


def _parameter(name: str, place: str, required: bool, schema: dict[str, Any], what: str) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema, "description": what}


def _response(what: str, media: str, type_: Any) -> dict[str, Any]:
    if type_ is None:
        return {"description": what}
    return {"description": what, "content": {media: {"schema": _schema(type_)}}}


def _refusal(slugs: Sequence[str], *, body: bool) -> dict[str, Any]:
    said = "; ".join(f"{slug}: {CATALOGUE[slug][0]}" for slug in slugs)
    if not body:
        return {"description": said}
    return {"description": said, "content": {"application/problem+json": {"schema": _schema(Problem)}}}


def _schema(type_: Any) -> dict[str, Any]:
    if type_ is bytes:
        return {}
    if _is_struct(type_):
        return {"$ref": _REF.format(name=type_.__name__)}
    return msgspec.json.schema(type_)


def _is_struct(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, msgspec.Struct)
