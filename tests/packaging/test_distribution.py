"""What people install is whole: the wheel of the sdist, and of a tarball of the repository, holds both packages and data."""

import email
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 100


def _build(source: Path, kind: str, into: Path) -> Path:
    """Build as pip does with --no-build-isolation, by the backend alone; no network."""
    script = (
        "import hatchling.build as backend, sys; "
        f"print(backend.build_{kind}(sys.argv[1]), file=open(sys.argv[1] + '/name', 'w'))"
    )
    into.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", script, str(into)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    assert 0 == done.returncode, done.stderr
    return into / (into / "name").read_text().strip()


def _tree(into: Path) -> Path:
    """The files that git knows, as they are now: a tree without leftovers of this machine."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    return into


def _python_files(root: Path) -> set[str]:
    return {
        str(path.relative_to(root / "service"))
        for package in ("longtake", "videoads")
        for path in (root / "service" / package).rglob("*.py")
    }


def _data_files(root: Path) -> set[str]:
    """What the packages hold besides code: queries, briefs, compositions, fonts, vector art."""
    return {
        str(path.relative_to(root / "service"))
        for package in ("longtake", "videoads")
        for path in (root / "service" / package).rglob("*")
        if path.is_file() and path.suffix != ".py"
    }


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the repository."""
    return _tree(tmp_path_factory.mktemp("repository") / "tree")


@pytest.fixture(scope="module")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the sdist, as an installer of the sdist would."""
    home = tmp_path_factory.mktemp("distribution")
    sdist = _build(tree, "sdist", home / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(home / "unpacked", filter="data")
    (unpacked,) = (home / "unpacked").iterdir()
    return _build(unpacked, "wheel", home / "wheel")


@pytest.mark.needs("git")
def test_the_wheel_holds_both_packages_and_the_data(wheel: Path, tree: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    assert set() == _python_files(tree) - names
    migrations = {f"longtake/_data/migrations/{path.name}" for path in (tree / "migrations").glob("*.sql")}
    assert migrations and set() == migrations - names
    schemas = {
        f"longtake/_data/schemas/{path.relative_to(tree / 'schemas')}"
        for path in (tree / "schemas").rglob("*.json")
    }
    assert set() == schemas - names
    data = _data_files(tree)
    assert {".sql", ".svg", ".png", ".woff2", ".json"} <= {Path(name).suffix for name in data}
    assert set() == data - names
    assert {"longtake", "videoads"} == {name.split("/")[0] for name in names if ".dist-info" not in name}


@pytest.mark.needs("git")
def test_the_wheels_metadata_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
        licensed = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]

    assert "Apache-2.0" == metadata["License-Expression"]
    assert ">=3.11" == metadata["Requires-Python"]
    assert {"render", "voice"} == set(metadata.get_all("Provides-Extra", []))
    assert licensed


@pytest.mark.needs("git")
def test_the_installed_wheel_runs_outside_of_the_repository(wheel: Path, tmp_path: Path) -> None:
    """A fresh environment with the wheel in it and the locked packages of this one beside it."""
    home = tmp_path / "fresh venv"
    venv.create(home, with_pip=False, symlinks=True)
    (site,) = home.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # Packages of the test environment come after the wheel; an editable longtake among them is a .pth, which is not read.
    dependencies = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    script = (
        "import json, longtake, videoads; from longtake import resources; "
        "print(json.dumps([longtake.__file__, videoads.__file__, str(resources.directory('migrations'))]))"
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(home / "bin" / "python"), *arguments],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout

    places = json.loads(run("-c", script))
    assert all(Path(place).is_relative_to(site) for place in places), places

    said = run("-c", "import sys; sys.argv = ['longtake', '--help']; from longtake.cli import main; main()")
    for command in ("up", "serve", "demo", "migrate", "doctor", "run", "history", "projection"):
        assert command in said


@pytest.mark.needs("git")
def test_a_tarball_of_the_repository_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Without a git directory, as a release page or a distribution has it."""
    if not (ROOT / "README.md").exists():
        pytest.fail("pyproject.toml names README.md")
    archive = tmp_path / "longtake.tar"
    subprocess.run(["git", "archive", "--prefix=longtake/", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")

    built = _build(tmp_path / "longtake", "wheel", tmp_path / "wheel")

    assert wheel.name == built.name
    with zipfile.ZipFile(built) as found:
        assert _python_files(tmp_path / "longtake") <= set(found.namelist())


@pytest.mark.needs("git")
def test_a_wheel_that_lacks_a_package_would_be_noticed(tree: Path, tmp_path: Path) -> None:
    """The broken variant: without our hatch settings, hatchling ships one namespace package `service`, or nothing."""
    broken = tmp_path / "tree"
    shutil.copytree(tree, broken)
    text = (broken / "pyproject.toml").read_text()
    (broken / "pyproject.toml").write_text(text.replace('"service/videoads", ', ""))

    with zipfile.ZipFile(_build(broken, "wheel", tmp_path / "wheel")) as archive:
        names = set(archive.namelist())
    assert not any(name.startswith("videoads/") for name in names)
