"""What an application brings so that `longtake demo` and `longtake testbed` can show it.

longtake does not know its applications: the module named by --app has a `showcase` beside it, and this is its shape.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from longtake.errors import ConfigurationError, InvalidInput


class Ordered(Protocol):
    """What the user asked for, as the command's input, with remarks on what will differ from it."""

    @property
    def title(self) -> str:
        """A name for people."""
        ...

    @property
    def input(self) -> Mapping[str, Any]:
        """The input of the workflow."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What will not be as the brief asks, and why."""
        ...

    @property
    def weights(self) -> Mapping[str, int]:
        """Bytes by JSON pointer of the heaviest members, for the message when the command is too large."""
        ...


class OutsidersNow(Protocol):
    """What the outside world has seen so far."""

    @property
    def requests(self) -> int:
        """Requests of every kind."""
        ...

    @property
    def open(self) -> Mapping[str, int]:
        """Jobs that are open at this moment, by provider."""
        ...

    @property
    def created(self) -> Mapping[str, int]:
        """Accepted creates, by provider."""
        ...

    @property
    def accepted_by_token(self) -> Mapping[str, int]:
        """How many jobs were made for each token of ours."""
        ...

    @property
    def cost(self) -> int:
        """What they cost together."""
        ...


class Outsiders(Protocol):
    """The outside world of the demo: it belongs to nobody here and outlives the service."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables by which the service finds it."""
        ...

    async def now(self) -> OutsidersNow:
        """Look at it."""
        ...

    async def hold_answers(self, providers: Sequence[str]) -> None:
        """Let the next request to each provider be taken and its answer wait. Raises LongtakeError if it cannot."""
        ...

    async def release_answers(self) -> None:
        """Let every answer go that waits."""
        ...

    async def forget_holds(self) -> None:
        """Hold no answer from now on."""
        ...

    async def stop(self) -> None:
        """End it, whoever started it in our data directory."""
        ...


class Showcase(Protocol):
    """The application's part of the demo."""

    workflow: str
    brief_default: Path
    phases: tuple[str, ...]
    """Phases of the small order, in the order they begin."""
    providers: tuple[str, ...]
    """Who is paid for the work of the small order; the last one puts everything together."""
    deliveries: tuple[str, ...]
    """Artifacts to fetch; the first one is what was asked for."""

    def shortfalls(self) -> Sequence[str]:
        """What must be installed before anything can be made; empty when all is there."""
        ...

    def order(self, path: Path) -> Ordered:
        """Read a brief. Raises InvalidInput with everything that is wrong."""
        ...

    def small_order(self) -> Ordered:
        """A brief whose work takes seconds, for the crash runs."""
        ...

    async def outsiders(self, directory: Path, *, small: bool, parent_pid: int) -> Outsiders:
        """Start the outside world in this directory, or join the one that runs there."""
        ...

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
        """Write one self-contained page about the finished run."""
        ...


class Testbed(Protocol):
    """The application's tools that need no server; briefs are refused with InvalidInput."""

    def still(self, brief: Path, frame: int, out: Path, *, cache: Path) -> dict[str, Any]:
        """Paint one frame."""
        ...

    def render(
        self, brief: Path, out: Path, *, cache: Path, progress: Callable[[str, int, int], None] | None = None
    ) -> dict[str, Any]:
        """Make the film in a folder."""
        ...

    def inspect(self, film: Path, composition: Path, media: Path) -> list[dict[str, Any]]:
        """Measure a film: rows {name, passed, measured, expected}."""
        ...

    def payload(self, brief: Path, *, cache: Path | None) -> list[dict[str, Any]]:
        """What providers would be sent: rows {step, method, path, bytes, body}."""
        ...

    def assets(self) -> list[dict[str, Any]]:
        """What travels with the application: rows {kind, name, bytes, sha256}."""
        ...


def bad_brief(path: Path, error: InvalidInput) -> ConfigurationError:
    """Every problem of a brief with its pointer, as one message."""
    lines = "".join(f"\n  {e.pointer}: {e.message}; {e.remedy}" for e in error.errors)
    count = len(error.errors)
    return ConfigurationError(f"{path} has {count} problem{'s' if count > 1 else ''}:{lines}")


def showcase_of(app: str) -> Showcase:
    """The showcase of the application `module:attribute`. Raises ConfigurationError when it has none."""
    return _beside(app, "showcase")  # type: ignore[no-any-return]  # a module's attribute: its shape is the Protocol


def testbed_of(app: str) -> Testbed:
    """The testbed of the application. Raises ConfigurationError when it has none."""
    return _beside(app, "testbed")  # type: ignore[no-any-return]  # likewise


def _beside(app: str, name: str) -> Any:
    package = app.partition(":")[0]
    module = f"{package}.{name}"
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name not in (package, module):
            raise
        raise ConfigurationError(
            f"the application {app} has no {name}: there is no module {module}"
        ) from error
