"""`longtake history judge`: the verdict on the command line, and one message for whatever is not to be judged."""

import shutil

import msgspec
import pytest

from kit.evidence import REAL
from longtake.cli.main import run_command


@pytest.fixture
def kept(tmp_path):
    return shutil.copytree(REAL, tmp_path / "kept")


def test_a_good_history_is_said_to_be_good(kept, capsys):
    assert run_command(["history", "judge", str(kept), "--kept", "--ok-floor", "0.5"]) == 0

    said = capsys.readouterr().out
    assert said.startswith("no violations\n")
    assert "acknowledged=10" in said


def test_a_bad_one_is_named_with_its_place_and_its_trace(kept, capsys):
    path = kept / "client-1.jsonl"
    path.write_text(path.read_text().replace('"revision":16', '"revision":15'))

    assert run_command(["history", "judge", str(kept), "--kept"]) == 1

    said = capsys.readouterr().out
    assert said.startswith("2 VIOLATIONS\n")
    assert "I10  no order of what clients were told" in said
    assert "cannot  [" in said


def test_programs_get_json(kept, capsys):
    (kept / "witness.jsonl").write_text('{"t":1.0,"key":"strange","kind":"submit"}\n')

    assert run_command(["history", "judge", str(kept), "--kept", "--json"]) == 1

    said = msgspec.json.decode(capsys.readouterr().out)
    assert not said["ok"]
    assert {item["invariant"] for item in said["violations"]} == {"I13"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{kept}/nowhere"], "is no directory"),
        (["{kept}/empty"], "there is no history"),
        (["{kept}/torn"], "client.jsonl:1"),
        (["{kept}/storeless", "--kept"], "store.json.gz"),
        (["{kept}", "--ok-floor", "7"], "use 0 to 1"),
    ],
)
def test_what_cannot_be_judged_is_one_message(kept, arguments, message, capsys):
    for name in ("empty", "torn", "storeless"):
        (kept / name).mkdir()
    (kept / "torn" / "client.jsonl").write_text("nonsense\n" * 2)
    shutil.copy(kept / "client-1.jsonl", kept / "storeless")

    code = run_command(["history", "judge", *(text.format(kept=kept) for text in arguments)])

    said = capsys.readouterr().err
    assert code == 1
    assert message in said
    assert "Traceback" not in said
    assert said.startswith("longtake: ")
