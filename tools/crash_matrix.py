"""`make crash-matrix`: kill, stop and cut a service off at named points, and a verdict on what is left.

Prints a line a cell: how often the point was passed, how many runs there were, what was found. A cell that was not reached
is a failure. With all cells it writes docs/crash-matrix.md; it ends with 1 when a cell failed.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "service"), str(ROOT / "tests")]

import msgspec
import structlog

from kit.crash_acts import run_cell
from kit.crash_nursery import Nursery
from kit.crashing import ACTIONS, HITS, Cell, cells, cells_of_the_suite
from kit.servers import EMPTY, TEMPLATE, clean_broker, fresh_database, serving
from longtake.crash_points import POINTS

TABLE = ROOT / "docs" / "crash-matrix.md"
HEAD = """# The crash matrix

`make crash-matrix CELLS=all` wrote this. Each row is a named point of the code (`service/longtake/crash_points.py`,
[crash-points.md](crash-points.md)). In a cell a service was brought to pass the point, and at its first or third pass the
process killed itself (kill), stood still for two leases while another took over (stop), or had every connection reset
(cut). `ok`: the process said that it was there before it acted, every run ended, and the checker, the audits of histories,
projections and money, and the provider's own account found nothing wrong.

"""


class Result(msgspec.Struct, frozen=True):
    """What a cell came to."""

    cell: Cell
    word: str
    detail: str


async def play(chosen: list[Cell], keep: Path | None) -> list[Result]:
    """Every cell on servers that they share, one after another."""
    results: list[Result] = []
    with Nursery() as nursery, serving() as servers:
        for cell in chosen:
            folder = Path(tempfile.mkdtemp(prefix="crash-cell-"))
            empty = EMPTY if cell.point == "migration.mid" else TEMPLATE
            async with fresh_database(servers, empty) as database, clean_broker(servers) as broker:
                results.append(await one(cell, nursery, database, broker, folder))
            if keep is not None and results[-1].word != "ok":
                (folder / "cell" / "harness").unlink(missing_ok=True)
                shutil.copytree(folder, keep / str(cell), dirs_exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            print(f"{cell!s:45} {results[-1].word:9} {results[-1].detail}", flush=True)
    return results


async def one(cell: Cell, nursery: Nursery, database: object, broker: object, folder: Path) -> Result:
    """One cell, whatever comes of it."""
    try:
        report = await run_cell(cell, nursery, database, broker, folder / "cell")
    except Exception as error:  # noqa: BLE001 - a cell that breaks is a cell that failed; the others go on
        return Result(cell, "UNREACHED" if "passed" in str(error) else "BROKEN", said(error))
    if report.violations:
        return Result(cell, "VIOLATED", "; ".join(report.violations)[:2000])
    return Result(cell, "ok", f"{report.runs} runs, {report.charges} charges, {report.seconds:.1f} s")


def together(file: Path, results: list[Result]) -> list[Result]:
    """These results and those of earlier slices, the latest of each cell, in the order of the matrix."""
    with file.open("ab") as kept:
        kept.writelines(msgspec.json.encode(result) + b"\n" for result in results)
    latest = {
        str(result.cell): result
        for line in file.read_bytes().splitlines()
        for result in (msgspec.json.decode(line, type=Result),)
    }
    return [latest[str(cell)] for cell in cells() if str(cell) in latest]


def said(error: BaseException) -> str:
    """The errors at the bottom of a group, in words."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(said(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"[:500]


def table(results: list[Result]) -> Iterator[str]:
    """The table of docs/crash-matrix.md."""
    words = {str(result.cell): result.word for result in results}
    columns = [(action, hit) for action in ACTIONS for hit in HITS]
    yield "| point | " + " | ".join(f"{action} {hit}" for action, hit in columns) + " |"
    yield "| --- |" + " --- |" * len(columns)
    for point in dict.fromkeys(result.cell.point for result in results):
        row = [words.get(str(Cell(point, action, hit)), "") for action, hit in columns]
        yield f"| `{point}` | " + " | ".join(row) + " |"
    counted = Counter(words.values())
    yield ""
    yield (
        f"{len(words)} cells: " + ", ".join(f"{count} {word}" for word, count in counted.most_common()) + "."
    )


def main() -> int:
    """0 when every chosen cell was reached and nothing was found."""
    parser = argparse.ArgumentParser(prog="make crash-matrix", description=__doc__)
    parser.add_argument("--cells", choices=("suite", "all"), default="suite")
    parser.add_argument("--point", action="append", help="only this point")
    parser.add_argument("--action", action="append", choices=ACTIONS, help="only this action")
    parser.add_argument("--hit", action="append", type=int, choices=HITS, help="only this pass")
    parser.add_argument("--keep", type=Path, help="keep histories and logs of cells that failed here")
    parser.add_argument(
        "--results", type=Path, help="a file that gathers the results of slices of the matrix"
    )
    options = parser.parse_args()
    strange = [point for point in options.point or () if point not in POINTS]
    if strange:
        parser.error(f"--point {strange[0]} is unknown; there are {', '.join(POINTS)}")
    chosen = [
        cell
        for cell in (cells() if options.cells == "all" else cells_of_the_suite())
        if (not options.point or cell.point in options.point)
        and (not options.action or cell.action in options.action)
        and (not options.hit or cell.hit in options.hit)
    ]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests")])
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    results = asyncio.run(play(chosen, options.keep))
    if options.results is not None:
        results = together(options.results, results)
    lines = list(table(results))
    print("\n" + "\n".join(lines))
    if len(results) == len(cells()):
        TABLE.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return 0 if all(result.word == "ok" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
