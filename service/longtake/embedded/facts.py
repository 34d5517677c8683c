"""What the doctor must know of a machine, gathered once, so that every check is a pure function of it."""

import contextlib
import importlib.util
import locale
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from .account import NOBODY
from .errors import BinaryMissing
from .locate import nats_program, postgres_tree
from .lock import LOCK_NAME
from .nats import port_is_free
from .postgres import SOCKET_NAME
from .process import alive

PROBE_SECONDS = 5.0
PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
WELL_KNOWN_PORTS = {4222: "nats-server", 5432: "Postgres"}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A machine as the checks see it. The defaults are a healthy one: a test names only what it is about."""

    python: tuple[int, int] = (3, 12)
    python_has_venv: bool = True
    system: str = "Linux"
    libc: str = "glibc"
    libc_version: tuple[int, int] = (2, 36)
    root: bool = False
    setpriv: bool = True
    namespace_permitted: bool = True
    closed_parent: str | None = None
    programs_missing: tuple[str, ...] = ()
    locale_set: bool = True
    data_dir: str = "/srv/longtake/.longtake"
    data_dir_writable: bool = True
    socket_path_bytes: int = 60
    proxies: tuple[str, ...] = ()
    localhost: tuple[str, ...] = ("127.0.0.1",)
    ports_taken: tuple[int, ...] = ()
    home: str | None = "/home/somebody"
    umask: int = 0o022
    terminal: bool = True
    no_color: bool = False
    terminal_encoding: str = "utf-8"
    shm_bytes: int | None = 8 << 30
    memory_bytes: int | None = 8 << 30
    disk_free_bytes: int = 50 << 30
    lock_text: str = ""
    lock_holder_alive: bool = False
    postmaster_pid: int | None = None
    tools_missing: tuple[str, ...] = ()


def gather_facts(data_dir: Path, environ: Mapping[str, str]) -> Facts:
    """Look at this machine; nothing is changed."""
    data_dir = Path(os.path.abspath(data_dir))
    existing = _first_existing(data_dir)
    libc, libc_version = platform.libc_ver()
    lock_text, holder = _lock(data_dir)
    return Facts(
        python=(sys.version_info.major, sys.version_info.minor),
        python_has_venv=all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
        system=platform.system(),
        libc=libc or "other",
        libc_version=_version(libc_version),
        root=os.geteuid() == 0,
        setpriv=shutil.which("setpriv") is not None,
        namespace_permitted=_namespace_permitted(),
        closed_parent=_closed_parent(existing),
        programs_missing=_programs_missing(),
        locale_set=_locale_set(environ),
        data_dir=str(data_dir),
        data_dir_writable=os.access(existing, os.W_OK | os.X_OK),
        socket_path_bytes=len(os.fsencode(data_dir / "postgres" / "run" / SOCKET_NAME)),
        proxies=tuple(name for name in PROXY_NAMES if environ.get(name)),
        localhost=_localhost(),
        ports_taken=tuple(port for port in WELL_KNOWN_PORTS if not port_is_free(port)),
        home=environ.get("HOME"),
        umask=_umask(),
        terminal=sys.stdout is not None and sys.stdout.isatty(),
        no_color=bool(environ.get("NO_COLOR")),
        terminal_encoding=(getattr(sys.stdout, "encoding", None) or "ascii").lower(),
        shm_bytes=_free_bytes(Path("/dev/shm")) if Path("/dev/shm").is_dir() else None,
        memory_bytes=_memory_bytes(),
        disk_free_bytes=_free_bytes(existing),
        lock_text=lock_text,
        lock_holder_alive=holder is not None and alive(holder),
        postmaster_pid=_first_number(data_dir / "postgres" / "data" / "postmaster.pid"),
        tools_missing=_tools_missing(),
    )


def _namespace_permitted() -> bool:
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    command = [unshare, "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "true"]
    try:
        return (
            subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _programs_missing() -> tuple[str, ...]:
    missing = []
    for find in (postgres_tree, nats_program):
        try:
            find()
        except BinaryMissing as error:
            missing.append(error.package)
    return tuple(missing)


def _first_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _closed_parent(path: Path) -> str | None:
    """The uppermost folder above `path` that other accounts may not enter."""
    for folder in reversed((path, *path.parents)):
        with contextlib.suppress(OSError):
            if not folder.stat().st_mode & 0o001:
                return str(folder)
    return None


def _locale_set(environ: Mapping[str, str]) -> bool:
    if not any(environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        return False
    return locale.getpreferredencoding(False).lower().replace("-", "") == "utf8"


def _localhost() -> tuple[str, ...]:
    try:
        found = socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _umask() -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _free_bytes(path: Path) -> int:
    facts = os.statvfs(path)
    return facts.f_bavail * facts.f_frsize


def _memory_bytes() -> int | None:
    """The memory we may use: that of the machine, or the limit of our control group if it is lower."""
    found = []
    with contextlib.suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found, default=None)


def _lock(data_dir: Path) -> tuple[str, int | None]:
    with contextlib.suppress(OSError):
        lines = (data_dir / LOCK_NAME).read_text(errors="replace").splitlines()
        if len(lines) > 1 and lines[0].isdigit():
            return lines[1], int(lines[0])
    return "", None


def _first_number(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(path.read_text().split()[0])
    return None


def _tools_missing() -> tuple[str, ...]:
    missing = [] if shutil.which("ffmpeg") else ["ffmpeg"]
    if not any(Path(folder).is_dir() for folder in ("/usr/share/fonts", "/Library/Fonts")):
        missing.append("fonts")
    if not any(shutil.which(name) for name in ("chromium", "google-chrome", "firefox")):
        missing.append("a browser")
    return tuple(missing)


def _version(text: str) -> tuple[int, int]:
    parts = [int(part) for part in text.split(".")[:2] if part.isdigit()]
    return (parts[0], parts[1]) if len(parts) == 2 else (0, 0)
