"""Histories that must be accepted, though each looks odd: what is unknown, late, repeated, refused or lost to a restore."""

import copy
import uuid

import msgspec

from kit.evidence import Case, Change
from longtake.testing.checking import WitnessLine

GOOD: list[tuple[str, Change]] = []


def good(make: Change) -> Change:
    """Register a good history."""
    GOOD.append((make.__name__, make))
    return make


def _cut_off(case: Case, command: str) -> None:
    """The answer of a command never came."""
    for op in case.sent(command):
        if op.type == "ok":
            case.remove([op])


@good
def an_unknown_start_turns_out_to_have_happened(case: Case) -> None:
    _cut_off(case, "ordered")


@good
def an_unknown_start_never_happened(case: Case) -> None:
    case.call("client-9", "start", "ghost", {"kind": "generation"}, "info", None)
    case.call("client-9#2", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1})


@good
def an_unknown_command_takes_effect_long_after_it_was_sent(case: Case) -> None:
    """`cancel` has no answer and was sent before all that came before it in the log."""
    ops = case.sent("cancel")
    case.remove([op for op in ops if op.type == "ok"])
    begin = next(op for op in ops if op.type == "invoke")
    started = next(case.ends("start", "metered"))
    begin.t = started.t + 0.0001
    begin.value = {**begin.value, "expected_revision": 4}


@good
def an_unknown_command_never_took_effect(case: Case) -> None:
    asked = {"kind": "pause", "id": "never", "expected_revision": 4}
    case.call("client-9", "command", case.run("hard").run, asked, "info", None)
    case.call("client-9#2", "read", case.run("hard").run, None, "ok", {"revision": 15, "epoch": 1})


@good
def a_command_is_repeated_by_somebody_who_had_no_answer(case: Case) -> None:
    ops = case.sent("pause")
    told = next(op.value for op in ops if op.type == "ok")
    asked = next(op.value for op in ops if op.type == "invoke")
    case.call("client-9", "command", case.run("gated").run, asked, "ok", told)


@good
def a_cancel_loses_against_the_end(case: Case) -> None:
    """It was under way when the run completed: refused, though whoever sent it saw it running."""
    end = next(case.ends("read", case.run("gated").run, status="completed"))
    asked = {"kind": "cancel", "id": "too-late", "expected_revision": 14}
    refused = case.call(
        "client-9", "command", case.run("gated").run, asked, "fail", {"problem": "action-not-available"}
    )
    case.begun(refused).t = end.t - 0.03
    refused.t = end.t + 0.001
    row = copy.deepcopy(next(row for row in case.store.commands if row.id == "cancel-again"))
    row.id, row.run = "too-late", case.run("gated").run
    case.store.commands.append(row)
    case.call("client-9", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1})


@good
def two_reads_overlap_and_the_longer_one_is_older(case: Case) -> None:
    """A read that began before the end may answer after a read of the end has."""
    end = next(case.ends("read", case.run("gated").run, status="completed"))
    begun = case.begun(end).t
    old = {"revision": 11, "epoch": 1, "status": "paused"}
    paused = next(op for op in case.sent("pause") if op.type == "ok").t
    slow = case.call("client-9", "read", case.run("gated").run, None, "ok", old)
    case.begun(slow).t = paused + 0.0001
    slow.t = end.t + 0.01
    assert begun < slow.t


@good
def a_restore_took_back_what_was_told(case: Case) -> None:
    """Before the restore the run had come further, and a command was known that no copy had left the store of."""
    start = case.first
    run = case.run("gated").run
    case.call(
        "client-9",
        "start",
        "gated",
        {"kind": "generation"},
        "ok",
        {"run_id": run, "revision": 3},
        at=start - 5,
    )
    case.call(
        "client-9", "read", run, None, "ok", {"revision": 40, "epoch": 1, "status": "paused"}, at=start - 4
    )
    case.call(
        "client-9",
        "start",
        "lost",
        {"kind": "generation"},
        "ok",
        {"run_id": str(uuid.UUID(int=7))},
        at=start - 3,
    )
    case.call("nemesis", "restore", "2", None, "ok", None, at=start - 1)
    case.witness.append(WitnessLine(t=start - 2, key="lt-lost", kind="submit", charged=True, job="job-lost"))
    case.store.store_epoch = 2
    for op in case.history:
        if op.t > start - 0.5 and isinstance(op.value, dict) and op.value.get("epoch") == 1:
            op.value = {**op.value, "epoch": 2}
    case.options["restore_may_lose"] = True


@good
def calls_fail_while_a_fault_strikes(case: Case) -> None:
    at = max(op.t for op in case.history) + 1
    fault = case.call("nemesis", "fault", "N07", None, "ok", None, at=at)
    fault.t = at + 10
    for number in range(20):
        case.call("client-9", "read", case.run("gated").run, None, "info", None, at=at + 0.1 * (number + 1))
    case.call("client-9", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1}, at=at + 11)


@good
def the_provider_is_asked_again_under_a_known_key(case: Case) -> None:
    line = next(line for line in case.witness if line.charged)
    case.witness.append(msgspec.structs.replace(line, t=line.t + 1, charged=False, credits=0))


@good
def a_callback_came_when_nobody_cared(case: Case) -> None:
    twin = copy.deepcopy(case.store.inbox[0])
    twin.id, twin.key, twin.status, twin.reason = (
        str(uuid.UUID(int=9)),
        "late",
        "ignored",
        "the run has ended",
    )
    case.store.inbox.append(twin)


@good
def commands_of_the_service_itself_are_in_the_store(case: Case) -> None:
    for name in ("child-0123", "schedule-nightly-2026"):
        row = copy.deepcopy(next(row for row in case.store.commands if row.id == "resume"))
        row.id = name
        case.store.commands.append(row)
