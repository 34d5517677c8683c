"""Named faults against a service of separate processes, in short: eight of those of `make faults`, and what must fail.

Each counts only when its fault really struck. The long form keeps 200 runs in flight and takes three seeds of all of them.
"""

import pytest

from kit.bench import Bench
from kit.bench.campaign import campaign
from kit.bench.catalogue import all_faults
from kit.bench.soaking import ok_share, slopes, soak
from kit.left_out import NEEDS
from longtake.testing.checking import Op

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("faults")]

RUNS = 24
SMOKE = ("N02", "N04", "N05", "N07", "N11", "N16", "N22", "N28")
NAMED = {f"N{number:02d}" for number in range(1, 31)}
ELSEWHERE = {"N09", "N18", "N19", "N20", "N21", "N25", "N27"}
"""Those that need a cluster, or a clock that can be moved."""
BY_TESTS = {"N30"}
"""A restore is a drill of its own (test_restore.py): what it may lose is not what a campaign may."""
OPEN = {"N14"}
"""Not built yet: no space under pg_wal."""
SMALL_DISK = {"N24"}
"""Where a small disk can be mounted."""
TRACED = {"N13-sync", "F43"}
"""Where strace may hold Postgres: the slow syncs of N13, and a sync that fails."""
OF_OUR_OWN = {"F71"}
"""Not among the named ones: the files of the broker are older, or gone."""


@pytest.mark.parametrize("name", SMOKE)
async def test_a_fault_breaks_no_promise(tmp_path, name):
    report = await campaign(tmp_path / "bench", all_faults()[name], seed=1, runs=RUNS)
    print(report.text())
    assert report.passed, report.text()
    assert report.in_flight >= RUNS * 0.8
    assert report.verdict.counters["runs"] == RUNS


@pytest.mark.needs("strace")
@pytest.mark.parametrize("name", sorted(TRACED))
async def test_a_disk_that_is_slow_or_fails_breaks_no_promise(tmp_path, name):
    report = await campaign(tmp_path / "bench", all_faults()[name], seed=1, runs=12)
    print(report.text())
    assert report.passed, report.text()


async def test_an_application_that_pays_twice_is_found_out(tmp_path):
    """The planted fault: the provider is given another key at each call, and workers are killed."""
    report = await campaign(
        tmp_path / "bench", all_faults()["N02"], seed=1, runs=8, app="kit.bench.app:greedy"
    )
    print(report.text())
    assert not report.passed
    assert "I13" in report.verdict.invariants, report.text()


class Idle:
    """A fault that never strikes."""

    name, what, struck = "N00", "nothing", 0

    async def strike(self, bench: Bench) -> None:
        """Nothing."""

    async def heal(self, bench: Bench) -> None:
        """Nothing."""


async def test_a_fault_that_never_struck_shows_nothing(tmp_path):
    report = await campaign(tmp_path / "bench", Idle(), seed=1, runs=4)
    assert report.verdict.ok, report.text()
    assert not report.passed
    assert "it never struck" in report.text()


def test_every_named_fault_of_one_node_is_there():
    can_mount, _ = NEEDS["small_disk"]
    can_trace, _ = NEEDS["strace"]
    wanted = NAMED - ELSEWHERE - BY_TESTS - OPEN - (set() if can_mount() else SMALL_DISK)
    wanted |= OF_OUR_OWN | (TRACED if can_trace() else set())
    assert wanted <= set(all_faults()) <= (NAMED - ELSEWHERE) | TRACED | OF_OUR_OWN


async def test_a_short_soak_keeps_its_promises(tmp_path):
    said: list[str] = []
    report = await soak(
        tmp_path / "bench", minutes=0.3, seed=1, say=said.append, faults=("N02", "N10"), between=(2.0, 5.0)
    )
    print("\n".join(said))
    assert report.failures() == []
    assert sum(report.faults.values()) > 0


def test_the_measures_of_a_soak_see_what_they_are_for():
    def op(t: float, type_: str, id_: int) -> Op:
        return Op(t=t, proc="client-1", f="read", type=type_, key="", value=None, id=id_)

    calls = [op(1, "invoke", 1), op(2, "ok", 1), op(10, "invoke", 2), op(11, "info", 2)]
    assert ok_share(calls, [(9.0, 12.0)]) == 1.0
    assert ok_share(calls, []) == 0.5
    assert ok_share([*calls, op(20, "invoke", 3), op(21, "fail", 3)], [(9.0, 12.0)]) == 0.5
    growing = [(60.0 * n, {"api-1": (7, 1000 * n), "worker-1": (7 + n, 10)}) for n in range(8)]
    assert slopes(growing) == {"api-1": pytest.approx(1000)}
