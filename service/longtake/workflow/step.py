"""A step of a plan: what to do, for how much, after what, how often, and what must come of it (design.md 6).

Leaves to others: putting steps together (plan.py), judging them (validation.py) and running them (reducer.py).
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from longtake.workflow.refs import GroupName

EXTERNAL_SECONDS_MAX = 3600
"""How long a provider may hold a request unless the step says otherwise."""

StepKind = Literal["activity", "input", "sleep", "wait", "run", "expand"]
"""activity: work of a worker. input: a person answers. sleep: a time passes. wait: a named event comes. run: another run
does it. expand: an activity whose result becomes more steps of this plan."""

WORKED: frozenset[str] = frozenset({"activity", "expand"})
"""Kinds that a worker does; the others are gates, which wait without work."""

JoinRule = Literal["all_succeeded", "all_terminal", "at_least"]
OnExhausted = Literal["block", "fail"]
OnAmbiguous = Literal["block", "retry"]
OnTimeout = Literal["block", "fail"]
OnParentClose = Literal["cancel", "abandon"]
RefundRule = Literal["full", "none"]


class AtLeast(msgspec.Struct, frozen=True):
    """A join that opens at the given number of successes, and lets the rest go."""

    count: int


def at_least(count: int) -> AtLeast:
    """Wait for this many of the dependencies to succeed; the others are cancelled and settled then (P19)."""
    return AtLeast(count)


class Retry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often a step is tried, and how long it waits between tries."""

    max_attempts: int = 3
    first_delay_ms: int = 1000
    factor: int = 2
    delay_ms_max: int = 60_000


DEFAULT_RETRY = Retry()


class ExpectedArtifact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that the step must hand over, or its attempt has failed."""

    name: str
    kind: str = ""


class Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One node of a plan. `key` names it for good: ids, tokens and history are derived from it."""

    key: str
    activity: str = ""
    """The work to do, as "name@version"; for the kinds activity and expand."""
    kind: StepKind = "activity"
    phase: str = "main"
    label: str = ""
    """What people read while it runs; the key when empty."""
    input: dict[str, Any] = {}
    """JSON without floats; may hold references to other steps."""
    depends_on: tuple[str | GroupName, ...] = ()
    join: JoinRule | AtLeast = "all_succeeded"
    """When the dependencies let the step begin; `at_least(k)` is kept as the rule and `need`."""
    need: int | None = None
    """Of the join at_least: how many dependencies must succeed."""
    when: dict[str, Any] | None = None
    """A condition that is data (conditions.py); false: the step is skipped."""
    optional: bool = False
    """Its failure does not fail the run."""
    price: int = 0
    price_key: str | None = None
    """Of a step in a fragment: its name in the plan's frozen price list."""
    refund: RefundRule = "full"
    """What a failed or cancelled step gives back under pay_as_you_go."""
    retry: Retry = DEFAULT_RETRY
    timeout_seconds: int | None = None
    """How long one try may run, from when it is due; of a gate: how long it may stand open."""
    deadline_seconds: int | None = None
    """How long the step may take in all, every try and wait between them included."""
    external_seconds_max: int = EXTERNAL_SECONDS_MAX
    """How long a provider may keep a request it has taken."""
    artifacts: tuple[ExpectedArtifact, ...] = ()
    """Files the step must produce; "clip" is short for a name and kind of that word, "clip:video" for both."""
    on_exhausted: OnExhausted | None = None
    on_ambiguous: OnAmbiguous | None = None
    on_timeout: OnTimeout = "block"
    """What an overdue gate does: wait for a person under a blocker that names what it waits for, or fail."""
    compensate: str | None = None
    """The activity, as "name@version", that undoes the step when the run fails or is cancelled (H90)."""
    compensate_pool: str = "default"
    """Where that activity works. Set by `bind`."""
    answer: dict[str, Any] | None = None
    """Of an input step: JSON Schema of the answer, an object."""
    default: dict[str, Any] | None = None
    """Of an input step: the answer that is taken when nobody gave one in time."""
    seconds: int | None = None
    """Of a sleep step: how long."""
    event: str | None = None
    """Of a wait step: the name of the event."""
    workflow: str | None = None
    """Of a run step: the workflow of the child, as "name@version"; `input` is its input."""
    policy: dict[str, Any] = {}
    """Of a run step: policy of the child."""
    on_parent_close: OnParentClose = "cancel"
    fills: str | None = None
    """Of an expand step: the group that its fragment's steps belong to; whoever waits for the group waits for them."""
    expands_to: tuple[str, ...] = ()
    """Of an expand step: the activities that its fragment may use."""
    pool: str = "default"
    priority: int = 0
    group: str | None = None
    paid: bool | None = None
    """Whether the outside charges for a call. None: judged by the price. Set by `bind`."""
    cancellable: bool | None = None
    """Whether the provider can be asked to stop. None: it is asked, and may say no. Set by `bind`."""

    def __post_init__(self) -> None:
        """Take lists, short forms and structs where the plan keeps tuples and plain JSON."""
        force = msgspec.structs.force_setattr
        force(self, "depends_on", tuple(self.depends_on))
        force(self, "expands_to", tuple(self.expands_to))
        if isinstance(self.join, AtLeast):
            force(self, "need", self.join.count)
            force(self, "join", "at_least")
        force(self, "artifacts", expected(self.artifacts))
        # What is not JSON stays as it is: validation says where it stands.
        with suppress(TypeError, RecursionError):
            force(self, "input", _with_lists(msgspec.to_builtins(self.input, str_keys=True)))

    @property
    def is_worked(self) -> bool:
        """Whether a worker does it; otherwise it is a gate."""
        return self.kind in WORKED

    @property
    def costs_outside(self) -> bool:
        """Whether a second call could cost somebody money."""
        return self.paid if self.paid is not None else self.price > 0

    @property
    def exhausted_policy(self) -> OnExhausted:
        """What happens when no try is left: paid steps wait for a person, others, and optional ones, fail."""
        return self.on_exhausted or ("block" if self.costs_outside and not self.optional else "fail")

    @property
    def ambiguous_policy(self) -> OnAmbiguous:
        """What happens when nobody can tell whether the provider took a request."""
        return self.on_ambiguous or ("block" if self.costs_outside else "retry")

    @property
    def title(self) -> str:
        """What people are told the step is."""
        return self.label or self.key


def expected(items: Iterable[str | ExpectedArtifact]) -> tuple[ExpectedArtifact, ...]:
    """Read the artifacts of a step, short forms included."""
    return tuple(item if isinstance(item, ExpectedArtifact) else _short_form(item) for item in items)


def _short_form(text: str) -> ExpectedArtifact:
    name, colon, kind = text.partition(":")
    return ExpectedArtifact(name, kind if colon else name)


def _with_lists(value: Any) -> Any:
    """The value as a stored document gives it back: without tuples."""
    match value:
        case dict():
            return {key: _with_lists(item) for key, item in value.items()}
        case list() | tuple():
            return [_with_lists(item) for item in value]
        case _:
            return value
