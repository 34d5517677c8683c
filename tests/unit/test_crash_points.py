"""Crash points: a closed table, each point at exactly one place, armed by bootstrap alone and never outside tests."""

import ast
import asyncio
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from longtake.crash_points import (
    POINTS,
    CrashPoint,
    Passed,
    arm,
    reach,
    reach_unanswered,
    read_crash_point,
)
from longtake.errors import ConfigurationError

LONGTAKE = Path(__file__).parents[2] / "service" / "longtake"
REACHES = ("reach", "reach_unanswered")


def places(source: str, path: str = "x.py") -> Iterator[tuple[str, str]]:
    """(point, path) of each call that reaches one; a name that is not written out is `?`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REACHES:
            first = node.args[0]
            yield (str(first.value) if isinstance(first, ast.Constant) else "?"), path


def all_places() -> list[tuple[str, str]]:
    return [
        place
        for path in sorted(LONGTAKE.rglob("*.py"))
        if path.name != "crash_points.py"
        for place in places(path.read_text(encoding="utf-8"), path.relative_to(LONGTAKE).as_posix())
    ]


def test_there_are_thirty_six_points_and_each_has_exactly_one_place() -> None:
    found = Counter(point for point, _ in all_places())

    assert 36 == len(POINTS)
    assert dict.fromkeys(POINTS, 1) == dict(found)


@pytest.mark.parametrize(
    "source", ['reach("nowhere")', "reach(name)", 'await_(reach_unanswered("acked", work))\nreach("acked")']
)
def test_a_place_too_many_is_found(source: str) -> None:
    known = Counter(dict.fromkeys(POINTS, 1))

    assert known != known + Counter(point for point, _ in places(source))


def arming(root: Path) -> set[str]:
    """Modules that arm the process."""
    return {
        path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "longtake.crash_points"
        and not {name.name for name in node.names} <= set(REACHES)
    }


def test_bootstrap_alone_arms(tmp_path: Path) -> None:
    (tmp_path / "runner.py").write_text("from longtake.crash_points import arm, reach\n")

    assert {"runner.py"} == arming(tmp_path)
    assert {"bootstrap.py"} == arming(LONGTAKE)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("acked", "it is name:action:hit:socket"),
        ("acked:kill:1:", "it is name:action:hit:socket"),
        ("nowhere:kill:1:/tmp/s", "there is no point 'nowhere'; there are auth_ok.before_tx"),
        ("acked:maim:1:/tmp/s", "the action 'maim' is none of kill, stop, cut"),
        ("acked:kill:0:/tmp/s", "the pass '0' is not a number from 1 to 1000"),
        ("acked:kill:one:/tmp/s", "the pass 'one' is not a number from 1 to 1000"),
    ],
)
def test_nonsense_is_refused_with_what_is_right(said: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_crash_point(said)

    assert remedy in str(refused.value)


def test_a_point_is_read_with_its_socket() -> None:
    read = CrashPoint(name="acked", action="cut", hit=3, harness="/tmp/a:b")

    assert read == read_crash_point("acked:cut:3:/tmp/a:b")


def test_a_process_of_another_environment_is_never_armed() -> None:
    with pytest.raises(ConfigurationError, match="the environment 'production' is not for tests"):
        arm("acked:kill:1:/tmp/nobody", environment="production")


def test_a_process_without_a_harness_is_never_armed(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nobody listens at"):
        arm(f"acked:kill:1:{tmp_path}/nobody", environment="test")


async def test_a_process_that_is_not_armed_passes() -> None:
    reach("acked")

    assert 7 == await reach_unanswered("commit.reply_lost", asyncio.sleep(0, 7))


ARMED = """
import asyncio, sys
from longtake.crash_points import arm, reach, reach_unanswered
arm(sys.argv[1], environment="test")
async def main():
    reach("acked")
    for _ in range(3):
        reach("batch.before_facts")
    await reach_unanswered("commit.reply_lost", asyncio.sleep(0))
    print("alive")
asyncio.run(main())
"""


class Harness:
    """Listens, gives its word to whoever waits for it, and keeps what it was told."""

    def __init__(self, folder: Path, *, word: bytes = b"!") -> None:
        self.told: list[Passed] = []
        self._word = word
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(folder / "harness"))
        self._server.listen()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        wire, _ = self._server.accept()
        with wire, wire.makefile("rb") as lines:
            for line in lines:
                self.told.append(msgspec.json.decode(line, type=Passed))
                if self.told[-1].acts:
                    if not self._word:
                        return
                    wire.sendall(self._word)

    def close(self) -> None:
        self._thread.join(10)
        self._server.close()


def run(tmp_path: Path, armed: str, *, word: bytes = b"!") -> tuple[int, str, list[Passed]]:
    harness = Harness(tmp_path, word=word)
    done = subprocess.run(
        [sys.executable, "-c", ARMED, f"{armed}:{tmp_path}/harness"],
        env={"PYTHONPATH": str(LONGTAKE.parent)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    harness.close()
    return done.returncode, done.stdout, harness.told


@pytest.mark.parametrize("hit", [1, 3])
def test_an_armed_process_says_that_it_is_there_before_it_dies_there(tmp_path: Path, hit: int) -> None:
    code, said, told = run(tmp_path, f"batch.before_facts:kill:{hit}")

    assert (-9, "") == (code, said)
    assert [(passed.hit, passed.acts) for passed in told] == [(n, n == hit) for n in range(1, hit + 1)]


def test_a_point_that_is_not_passed_so_often_kills_nobody(tmp_path: Path) -> None:
    code, said, told = run(tmp_path, "batch.before_facts:kill:4")

    assert (0, "alive\n") == (code, said)
    assert [1, 2, 3] == [passed.hit for passed in told]


def test_what_was_sent_is_reached_before_it_is_answered_and_a_cut_goes_on(tmp_path: Path) -> None:
    code, said, told = run(tmp_path, "commit.reply_lost:cut:1")

    assert (0, "alive\n") == (code, said)
    assert ["commit.reply_lost"] == [passed.point for passed in told]


def test_a_process_whose_harness_is_gone_is_left_alone(tmp_path: Path) -> None:
    code, said, _ = run(tmp_path, "acked:kill:1", word=b"")

    assert (0, "alive\n") == (code, said)
