"""The crash matrix, first half: killed at each of the 36 points at its first pass, nothing is lost and nothing doubled.

`make crash-matrix CELLS=all` plays all 216 cells. Beside the guard: a service whose application buys anew after a crash is
found out by the same verdict, and a point that is not passed so often is no success.
"""

import pytest

from kit.crash_acts import run_cell
from kit.crash_nursery import Nursery
from kit.crashing import HITS, Cell, Unreached, cells, cells_of_the_suite
from kit.promises import promise
from longtake.crash_points import POINTS

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("crash-matrix-kill")]


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


@promise("T78", "G37", "T42")
@pytest.mark.parametrize("point", [point for point in POINTS if point != "migration.mid"])
async def test_killed_at_its_first_pass(database, broker, tmp_path, nursery, point):
    report = await run_cell(Cell(point, "kill", 1), nursery, database, broker, tmp_path / "cell")
    print(f"{report.cell}: {report.runs} runs, {report.charges} charges, {report.seconds:.1f} s")

    assert [] == report.violations
    assert 1 == report.passes
    assert report.charges >= 2


async def test_killed_in_the_middle_of_its_migrations(bare_database, broker, tmp_path, nursery):
    report = await run_cell(
        Cell("migration.mid", "kill", 1), nursery, bare_database, broker, tmp_path / "cell"
    )

    assert [] == report.violations


async def test_an_application_that_buys_anew_after_a_crash_is_found_out(database, broker, tmp_path, nursery):
    """The verdict can fail: without the attempt's token the provider is asked twice for one shot."""
    cell = Cell("provider_ok.before_receipt", "kill", 1)
    report = await run_cell(cell, nursery, database, broker, tmp_path / "cell", app="kit.crash_app:rebuying")

    assert any("no attempt of any effect" in found for found in report.violations)


async def test_a_cell_whose_point_is_not_passed_so_often_shows_nothing(database, broker, tmp_path, nursery):
    with pytest.raises(Unreached, match=r"claimed.before_ack-kill-900: passed \d+ times"):
        await run_cell(Cell("claimed.before_ack", "kill", 900), nursery, database, broker, tmp_path / "cell")


def test_the_matrix_is_whole_and_the_suite_plays_two_cells_of_each_point():
    assert 216 == len(set(map(str, cells())))
    chosen = cells_of_the_suite()
    assert 72 == len(set(map(str, chosen)))
    assert {(point, "kill", 1) for point in POINTS} <= {(c.point, c.action, c.hit) for c in chosen}
    assert {"kill", "stop", "cut"} == {cell.action for cell in chosen}
    assert set(HITS) == {cell.hit for cell in chosen}
