"""Every kind of command through the whole service, over HTTP: what it does, what it answers, and what it refuses."""

import uuid
from datetime import UTC, datetime

import pytest

from kit.promises import promise
from kit.runtimes import PRINCIPAL
from kit.studio import Studio, open_studio
from longtake.client import ProblemReceived
from longtake.contracts.command_table import TABLE


@pytest.fixture
async def studio(database, broker, tmp_path):
    async with open_studio(database, broker, tmp_path) as opened:
        yield opened


async def refusal(work, slug: str, pointer: str) -> None:
    with pytest.raises(ProblemReceived) as caught:
        await work
    problem = caught.value.problem
    assert (slug, pointer) == (problem.slug, problem.errors[0].pointer), problem
    assert problem.errors[0].remedy


async def proved(studio: Studio, *run_ids: str | None) -> None:
    for run_id in run_ids:
        assert [] == await studio.process.audit.prove(uuid.UUID(str(run_id)), PRINCIPAL.tenant)


@promise("H64", "H66", "H67")
async def test_a_person_answers_a_gate_once_and_an_event_releases_what_was_picked(studio):
    run_id = await studio.start("pick@1", "gate", of="ad")
    asked = await studio.until(run_id, "needs_input")
    assert ("input_required", "choose") == (asked.blockers[0].type, asked.blockers[0].step)
    client = studio.client

    await refusal(
        client.provide_input(run_id, "choose", answer={"take": 9}), "invalid-command", "/payload/answer/take"
    )
    early = await client.send_event(run_id, "released", {"by": "ann"}, command_id="early")
    assert "attached" == (await client.command_status("early")).status
    taken = await client.provide_input(run_id, "choose", answer={"take": 2}, command_id="mine")
    again = await client.provide_input(run_id, "choose", answer={"take": 2}, command_id="mine")
    await refusal(
        client.provide_input(run_id, "choose", answer={"take": 3}), "action-not-available", "/payload/step"
    )

    assert ("attached", "applied", "applied") == (early.status, taken.status, again.status)
    assert (False, True) == (taken.replayed, again.replayed)
    assert "completed" == (await client.wait(run_id, seconds=20)).status
    assert {"take": 2, "by": "ann"} == studio.app.done[-1]
    assert "applied" == (await client.command_status("early")).status
    await refusal(client.send_event(run_id, "released"), "action-not-available", "/payload/name")
    await proved(studio, run_id)


@promise("W07", "W09")
async def test_a_paused_run_collects_and_begins_nothing_until_it_is_resumed(studio):
    run_id = await studio.start("chain@1", "halt")
    await studio.asked(run_id, "running", "wait")
    paused = await studio.client.pause(run_id)
    assert ("applied", "paused") == (paused.status, paused.summary.status)

    studio.app.gate.set()
    await studio.asked(run_id, "succeeded", "wait")
    summary = await studio.asked(run_id, "ready", "after")
    assert "paused" == summary.status
    assert [] == studio.app.done

    await studio.client.resume(run_id)
    assert "completed" == (await studio.client.wait(run_id, seconds=20)).status
    await refusal(studio.client.resume(run_id), "action-not-available", "/kind")
    await proved(studio, run_id)


@promise("G24", "W11")
async def test_a_steered_run_gives_way_to_a_successor_and_both_name_each_other(studio):
    old = await studio.start("chain@1", "first", n=1, scopes=["scene:1"])
    await studio.asked(old, "running", "wait")

    steered = await studio.client.steer(old, input={"n": 2, "scopes": ["scene:1"]}, policy={"speed": 3})
    assert "scheduled" == steered.status
    studio.app.gate.set()

    assert "superseded" == (await studio.client.wait(old, seconds=20)).status
    assert "completed" == (await studio.client.wait(steered.run_id, seconds=20)).status
    (accepted, *_) = await studio.client.history(steered.run_id)
    told = [e for e in await studio.client.history(old) if e.type == "supersede_requested"]
    assert [old] == accepted.fields["supersedes"]
    assert steered.run_id == told[0].fields["by_run"]
    assert ("steer", {"speed": 3}) == (accepted.fields["kind"], studio.app.done[-1])
    plan = await studio.client.plan(steered.run_id)
    assert {"n": 2, "scopes": ["scene:1"]} == plan["input"]
    assert "completed" == (await studio.client.command_status(steered.command_id)).status
    await refusal(studio.client.steer(old), "action-not-available", "/kind")
    await proved(studio, old, steered.run_id)


