"""The checker: what every process wrote down, what the store holds and what the provider saw, judged together (4.5, 4.6).

    recorder = Recorder(directory / "client-1.jsonl", "client-1")
    id_ = recorder.invoke("start", "command-1", {"kind": "generation"})
    recorder.ok(id_, {"run_id": ..., "revision": 3, "status": "accepted"})

    verdict = judge(read_history(directory), await read_store(connection), read_witness(path), ok_floor=0.95)
    assert verdict.ok, verdict.text()

docs/checking.md says what is checked and how a violation is read.
"""

from longtake.telemetry.recorder import Op, Recorder
from longtake.testing.checking.found import Violation
from longtake.testing.checking.history import HistoryUnreadable, read_history
from longtake.testing.checking.store import StoreDump, read_store
from longtake.testing.checking.verdict import Verdict, judge
from longtake.testing.checking.witness import WitnessLine, read_witness

__all__ = [
    "HistoryUnreadable",
    "Op",
    "Recorder",
    "StoreDump",
    "Verdict",
    "Violation",
    "WitnessLine",
    "judge",
    "read_history",
    "read_store",
    "read_witness",
]
