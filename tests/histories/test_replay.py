"""What was written once is understood for ever: captured runs of earlier code, replayed by the code of today (F57).

Each file here is one run as the store held it then (tools/capture_history.py). Its chain must verify, its events must
fold through the upcasters, and the fold must say what the store said. What may differ is listed here, by name.
"""

import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kit.promises import promise
from longtake.cli.captured import CapturedRun, captured_files, read_captured
from longtake.contracts import upcasters
from longtake.contracts.envelope import GENESIS, StoredEvent, chain
from longtake.contracts.events import EVENT_TYPES, Charged, Refunded
from longtake.contracts.ids import event_id_for
from longtake.contracts.upcasters import decode_event
from longtake.engine.audit import Audit, folded_steps, run_columns, step_columns, verify_history
from longtake.errors import BrokenChain, ConfigurationError
from longtake.workflow.fingerprint import fingerprint
from longtake.workflow.plan import read_plan
from longtake.workflow.projection import run_row
from longtake.workflow.state import RunState

FOLDER = Path(__file__).parent
FILES = captured_files(FOLDER)
FILE_BYTES_MAX = 100_000

FIRST_LIGHT = {
    "run_accepted", "charged", "refunded", "steps_scheduled", "attempt_submitted", "callback_received",
    "step_succeeded", "attempt_failed", "attempt_unknown", "attempt_reconciled", "step_blocked", "step_failed",
    "steps_cancelled", "late_outcome", "retry_requested", "cancel_requested", "run_blocked", "run_unblocked",
    "run_completed", "run_failed", "run_cancelled",
}  # fmt: skip
"""The event types there were when the first files were captured."""

ACTIONS_SINCE = {
    "provide_generation_input", "pause_generation", "resume_generation", "send_generation_event", "steer_generation",
    "fork_generation", "follow_up_generation",
}  # fmt: skip
"""Actions that runs did not offer then and may offer now. Everything else that a summary said must stand."""

MAY_DIFFER = {"available_actions"}
"""Fields of a summary that are compared by a rule of their own; any other that existed then must be equal."""


class CapturedStore:
    """A captured run where the auditor expects a store."""

    def __init__(self, run: CapturedRun) -> None:
        self._run = run

    async def run_ids(self, after: uuid.UUID, limit: int) -> list[tuple[uuid.UUID, str]]:
        return [(self._run.run_id, self._run.tenant)] if after < self._run.run_id and limit else []

    async def history(self, run_id: uuid.UUID) -> Sequence[StoredEvent]:
        return self._run.events

    async def plan_document(self, tenant: str, run_id: uuid.UUID) -> bytes:
        return self._run.plan

    async def projection(self, run_id: uuid.UUID) -> None:
        return None

    async def replace_projection(self, *_: Any, **__: Any) -> bool:
        raise AssertionError("a captured run is not written")


async def folded(run: CapturedRun) -> RunState:
    """The state after the last event, by the very fold that the auditor uses."""
    return await Audit(CapturedStore(run)).fold(run.run_id, run.tenant)  # type: ignore[arg-type]  # reads alone


def differences(run: CapturedRun, state: RunState) -> list[str]:
    """Everything that the fold says otherwise than the store did, the listed exceptions apart."""
    row = run_row(state)
    found = [
        f"run.{name}: was {run.run[name]!r}, is {_plain(value)!r}"
        for name, value in run_columns(row).items()
        if name != "summary" and run.run[name] != _plain(value)
    ]
    now = {step.key: step_columns(step) for step in folded_steps(state)}
    if sorted(now) != sorted(step["key"] for step in run.steps):
        found.append(f"steps: are {sorted(now)}")
    found += [
        f"steps[{was['key']}].{name}: was {was[name]!r}, is {_plain(now[was['key']][name])!r}"
        for was in run.steps
        if was["key"] in now
        for name in was
        if name in now[was["key"]] and was[name] != _plain(now[was["key"]][name])
    ]
    return found + _summary_differences(run.summary, msgspec.json.decode(row.summary))


def _summary_differences(was: dict[str, Any], is_: dict[str, Any]) -> list[str]:
    found = [
        f"summary.{name}: was {value!r}, is {is_.get(name)!r}"
        for name, value in was.items()
        if name not in MAY_DIFFER and _as_then(value, is_.get(name)) != value
    ]
    lost = set(was["available_actions"]) - set(is_["available_actions"])
    strange = set(is_["available_actions"]) - set(was["available_actions"]) - ACTIONS_SINCE
    if lost or strange:
        found.append(f"summary.available_actions: lost {sorted(lost)}, strange {sorted(strange)}")
    return found