@promise("W06", "W10")
async def test_starting_again_what_is_paused_or_ended_changes_nothing(studio):
    """The same start gives the same run, whatever has become of it; a cancel is the end of it."""
    run_id = await studio.start("chain@1", "once")
    await studio.client.pause(run_id)
    seen = (await studio.client.summary(run_id)).revision

    assert run_id == await studio.start("chain@1", "once")
    assert ("paused", seen) == (
        (await studio.client.summary(run_id)).status,
        (await studio.client.summary(run_id)).revision,
    )
    cancelled = await studio.client.cancel(run_id, reason="enough")
    studio.app.gate.set()
    assert "cancelled" == (await studio.client.wait(run_id, seconds=20)).status
    assert run_id == await studio.start("chain@1", "once")
    assert "cancelled" == (await studio.client.summary(run_id)).status
    told = [event.fields for event in await studio.client.history(run_id) if event.type == "cancel_requested"]
    assert [("enough", cancelled.command_id)] == [(event["reason"], event["command_id"]) for event in told]
    assert "cancelled" == (await studio.client.command_status("once")).status


async def test_a_refused_steer_starts_nothing(studio):
    old = await studio.start("chain@1", "first")
    seen = (await studio.client.summary(old)).revision
    await studio.client.pause(old)

    await refusal(studio.client.steer(old, revision=seen + 50), "stale-revision", "/expected_revision")
    await refusal(studio.client.steer(old, workflow="nothing@1"), "unknown-workflow", "/payload/workflow")

    assert [old] == [run.run_id for run in (await studio.client.runs()).runs]
    assert "paused" == (await studio.client.summary(old)).status


@promise("G15", "G16")
async def test_a_workflow_is_started_by_the_kinds_it_declares_and_no_others(studio):
    for workflow, kind in (("probe@1", "utility"), ("turn@1", "new_turn"), ("copy@1", "export")):
        started = await studio.client.start(workflow, {}, project="p1", kind=kind, conversation="c1")
        assert "completed" == (await studio.client.wait(started.run_id, seconds=20)).status
        (accepted, *_) = await studio.client.history(started.run_id)
        assert (kind, "c1") == (accepted.fields["kind"], accepted.fields["conversation"])
        await refusal(studio.client.start(workflow, {}, project="p1"), "invalid-command", "/kind")
    await refusal(studio.client.start("dear@1", {}, project="p1", kind="utility"), "invalid-command", "/kind")
    await refusal(
        studio.client.start("dear@1", {}, project="p1", max_credits=4),
        "invalid-command",
        "/payload/max_credits",
    )


async def test_a_follow_up_refers_to_an_earlier_run_that_is_not_touched(studio):
    earlier = await studio.start("pick@1", "earlier")
    await studio.until(earlier, "needs_input")
    before = (await studio.client.summary(earlier)).revision

    followed = await studio.client.follow_up(earlier, "chain@1", {"n": 1})

    (accepted, *_) = await studio.client.history(followed.run_id)
    assert earlier == accepted.fields["follows"]
    assert before == (await studio.client.summary(earlier)).revision
    await refusal(
        studio.client.command(
            "follow_up", project="other", targets=(earlier,), payload={"workflow": "chain@1"}
        ),
        "invalid-command",
        "/project",
    )


