"""The renderer as a process: `python -m videoads.renderer COMMAND ...`.

    schema  OUT.json                              the JSON schema of a composition
    compose REQUEST.json OUT.json                 {"brief" or "script", "media", "timings"} -> a composition
    still   REQUEST.json FRAME OUT.png            one frame
    render  REQUEST.json OUT.mp4 [POSTER.jpg CONTACT.jpg]
    poster  FILM OUT.jpg [COMPOSITION.json]       the best still of a finished film
    contact FILM OUT.jpg [COMPOSITION.json]       a frame a second of a finished film

A render or still request is {"composition": {...}, "media": {key: path}}, or a bare composition whose media are
paths beside it. Progress and the report are JSON lines on stdout; bad input is one line on stderr and status 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from videoads.brief import BriefError, parse_brief
from videoads.renderer.composition import (
    Composition,
    CompositionError,
    Timings,
    composition_as_json,
    composition_schema,
    media_of,
    parse_composition,
)
from videoads.script import Script, write_script

__all__ = ["main"]

USAGE_STATUS, BAD_INPUT_STATUS = 2, 1
PROGRESS_EVERY = 24


class RequestError(ValueError):
    """A request file that cannot be used."""


def main(arguments: list[str]) -> int:
    """Run one command and return the exit status."""
    commands: dict[str, tuple[Callable[[list[Path]], dict[str, Any]], tuple[int, ...]]] = {
        "schema": (_schema, (1,)),
        "compose": (_compose, (2,)),
        "still": (_still, (3,)),
        "render": (_render, (2, 4)),
        "poster": (_poster, (2, 3)),
        "contact": (_contact, (2, 3)),
    }
    chosen = commands.get(arguments[0]) if arguments else None
    if chosen is None or len(arguments) - 1 not in chosen[1]:
        print(__doc__, file=sys.stderr)
        return USAGE_STATUS
    try:
        report = chosen[0]([Path(argument) for argument in arguments[1:]])
    except (ValueError, OSError, RuntimeError) as error:
        # Every refusal of the renderer is one of these; one line says which file and what is wrong with it.
        print(f"{arguments[1]}: {' '.join(str(error).split())}", file=sys.stderr)
        return BAD_INPUT_STATUS
    _say(report)
    return 0


def _schema(paths: list[Path]) -> dict[str, Any]:
    text = msgspec.json.format(msgspec.json.encode(composition_schema()), indent=2)
    paths[0].write_bytes(text + b"\n")
    return {"schema": paths[0].name}


def _compose(paths: list[Path]) -> dict[str, Any]:
    from videoads.renderer.composing import MediaKeys, compose

    request = _document(paths[0])
    if "script" in request:
        script = _converted(request["script"], Script, "/script")
    else:
        try:
            script = write_script(
                parse_brief(msgspec.json.encode(request.get("brief")), base=paths[0].parent)
            )
        except BriefError as error:
            raise RequestError(
                "; ".join(f"/brief{p.pointer}: {p.message}" for p in error.problems)
            ) from error
    media = _converted(request.get("media"), MediaKeys, "/media")
    timings = request.get("timings")
    timed = None if timings is None else _converted(timings, Timings, "/timings")
    composition = compose(script, media, timed)
    paths[1].write_bytes(composition_as_json(composition))
    return {"composition": paths[1].name, "frames": composition.output.frames}


def _still(paths: list[Path]) -> dict[str, Any]:
    from videoads.renderer.painting import Painter

    composition, media = _film_request(paths[0])
    text = str(paths[1])
    last = composition.output.frames - 1
    if not text.isdecimal() or int(text) > last:
        raise RequestError(f"frame {text} is not in the film; give 0 to {last}")
    if paths[2].suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise RequestError(f"{paths[2].name} has no picture ending; use .png, .jpg or .webp")
    painter = Painter(composition, media)
    try:
        painter.paint(int(text)).save(paths[2])
    finally:
        painter.close()
    return {"still": paths[2].name, "frame": int(text)}


def _render(paths: list[Path]) -> dict[str, Any]:
    from videoads.renderer.film import render_film
    from videoads.renderer.stills import StillGatherer

    composition, media = _film_request(paths[0])
    stills = StillGatherer(composition) if len(paths) == 4 else None

    def told(done: int, of: int) -> None:
        if done % PROGRESS_EVERY == 0 or done == of:
            _say({"progress": {"frames_done": done, "frames": of}})

    report = render_film(
        composition, media, paths[1], progress=told, on_frame=None if stills is None else stills.see
    )
    if stills is not None:
        stills.write_poster(paths[2])
        stills.write_contact(paths[3])
    return {"film": paths[1].name, **msgspec.to_builtins(report)}


def _poster(paths: list[Path]) -> dict[str, Any]:
    from videoads.renderer.stills import stills_of_film

    stills_of_film(paths[0], _optional_composition(paths), poster=paths[1])
    return {"poster": paths[1].name}


def _contact(paths: list[Path]) -> dict[str, Any]:
    from videoads.renderer.stills import stills_of_film

    stills_of_film(paths[0], _optional_composition(paths), contact=paths[1])
    return {"contact": paths[1].name}


def _optional_composition(paths: list[Path]) -> Composition | None:
    return parse_composition(paths[2].read_bytes()) if len(paths) == 3 else None


def _film_request(path: Path) -> tuple[Composition, Callable[[str], Path]]:
    """Read a composition and where its media are; every medium must be there before work begins."""
    document = _document(path)
    folder = path.parent
    places: dict[str, str] = {}
    if "composition" in document:
        composition = parse_composition(msgspec.json.encode(document["composition"]))
        places = _converted(document.get("media", {}), dict[str, str], "/media")
    else:
        composition = parse_composition(path.read_bytes())

    def media(key: str) -> Path:
        return folder / places.get(key, key)

    for pointer, key in media_of(composition):
        if not media(key).is_file():
            raise CompositionError(pointer, f"no file for {key!r}", f"put one at {media(key)}")
    return composition, media


def _document(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"not a JSON object: {error}") from error


def _converted(value: object, kind: Any, pointer: str) -> Any:
    """Convert a part of a request; typed Any because `kind` is any msgspec type."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"{pointer}: {error}") from error


def _say(line: dict[str, Any]) -> None:
    print(msgspec.json.encode(line).decode(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