def _as_then(was: Any, is_: Any) -> Any:
    """What is there now, without the members of objects that were not there then."""
    if isinstance(was, dict) and isinstance(is_, dict):
        return {key: _as_then(was[key], value) for key, value in is_.items() if key in was}
    if isinstance(was, list) and isinstance(is_, list) and len(was) == len(is_):
        return [_as_then(before, after) for before, after in zip(was, is_, strict=True)]
    return is_


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case tuple() | list():
            return [_plain(item) for item in value]
        case _:
            return value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@promise("H26")
async def test_a_captured_run_verifies_and_says_today_what_it_said_then(path: Path) -> None:
    run = read_captured(path)

    verify_history(run.events)
    state = await folded(run)

    assert run.events[-1].hash.hex() == run.run["head"]
    assert differences(run, state) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@promise("H16")
def test_its_plan_has_the_fingerprint_it_was_accepted_with(path: Path) -> None:
    """Else each upgrade of this program would block every active run for drift."""
    run = read_captured(path)
    accepted = msgspec.json.decode(run.events[0].data)
    price_list = accepted["price_list"] if "price_list" in accepted else accepted["money"]["price_list"]
    policy = msgspec.json.decode(run.policy)

    assert run.fingerprint == fingerprint(read_plan(run.plan), policy, price_list)
    assert run.fingerprint != fingerprint(read_plan(run.plan), policy, f"{price_list}-later")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
async def test_its_ledger_is_its_money_events_and_no_other(path: Path) -> None:
    run = read_captured(path)
    events = [(event.seq, decode_event(event.type, event.version, event.data)) for event in run.events]
    money = [(e.key, seq, e.amount) for seq, e in events if isinstance(e, Charged | Refunded)]

    assert money == [(entry["key"], entry["seq"], entry["amount"]) for entry in run.ledger]
    state = await folded(run)
    for kind, total in (("charge", state.charged), ("refund", state.refunded)):
        assert total == sum(entry["amount"] for entry in run.ledger if entry["kind"] == kind)


def test_the_files_are_small_and_hold_every_event_type_of_the_first_light() -> None:
    runs = [read_captured(path) for path in FILES]
    held = {event.type for run in runs for event in run.events}

    assert held >= FIRST_LIGHT
    assert held <= {event.TYPE for event in EVENT_TYPES}
    assert max(path.stat().st_size for path in FILES) < FILE_BYTES_MAX
    assert {"completed", "failed", "cancelled", "blocked", "cancelling", "running"} <= {
        run.run["status"] for run in runs
    }


# --- each check beside a file that it refuses -------------------------------------------------------------------------


@pytest.fixture
def retried() -> CapturedRun:
    """A run with a bit of everything: failed tries, a blocker, a person, an end."""
    return read_captured(FOLDER / "blocked-retried.jsonl")


def altered(run: CapturedRun, seq: int, *, rechained: bool = False, **changes: Any) -> CapturedRun:
    """The run with another event in one place; `rechained` by somebody who knows how hashes are made."""
    events = [
        msgspec.structs.replace(event, **changes) if event.seq == seq else event for event in run.events
    ]
    return msgspec.structs.replace(run, events=tuple(_chained(events) if rechained else events))


def _chained(events: list[StoredEvent]) -> list[StoredEvent]:
    made, previous = list[StoredEvent](), GENESIS
    for seq, event in enumerate(events, start=1):
        id_ = event_id_for(event.run_id, seq=seq, store_epoch=event.store_epoch)
        previous = chain(
            previous,
            store_epoch=event.store_epoch,
            seq=seq,
            type_=event.type,
            version=event.version,
            recorded_at=event.recorded_at,
            data=event.data,
            meta=event.meta,
        )
        made.append(msgspec.structs.replace(event, seq=seq, id=id_, hash=previous))
    return made


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_one_flipped_byte_anywhere_breaks_the_chain_there(path: Path) -> None:
    run = read_captured(path)
    for event in run.events:
        for field in ("data", "meta"):
            raw: bytes = getattr(event, field)
            middle = len(raw) // 2
            flipped = raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :]

            with pytest.raises(BrokenChain) as caught:
                verify_history(altered(run, event.seq, **{field: flipped}).events)

            assert caught.value.seq == event.seq


