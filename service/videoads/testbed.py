"""What `longtake testbed` can do with this application, without any server: look at a frame, make a film, measure one,
see what providers would be sent, and list what is drawn with. The work is the renderer's; see `renderer.testbed`.
"""

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from longtake import Artifact, Call, InvalidInput, LongtakeError, ProblemError, Succeeded
from videoads.activities.clips import ClipGenerate
from videoads.activities.film import RenderSubmit
from videoads.activities.sounds import MusicGenerate, NarrationGenerate
from videoads.activities.words import ScriptWrite
from videoads.brief import Brief, BriefError, brief_as_json, read_brief
from videoads.outsiders import Clients, Outsiders
from videoads.providers.clips import ClipsClient
from videoads.providers.music import MusicClient
from videoads.providers.render import RenderClient
from videoads.providers.voice import VoiceClient

TOKEN = "TOKEN"
CALLBACK_URL = "http://127.0.0.1/v1/callbacks/render/TOKEN"
WEBHOOK_SECRET = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
HEAD_BYTES_MAX = 64 * 1024
ASSET_FOLDERS = {
    "font": ("renderer/lettering/fonts", (".woff2", ".ttf", ".otf")),
    "art": ("renderer/shots/art", (".svg",)),
    "brief": ("fixtures/briefs", (".json", ".svg", ".png", ".jpg", ".webp")),
}

Row = dict[str, Any]
Told = Callable[[str, int, int], None]


