"""Histories: written by processes that die, read on one clock."""

import asyncio
import math
import os
import signal
import sys
from pathlib import Path

import pytest

from kit.probe import eventually
from longtake.errors import DecisionRefused
from longtake.telemetry.recording import brief, history_of, recorded
from longtake.testing.checking import HistoryUnreadable, Recorder, WitnessLine, read_history, read_witness
from longtake.testing.checking.history import calls
from longtake.testing.checking.store import AccountRow

SERVICE = Path(__file__).parents[3] / "service"


def test_calls_are_paired_with_their_ends(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", "a")
    first = recorder.invoke("start", "c-1", {"kind": "generation"})
    second = recorder.invoke("read", "r-1")
    recorder.fail(second, {"problem": "not-found"})
    recorder.ok(first, {"run_id": "r-1"})

    one, two = calls(read_history(tmp_path))

    assert (one.f, one.command, one.type, one.said("run_id")) == ("start", "c-1", "ok", "r-1")
    assert (two.f, two.type, two.said("problem")) == ("read", "fail", "not-found")
    assert one.begun < two.begun < two.ended < one.ended


def test_a_call_whose_end_is_unknown_stays_open_and_its_session_goes_on_as_another(tmp_path):
    recorder = Recorder(tmp_path / "a.jsonl", "a")
    recorder.info(recorder.invoke("start", "c-1"), "no answer")
    recorder.ok(recorder.invoke("start", "c-2"))

    unknown, known = calls(read_history(tmp_path))

    assert (unknown.type, unknown.ended, unknown.proc) == ("info", math.inf, "a")
    assert known.proc == "a#2"


def test_sessions_of_one_file_and_of_several_are_told_apart(tmp_path):
    one, two = Recorder(tmp_path / "a.jsonl", "one"), Recorder(tmp_path / "a.jsonl", "two")
    three = Recorder(tmp_path / "b.jsonl", "three")
    begun = [recorder.invoke("read", "r") for recorder in (one, two, three)]
    for recorder, id_ in zip((one, two, three), begun, strict=True):
        recorder.ok(id_, recorder.proc)

    found = calls(read_history(tmp_path))

    assert [(made.proc, made.told) for made in found] == [(name, name) for name in ("one", "two", "three")]
    assert len({made.id for made in found}) == 3


def test_clocks_of_two_machines_are_brought_together(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"begin":"a","pid":1,"boot":"x","wall":1000.0,"monotonic":5.0}\n'
        '{"t":6.0,"proc":"a","f":"read","type":"invoke","id":1}\n'
    )
    (tmp_path / "b.jsonl").write_text(
        '{"begin":"b","pid":1,"boot":"y","wall":1000.0,"monotonic":900.0}\n'
        '{"t":900.5,"proc":"b","f":"read","type":"invoke","id":1}\n'
    )

    assert [(op.proc, op.t) for op in read_history(tmp_path)] == [("b", 1000.5), ("a", 1001.0)]


def test_a_torn_last_line_is_left_out_and_the_next_process_goes_on_behind_it(tmp_path):
    path = tmp_path / "a.jsonl"
    Recorder(path, "a").invoke("read", "r-1")
    with path.open("ab") as file:
        file.write(b'{"t":1.0,"proc":"a","f":"re')
    assert len(read_history(tmp_path)) == 1

    Recorder(path, "a").invoke("read", "r-2")

    assert [op.key for op in read_history(tmp_path)] == ["r-1", "r-2"]


def test_a_line_that_is_broken_elsewhere_is_refused_with_its_place(tmp_path):
    path = tmp_path / "a.jsonl"
    recorder = Recorder(path, "a")
    recorder.invoke("read", "r-1")
    with path.open("ab") as file:
        file.write(b"nonsense\n")
    recorder.invoke("read", "r-2")

    with pytest.raises(HistoryUnreadable, match=r"a\.jsonl:3"):
        read_history(tmp_path)


def test_an_end_without_a_call_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"begin":"a","pid":1,"boot":"","wall":1.0,"monotonic":1.0}\n{"t":1.0,"proc":"a","f":"x","type":"ok","id":4}\n'
    )

    with pytest.raises(HistoryUnreadable, match="never begun"):
        calls(read_history(tmp_path))


def test_a_witness_lies_beside_the_histories(tmp_path):
    (tmp_path / "witness.jsonl").write_text(
        '{"t":1.0,"key":"k","kind":"submit","charged":true,"credits":3}\n{"t":'
    )

    assert read_history(tmp_path) == []
    assert read_witness(tmp_path) == [WitnessLine(t=1.0, key="k", kind="submit", charged=True, credits=3)]


ENDLESS = """
import itertools, sys
from pathlib import Path
from longtake.telemetry.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]), "doomed")
print("ready", flush=True)
for number in itertools.count():
    id_ = recorder.invoke("read", f"r-{number}", "x" * 500)
    recorder.ok(id_)
"""


async def test_what_a_killed_process_wrote_is_there_up_to_its_last_line(tmp_path):
    path = tmp_path / "doomed.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(SERVICE)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ENDLESS, str(path), stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert await process.stdout.readline() == b"ready\n"
    await eventually(lambda: path.stat().st_size > 100_000, "a long history")
    process.send_signal(signal.SIGKILL)
    await process.wait()

    found = calls(read_history(tmp_path))

    assert [made.key for made in found] == [f"r-{number}" for number in range(len(found))]
    assert len(found) > 50
    assert {made.type for made in found[:-1]} == {"ok"}


class Store:
    """Something with calls to note."""

    name = "store"

    async def commit(self, rows: list[AccountRow]) -> dict:
        if not rows:
            raise DecisionRefused("no")
        if rows[0].held:
            raise ConnectionError("gone")
        return {"committed": [rows[0].account]}

    async def look(self) -> str:
        return "seen"

    async def open(self) -> "Store":
        return Store()


async def test_a_store_that_is_recorded_notes_its_calls_and_how_they_ended(tmp_path):
    recorder = history_of(tmp_path, "dispatcher-1")
    store = recorded(Store(), recorder, {"commit": "decide", "open": {"commit": "decide"}})

    assert await store.commit([AccountRow(tenant="t", account="a", balance=1, held=0)]) == {
        "committed": ["a"]
    }
    assert (await store.look(), store.name) == ("seen", "store")
    with pytest.raises(DecisionRefused):
        await store.commit([])
    with pytest.raises(ConnectionError):
        await store.commit([AccountRow(tenant="t", account="a", balance=1, held=1)])
    await (await store.open()).commit([AccountRow(tenant="t", account="b", balance=1, held=0)])

    found = calls(read_history(tmp_path))
    assert [(made.f, made.type) for made in found] == [
        ("decide", kind) for kind in ("ok", "fail", "info", "ok")
    ]
    assert found[0].told == {"committed": ["a"]}


def test_nothing_is_wrapped_when_nothing_is_recorded():
    store = Store()

    assert recorded(store, history_of(None, "any"), {"commit": "decide"}) is store


def test_only_ids_and_numbers_are_noted():
    row = WitnessLine(t=1.0, key="secret", kind="submit")

    assert brief([row, b"secret"]) == [{"kind": "submit"}, 6]
