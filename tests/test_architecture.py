"""Who may import whom: the floors of the design, read from the source by its syntax tree.

A module imports its own folder and lower floors only, and siblings on one floor do not know each other. The table
below is the whole rule. A package that is not in the table fails, so a new one gets its floor on the day it is born.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parent.parent
SERVICE = ROOT / "service"

FLOORS: dict[str, int] = {
    "contracts": 0,
    "errors": 0,
    "resources": 0,
    "settings": 0,
    "workflow": 1,
    "crash_points": 2,
    "doorbells": 2,
    "ports": 2,
    "store": 2,
    "lifecycle": 2,
    "telemetry": 2,
    "engine": 3,
    "postgres": 4,
    "jetstream": 4,
    "memory": 4,
    "polling": 4,
    "storage": 4,
    "worker": 5,
    "api": 5,
    "client": 5,
    "testing": 5,
    "embedded": 5,
    "bootstrap": 6,
    "wires": 6,
    "cli": 6,
    "__main__": 6,
}

SAME_FLOOR: frozenset[tuple[str, str]] = frozenset(
    {
        ("contracts", "errors"),  # one vocabulary in two places: the tree of errors, and what they carry
        ("errors", "contracts"),
        ("resources", "errors"),
        ("settings", "errors"),
        ("settings", "contracts"),
        ("ports", "telemetry"),
        ("lifecycle", "telemetry"),
        ("testing", "worker"),  # the simulated worker runs the real executor over the fakes
        ("cli", "bootstrap"),
        ("bootstrap", "wires"),
        ("bootstrap", "cli"),
        ("__main__", "cli"),
    }
)
"""The only pairs that may know each other on one floor."""

NEVER: dict[str, frozenset[str]] = {
    "settings": frozenset({"bootstrap", "cli", "__main__", "settings"}),
}
"""Modules that are for a few only, whatever the floors say: settings are read once, others receive values."""

PURE = ("contracts", "workflow")
IMPURE_MODULES = frozenset(
    {
        "asyncio",
        "asyncpg",
        "datetime.now",
        "logging",
        "nats",
        "os",
        "random",
        "secrets",
        "socket",
        "structlog",
    }
    | {"subprocess", "threading", "time", "uuid.uuid4", "opentelemetry", "litestar", "httpx2"}
)
"""What a pure package cannot import: await, clock, chance, log and the world (reducer decides from values alone)."""

ADAPTERS = ("postgres", "jetstream", "memory", "storage")


class Import(msgspec.Struct, frozen=True):
    """One import, with the place where it stands."""

    path: str
    line: int
    importer: str
    target: str


def _module_name(path: Path, root: Path) -> str:
    parts = list(path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, root: Path = SERVICE) -> Iterator[Import]:
    """Every import of a file, absolute, except those for type checkers alone."""
    module = _module_name(path, root)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for node in _outside_type_checking(tree):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, *([node.module] if node.module else [])])
            targets = [f"{base}.{name.name}" for name in node.names]
        for target in targets:
            yield Import(str(path.relative_to(root)), node.lineno, module, target)


def _outside_type_checking(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.orelse
            continue
        if isinstance(node, ast.stmt):
            yield node
        yield from _outside_type_checking(node)


def _part(module: str) -> str | None:
    """The part of longtake that a module belongs to; the package itself and others have none."""
    parts = module.split(".")
    return parts[1] if parts[0] == "longtake" and len(parts) > 1 else None


def broken_floors(found: Import) -> str | None:
    """What is wrong with an import between parts of longtake, None when nothing is."""
    ours, theirs = _part(found.importer), _part(found.target)
    if found.importer.split(".")[0] != "longtake":
        return None
    if found.target.split(".")[0] == "videoads":
        return "longtake does not know its applications"
    if theirs is None or ours == theirs or ours is None:
        return None
    if theirs not in FLOORS:
        return None  # a name of the package itself, such as longtake.App
    if ours not in FLOORS:
        return f"longtake.{ours} has no floor in the table"
    if found.target.split(".")[1] in NEVER and ours not in NEVER[found.target.split(".")[1]]:
        return f"longtake.{theirs} is for {', '.join(sorted(NEVER[theirs]))} alone"
    if ours in ADAPTERS and theirs == "engine":
        return "adapters implement ports and never call the engine"
    if FLOORS[theirs] > FLOORS[ours]:
        return f"floor {FLOORS[ours]} imports floor {FLOORS[theirs]}"
    if FLOORS[theirs] == FLOORS[ours] and (ours, theirs) not in SAME_FLOOR:
        return f"siblings on floor {FLOORS[ours]} do not know each other"
    return None


def impurities(found: Import) -> str | None:
    """What a pure package imports of the impure world, None when nothing."""
    if _part(found.importer) not in PURE:
        return None
    for name in IMPURE_MODULES:
        if found.target == name or found.target.startswith(f"{name}."):
            return f"a pure package imports {found.target}"
    return None


def sources(package: str, root: Path = SERVICE) -> list[Path]:
    """The Python files of one package."""
    return sorted((root / package).rglob("*.py"))


def _all_imports() -> list[Import]:
    return [
        found
        for package in ("longtake", "videoads")
        for path in sources(package)
        for found in imports_of(path)
    ]


def _faults(rule: "object") -> list[str]:
    assert callable(rule)
    return [f"{f.path}:{f.line} {f.target}: {why}" for f in _all_imports() if (why := rule(f)) is not None]


def test_every_part_has_its_floor() -> None:
    """A folder or module of longtake that the table does not know has no place yet."""
    parts = {path.stem for path in (SERVICE / "longtake").iterdir() if path.suffix == ".py" or path.is_dir()}

    assert set() == parts - set(FLOORS) - {"__init__", "__pycache__", "py", "_data"}


def test_modules_import_their_own_folder_and_lower_floors_only() -> None:
    assert [] == _faults(broken_floors)


def test_the_core_imports_no_clock_no_chance_and_no_world() -> None:
    assert [] == _faults(impurities)


def test_the_application_uses_public_names_only() -> None:
    """videoads imports `longtake`, `longtake.client` and `longtake.testing`: what any author may use."""
    allowed = ("longtake.client", "longtake.testing")
    faults = [
        f"{found.path}:{found.line} {found.target}"
        for found in _all_imports()
        if found.importer.split(".")[0] == "videoads"
        and (part := _part(found.target)) in FLOORS
        and f"longtake.{part}" not in allowed
    ]

    assert [] == faults


def test_the_synthetic_providers_know_nothing_of_the_service() -> None:
    """They stand for the outside world: a program of its own, which a mistake of ours cannot reach."""
    faults = [
        f"{found.path}:{found.line} {found.target}"
        for path in sources("videoads/providers/synthetic")
        for found in imports_of(path)
        if found.target.split(".")[0] == "longtake"
    ]

    assert [] == faults


def test_every_module_says_what_it_is_for() -> None:
    faults = [
        str(path.relative_to(SERVICE))
        for package in ("longtake", "videoads")
        for path in sources(package)
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]

    assert [] == faults


LINES_MAX = 400


def test_every_module_fits_its_noun() -> None:
    lengths = {
        str(path.relative_to(SERVICE)): len(path.read_text().splitlines())
        for package in ("longtake", "videoads")
        for path in sources(package)
    }

    assert {} == {path: length for path, length in lengths.items() if length > LINES_MAX}


def test_no_module_is_called_by_what_it_is_not() -> None:
    """Names that say nothing attract everything."""
    empty_names = {"utils", "util", "common", "helpers", "helper", "manager", "base", "misc"}

    assert (
        set()
        == {path.stem for package in ("longtake", "videoads") for path in sources(package)} & empty_names
    )


BROKEN = {
    "engine imports an adapter": (
        "engine/relay.py",
        "from longtake.postgres.pool import Pool",
        "floor 3 imports floor 4",
    ),
    "siblings": ("postgres/pool.py", "import longtake.jetstream.publisher", "siblings on floor 4"),
    "adapter calls engine": (
        "postgres/pool.py",
        "from longtake.engine import admission",
        "never call the engine",
    ),
    "relative upwards": ("workflow/plan.py", "from ..engine.relay import Relay", "floor 1 imports floor 3"),
    "settings": (
        "worker/executor.py",
        "from longtake import settings",
        "for __main__, bootstrap, cli, settings alone",
    ),
    "application": ("api/runs.py", "import videoads", "does not know its applications"),
    "no floor": ("gadgets/thing.py", "from longtake.contracts import ids", "has no floor"),
    "inside a function": (
        "ports.py",
        "def f():\n    from longtake.engine import relay",
        "floor 2 imports floor 3",
    ),
}


@pytest.mark.parametrize(("path", "source", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_each_rule_catches_what_it_forbids(tmp_path: Path, path: str, source: str, why: str) -> None:
    file = tmp_path / "longtake" / path
    file.parent.mkdir(parents=True)
    file.write_text(source)

    assert any(why in (broken_floors(found) or "") for found in imports_of(file, tmp_path))


def test_an_import_for_type_checkers_alone_is_free(tmp_path: Path) -> None:
    file = tmp_path / "longtake" / "errors.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from longtake.engine import relay\n"
    )

    assert not any(broken_floors(found) for found in imports_of(file, tmp_path))


@pytest.mark.parametrize(
    "source", ["import time", "from random import random", "from uuid import uuid4", "import os.path"]
)
def test_purity_catches_the_clock_and_chance(tmp_path: Path, source: str) -> None:
    file = tmp_path / "longtake" / "workflow" / "reducer.py"
    file.parent.mkdir(parents=True)
    file.write_text(source)

    assert any(impurities(found) for found in imports_of(file, tmp_path))
