"""What `longtake demo` shows of this application: a brief read and embedded, its outsiders, and the report of a run."""

import asyncio
import base64
import http.client
import importlib.util
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from longtake import InvalidInput, LongtakeError, ProblemError
from videoads.brief import Brief, BriefError, brief_as_json, parse_brief, read_brief
from videoads.providers.launch import SyntheticProviders, find_providers, start_providers, stop_providers
from videoads.providers.witness import accepted_creates, read_witness, total_cost
from videoads.report import write_report

BRIEFS = Path(__file__).parent / "fixtures" / "briefs"
RENDER_PACKAGES = {"av": "av", "numpy": "numpy", "PIL": "pillow", "resvg_py": "resvg-py"}
VOICE_PACKAGES = ("hibari", "onnxruntime")
ASK_SECONDS_MAX = 5.0
SMALL_ARGUMENTS = ("--speed", "4")
SMALL_LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><path d="M14 86 L50 12 L86 86 Z" '
    'fill="#0b3550"/><circle cx="50" cy="62" r="11" fill="#ffd35c"/></svg>'
)
SMALL_BRIEF: dict[str, Any] = {
    "product": "Lantern",
    "headline": "Light for late roads",
    "tagline": "The small lamp",
    "seconds": 4.8,
    "size": {"width": 350, "height": 620},
    "colours": {
        "background": "#2b1811",
        "surface": "#f7ecdc",
        "ink": "#2b1811",
        "accent": "#b94f1f",
        "light": "#ffd9a3",
    },
    "logo": {"media_type": "image/svg+xml", "base64": base64.b64encode(SMALL_LOGO.encode()).decode()},
    "scenes": [{"prompt": "soft shapes", "line": "Made by hand", "call_outs": ["Brushed steel"]}],
    "narration": ["It shines for you."],
    "closing": {"offer": "Two for one in May", "button": "Take one home", "address": "lantern.example"},
}


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A brief that was read, as the workflow's input."""

    title: str
    input: dict[str, Any]
    notes: tuple[str, ...] = ()
    weights: dict[str, int] = {}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the providers have seen so far."""

    requests: int = 0
    open: dict[str, int] = {}
    created: dict[str, int] = {}
    accepted_by_token: dict[str, int] = {}
    cost: int = 0


class SyntheticWorld:
    """The synthetic providers of one data directory."""

    def __init__(self, providers: SyntheticProviders) -> None:
        self._providers = providers

    @property
    def environment(self) -> Mapping[str, str]:
        """By which the service finds them, wherever they listen after a restart."""
        return {"VIDEOADS_PROVIDERS_DIR": str(self._providers.data)}

    async def now(self) -> Seen:
        """Read the witness file, and ask the program for the jobs that are open."""
        lines = await asyncio.to_thread(read_witness, self._providers.witness)
        stats = await asyncio.to_thread(_stats, self._providers.base_url)
        return Seen(
            requests=len(lines),
            open={style: numbers["open_jobs"] for style, numbers in stats.items() if numbers["open_jobs"]},
            created=dict(
                Counter(line.provider for line in lines if line.request == "create" and line.accepted)
            ),
            accepted_by_token=dict(accepted_creates(lines)),
            cost=total_cost(lines),
        )

    async def hold_answers(self, providers: Sequence[str]) -> None:
        """Order, for the next create at each, that the job is taken and its answer waits."""
        rules = [{"fault": {"kind": "hold_response"}, "style": style, "nth": [1]} for style in providers]
        await self._order("POST", "/control/rules", rules)

    async def release_answers(self) -> None:
        """Let them go."""
        await self._order("POST", "/control/release", {"token": "*"})

    async def forget_holds(self) -> None:
        """No rules."""
        await self._order("DELETE", "/control/rules")

    async def _order(self, method: str, path: str, document: Any = None) -> None:
        # A service that was restarted may have started them anew, on another port.
        running = await find_providers(self._providers.data)
        self._providers = running or self._providers
        await asyncio.to_thread(_ask, self._providers.base_url, method, path, document)

    async def stop(self) -> None:
        """End whichever program owns the directory by now."""
        running = await find_providers(self._providers.data)
        if running is not None:
            await stop_providers(running)


class ForeignWorld:
    """Providers that somebody else runs: nothing is known of them and nothing is ended."""

    environment: Mapping[str, str] = {}

    async def now(self) -> Seen:
        """Nothing can be seen from here."""
        return Seen()

    async def hold_answers(self, providers: Sequence[str]) -> None:
        """Their answers cannot be held."""
        raise LongtakeError("--crash needs the synthetic providers: unset VIDEOADS_PROVIDERS_URL")

    async def release_answers(self) -> None:
        """None is held."""

    async def forget_holds(self) -> None:
        """None is held."""

    async def stop(self) -> None:
        """They are not ours."""


class AdShowcase:
    """The demo's application part; see `longtake.cli.showcase` for the shape."""

    workflow = "short.generation@1"
    brief_default = BRIEFS / "espresso.json"
    phases = ("script", "scenes", "sound", "render", "delivery")
    providers = ("clips", *(("voice",) if all(map(_installed, VOICE_PACKAGES)) else ()), "music", "render")
    deliveries = ("ad", "poster", "contact", "inspection")

    def shortfalls(self) -> Sequence[str]:
        """The packages of [render] that are not installed."""
        missing = [name for module, name in RENDER_PACKAGES.items() if not _installed(module)]
        if not missing:
            return ()
        return (
            f"the renderer is not installed ({', '.join(missing)}): pip install 'longtake[render,voice]'",
        )

    def order(self, path: Path) -> Order:
        """Read a brief file with the pictures it names."""
        try:
            return _order(read_brief(path))
        except BriefError as error:
            raise InvalidInput(
                tuple(ProblemError(p.pointer or "/", p.message, p.remedy) for p in error.problems)
            ) from error

    def small_order(self) -> Order:
        """One scene, one phrase, 4.8 seconds."""
        return _order(parse_brief(msgspec.json.encode(SMALL_BRIEF), base=None))

    async def outsiders(
        self, directory: Path, *, small: bool, parent_pid: int
    ) -> SyntheticWorld | ForeignWorld:
        """Start the synthetic providers, unless VIDEOADS_PROVIDERS_URL names others. They end when the parent has."""
        if os.environ.get("VIDEOADS_PROVIDERS_URL"):
            return ForeignWorld()
        arguments = ["--parent-pid", str(parent_pid), *(SMALL_ARGUMENTS if small else ())]
        return SyntheticWorld(await start_providers(directory, arguments=arguments))

    def write_report(
        self,
        path: Path,
        *,
        summary: Mapping[str, Any],
        steps: Sequence[Mapping[str, Any]],
        attempts: Sequence[Mapping[str, Any]],
        ledger: Sequence[Mapping[str, Any]],
        events: Sequence[Mapping[str, Any]],
        files: Mapping[str, Path],
    ) -> None:
        """Player, timeline, ledger, events and what was measured, in one page."""
        write_report(
            path,
            summary=summary,
            steps=steps,
            attempts=attempts,
            ledger=ledger,
            events=events,
            film=files["ad"],
            poster=files["poster"],
            inspection=msgspec.json.decode(files["inspection"].read_bytes()),
        )