class AdTestbed:
    """The tools; see `longtake.cli.showcase` for the shape."""

    def still(self, brief: Path, frame: int, out: Path, *, cache: Path) -> Row:
        """Paint one frame into a PNG."""
        from videoads.renderer import testbed as renderer

        try:
            picture = renderer.still(_read(brief), frame, cache=cache)
        except renderer.TestbedError as error:
            raise LongtakeError(str(error)) from error
        out.parent.mkdir(parents=True, exist_ok=True)
        picture.save(out)
        return {"still": str(out), "frame": frame, "width": picture.width, "height": picture.height}

    def render(self, brief: Path, out: Path, *, cache: Path, progress: Told | None = None) -> Row:
        """Make film, poster and contact sheet in a folder, with the composition beside them."""
        from videoads.renderer import testbed as renderer
        from videoads.renderer.composition import composition_as_json

        wanted = _read(brief)
        out.mkdir(parents=True, exist_ok=True)
        film = out / ("ad.webm" if wanted.profile == "vp9-opus" else "ad.mp4")
        poster, contact = out / "poster.jpg", out / "contact.jpg"
        try:
            prepared, report = renderer.render(
                wanted, film, cache=cache, poster=poster, contact=contact, progress=progress
            )
        except renderer.TestbedError as error:
            raise LongtakeError(str(error)) from error
        composition = out / "composition.json"
        composition.write_bytes(composition_as_json(prepared.composition))
        return {
            "film": str(film),
            "poster": str(poster),
            "contact": str(contact),
            "composition": str(composition),
            "media": str(cache),
            "frames": report.frames,
            "notes": list(prepared.notes),
        }

    def inspect(self, film: Path, composition: Path, media: Path) -> list[Row]:
        """Measure a film against its composition: every check with what was expected and found."""
        from videoads.renderer.composition import CompositionError, parse_composition
        from videoads.renderer.inspect.inspection import inspect_film

        try:
            asked = parse_composition(composition.read_bytes())
        except CompositionError as error:
            raise LongtakeError(f"{composition}: {error}") from error
        inspection = inspect_film(film, asked, media=lambda key: media / key)
        checks: list[Row] = msgspec.to_builtins(inspection.checks)
        return checks

    def payload(self, brief: Path, *, cache: Path | None) -> list[Row]:
        """The bodies that providers would be sent. With a cache the media are made here and the film's is among them."""
        return asyncio.run(_payloads(_read(brief), cache))

    def assets(self) -> list[Row]:
        """Fonts, art and briefs that travel with the application."""
        root = Path(__file__).parent
        return [
            {
                "kind": kind,
                "name": path.name,
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for kind, (folder, endings) in ASSET_FOLDERS.items()
            for path in sorted((root / folder).iterdir())
            if path.suffix in endings
        ]


testbed = AdTestbed()


def _read(path: Path) -> Brief:
    try:
        return read_brief(path)
    except BriefError as error:
        places = tuple(ProblemError(p.pointer or "/", p.message, p.remedy) for p in error.problems)
        raise InvalidInput(places) from error


class _Recorder:
    """A server on this machine that writes down what it is sent, takes uploads, and refuses everything else."""

    def __init__(self) -> None:
        self.requests: list[Row] = []

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        method, path, _ = head[0].split(" ", 2)
        upload = method == "PUT"
        self.requests.append(
            {
                "method": method,
                "path": path,
                "bytes": len(body),
                "body": None if upload else msgspec.json.decode(body),
            }
        )
        status, answer = ("200 OK", b'{"code":0,"stored":true}') if upload else ("400 Recorded", b"{}")
        writer.write(
            b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
            % (status.encode(), len(answer), answer)
        )
        await writer.drain()
        writer.close()


class _Recorded(Outsiders):
    """Clients of the real kind, all of which talk to the recorder."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._recorded = Clients(
            clips=ClipsClient(base),
            stills=ClipsClient(base, style="stills"),
            voice=VoiceClient(base),
            music=MusicClient(base),
            render=RenderClient(base, secrets=[WEBHOOK_SECRET]),
        )

    async def clients(self) -> Clients:
        """The recorded ones."""
        return self._recorded

    def webhook_secret(self) -> str:
        """Nobody's secret."""
        return WEBHOOK_SECRET

    async def close(self) -> None:
        """Let go of connections."""
        known = self._recorded
        for client in (known.clips, known.stills, known.voice, known.music, known.render):
            await client.close()


class _Memory:
    """Artifacts kept in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, content: bytes | Path, *, name: str, kind: str, content_type: str) -> Artifact:
        """Keep it under its digest."""
        raw = content if isinstance(content, bytes) else content.read_bytes()
        digest = hashlib.sha256(raw).hexdigest()
        self._kept[digest] = raw
        return Artifact(
            name=name, kind=kind, object_key=digest, sha256=digest, bytes=len(raw), content_type=content_type
        )

    async def fetch(self, key: str, path: Path) -> None:
        """Write it to a file."""
        path.write_bytes(self._kept[key])


async def _payloads(brief: Brief, cache: Path | None) -> list[Row]:
    recorder, memory = _Recorder(), _Memory()
    server = await asyncio.start_server(recorder.take, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
    port = server.sockets[0].getsockname()[1]
    outsiders = _Recorded(f"http://127.0.0.1:{port}")
    rows: list[Row] = []

    async def send(step: str, activity: Any, given: Mapping[str, Any]) -> None:
        await activity.execute(_call(step, given, memory))
        rows.extend({"step": step, **request} for request in recorder.requests)
        recorder.requests.clear()

    try:
        written = await ScriptWrite().execute(_call("script.write", {"brief": brief_as_json(brief)}, memory))
        assert isinstance(written, Succeeded), "a brief that was read can be laid out"
        result = written.result
        made = {artifact.name: msgspec.to_builtins(artifact) for artifact in written.artifacts}
        for number, (scene, shot) in enumerate(zip(brief.scenes, result["shots"], strict=False), start=1):
            product = {"product": made["product"]} if "product" in made and scene.shows_product else {}
            await send(f"clip.generate:{number}", ClipGenerate(outsiders), {"shot": shot, **product})
        if brief.narration is not None:
            await send("narration.generate", NarrationGenerate(outsiders), {"speech": result["speech"]})
        await send("music.generate", MusicGenerate(outsiders), {"plan": result["music"]})
        if cache is not None:
            await send("render.submit", RenderSubmit(outsiders), await _film_input(brief, cache, memory))
    finally:
        await outsiders.close()
        server.close()
        await server.wait_closed()
    return rows


async def _film_input(brief: Brief, cache: Path, memory: _Memory) -> dict[str, Any]:
    from videoads.renderer import testbed as renderer
    from videoads.renderer.composition import composition_as_json, media_of

    prepared = await asyncio.to_thread(renderer.prepare, brief, cache=cache)
    kept = await memory.put(
        composition_as_json(prepared.composition),
        name="composition",
        kind="composition",
        content_type="application/json",
    )
    media = {
        key: (await memory.put(prepared.media(key), name=key, kind="media", content_type="")).object_key
        for _, key in media_of(prepared.composition)
    }
    return {"composition": msgspec.to_builtins(kept), "media": media}


def _call(step: str, given: Mapping[str, Any], memory: _Memory) -> Call:
    return Call(
        run_id=uuid.UUID(int=0),
        step=step,
        attempt=1,
        kind="execute",
        input=given,
        token=TOKEN,
        external_ref=None,
        artifacts=memory,
        callback_url=lambda _: CALLBACK_URL,
    )


__all__: Sequence[str] = ("AdTestbed", "testbed")