async def test_an_ended_run_is_forked_and_what_stands_is_taken_over(studio):
    run_id = await studio.start("costly@1", "source")
    assert "completed" == (await studio.client.wait(run_id, seconds=20)).status
    await refusal(studio.client.fork(run_id, "nowhere"), "invalid-command", "/payload/step")
    await refusal(
        studio.client.fork(run_id, "two", max_extra_credits=4),
        "invalid-command",
        "/payload/max_extra_credits",
    )
    done = len(studio.app.done)

    forked = await studio.client.fork(run_id, "two", max_extra_credits=5)

    summary = await studio.client.wait(forked.run_id, seconds=20)
    assert ("completed", 5, 1) == (
        summary.status,
        summary.cost.net_credits,
        len(studio.app.done) - done,
    )
    await proved(studio, run_id, forked.run_id)


@promise("H64")
async def test_a_larger_cap_needs_funds_and_lets_the_run_go_on(database, broker, tmp_path):
    async with open_studio(database, broker, tmp_path, credits=12) as studio:
        run_id = (await studio.client.start("capped@1", {}, project="p1")).run_id
        await studio.until(run_id, "needs_input")
        before = await studio.process.keys.balance(tenant=PRINCIPAL.tenant, account="main")

        await refusal(
            studio.client.provide_input(run_id, "grow:1", cap=100), "insufficient-funds", "/payload/cap"
        )
        assert before == await studio.process.keys.balance(tenant=PRINCIPAL.tenant, account="main")
        await refusal(studio.client.provide_input(run_id, "grow:1", cap=6), "invalid-command", "/payload/cap")
        await refusal(
            studio.client.provide_input(run_id, "grow:1", answer={}), "invalid-command", "/payload/answer"
        )
        await studio.client.provide_input(run_id, "grow:1", cap=10)

        assert "completed" == (await studio.client.wait(run_id, seconds=20)).status
        assert (2, 0) == await studio.process.keys.balance(tenant=PRINCIPAL.tenant, account="main")
        await proved(studio, run_id)


@pytest.mark.parametrize("kind", sorted(TABLE))
async def test_each_kind_says_what_is_missing_and_where(studio, kind):
    """A target where none belongs, none where one does, a payload with a member that nobody knows, no revision."""
    client, row = studio.client, TABLE[kind]
    stranger = str(uuid.uuid4())
    revision = 1 if row.needs_revision else None
    good = {"workflow": "chain@1"} if row.starts_run else {}
    good |= {"step": "a"} if kind in ("fork", "provide_input") else {}
    good = {"step": "a"} if kind == "fork" else {} if kind == "steer" else good
    good |= {"answer": {}} if kind == "provide_input" else {"name": "go"} if kind == "send_event" else {}
    targets = (stranger,) if row.needs_run else ()

    async def send(**changes):
        given = {
            "project": "p1",
            "payload": good,
            "targets": targets,
            "expected_revision": revision,
            **changes,
        }
        return await client.command(kind, **given)

    await refusal(send(payload={**good, "nobody": 1}), "invalid-command", "/payload")
    await refusal(send(targets=() if row.needs_run else (stranger,)), "invalid-command", "/targets")
    if row.needs_run:
        await refusal(send(), "not-found", "/targets/0")
    if row.needs_revision:
        await refusal(send(expected_revision=None), "precondition-missing", "/expected_revision")
    else:
        await refusal(send(expected_revision=1), "invalid-command", "/expected_revision")


async def test_a_command_that_waits_for_its_time_is_scheduled_and_says_so(studio):
    later = await studio.client.start("chain@1", {}, project="p1", start_at=datetime(2099, 1, 1, tzinfo=UTC))

    assert "scheduled" == later.status
    assert "scheduled" == (await studio.client.command_status(later.command_id)).status
    await studio.client.cancel(later.run_id)
    assert "cancelled" == (await studio.client.command_status(later.command_id)).status