showcase = AdShowcase()


def _order(brief: Brief) -> Order:
    notes: tuple[str, ...] = ()
    if brief.narration is not None and not all(map(_installed, VOICE_PACKAGES)):
        brief = msgspec.structs.replace(brief, narration=None)
        notes = ("the voice is not installed: music only. For a narration: pip install 'longtake[voice]'",)
    pictures = {"/logo": brief.logo, "/product_picture": brief.product_picture}
    weights = {pointer: len(picture.base64) for pointer, picture in pictures.items() if picture is not None}
    return Order(title=brief.product, input={"brief": brief_as_json(brief)}, notes=notes, weights=weights)


def _stats(base_url: str) -> dict[str, Any]:
    """Numbers by provider; none while the program is away."""
    try:
        numbers: dict[str, Any] = _ask(base_url, "GET", "/control/stats")["providers"]
        return numbers
    except OSError:
        return {}


def _ask(base_url: str, method: str, path: str, document: Any = None) -> Any:
    """Ask the control plane. The standard library asks: no proxy, no certificates. Raises OSError."""
    address = urlsplit(base_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=ASK_SECONDS_MAX)
    try:
        connection.request(method, path, None if document is None else msgspec.json.encode(document))
        answer = connection.getresponse()
        raw = answer.read()
        if answer.status != 200:
            raise OSError(f"the providers' control plane refused {path}: {raw[:200]!r}")
        return msgspec.json.decode(raw)
    except (http.client.HTTPException, msgspec.DecodeError) as error:
        raise OSError(f"the providers' control plane broke off: {error}") from error
    finally:
        connection.close()
