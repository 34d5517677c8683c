"""The crash matrix, second half: at each point another cell of it - stopped for two leases, cut off, or at the third pass."""

import pytest

from kit.crash_acts import run_cell
from kit.crash_nursery import Nursery
from kit.crashing import cells_of_the_suite
from kit.promises import promise

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("crash-matrix-others")]

OTHERS = [cell for cell in cells_of_the_suite() if (cell.action, cell.hit) != ("kill", 1)]


@pytest.fixture(scope="module")
def nursery():
    with Nursery() as nursery:
        yield nursery


@promise("T78", "G37", "G34")
@pytest.mark.parametrize("cell", [cell for cell in OTHERS if cell.point != "migration.mid"], ids=str)
async def test_stopped_cut_off_or_killed_later(database, broker, tmp_path, nursery, cell):
    report = await run_cell(cell, nursery, database, broker, tmp_path / "cell")
    print(f"{report.cell}: {report.runs} runs, {report.charges} charges, {report.seconds:.1f} s")

    assert [] == report.violations
    assert cell.hit == report.passes


@pytest.mark.parametrize("cell", [cell for cell in OTHERS if cell.point == "migration.mid"], ids=str)
async def test_disturbed_in_the_middle_of_its_migrations(bare_database, broker, tmp_path, nursery, cell):
    report = await run_cell(cell, nursery, bare_database, broker, tmp_path / "cell")

    assert [] == report.violations
