"""Runs that are the work of a step: what a parent asks for, and what each side makes of the other's end (P5, H53)."""

import uuid
from typing import Any

import pytest

from kit.plans import one
from kit.promises import promise
from longtake.contracts.events import Parent
from longtake.contracts.ids import child_command_id_for, effect_id_for, provider_token_for, run_id_for
from longtake.contracts.outcomes import Artifact, Succeeded
from longtake.contracts.signals import ChildEnded, ChildRefused, Outgoing, ParentClosed
from longtake.workflow.decision import Decision
from longtake.workflow.fingerprint import fingerprint
from longtake.workflow.plan import Plan, at_least, ref
from longtake.workflow.script import RUN, Script

PARENT = uuid.UUID("00000000-0000-8000-8000-00000000aaaa")
CLIP = Artifact(
    name="clip", kind="video", object_key="made/clip", sha256="0" * 64, bytes=9, content_type="video/mp4"
)


def parent(**fields: Any) -> Script:
    """A parent whose second step is a run that gets the first one's result."""
    plan = (
        Plan()
        .step("script", activity="script@1")
        .run("film", workflow="film@1", input={"of": ref("script", "/result/words")}, **fields)
        .step("report", activity="report@1", input={"film": ref("film", "/result/result/url")})
    )
    script = Script(plan)
    script.accept()
    script.succeed("script", words="once upon a time")
    return script


def sent(decision: Decision, kind: str) -> list[Outgoing]:
    return [fact for fact in decision.outgoing if fact.kind == kind]


def child_of(script: Script, attempt: int = 1, step: str = "film") -> uuid.UUID:
    command_id = child_command_id_for(RUN, step=step, attempt=attempt)
    return run_id_for(tenant="t", actor="ann", client_command_id=command_id)


def end(script: Script, outcome: Any = "completed", *, attempt: int = 1, **fields: Any) -> Decision:
    return script.tell(
        ChildEnded(
            signal_id=uuid.uuid4(),
            step="film",
            attempt=attempt,
            child=child_of(script, attempt),
            outcome=outcome,
            **fields,
        )
    )


# --- asking for a child ------------------------------------------------------------------------------------------------


@promise("T34")
def test_a_ready_run_step_asks_for_a_child_that_is_known_before_it_exists() -> None:
    script = parent()

    [fact] = sent(script.decisions[-1], "start_child")
    assert fact.run_id == child_of(script)
    assert {"of": "once upon a time"} == fact.payload["input"]
    assert ("film@1", "ann", "p", "acme") == tuple(
        fact.payload[name] for name in ("workflow", "actor", "project", "account")
    )
    assert str(RUN) == fact.payload["parent"]["run_id"]


def test_waiting_for_a_child_holds_no_slot_and_no_effect() -> None:
    script = parent()

    assert not script.rows
    assert script.status("film") == "waiting_external"


def test_the_same_decision_made_twice_sends_the_same_rows() -> None:
    first, second = parent(), parent()

    assert first.decisions[-1].outgoing == second.decisions[-1].outgoing


def test_a_child_hears_who_stands_above_it() -> None:
    script = Script(Plan().run("deeper", workflow="film@1"))
    script.accept(parent=Parent(run_id=PARENT, step="s", attempt=1, above=(uuid.UUID(int=7),)))

    [fact] = sent(script.decisions[-1], "start_child")
    assert [str(uuid.UUID(int=7)), str(PARENT)] == fact.payload["parent"]["above"]


@promise("T32")
def test_definition_run_step_attempt_and_request_are_five_identities() -> None:
    """One definition, two runs of it, one step, two attempts: each has an identity that is none of the others."""
    other = uuid.UUID("00000000-0000-8000-8000-00000000bbbb")
    plan = Plan().step("a", activity="a@1")
    tokens = {
        provider_token_for(run, step="a", attempt=attempt) for run in (RUN, other) for attempt in (1, 2)
    }
    effects = {
        effect_id_for(run, step="a", attempt=attempt, kind="execute", ordinal=1)
        for run in (RUN, other)
        for attempt in (1, 2)
    }

    assert fingerprint(plan, {}, None) == fingerprint(Plan().step("a", activity="a@1"), {}, None)
    assert (4, 4) == (len(tokens), len(effects))
    assert not {RUN, other} & effects


# --- the child ends ----------------------------------------------------------------------------------------------------


def test_what_the_child_delivers_is_the_steps_result() -> None:
    script = parent()
    end(script, result={"result": {"url": "u1"}, "artifacts": {"clip": _plain(CLIP)}})

    assert script.status("film") == "succeeded"
    assert b'{"film":"u1"}' == script.row("report").input
    assert [CLIP] == [item.artifact for item in script.decisions[-1].artifacts]


def _plain(artifact: Artifact) -> dict[str, Any]:
    return {name: getattr(artifact, name) for name in artifact.__struct_fields__}


def test_a_child_that_lacks_what_others_refer_to_is_no_success() -> None:
    script = parent(on_exhausted="block")
    end(script, result={"result": {}, "artifacts": {}})

    assert script.status("film") == "blocked"
    assert "/result/result/url" in script.summary.blockers[0].details["message"]


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "superseded"])
def test_a_child_that_does_not_complete_blocks_the_step_if_the_plan_says_so(outcome: str) -> None:
    script = parent(on_exhausted="block")
    end(script, outcome, message="no light")

    [blocker] = script.summary.blockers
    assert ("child_not_completed", "film") == (blocker.type, blocker.step)
    assert str(child_of(script)) in blocker.details["message"]


