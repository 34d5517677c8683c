"""Which item of the mission is proved by which test: `make mission`, or `tools/mission.py --missing`.

Tests carry `@promise("G31")`. The marks are read from the source, so nothing needs to be installed or run. Whether the
proofs hold is what `make test` says; this only says what is claimed, and what nobody claims yet.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

OWED = """
G01-G49 G52-G53 G58-G59 T01 T03-T09 T11-T13 T16-T25 T33-T35 T37-T44 T62-T63 W05 W49
H01-H02 H04-H39 H41-H50 H58-H62 H68 H71 H75-H77 H79 H81-H89
T31-T32 T36 T45-T48 T52-T53 T61 W06-W11 W27-W35 H03 H40 H51-H57 H63-H67 H90
G50-G51 T07 T10 T14-T15 T26 T49-T51 T59-T60 T78-T82 T85-T86 W36-W45
"""
"""What the first slice owes, the workflow language, and the faults of the real world. Later slices add a line."""

_RANGE = re.compile(r"^([A-Z])(\d+)(?:-[A-Z](\d+))?$")


def expand(text: str) -> list[str]:
    """`G01-G03 T05` as `G01 G02 G03 T05`."""
    ids = []
    for word in text.split():
        found = _RANGE.match(word)
        if found is None:
            raise ValueError(f"not an item or a range of items: {word!r}; write G01 or G01-G09")
        letter, first, last = found[1], int(found[2]), int(found[3] or found[2])
        ids += [f"{letter}{number:02d}" for number in range(first, last + 1)]
    return ids


def promises(tests: Path) -> Iterator[tuple[str, str]]:
    """Every promise of every test, as (item, where)."""
    for path in sorted(tests.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func).split(".")[-1] == "promise":
                    for argument in mark.args:
                        yield (
                            str(ast.literal_eval(argument)),
                            f"{path.relative_to(tests.parent)}::{node.name}",
                        )


def main(arguments: list[str]) -> int:
    """Print the table; with --missing only what has no test. Unknown arguments are an error."""
    if arguments not in ([], ["--missing"]):
        print("usage: tools/mission.py [--missing]", file=sys.stderr)
        return 2
    owed = expand(OWED)
    proofs: dict[str, list[str]] = {}
    for item, place in promises(ROOT / "tests"):
        proofs.setdefault(item, []).append(place)
    for item in sorted({*owed, *proofs}, key=lambda item: ("GTWH".find(item[0]), item)):
        places = proofs.get(item, [])
        if places and arguments:
            continue
        print(f"{item}  {places[0] if places else '-'}")
        for place in places[1:]:
            print(f"{'':{len(item)}}  {place}")
    proved = [item for item in owed if item in proofs]
    print(f"{len(proved)} of {len(owed)} owed items have a test that names them")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
