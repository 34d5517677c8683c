"""The table of the mission is read from the marks of the tests, and nothing is claimed that is not there."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[2] / "tools" / "mission.py"


@pytest.fixture(scope="module")
def mission() -> ModuleType:
    """The program, imported from where it lies."""
    spec = importlib.util.spec_from_file_location("mission", PATH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_ranges_are_written_out_and_nonsense_is_refused(mission: ModuleType) -> None:
    assert ["G01", "G02", "G03", "T105"] == mission.expand("G01-G03 T105")
    with pytest.raises(ValueError, match="not an item"):
        mission.expand("G1x")


def test_a_promise_is_found_with_its_test_and_a_bare_test_is_not(mission: ModuleType, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text(
        "from kit.promises import promise\n"
        '@promise("G31", "H02")\nasync def test_a(): ...\n'
        'def test_b():\n    "G32"\n'
    )

    assert [("G31", "tests/test_it.py::test_a"), ("H02", "tests/test_it.py::test_a")] == list(
        mission.promises(tests)
    )


def test_every_item_named_by_a_test_is_an_item(mission: ModuleType) -> None:
    """A slip of the pen would prove an item that does not exist."""
    unknown = [
        (item, place)
        for item, place in mission.promises(PATH.parents[1] / "tests")
        if item[:1] not in "GTWH" or not item[1:].isdigit()
    ]

    assert [] == unknown
