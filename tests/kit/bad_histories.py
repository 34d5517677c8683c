"""Histories that must be rejected, each made by hand of a real one, with the invariant that it breaks and who must say so."""

import copy
import uuid
from collections.abc import Callable
from datetime import timedelta

import msgspec

from kit.evidence import Case, Change
from longtake.contracts.pointers import EffectPointers, encode_pointers
from longtake.testing.checking import WitnessLine
from longtake.testing.checking.store import DeadLetterRow, MoneyLawRow, SignalRow, TimerRow


class Bad(msgspec.Struct, frozen=True):
    """One bad history."""

    name: str
    invariant: str
    checker: str
    make: Change


BAD: list[Bad] = []


def bad(invariant: str, checker: str) -> Callable[[Change], Change]:
    """Register a bad history."""

    def register(make: Change) -> Change:
        BAD.append(Bad(make.__name__, invariant, checker, make))
        return make

    return register


# --- the set of commands ----------------------------------------------------------------------------------------------


@bad("I8", "set_full")
def an_acknowledged_command_is_gone(case: Case) -> None:
    case.call("client-9", "start", "ghost", {"kind": "generation"}, "ok", {"run_id": str(uuid.UUID(int=9))})


@bad("I8", "set_full")
def the_first_acknowledged_command_is_gone(case: Case) -> None:
    told = {"run_id": str(uuid.UUID(int=9))}
    case.call("client-9", "start", "ghost", {"kind": "generation"}, "ok", told, at=case.first - 1)


@bad("I8", "set_full")
def a_command_is_there_that_nobody_sent(case: Case) -> None:
    row = copy.deepcopy(next(row for row in case.store.commands if row.id == "resume"))
    row.id = "nobody"
    case.store.commands.append(row)


@bad("I9", "set_full")
def one_command_was_answered_in_two_ways(case: Case) -> None:
    case.call("client-9", "start", "bad", {"kind": "generation"}, "ok", {"run_id": str(uuid.UUID(int=9))})


@bad("I9", "set_full")
def a_receipt_was_rewritten(case: Case) -> None:
    row = next(row for row in case.store.commands if row.id == "pause")
    row.receipt = row.receipt.replace('"revision":11', '"revision":10')


@bad("I9", "set_full")
def a_refused_command_took_effect(case: Case) -> None:
    for op in case.sent("answer"):
        if op.type == "ok":
            op.type, op.value = "fail", {"problem": "invalid-answer"}


@bad("I8", "set_full")
def a_command_was_never_resolved(case: Case) -> None:
    next(row for row in case.store.commands if row.id == "resume").receipt = None


@bad("I8", "set_full")
def a_command_was_accepted_with_a_run_that_is_not_there(case: Case) -> None:
    next(row for row in case.store.commands if row.id == "bad").run = str(uuid.UUID(int=9))


@bad("I9", "set_full")
def one_command_began_two_runs(case: Case) -> None:
    twin = copy.deepcopy(case.run("bad"))
    twin.run = str(uuid.UUID(int=9))
    case.store.runs.append(twin)


@bad("I8", "set_full")
def a_restore_lost_an_acknowledged_command(case: Case) -> None:
    told = {"run_id": str(uuid.UUID(int=9))}
    case.call("client-9", "start", "ghost", {"kind": "generation"}, "ok", told, at=case.first - 3)
    case.call("nemesis", "restore", "2", None, "ok", None, at=case.first - 1)


@bad("I9", "set_full")
def a_command_began_another_run_after_a_restore(case: Case) -> None:
    told = {"run_id": str(uuid.UUID(int=9)), "revision": 3}
    case.call("client-9", "start", "gated", {"kind": "generation"}, "ok", told, at=case.first - 3)
    case.call("nemesis", "restore", "2", None, "ok", None, at=case.first - 1)


# --- the log ----------------------------------------------------------------------------------------------------------


@bad("I1", "log")
def an_event_is_missing(case: Case) -> None:
    case.store.events.remove(case.events("hard")[6])


@bad("I1", "log")
def a_place_is_taken_twice(case: Case) -> None:
    event = case.events("hard")[6]
    case.insert(event, event)


