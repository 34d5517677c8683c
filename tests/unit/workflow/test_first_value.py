"""What a step gives is what was kept of it, the first time as every later time (W29)."""

from typing import Any

import msgspec

from kit.promises import promise
from longtake.contracts.outcomes import Outcome, Succeeded
from longtake.contracts.upcasters import decode_event, encode_event
from longtake.worker.executor import checked
from longtake.workflow.plan import Plan, ref
from longtake.workflow.script import RUN, Script
from longtake.workflow.state import RunState, fold


class Take(msgspec.Struct):
    """What an activity may well return."""

    seconds: tuple[int, int]
    words: str


GIVEN: dict[str, Any] = {"z": (1, 2), "a": Take(seconds=(3, 4), words="é"), "nothing": None}
KEPT: dict[str, Any] = {"z": [1, 2], "a": {"seconds": [3, 4], "words": "é"}, "nothing": None}


def chain() -> Script:
    """The second step waits, so that the result of the first is still there to look at."""
    plan = Plan().step("first", activity="a@1")
    script = Script(
        plan.wait("go", event="go").step(
            "second", activity="b@1", depends_on=["first", "go"], input={"of": ref("first", "/result")}
        )
    )
    script.accept()
    return script


def replayed(script: Script) -> RunState:
    """The state that the bytes of the history leave."""
    stored = [(event.TYPE, event.VERSION, encode_event(event), at) for event, at in script.history]
    return fold(RUN, "t", script.plan, [(decode_event(t, v, data), at) for t, v, data, at in stored])


@promise("W29")
def test_the_first_execution_gives_what_was_kept_of_it_so_that_a_replay_is_the_same() -> None:
    script = chain()
    _, receipt = checked(Succeeded(result=GIVEN))
    outcome: Outcome = msgspec.json.decode(receipt, type=Outcome)  # type: ignore[arg-type]  # a union is a type to msgspec
    script.report("first", outcome)

    assert [{"/result": KEPT}] == list(script.state.results.values())
    assert script.state.results == replayed(script).results


def test_a_first_execution_that_gave_the_value_itself_would_differ_from_its_replay() -> None:
    script = chain()
    script.report("first", Succeeded(result=GIVEN))

    assert script.state.results != replayed(script).results


@promise("W29")
def test_a_step_that_gives_nothing_gives_nothing_in_a_replay() -> None:
    script = Script(Plan().step("first", activity="a@1").wait("go", event="go"))
    script.accept()
    _, receipt = checked(Succeeded())
    script.report("first", msgspec.json.decode(receipt, type=Outcome))  # type: ignore[arg-type]  # see above

    assert "succeeded" == script.status("first")
    assert script.state.results == replayed(script).results
