"""Makes the media, each kind by the program that knows how, a few processes at a time.

Requests of equal content share one file, so hundreds of small jobs cost one process. Which program makes which
kind is a table that can be replaced; the default table names this application's renderer.
"""

import asyncio
import hashlib
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from videoads.providers.synthetic.jobs import write_whole
from videoads.providers.synthetic.processes import Ended, NoAnswer, StandingMakers, run_once

MediaKind = Literal["clip", "still", "voice", "music", "film"]
# How the media programs say that the request is at fault.
REFUSED_STATUSES = (1, 2)
# Small media, for which starting a process is most of the work.
STANDING_KINDS = ("clip", "still")
MESSAGE_CHARACTERS_MAX = 300
REPORT_CHARACTERS_MAX = 256 * 1024

# The words {request} and {out} stand for paths.
Recipes: TypeAlias = dict[MediaKind, tuple[str, ...]]
DEFAULT_RECIPES: Recipes = {
    "clip": (sys.executable, "-m", "videoads.renderer.shots", "{request}", "{out}"),
    "still": (sys.executable, "-m", "videoads.renderer.shots", "{request}", "{out}", "0"),
    "voice": (sys.executable, "-m", "videoads.renderer.sound", "speak", "{request}", "{out}"),
    "music": (sys.executable, "-m", "videoads.renderer.sound", "music", "{request}", "{out}"),
    "film": (sys.executable, "-m", "videoads.renderer", "render", "{request}", "{out}"),
}
FORMATS: dict[MediaKind, tuple[str, str]] = {
    "clip": ("mp4", "video/mp4"),
    "still": ("png", "image/png"),
    "voice": ("wav", "audio/wav"),
    "music": ("wav", "audio/wav"),
    "film": ("mp4", "video/mp4"),
}
WEBM = ("webm", "video/webm")


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A finished media file and what its maker said about it."""

    name: str
    media_type: str
    size_bytes: int
    sha256: str
    report: dict[str, Any]


class MakingFailed(Exception):
    """The maker ended without media. `refused`: it said that the request is at fault."""

    def __init__(self, message: str, *, refused: bool) -> None:
        super().__init__(message)
        self.refused = refused


class _Standing(dict[str, StandingMakers]):
    """Standing makers by module, made when first asked for."""

    def __missing__(self, module: str) -> StandingMakers:
        self[module] = makers = StandingMakers(module)
        return makers


class Workshop:
    """The folder of media and the processes that fill it."""

    def __init__(self, folder: Path, *, recipes: Recipes, makers_max: int) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._recipes = recipes
        self._standing = _Standing()
        self._makers = asyncio.Semaphore(makers_max)
        self._one_at_a_time: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close(self) -> None:
        """End the makers that stand ready."""
        for makers in self._standing.values():
            await makers.close()

    async def make(self, kind: MediaKind, request: dict[str, Any]) -> Made:
        """The media for this request: made now, or made before for an equal one."""
        digest = hashlib.sha256(kind.encode() + msgspec.json.encode(request, order="sorted")).hexdigest()[:32]
        note = self.folder / f"{digest}.made.json"
        async with self._one_at_a_time[digest]:
            if not note.exists():
                async with self._makers:
                    made = await self._run(kind, request, digest)
                await asyncio.to_thread(write_whole, note, msgspec.json.encode(made))
            return msgspec.json.decode(note.read_bytes(), type=Made)

    async def _run(self, kind: MediaKind, request: dict[str, Any], digest: str) -> Made:
        suffix, media_type = _format(kind, request)
        order = self.folder / f"{digest}.request.json"
        # A maker of a killed provider may still be writing: the name carries our own process id.
        out = self.folder / f"{digest}.{os.getpid()}.{suffix}"
        write_whole(order, msgspec.json.encode(request))
        places = {"{request}": str(order), "{out}": str(out)}
        command = [places.get(part, part) for part in self._recipes[kind]]
        report = _report(kind, _judged(await self._run_command(kind, command)))
        if not out.exists():
            raise MakingFailed(f"the maker of the {kind} ended well and left no file", refused=False)
        name = f"{digest}.{suffix}"
        out.replace(self.folder / name)
        raw = await asyncio.to_thread((self.folder / name).read_bytes)
        sha256 = hashlib.sha256(raw).hexdigest()
        return Made(name=name, media_type=media_type, size_bytes=len(raw), sha256=sha256, report=report)

    async def _run_command(self, kind: MediaKind, command: list[str]) -> Ended:
        try:
            if kind in STANDING_KINDS and tuple(command[:2]) == (sys.executable, "-m"):
                return await self._standing[command[2]].run(command[3:])
            return await run_once(command)
        except NoAnswer as error:
            raise MakingFailed(str(error), refused=False) from error


def _judged(ended: Ended) -> str:
    """What the maker said, or the failure it reports."""
    if ended.status != 0:
        refused = ended.status in REFUSED_STATUSES and "Traceback" not in ended.complained
        raise MakingFailed(_last_line(ended.complained), refused=refused)
    return ended.said


def _format(kind: MediaKind, request: dict[str, Any]) -> tuple[str, str]:
    """The file's ending and media type; a film's codecs decide its container."""
    output = request.get("composition", {}).get("output") if kind == "film" else None
    if isinstance(output, dict) and output.get("profile") == "vp9-opus":
        return WEBM
    return FORMATS[kind]


def _report(kind: MediaKind, said: str) -> dict[str, Any]:
    """The last JSON object the maker printed; a maker that prints none has nothing to say."""
    for line in reversed(said[-REPORT_CHARACTERS_MAX:].splitlines()):
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(value, dict):
            # Where the file lay here is nobody's business but ours.
            value.pop("path", None)
            return value
    return {"kind": kind}


def _last_line(complained: str) -> str:
    lines = complained.strip().splitlines() or ["the maker ended without a word"]
    return lines[-1][:MESSAGE_CHARACTERS_MAX]