@bad("I1", "log")
def an_event_was_rewritten(case: Case) -> None:
    event = case.event("hard", "step_blocked")
    event.data = event.data.replace("come back later", "come back sooner")


@bad("I1", "log")
def the_end_of_a_history_is_cut_off(case: Case) -> None:
    case.store.events.remove(case.events("hard")[-1])


@bad("I1", "log")
def a_history_was_sealed_again_without_its_run(case: Case) -> None:
    head = case.run("hard").head_hash
    case.change(case.event("hard", "step_blocked"), message="never mind")
    case.seal("hard")
    case.run("hard").head_hash = head


@bad("I2", "log")
def an_event_was_recorded_before_its_predecessor(case: Case) -> None:
    first, second = case.events("hard")[7:9]
    first.position, second.position = second.position, first.position


@bad("I3", "log")
def a_run_ended_twice(case: Case) -> None:
    end = case.events("hard")[-1]
    case.insert(end, end)
    case.seal("hard")


@bad("I3", "log")
def a_run_is_over_and_says_otherwise(case: Case) -> None:
    case.run("hard").status = "failed"


@bad("I4", "log")
def a_command_was_decided_twice(case: Case) -> None:
    case.event("gated", "steps_scheduled").tx += 1


# --- what events say --------------------------------------------------------------------------------------------------


@bad("I4", "observed")
def an_event_has_no_cause(case: Case) -> None:
    event = case.event("gated", "run_paused")
    event.meta = event.meta.replace("command:pause", "command:nobody")
    case.seal("gated")


@bad("I7", "observed")
def a_run_goes_on_under_another_plan(case: Case) -> None:
    case.change(case.event("gated", "run_accepted"), plan_fingerprint=case.run("bad").fingerprint)
    case.seal("gated")


@bad("I3", "observed")
def something_happened_after_the_end(case: Case) -> None:
    case.insert(case.event("gated", "run_paused"), case.events("gated")[-1])
    case.seal("gated")


@bad("I16", "observed")
def an_attempt_was_left_out(case: Case) -> None:
    event = next(event for event in case.events("hard") if event.seq == 10)
    steps = [{**step, "attempt": 3} for step in event.body["steps"]]
    case.change(event, steps=steps)
    case.seal("hard")


@bad("I15", "observed")
def a_step_succeeded_twice(case: Case) -> None:
    event = next(event for event in case.events("hard") if event.seq == 11)
    case.insert(event, event)
    case.seal("hard")


@bad("I15", "observed")
def an_outcome_of_an_earlier_attempt_was_applied(case: Case) -> None:
    event = next(event for event in case.events("hard") if event.seq == 11)
    case.change(event, attempt=1)
    case.seal("hard")


@bad("I19", "observed")
def a_step_began_before_what_it_waits_for(case: Case) -> None:
    event = case.events("hard")[3]
    later = case.events("hard")[12]
    case.change(event, steps=[*event.body["steps"], *later.body["steps"]])
    case.seal("hard")


# --- money ------------------------------------------------------------------------------------------------------------


@bad("I20", "money")
def more_was_given_back_than_taken(case: Case) -> None:
    entry = copy.deepcopy(case.entry("ordered"))
    entry.kind, entry.debit, entry.credit = "refund", entry.credit, entry.debit
    entry.key, entry.amount = "refund" + entry.key.removeprefix("charge"), 2 * entry.amount
    case.store.ledger.append(entry)


@bad("I20", "money")
def a_run_costs_more_than_its_cap(case: Case) -> None:
    case.run("ordered").cap = 2


@bad("I21", "money")
def money_came_from_nowhere(case: Case) -> None:
    case.store.accounts[0].balance += 1


@bad("I21", "money")
def an_entry_has_another_side(case: Case) -> None:
    case.entry("ordered").credit = "system:pocket"


@bad("I21", "money")
def an_entry_is_on_the_account_of_somebody_else(case: Case) -> None:
    entry = case.entry("ordered")
    entry.account = entry.debit = "rival"


@bad("I21", "money")
def a_hold_outlives_its_run(case: Case) -> None:
    case.store.holds[0].released_at = None
    case.store.accounts[0].held = case.store.holds[0].amount


