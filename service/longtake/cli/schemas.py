"""`longtake schemas`: the contracts as JSON Schema and OpenAPI, generated from the code and kept in the repository."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import App, Parameter

from longtake import resources
from longtake.api.openapi import openapi_document
from longtake.cli.output import Json, print_json, print_line
from longtake.contracts.command_table import TABLE, CommandRow
from longtake.contracts.commands import Command
from longtake.contracts.events import EVENT_TYPES
from longtake.contracts.problems import Problem
from longtake.contracts.summary import Summary

app = App(name="schemas", help="Write or check the JSON Schemas.")

DRAFT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://longtake.dev/schemas/"

Out = Annotated[
    Path | None, Parameter(name="--out", help="The folder; schemas/ of this installation without it")
]


@app.command
def export(*, out: Out = None, json: Json = False) -> None:
    """Write every schema; files that are right already stay untouched."""
    folder = _folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in schema_files().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            written.append(name)
    if json:
        print_json({"folder": str(folder), "written": written})
    else:
        print_line(f"{folder}: " + (", ".join(written) if written else "all schemas are up to date"))


@app.command
def check(*, out: Out = None, json: Json = False) -> int:
    """Compare the files with the code; the end is 1 when one has drifted."""
    folder = _folder(out)
    drifted = [
        name
        for name, text in schema_files().items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
    ]
    if json:
        print_json({"folder": str(folder), "drifted": drifted})
    else:
        for name in drifted:
            print_line(f"{folder / name} is not what the code says; run `longtake schemas export`")
        if not drifted:
            print_line(f"{folder}: all schemas are as the code says")
    return 1 if drifted else 0


def schema_files() -> dict[str, str]:
    """File name to text, for every schema there is."""
    documents = {
        "command.json": _command_schema(),
        "event.json": _event_schema(),
        "summary.json": _schema("summary", Summary),
        "problem.json": _schema("problem", Problem),
        "openapi.json": openapi_document(),
    }
    return {
        name: msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
        for name, document in documents.items()
    }


def _schema(name: str, type_: Any) -> dict[str, Any]:
    return {"$schema": DRAFT, "$id": f"{BASE}{name}.json", **msgspec.json.schema(type_)}


def _command_schema() -> dict[str, Any]:
    """A command as producers send it: the envelope, and by kind its payload, its targets and whether it has a revision."""
    kinds = list(TABLE.values())
    shapes = [Command, *dict.fromkeys(row.body for row in kinds)]
    refs, definitions = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    payload = dict(zip(shapes[1:], refs[1:], strict=True))
    return {
        "$schema": DRAFT,
        "$id": f"{BASE}command.json",
        "$ref": refs[0]["$ref"],
        "oneOf": [
            {
                "title": row.kind,
                "description": f"Allowed: {row.allowed}.",
                "required": [*(["targets"] if row.needs_run else []), *_needed(row)],
                "properties": {
                    "kind": {"const": row.kind},
                    "payload": payload[row.body],
                    "targets": {"minItems": 1, "maxItems": 1} if row.needs_run else {"maxItems": 0},
                    **({} if row.needs_revision else {"expected_revision": {"type": "null"}}),
                },
            }
            for row in kinds
        ],
        "$defs": definitions,
    }


def _needed(row: CommandRow) -> list[str]:
    """`payload` where a payload has members that must be there; the revision may also come as If-Match."""
    is_needed = any(field.required for field in msgspec.structs.fields(row.body))
    return ["payload"] if is_needed else []


def _event_schema() -> dict[str, Any]:
    """An event as `history export` and the API give it: the envelope, and data by type and version."""
    refs, definitions = msgspec.json.schema_components(EVENT_TYPES, ref_template="#/$defs/{name}")
    envelope = {
        "run_id": {"type": "string", "format": "uuid"},
        "seq": {"type": "integer", "minimum": 1},
        "id": {"type": "string", "format": "uuid"},
        "recorded_at": {"type": "string", "format": "date-time"},
        "store_epoch": {"type": "integer", "minimum": 1},
        "hash": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        "meta": {"type": "object"},
    }
    kinds = [
        {"properties": {"type": {"const": kind.TYPE}, "version": {"const": kind.VERSION}, "data": ref}}
        for kind, ref in zip(EVENT_TYPES, refs, strict=True)
    ]
    return {
        "$schema": DRAFT,
        "$id": f"{BASE}event.json",
        "title": "Event",
        "description": "One stored event of a run.",
        "type": "object",
        "required": [*envelope, "type", "version", "data"],
        "properties": {
            **envelope,
            "type": {"enum": [kind.TYPE for kind in EVENT_TYPES]},
            "version": {"type": "integer", "minimum": 1},
            "data": {"type": "object"},
        },
        "oneOf": kinds,
        "$defs": definitions,
    }


def _folder(out: Path | None) -> Path:
    return out if out is not None else resources.directory("schemas")
