"""Golden events: one of each type and version as bytes, and a digest of the shape that each event has today (F57).

A corpus is a folder `tests/histories/corpus/<number>/`: `events.jsonl` holds {type, version, from, data} a line,
`shapes.json` holds {type: {version, digest}}. Run `python -m kit.corpora` to write the next one after a new version.
"""

import hashlib
import json
import sys
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from longtake.cli.captured import captured_files, read_captured
from longtake.contracts.events import EVENT_TYPES, Event
from longtake.contracts.upcasters import UPCASTERS, encode_event

HISTORIES = Path(__file__).parents[1] / "histories"
FOLDER = HISTORIES / "corpus"
_INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
_ID = uuid.UUID("018f0000-0000-7000-8000-000000000001")


class GoldenEvent(NamedTuple):
    """An event as it was once written: wire type, version, where the bytes are from, the bytes."""

    type: str
    version: int
    origin: str
    data: bytes


def corpora() -> list[Path]:
    """All corpora, oldest first."""
    return sorted((path for path in FOLDER.iterdir() if path.is_dir()), key=lambda path: int(path.name))


def golden_events(corpus: Path) -> list[GoldenEvent]:
    """The events of one corpus."""
    lines = (corpus / "events.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [GoldenEvent(row["type"], row["version"], row["from"], row["data"].encode()) for row in rows]


def shape_digest(event: type[Event]) -> str:
    """SHA-256 of names, types, defaults and allowed values of an event's fields, all the way down; words apart."""
    shape = json.dumps(_without_words(msgspec.json.schema(event)), sort_keys=True)
    return hashlib.sha256(shape.encode()).hexdigest()


def changed_shapes(
    events: Iterable[type[Event]],
    kept: dict[str, dict[str, Any]],
    upcasters: Iterable[tuple[str, int]] = tuple(UPCASTERS),
) -> list[str]:
    """What is wrong between the events of today and the shapes that a corpus keeps; empty when nothing is."""
    today = {event.TYPE: event for event in events}
    leading_on = set(upcasters)
    found = [f"{name}: written once, and no type of today reads it" for name in kept if name not in today]
    for name, event in today.items():
        was = kept.get(name)
        if was is None:
            found.append(f"{name}: a new type, not in the newest corpus")
        elif event.VERSION == was["version"] and shape_digest(event) != was["digest"]:
            found.append(f"{name}: another shape under the same version {event.VERSION}")
        elif event.VERSION < was["version"]:
            found.append(
                f"{name}: version {event.VERSION} is older than the {was['version']} that was written"
            )
        elif event.VERSION > was["version"]:
            found.append(f"{name}: version {event.VERSION} is not in the newest corpus")
        found += [
            f"{name}: no upcaster leads on from version {version}"
            for version in range(1, event.VERSION)
            if (name, version) not in leading_on
        ]
    return found


def full_example(event: type[Event]) -> bytes:
    """An event with every field filled, as it is stored."""
    return encode_event(msgspec.convert(_example(inspect.type_info(event)), event))


def _without_words(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_words(value)
            for key, value in schema.items()
            if not (key in ("description", "title") and isinstance(value, str))
        }
    return [_without_words(item) for item in schema] if isinstance(schema, list) else schema


def _example(info: inspect.Type) -> Any:
    match info:
        case inspect.StructType():
            made = {field.encode_name: _example(field.type) for field in info.fields}
            return {**made, **({info.tag_field: info.tag} if info.tag_field else {})}
        case inspect.UnionType():
            return _example(next(one for one in info.types if not isinstance(one, inspect.NoneType)))
        case inspect.Metadata():
            return _example(info.type)
        case inspect.LiteralType():
            return info.values[-1]
        case inspect.EnumType():
            return list(info.cls)[-1].value
        case inspect.DateTimeType():
            return _INSTANT.isoformat()
        case inspect.UUIDType():
            return str(_ID)
        case inspect.VarTupleType() | inspect.ListType() | inspect.SetType() | inspect.FrozenSetType():
            return [_example(info.item_type)]
        case inspect.TupleType():
            return [_example(item) for item in info.item_types]
        case inspect.DictType():
            return {_example(info.key_type): _example(info.value_type)}
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return max(7, info.ge or 0)
        case inspect.FloatType():
            return 7.5
        case inspect.StrType():
            return "a" * max(8, info.min_length or 0)
        case inspect.BytesType():
            return "YWJj"
        case inspect.AnyType() | inspect.RawType():
            return {"any": 1}
    raise TypeError(f"no example of {info}")


def _captured() -> dict[tuple[str, int], GoldenEvent]:
    found: dict[tuple[str, int], GoldenEvent] = {}
    for path in captured_files(HISTORIES):
        for event in read_captured(path).events:
            key = (event.type, event.version)
            found.setdefault(key, GoldenEvent(*key, path.name, bytes(event.data)))
    return found


def _write(corpus: Path) -> None:
    corpus.mkdir(parents=True)
    generated = [GoldenEvent(one.TYPE, one.VERSION, "contracts", full_example(one)) for one in EVENT_TYPES]
    events = sorted([*_captured().values(), *generated])
    rows = [
        {"type": one.type, "version": one.version, "from": one.origin, "data": one.data.decode()}
        for one in events
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (corpus / "events.jsonl").write_text(lines, encoding="utf-8")
    shapes = {one.TYPE: {"version": one.VERSION, "digest": shape_digest(one)} for one in EVENT_TYPES}
    (corpus / "shapes.json").write_text(json.dumps(shapes, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    newest = FOLDER / str(len(corpora()) + 1)
    _write(newest)
    sys.stdout.write(f"{newest}: {len(golden_events(newest))} events\n")