@bad("I21", "money")
def a_database_finds_its_own_law_broken(case: Case) -> None:
    case.store.money_laws.append(MoneyLawRow(law="books_balance", tenant="acme", run=None, message="no"))


@bad("I22", "money")
def a_charge_is_there_twice_under_two_names(case: Case) -> None:
    entry = copy.deepcopy(case.entry("ordered"))
    entry.key += "-again"
    case.store.ledger.append(entry)


@bad("I23", "money")
def a_charge_was_not_written_with_its_event(case: Case) -> None:
    case.entry("ordered").tx += 1


@bad("I23", "money")
def a_charge_has_no_event(case: Case) -> None:
    entry = copy.deepcopy(case.entry("ordered"))
    entry.cycle, entry.key = 2, entry.key.removesuffix(":1") + ":2"
    case.store.ledger.append(entry)


@bad("I23", "money")
def an_event_tells_of_a_charge_that_is_in_no_ledger(case: Case) -> None:
    case.store.ledger.remove(case.entry("ordered"))


@bad("I24", "money")
def a_failed_run_still_costs(case: Case) -> None:
    case.store.ledger.remove(case.entry("bad", "refund"))


# --- effects ----------------------------------------------------------------------------------------------------------


@bad("I16", "effects")
def fences_fall(case: Case) -> None:
    claim = copy.deepcopy(case.store.claims[0])
    claim.claimed_at += timedelta(seconds=1)
    claim.fence -= 1
    claim.owner = "another"
    case.store.claims.append(claim)


@bad("I16", "effects")
def two_leases_share_a_fence(case: Case) -> None:
    claim = copy.deepcopy(case.store.claims[0])
    claim.owner = "another"
    case.store.claims.append(claim)


@bad("I13", "effects")
def something_was_claimed_that_nobody_asked_for(case: Case) -> None:
    claim = copy.deepcopy(case.store.claims[0])
    claim.effect = str(uuid.UUID(int=9))
    case.store.claims.append(claim)


@bad("I16", "effects")
def two_attempts_of_a_step_are_under_way(case: Case) -> None:
    for kind in ("execute", "reconcile"):
        effect = case.effect("gated", "shot:0", kind)
        effect.state, effect.closed_at, effect.disposition, effect.receipt = "leased", None, None, None


@bad("I15", "effects")
def an_outcome_was_applied_that_nobody_reported(case: Case) -> None:
    case.effect("gated", "cut").receipt = None


@bad("I15", "effects")
def an_outcome_was_applied_under_a_fence_that_nobody_held(case: Case) -> None:
    effect = case.effect("gated", "cut")
    case.store.claims = [claim for claim in case.store.claims if claim.effect != effect.id]


@bad("I14", "effects")
def work_of_an_ended_run_is_open(case: Case) -> None:
    effect = case.effect("gated", "cut")
    effect.state, effect.closed_at, effect.disposition = "queued", None, None


# --- the provider -----------------------------------------------------------------------------------------------------


@bad("I25", "total_queue")
def one_attempt_was_charged_twice(case: Case) -> None:
    line = copy.copy(next(line for line in case.witness if line.charged))
    line.t += 1
    case.witness.append(line)


@bad("I18", "total_queue")
def one_attempt_is_two_jobs(case: Case) -> None:
    key = case.token("ordered", "shot")
    case.witness.append(WitnessLine(t=case.first, key=key, kind="find", job="job-other"))


@bad("I13", "total_queue")
def the_provider_was_asked_under_a_key_of_no_attempt(case: Case) -> None:
    case.witness.append(WitnessLine(t=case.first, key="lt0", kind="submit", charged=True, job="job-0"))


@bad("I25", "total_queue")
def a_step_was_paid_again_and_nobody_had_looked(case: Case) -> None:
    event = case.event("hard", "attempt_failed")
    case.change(event, work=None)
    key = case.token("hard", event.body["step"])
    case.witness.append(
        WitnessLine(t=case.first, key=key, kind="submit", charged=True, credits=3, job="job-1")
    )
    case.seal("hard")


@bad("I25", "total_queue")
def the_provider_charged_for_a_run_that_charges_nothing(case: Case) -> None:
    case.store.ledger.remove(case.entry("ordered"))


# --- callbacks --------------------------------------------------------------------------------------------------------


