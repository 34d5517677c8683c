"""The locks install the same bytes on every supported Python, from whatever index a machine is told to use."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?P<marker> ; [^\\]+?)? ?\\?$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")

INDEX, HOSTED = (f"{name}.org" for name in ("pypi", "pythonhosted"))
"""Written in pieces, so that this file does not name them."""

PLACES = re.compile(
    r"(?i)(--(extra-)?index-url|--find-links|\bfind-links\b *=|https?://(?!127\.0\.0\.1)[^\s\"'<>)]*/simple\b"
    rf"|files\.{HOSTED}|\b{INDEX}/simple|file:///(opt|root|home|usr|work|tmp)/|/{'root'}/\.|/home/runner|/{'work'}/)"
)
"""Words that only the machine knows on which a file was made."""


def _pins(lock: Path) -> list[re.Match[str]]:
    lines = [line for line in lock.read_text().splitlines() if line and not line.startswith((" ", "#"))]
    pins = [PIN.match(line) for line in lines]
    assert all(pins), [line for line, pin in zip(lines, pins, strict=True) if pin is None]
    return [pin for pin in pins if pin]


def _faults(text: str) -> list[str]:
    """Lines of a lock that are neither an exact pin, nor a hash, nor a comment; and pins without a hash."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    faults = [line for line in lines if not (PIN.match(line) or HASH.match(line))]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if PIN.match(line) and not HASH.match(following):
            faults.append(f"no hash: {line}")
    return faults


def test_there_is_a_lock_for_each_group() -> None:
    assert ["build.txt", "check.txt", "run.txt", "test.txt"] == [lock.name for lock in LOCKS]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_holds_exact_pins_and_their_hashes_only(lock: Path) -> None:
    assert [] == _faults(lock.read_text())


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.org/simple",
        "numpy>=2",
        "numpy==2.0",
        "-e .",
        "numpy @ file:///wheels/n.whl",
    ],
)
def test_anything_else_in_a_lock_is_noticed(line: str) -> None:
    assert _faults(f"{line}\n")


def test_one_package_has_one_version_in_all_locks() -> None:
    """Or, for packages that dropped an old Python, one version for each marker."""
    found: dict[tuple[str, str], set[str]] = {}
    for lock in LOCKS:
        for pin in _pins(lock):
            found.setdefault((pin["name"], pin["marker"] or ""), set()).add(pin["version"])

    assert {} == {key: versions for key, versions in found.items() if len(versions) > 1}


def test_the_locks_are_for_every_python_we_support() -> None:
    """Where a package has two versions, their markers together cover 3.11 to 3.14."""
    by_name: dict[str, list[str]] = {}
    for pin in _pins(ROOT / "requirements" / "run.txt"):
        by_name.setdefault(pin["name"], []).append(pin["marker"] or "")
    split = {name: markers for name, markers in by_name.items() if len(markers) > 1}

    for markers in split.values():
        assert {"<", ">="} == {
            found for marker in markers for found in re.findall(r"python_full_version (<|>=)", marker)
        }


def test_all_that_pyproject_names_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = {
        "run.txt": [
            *project["project"]["dependencies"],
            *(need for extra in project["project"]["optional-dependencies"].values() for need in extra),
        ],
        **{f"{group}.txt": needs for group, needs in project["dependency-groups"].items()},
    }

    for lock, needs in wanted.items():
        locked = {pin["name"].lower().replace("_", "-") for pin in _pins(ROOT / "requirements" / lock)}
        names = {re.split(r"[\[<>=!~; ]", need)[0].lower() for need in needs}
        assert set() == names - locked, lock


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name]


@pytest.mark.needs("git")
def test_no_file_speaks_of_an_index_or_of_the_machine_it_was_made_on() -> None:
    faults = []
    for path in _tracked():
        if path == Path(__file__) or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        faults += [f"{path.relative_to(ROOT)}: {found[0]}" for found in PLACES.finditer(text)]

    assert [] == faults


@pytest.mark.parametrize(
    "text",
    [
        "--extra-index-url https://a.example/simple",
        f"see https://{INDEX}/simple",
        "file:///opt/wheels",
        f"/{'root'}/.cache",
    ],
)
def test_such_a_place_would_be_noticed(text: str) -> None:
    assert PLACES.search(text)