def test_two_events_that_changed_places_break_the_chain(retried: CapturedRun) -> None:
    events = list(retried.events)
    events[3], events[4] = events[4], events[3]

    with pytest.raises(BrokenChain) as caught:
        verify_history(events)

    assert caught.value.seq == 4


async def test_a_swap_with_new_hashes_and_ids_says_something_else(retried: CapturedRun) -> None:
    """A forger who can compute the chain verifies; the fold does not say what the store said."""
    events = list(retried.events)
    assert ["step_succeeded", "run_completed"] == [event.type for event in events[-2:]]
    events[-2], events[-1] = events[-1], events[-2]
    forged = msgspec.structs.replace(retried, events=tuple(_chained(events)))
    verify_history(forged.events)

    try:
        found = differences(forged, await folded(forged))
    except BrokenChain as error:
        found = [str(error)]

    assert found != []
    assert forged.events[-1].hash.hex() != forged.run["head"]


async def test_a_forged_price_is_told_by_fold_and_ledger(retried: CapturedRun) -> None:
    charged = next(event for event in retried.events if event.type == "charged")
    assert b'"amount":6' in charged.data
    cheaper = charged.data.replace(b'"amount":6', b'"amount":5')
    forged = altered(retried, charged.seq, rechained=True, data=cheaper)
    verify_history(forged.events)

    found = differences(forged, await folded(forged))

    assert "run.charged: was 6, is 5" in found


async def test_an_event_from_the_future_stops_the_fold_at_its_place(retried: CapturedRun) -> None:
    for changes in ({"version": 99}, {"type": "from_the_future"}):
        with pytest.raises(BrokenChain) as caught:
            await folded(altered(retried, 2, rechained=True, **changes))

        assert caught.value.seq == 2
        assert "this program does not know the event" in caught.value.reason


async def test_without_its_upcaster_an_old_event_stops_the_fold(
    retried: CapturedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = retried.events[0]
    assert ("run_accepted", 1) == (first.type, first.version), "the file is of the days before version 2"
    assert (await folded(retried)).revision == len(retried.events)

    monkeypatch.delitem(upcasters.UPCASTERS, ("run_accepted", 1))

    with pytest.raises(BrokenChain, match="no upcaster leads on from this version") as caught:
        await folded(retried)
    assert caught.value.seq == 1


def test_a_lost_action_and_a_strange_one_are_differences(retried: CapturedRun) -> None:
    was = {**retried.summary, "available_actions": ["cancel_generation"]}

    assert _summary_differences(was, {**was, "available_actions": []}) != []
    assert _summary_differences(was, {**was, "available_actions": ["cancel_generation", "fly"]}) != []
    assert _summary_differences(was, {**was, "status": "failed"}) != []
    more = {**was, "available_actions": ["cancel_generation", "pause_generation"], "since_then": 1}
    assert _summary_differences(was, more) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must have a header in its first line"),
        (b"{}\n{}\n", "line 1 of"),
        (b"not json\n", "line 1 of"),
    ],
)
def test_a_file_that_is_no_captured_run_is_told_by_its_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)

    with pytest.raises(ConfigurationError, match=said):
        read_captured(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    ("was", "is_", "said"),
    [
        (b'"format":1', b'"format":2', "has format 2; this program reads format 1"),
        (b'"policy":"{}"', b'"policy":"{"', "its policy is not JSON"),
        (b'"ended_at":null', b'"ended":null', "its run lacks ended_at"),
        (b'"hash":"', b'"hash":"zz', "line 2 of"),
    ],
)
def test_a_file_with_one_wrong_place_is_refused_with_it(
    tmp_path: Path, was: bytes, is_: bytes, said: str
) -> None:
    plain = (FOLDER / "drifted.jsonl").read_bytes()
    assert was in plain
    (tmp_path / "wrong.jsonl").write_bytes(plain.replace(was, is_, 1))

    with pytest.raises(ConfigurationError, match=said):
        read_captured(tmp_path / "wrong.jsonl")


def test_a_folder_without_a_captured_run_and_a_torn_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no captured run"):
        captured_files(tmp_path)
    packed = (FOLDER / "demo.jsonl.gz").read_bytes()
    (tmp_path / "torn.jsonl.gz").write_bytes(packed[: len(packed) // 2])

    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_captured(tmp_path / "torn.jsonl.gz")