@pytest.mark.parametrize("outcome", ["failed", "cancelled", "superseded"])
def test_a_child_that_does_not_complete_fails_the_step_otherwise(outcome: str) -> None:
    script = parent()
    end(script, outcome)

    assert script.summary.status == "failed"


def test_a_persons_retry_starts_another_child() -> None:
    script = parent(on_exhausted="block")
    end(script, "failed")
    decision = script.retry("film")

    [fact] = sent(decision, "start_child")
    assert child_of(script, 2) == fact.run_id != child_of(script, 1)
    end(script, attempt=2, result={"result": {"url": "u2"}, "artifacts": {}})
    assert script.status("film") == "succeeded"


def test_a_late_word_of_an_earlier_child_is_ignored() -> None:
    script = parent(on_exhausted="block")
    end(script, "failed")
    script.retry("film")

    decision = end(script, attempt=1, result={"result": {"url": "old"}, "artifacts": {}})
    assert "not_waiting" == decision.ignored.reason  # type: ignore[union-attr]  # it is ignored


def test_a_refused_child_says_why() -> None:
    script = parent(on_exhausted="block")
    script.tell(
        ChildRefused(
            signal_id=uuid.uuid4(),
            step="film",
            attempt=1,
            child=child_of(script),
            problem="insufficient-funds",
            message="the account has 3 credits free",
        )
    )

    [blocker] = script.summary.blockers
    assert "insufficient-funds" in blocker.details["message"]
    assert "3 credits" in blocker.details["message"]


# --- the parent ends ---------------------------------------------------------------------------------------------------


def test_a_parent_that_is_cancelled_stops_its_child_and_waits_for_it() -> None:
    script = parent()
    decision = script.cancel()

    [fact] = sent(decision, "parent_closed")
    assert child_of(script) == fact.run_id
    assert script.summary.status == "cancelling"
    end(script, "cancelled")
    assert script.summary.status == "cancelled"


def test_the_wait_for_a_cancelled_child_is_bounded() -> None:
    script = parent()
    script.cancel()
    script.fire("settlement")

    assert script.summary.status == "cancelled"


def test_an_abandoned_child_goes_on_without_its_parent() -> None:
    script = parent(on_parent_close="abandon")
    decision = script.cancel()

    assert not sent(decision, "parent_closed")
    assert script.summary.status == "cancelled"


def test_a_child_that_lost_its_race_is_stopped() -> None:
    plan = (
        Plan()
        .step("stock", activity="stock@1")
        .run("film", workflow="film@1")
        .step("cut", activity="cut@1", depends_on=["stock", "film"], join=at_least(1))
    )
    script = Script(plan)
    script.accept()
    decision = script.succeed("stock")

    assert [child_of(script)] == [fact.run_id for fact in sent(decision, "parent_closed")]


def test_a_child_that_is_overdue_and_fails_is_stopped() -> None:
    script = parent(timeout_seconds=60, on_timeout="fail", optional=True)
    decision = script.fire("step:film")

    assert script.status("film") == "timed_out"
    assert [child_of(script)] == [fact.run_id for fact in sent(decision, "parent_closed")]


def test_a_child_whose_parent_closes_is_cancelled_and_tells_it() -> None:
    script = Script(one(price=0))
    script.accept(parent=Parent(run_id=PARENT, step="film", attempt=2))
    script.tell(ParentClosed(signal_id=uuid.uuid4(), parent=PARENT, outcome="is ending as cancelled"))
    assert script.summary.status == "cancelling"
    decision = script.report("a", Succeeded(), kind="execute")

    [fact] = sent(decision, "child_ended")
    assert (PARENT, "film", 2, "cancelled") == (
        fact.run_id,
        fact.payload["step"],
        fact.payload["attempt"],
        fact.payload["outcome"],
    )


def test_a_run_without_a_family_tells_nobody() -> None:
    script = Script(one(price=0))
    script.accept()
    script.succeed("a")

    assert [] == [fact for decision in script.decisions for fact in decision.outgoing]


# --- what a child delivers ---------------------------------------------------------------------------------------------


def delivered(plan: Plan, *succeed: str) -> dict[str, Any]:
    script = Script(plan)
    script.accept(parent=Parent(run_id=PARENT, step="film", attempt=1))
    for step in succeed:
        script.succeed(step, by=step)
    [fact] = sent(script.decisions[-1], "child_ended")
    assert "completed" == fact.payload["outcome"]
    result: dict[str, Any] = fact.payload["result"]
    return result


def test_a_child_delivers_what_its_delivering_step_made_whenever_that_was() -> None:
    plan = (
        Plan(delivers="film").step("film", activity="a@1", artifacts=["clip"]).step("later", activity="b@1")
    )

    made = delivered(plan, "film", "later")
    assert {"by": "film"} == made["result"]
    assert ["clip"] == list(made["artifacts"])


def test_without_a_delivering_step_the_last_in_plan_order_counts() -> None:
    plan = Plan().step("first", activity="a@1").step("last", activity="b@1")

    assert {"by": "last"} == delivered(plan, "last", "first")["result"]
