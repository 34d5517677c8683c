"""The small worlds that are walked through to the last state: one run of three steps, two workers, two commands.

Each has a paid step at a provider that is polled and calls back, a step that depends on it, and a gate or a second
branch. What may go wrong is a budget, so that a world is finite.
Leaves to others: what the state of a world is (exhaustive_state.py), what may happen in it (exhaustive_moves.py).
"""

from typing import Any

import msgspec

from longtake.contracts.command_table import CommandKind
from longtake.workflow.plan import Plan
from longtake.workflow.refs import ref
from longtake.workflow.step import Retry, Step

PAID = "paid.job@1"
BLIND = "paid.blind@1"
QUICK = "free.quick@1"
CALL = "free.call@1"
UNDO = "free.undo@1"

ANSWER = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """How often each thing may go wrong, or come from outside."""

    trouble: int = 0
    """A process dies, stands still past its lease, or holds on to an old decision; or a message is lost."""
    duplicate: int = 0
    """A message is delivered although it was settled; a callback or a command is sent again."""
    callback: int = 0
    """Callbacks that the provider makes."""
    lost: int = 0
    """Answers of the provider that are lost, whether or not it took the request."""
    haste: int = 0
    """Moments that come before everybody has done what could be done: deadlines and leases that overtake the work."""
    failure: int = 0
    """Refusals, and work that comes to nothing."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A command that somebody gives once, as soon as it is offered or ever after."""

    name: str
    kind: CommandKind
    payload: dict[str, Any] = {}
    after: str = ""
    """The command that has to come first."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One small world, before anything has happened."""

    name: str
    plan: Plan
    wishes: tuple[Wish, ...]
    budget: Budget = Budget()


CANCEL = Wish(name="cancel", kind="cancel")
RETRY = Wish(name="retry", kind="retry", payload={"accept_double_cost": True})
PAUSE = Wish(name="pause", kind="pause")
RESUME = Wish(name="resume", kind="resume", after="pause")
APPROVE = Wish(name="approve", kind="provide_input", payload={"step": "approve", "answer": {"word": "yes"}})

_RETRY = Retry(max_attempts=2, first_delay_ms=2000)


def _paid(activity: str = PAID, **fields: Any) -> Step:
    return Step(
        "make",
        **{
            "activity": activity,
            "price": 4,
            "retry": _RETRY,
            "external_seconds_max": 60,
            "timeout_seconds": 50,
            **fields,
        },
    )


def _cut(*after: str, **fields: Any) -> Step:
    return Step(
        "cut",
        **{
            "activity": QUICK,
            "depends_on": ("make", *after),
            "input": {"of": ref("make", "/result/made")},
            "retry": _RETRY,
            **fields,
        },
    )


def _settings() -> tuple[Setting, ...]:
    gate = Step("approve", kind="input", answer=ANSWER, timeout_seconds=200)
    hasty = Step("approve", kind="input", answer=ANSWER, timeout_seconds=40, default={"word": "as usual"})
    voice = Step("voice", activity=CALL, retry=_RETRY, timeout_seconds=50)
    nap = Step("nap", kind="sleep", seconds=20)
    undone = _paid(compensate=UNDO)
    return (
        Setting(name="approval", plan=Plan().with_steps([_paid(), gate, _cut("approve")]), wishes=(CANCEL, APPROVE)),
        Setting(name="two branches", plan=Plan().with_steps([_paid(), voice, _cut()]), wishes=(CANCEL, RETRY)),
        Setting(name="pause", plan=Plan().with_steps([_paid(), nap, _cut("nap")]), wishes=(CANCEL, PAUSE, RESUME)),
        Setting(name="blind", plan=Plan().with_steps([_paid(BLIND), _cut(), nap]), wishes=(CANCEL, RETRY)),
        Setting(
            name="undo",
            plan=Plan(billing="pay_as_you_go").with_steps([undone, _cut(), hasty]),
            wishes=(CANCEL, APPROVE),
        ),
        Setting(
            name="in line",
            plan=Plan(billing="pay_as_you_go", max_parallel=1).with_steps([_paid(), voice, _cut("voice")]),
            wishes=(CANCEL, PAUSE, RESUME),
        ),
    )  # fmt: skip


SETTINGS: tuple[Setting, ...] = _settings()
"""Every small world, with nothing that goes wrong in it."""

ROUNDS: dict[str, Budget] = {
    "crash": Budget(trouble=1),
    "outside": Budget(failure=1, lost=1, callback=1),
    "hints": Budget(trouble=1, duplicate=1, callback=1),
    "haste": Budget(haste=1, lost=1, callback=1),
    "all": Budget(trouble=1, duplicate=1, callback=1, lost=1, failure=1, haste=1),
}
"""What goes wrong in a walk, by the number of states that it makes of a world: thousands with a crash alone, a hundred
thousand and more with a crash, a duplicate and a callback, and with all of it more than anybody walks to the end."""


def settings_of(name: str) -> tuple[Setting, ...]:
    """Every small world of one round."""
    budget = ROUNDS[name]
    return tuple(
        msgspec.structs.replace(setting, name=f"{setting.name}, {name}", budget=budget)
        for setting in SETTINGS
    )
