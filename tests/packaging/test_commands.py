"""The commands that the README names exist, say what they do, and fail with words on a machine that lacks something."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = (
    "help",
    "demo",
    "test",
    "check",
    "crash",
    "mutants",
    "fresh-machine",
    "mission",
    "bench",
    "schemas",
    "clean",
)


def _make(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_alone_lists_every_target_with_a_sentence() -> None:
    said = _make().stdout

    for target in TARGETS:
        assert re.search(rf"^  {target} +\w+", said, re.MULTILINE), target


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_a_recipe(target: str) -> None:
    """A dry run finds each; none is a name only."""
    done = _make("--dry-run", target)

    assert 0 == done.returncode, done.stderr
    assert done.stdout.strip()


def test_an_unknown_target_is_an_error() -> None:
    """The broken variant of the test above."""
    assert 0 != _make("--dry-run", "no-such-target").returncode


def test_arguments_are_handed_on() -> None:
    assert "longtake demo --json --out DIR" in _make("--dry-run", "demo", "ARGS=--json --out DIR").stdout
    assert (
        "--runs 7 --seed 3 --ablate receipt"
        in _make("--dry-run", "crash", "N=7", "SEED=3", "ABLATE=receipt").stdout
    )


@pytest.fixture
def bare_clone(tmp_path: Path) -> Path:
    """As much of a clone as the bootstrap touches before it installs, under a path with a space."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    shutil.copytree(ROOT / "tools", clone / "tools")
    return clone


def _bootstrap(clone: Path, python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(clone / "tools" / "bootstrap.sh"), "run"],
        env={"PATH": os.environ["PATH"], "LONGTAKE_PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )


def _python(folder: Path, body: str) -> str:
    path = folder / "its python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_an_old_python_is_named_with_the_way_out(bare_clone: Path) -> None:
    done = _bootstrap(bare_clone, _python(bare_clone, "printf 3.9"))

    assert 1 == done.returncode
    assert "Python 3.11 to 3.14 is needed" in done.stderr
    assert "is 3.9" in done.stderr
    assert "apt-get install -y python3 python3-venv" in done.stderr


def test_no_python_at_all_is_said(bare_clone: Path) -> None:
    done = _bootstrap(bare_clone, str(bare_clone / "none"))

    assert 1 == done.returncode
    assert "Python 3.11 to 3.14 is needed" in done.stderr


def test_a_python_without_venv_names_the_one_apt_line(bare_clone: Path) -> None:
    """Debian's python3 alone."""
    python = _python(bare_clone, 'case "$2" in *ensurepip*) exit 1;; *) printf 3.12;; esac')
    done = _bootstrap(bare_clone, python)

    assert 1 == done.returncode
    assert "without venv and ensurepip" in done.stderr
    assert "apt-get install -y python3-venv" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_system_without_glibc_is_said_before_anything_is_made(bare_clone: Path) -> None:
    python = _python(
        bare_clone, 'case "$2" in *ensurepip*) ;; *libc_ver*) echo other 0.0;; *) printf 3.12;; esac'
    )
    done = _bootstrap(bare_clone, python)

    assert 1 == done.returncode
    assert "no glibc" in done.stderr
    assert not (bare_clone / ".venv").exists()


@pytest.mark.parametrize(
    "script", ["tools/bootstrap.sh", "tools/lock.sh", "tools/fresh_machine.sh", ".ci/run"]
)
def test_scripts_are_executable_and_parse(script: str) -> None:
    path = ROOT / script
    shell = "bash" if "bash" in path.read_text().splitlines()[0] else "sh"

    assert os.access(path, os.X_OK)
    assert 0 == subprocess.run([shell, "-n", str(path)], check=False).returncode


def test_ci_runs_the_test_command_last() -> None:
    """So that pytest's summary is its last line."""
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.strip()]

    assert "make test" == lines[-1]
    assert "exec </dev/null" in lines
