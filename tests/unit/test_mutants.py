"""The list of mutants stays true: each names a line that stands once, so `make mutants` breaks what it says it breaks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "service" / "longtake" / "workflow"


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import mutants

    yield mutants
    for name in ("mutants", "mutant_list", "mutant_language"):
        sys.modules.pop(name, None)


def test_every_mutant_breaks_one_line_that_is_there(mutants) -> None:
    places = {
        (mutant.file, mutant.line, mutant.broken): sum(
            mutant.line in line for line in (CORE / mutant.file).read_text().splitlines()
        )
        for mutant in mutants.MUTANTS
    }

    assert {} == {place: count for place, count in places.items() if count != 1}
    assert len(places) == len(mutants.MUTANTS), "a mutant stands in the list twice"
    assert len(places) >= 67


def test_every_broken_core_still_compiles(mutants) -> None:
    """A mutant that is no Python would be caught by every test, and show nothing."""
    for mutant in mutants.MUTANTS:
        source = (CORE / mutant.file).read_text()
        compile(source.replace(mutant.line, mutant.broken), mutant.file, "exec")
        assert mutant.line != mutant.broken


def test_a_mutant_whose_line_is_gone_is_told(mutants, tmp_path) -> None:
    """The broken variant: a list that fell behind the core fails."""
    gone = mutants.Mutant("joins.py", "this line was never there", "pass", "nothing")
    caught, words = mutants._judge(tmp_path / "1", gone)

    assert (caught, "0 times" in words) == (False, True)
