"""Says at the end of a run what was left out of it and why, so that a green line hides nothing.

A test that needs something of the machine is marked `@pytest.mark.needs("root")`; where the need is not met the test
is deselected and listed. Programs that are not tests but prove something are listed as well.
"""

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

PROGRAMS = {
    "make crash N=20": "kills service and servers at twenty seeds; up to ten minutes",
    "make mutants": "breaks decide and evolve line by line; minutes",
    "make fresh-machine": "a bare Debian, as root and as a user; needs root, debootstrap and the network",
    "make bench": "measures speed, which a shared machine cannot judge",
}


@cache
def _is_root() -> bool:
    return os.geteuid() == 0


@cache
def _has_user_namespace() -> bool:
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@cache
def _can_mount() -> bool:
    if not _is_root():
        return False
    place = tempfile.mkdtemp(prefix="longtake-mount-")
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place]
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        return mounted and subprocess.run(["umount", place], capture_output=True, check=False).returncode == 0
    finally:
        os.rmdir(place)


@cache
def _can_trace() -> bool:
    command = ["strace", "-o", os.devnull, "true"]
    return shutil.which("strace") is not None and subprocess.run(command, check=False).returncode == 0


NEEDS: dict[str, tuple[Callable[[], bool], str]] = {
    "root": (_is_root, "runs as root only"),
    "user_namespace": (_has_user_namespace, "this machine refuses user namespaces"),
    "small_disk": (_can_mount, "this machine does not let us mount a small disk"),
    "strace": (_can_trace, "needs strace, and the right to trace"),
    "git": (lambda: shutil.which("git") is not None and os.path.exists(".git"), "needs a git checkout"),
}

_left_out = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "needs(*what): left out, and listed, where the machine lacks it")
    config.stash[_left_out] = Counter()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what cannot run here, counting the reasons."""
    kept, dropped = [], []
    for item in items:
        reasons = [reason for mark in item.iter_markers("needs") for reason in _unmet(mark, item)]
        (dropped if reasons else kept).append(item)
        config.stash[_left_out].update(f"{item.nodeid.split('[')[0]}: {reason}" for reason in reasons)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells the controller, which collects nothing itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[_left_out])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests, so their counts are joined, not added."""
    node.config.stash[_left_out] |= Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The list, printed just before pytest's last line."""
    if hasattr(config, "workerinput"):
        return
    terminalreporter.section("left out of this run")
    for text, count in sorted(config.stash[_left_out].items()):
        terminalreporter.write_line(f"- {text}" + (f" ({count} cases)" if count > 1 else ""))
    for command, reason in PROGRAMS.items():
        terminalreporter.write_line(f"- {command}: {reason}")


def _unmet(mark: pytest.Mark, item: pytest.Item) -> list[str]:
    unknown = [name for name in mark.args if name not in NEEDS]
    if unknown:
        raise pytest.UsageError(f"{item.nodeid} needs {unknown}, which tests/kit/left_out.py does not know")
    return [NEEDS[name][1] for name in mark.args if not NEEDS[name][0]()]