@bad("I26", "callbacks")
def a_callback_is_kept_twice(case: Case) -> None:
    twin = copy.deepcopy(case.store.inbox[0])
    twin.id, twin.status = str(uuid.UUID(int=9)), "ignored"
    case.store.inbox.append(twin)


@bad("I27", "callbacks")
def a_callback_was_never_looked_at(case: Case) -> None:
    twin = copy.deepcopy(case.store.inbox[0])
    twin.id, twin.status, twin.key = str(uuid.UUID(int=9)), "pending", "another"
    case.store.inbox.append(twin)


@bad("I27", "callbacks")
def a_callback_counted_and_was_ignored(case: Case) -> None:
    case.store.inbox[0].status = "ignored"


@bad("I28", "callbacks")
def a_callback_was_kept_that_the_provider_never_sent(case: Case) -> None:
    twin = copy.deepcopy(case.store.inbox[0])
    twin.id, twin.key, twin.attempt, twin.status = str(uuid.UUID(int=9)), "another", 7, "ignored"
    case.store.inbox.append(twin)


# --- transport --------------------------------------------------------------------------------------------------------


@bad("I29", "transport")
def an_effect_is_closed_and_nobody_says_how(case: Case) -> None:
    case.effect("gated", "shot:0").disposition = None


@bad("I29", "transport")
def a_signal_was_never_settled(case: Case) -> None:
    run = case.run("gated").run
    case.store.signals.append(
        SignalRow(
            id=str(uuid.UUID(int=8)),
            run=run,
            kind="child_ended",
            created_at=case.store.now,
            settled_at=None,
            reason=None,
        )
    )


@bad("I30", "transport")
def a_known_pointer_was_put_away_as_unknown(case: Case) -> None:
    body = encode_pointers(EffectPointers(epoch=1, effects=((uuid.UUID(case.store.effects[0].id), 1, 1),)))
    case.store.dead_letters.append(
        DeadLetterRow(
            source="LT_EFFECT", subject="longtake.v1.effect.default", reason="unknown pointer: x", body=body
        )
    )


# --- projections ------------------------------------------------------------------------------------------------------


@bad("I6", "folded")
def a_step_is_shown_as_something_else(case: Case) -> None:
    next(step for step in case.store.steps if step.key == "cut").status = "blocked"


@bad("I6", "folded")
def a_summary_says_something_else(case: Case) -> None:
    run = case.run("hard")
    run.summary = run.summary.replace('"completed":3', '"completed":2')


@bad("I5", "folded")
def an_event_cannot_be_read(case: Case) -> None:
    case.event("hard", "step_blocked").version = 99
    case.seal("hard")


# --- roles ------------------------------------------------------------------------------------------------------------


@bad("P1", "roles")
def a_receipt_that_was_confirmed_is_gone(case: Case) -> None:
    told = [[str(uuid.UUID(int=9)), str(uuid.UUID(int=8))]]
    case.call("worker-9", "report", "", [], "ok", told)


@bad("I16", "roles")
def a_claim_that_was_confirmed_is_gone(case: Case) -> None:
    case.call("worker-9", "claim", "", [], "ok", [{"id": str(uuid.UUID(int=9)), "fence": 1}])


@bad("I1", "roles")
def a_decision_that_was_confirmed_is_gone(case: Case) -> None:
    run = case.run("gated")
    asked = [[{"run_id": run.run, "expected_revision": run.revision, "events": 2}]]
    case.call("dispatcher-9", "decide", "", asked, "ok", {"committed": [run.run]})


# --- sessions ---------------------------------------------------------------------------------------------------------


@bad("I12", "monotonic")
def who_began_a_run_does_not_find_it(case: Case) -> None:
    case.call("client-1", "read", case.run("gated").run, None, "fail", {"problem": "not-found"})
    case.call("client-1", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1})


@bad("I2", "monotonic")
def a_session_reads_an_older_revision(case: Case) -> None:
    case.call("client-1", "read", case.run("gated").run, None, "ok", {"revision": 12, "epoch": 1})


@bad("I2", "monotonic")
def a_session_reads_an_older_epoch(case: Case) -> None:
    case.call("client-7", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 2})
    case.call("client-7", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1})


