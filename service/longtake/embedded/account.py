"""Under which account Postgres runs when we are root, which Postgres refuses to be.

Tried in this order, each tried for real before it is chosen:

1. not root: as we are.
2. root, user namespace permitted: Postgres believes to be nobody, its files stay root's, and no account is
   made. If the namespace cannot read the programs (a 0700 home of somebody else) they are copied into the data directory.
3. root, namespace refused (the default of container runtimes): a real change to the account `nobody`; programs and
   data go to a directory which that account can reach, if the one wanted is closed to it.
"""

import hashlib
import os
import pwd
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import structlog

from .errors import DataDirUnusable
from .locate import PostgresTree, copy_tree
from .process import die_with_parent, run

log = structlog.get_logger("longtake.embedded")

NOBODY = 65534
STATE_ROOT = Path("/var/lib/longtake")
PROBE = 'cd "$1" && : > .probe && rm -f .probe'

Isolation = Literal["auto", "namespace", "account"]


class Seat(msgspec.Struct, frozen=True):
    """Where and as whom Postgres runs: a command prefix, its programs and its home directory."""

    how: Literal["self", "namespace", "account"]
    prefix: tuple[str, ...]
    tree: PostgresTree
    home: Path

    def command(self, program: str, *options: str) -> list[str]:
        """The full argument list that runs one program of this Postgres."""
        return [*self.prefix, self.tree.program(program), *options]


async def take_seat(
    tree: PostgresTree, data_dir: Path, *, isolation: Isolation = "auto", state_root: Path = STATE_ROOT
) -> Seat:
    """Choose how Postgres is run for this data directory; `isolation` forces a way, for tests."""
    home = data_dir / "postgres"
    if os.geteuid() != 0:
        _make_private(home)
        return Seat(how="self", prefix=tuple(die_with_parent()), tree=tree, home=home)
    if sys.platform != "linux" or not shutil.which("setpriv"):
        raise DataDirUnusable(
            data_dir,
            "Postgres refuses to run as root and setpriv is missing",
            "Run longtake as an ordinary user.",
        )
    if isolation != "account":
        seat = await _namespace_seat(tree, data_dir, home)
        if seat is not None:
            return seat
        if isolation == "namespace":
            raise DataDirUnusable(
                data_dir, "user namespaces are refused here", "Run as an ordinary user, or permit unshare."
            )
    return await _account_seat(tree, data_dir, home, state_root)


async def namespace_permitted() -> bool:
    """Whether this process may make a user namespace; container runtimes usually refuse it to root."""
    if not shutil.which("unshare"):
        return False
    status, _ = await run([*_namespace_prefix(), "true"])
    return status == 0


def _namespace_prefix() -> list[str]:
    unshare = shutil.which("unshare") or "unshare"
    return [*die_with_parent(), unshare, "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]


async def _namespace_seat(tree: PostgresTree, data_dir: Path, home: Path) -> Seat | None:
    if not await namespace_permitted():
        return None
    prefix = _namespace_prefix()
    if not home.is_symlink():
        _make_private(home)
    if not await _may_write(prefix, home):
        return None
    if not await _may_run(prefix, tree):
        tree = copy_tree(tree, data_dir)
        if not await _may_run(prefix, tree):
            return None
    return Seat(how="namespace", prefix=tuple(prefix), tree=tree, home=home)


async def _account_seat(tree: PostgresTree, data_dir: Path, home: Path, state_root: Path) -> Seat:
    account = _nobody()
    drop = [shutil.which("setpriv") or "setpriv"]
    drop += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", "--inh-caps=-all"]
    # The parent-death signal is forgotten when credentials change, so it is asked for after the change.
    prefix = [*drop, *die_with_parent()]
    data_dir.chmod(0o711)
    if home.is_symlink():
        home = home.resolve()
    else:
        _make_private(home)
        _give(home, account)
        if not await _may_write(prefix, home):
            home = _move_home(home, account, state_root)
    if not await _may_write(prefix, home):
        raise DataDirUnusable(
            home, f"the account {account.pw_name} cannot write there", "Run longtake as an ordinary user."
        )
    if not await _may_run(prefix, tree):
        state_root.mkdir(mode=0o755, parents=True, exist_ok=True)
        tree = copy_tree(tree, state_root)
        if not await _may_run(prefix, tree):
            raise DataDirUnusable(
                state_root,
                f"the account {account.pw_name} cannot run programs there",
                "Mount it without noexec.",
            )
    log.info("longtake.embedded_account", account=account.pw_name, home=str(home))
    return Seat(how="account", prefix=tuple(prefix), tree=tree, home=home)


def _move_home(home: Path, account: pwd.struct_passwd, state_root: Path) -> Path:
    """Put the home where the account can reach it; a link stays, so the data is found again from its directory."""
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    state_root.mkdir(mode=0o755, parents=True, exist_ok=True)
    target = state_root / name
    if not target.exists():
        shutil.move(home, target)
    elif any(home.iterdir()):
        raise DataDirUnusable(
            home, f"its data is also in {target}", "Keep the one that is right, move the other."
        )
    else:
        home.rmdir()
    home.symlink_to(target)
    _give(target, account)
    log.warning("longtake.embedded_data_moved", wanted=str(home), used=str(target), account=account.pw_name)
    return target


def _nobody() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("nobody")
    except KeyError:
        return pwd.struct_passwd(("nobody", "x", NOBODY, NOBODY, "", "/", "/bin/false"))


def _make_private(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def _give(home: Path, account: pwd.struct_passwd) -> None:
    if home.stat().st_uid == account.pw_uid:
        return
    for folder, directories, files in os.walk(home):
        for name in ("", *directories, *files):
            os.chown(os.path.join(folder, name), account.pw_uid, account.pw_gid, follow_symlinks=False)


async def _may_write(prefix: Sequence[str], directory: Path) -> bool:
    status, _ = await run([*prefix, "/bin/sh", "-c", PROBE, "sh", str(directory)])
    return status == 0


async def _may_run(prefix: Sequence[str], tree: PostgresTree) -> bool:
    status, said = await run([*prefix, tree.program("initdb"), "--version"])
    return status == 0 and "PostgreSQL" in said