# --- the order of one run ---------------------------------------------------------------------------------------------


@bad("I10", "linearizable")
def somebody_reads_what_is_over(case: Case) -> None:
    told = {"revision": 11, "epoch": 1, "status": "paused"}
    case.call("client-7", "read", case.run("gated").run, None, "ok", told)


@bad("I10", "linearizable")
def a_read_shows_a_status_that_never_was(case: Case) -> None:
    told = {"revision": 16, "epoch": 1, "status": "failed"}
    case.call("client-7", "read", case.run("gated").run, None, "ok", told)


@bad("I10", "linearizable")
def a_command_took_effect_before_it_was_sent(case: Case) -> None:
    late = max(op.t for op in case.history)
    for op in case.sent("cancel"):
        op.t = late = late + 0.01


@bad("I11", "linearizable")
def a_stale_command_was_taken(case: Case) -> None:
    begun = next(op for op in case.sent("resume-2") if op.type == "invoke")
    begun.value = {**begun.value, "expected_revision": 9}


@bad("I10", "linearizable")
def a_command_was_refused_without_reason(case: Case) -> None:
    asked = {"kind": "cancel", "id": "cancel-refused", "expected_revision": 3}
    row = copy.deepcopy(next(row for row in case.store.commands if row.id == "resume"))
    row.id = "cancel-refused"
    case.store.commands.append(row)
    gated = case.run("gated").run
    end = next(op for op in case.history if op.f == "start" and op.key == "gated" and op.type == "ok")
    # Between its start and the first look of anybody else the run offers to be cancelled.
    case.call("client-7", "command", gated, asked, "fail", {"problem": "stale-revision"}, at=end.t + 0.0001)


@bad("I10", "linearizable")
def a_confirmed_command_is_in_no_history(case: Case) -> None:
    told = {"revision": 99, "status": "applied"}
    case.call("client-7", "command", case.run("gated").run, {"kind": "pause", "id": "resume"}, "ok", told)


# --- all runs at once -------------------------------------------------------------------------------------------------


@bad("cycle", "cycles")
def two_transactions_wrote_two_runs_in_opposite_orders(case: Case) -> None:
    case.history = [op for op in case.history if op.f != "decide"]
    one, other = case.events("gated"), case.events("metered")
    one[3].tx, one[4].tx = 7001, 7002
    other[4].tx, other[5].tx = 7002, 7001


@bad("cycle", "cycles")
def somebody_saw_half_of_a_transaction(case: Case) -> None:
    """The end of one run was written with a step of another: whoever has seen the end must see the step."""
    case.history = [op for op in case.history if op.f != "decide"]
    retried = next(op for op in case.sent("retry") if op.type == "ok")
    case.events("hard")[10].tx = case.events("gated")[-1].tx
    case.call(
        "client-7",
        "read",
        case.run("hard").run,
        None,
        "ok",
        {"revision": 10, "epoch": 1},
        at=retried.t + 0.0001,
    )


@bad("cycle", "cycles")
def a_decision_was_written_after_its_writer_was_told_of_it(case: Case) -> None:
    for event in case.events("ordered"):
        event.tx = case.event("hard", "run_completed").tx if event.seq == 4 else event.tx


# --- progress ---------------------------------------------------------------------------------------------------------


@bad("tail-ok", "tail_ok")
def most_calls_failed(case: Case) -> None:
    for _ in range(9):
        case.call("client-7", "read", case.run("gated").run, None, "fail", {"problem": "unavailable"})
    case.call("client-7", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1})


@bad("tail-ok", "tail_ok")
def the_last_call_was_never_answered(case: Case) -> None:
    for _ in range(3):
        case.call("client-7", "read", case.run("gated").run, None, "ok", {"revision": 16, "epoch": 1})
    case.call("client-7", "read", case.run("gated").run, None, None, None)


@bad("I35", "tail_ok")
def a_timer_has_not_fired(case: Case) -> None:
    due = case.store.now - timedelta(hours=1)
    case.store.timers.append(TimerRow(run=case.run("gated").run, key="run_deadline", due_at=due))


@bad("I35", "tail_ok")
def a_run_hangs(case: Case) -> None:
    run = case.run("hard")
    run.status, run.label = "running", "Shooting"
