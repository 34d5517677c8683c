"""The table of command kinds: what each needs, starts, costs and ends as, and under which name a run advertises it.

One row a kind, the closed set of design.md 5. Admission reads it, `available_actions` reads it, the schema is made of
it, and docs/commands.md is generated from it. Leaves to others: the rules behind "allowed" (workflow/actions.py).
"""

from datetime import datetime
from typing import Any, Literal

import msgspec

from longtake.contracts.summary import Action

CommandKind = Literal[
    "new_turn", "follow_up", "steer", "retry", "cancel", "generation", "utility", "export",
    "provide_input", "pause", "resume", "send_event", "fork",
]  # fmt: skip
"""All kinds there are (G15, design.md 5)."""

OnConflict = Literal["reject", "queue", "supersede"]

DEFAULT_ACCOUNT = "main"


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Common ground of payloads: a member that nobody knows is refused."""


class StartBody(_Body, frozen=True, kw_only=True):
    """Payload of every kind that starts a run of a named workflow."""

    workflow: str
    """As "name@version"."""
    input: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    account: str = DEFAULT_ACCOUNT
    max_credits: int | None = None
    """The cap that the client approves; None: what the plan says. Below the quote it is refused."""
    start_at: datetime | None = None
    """When the run may begin, with a time zone; None: at once."""
    on_conflict: OnConflict | None = None
    """When another active run holds a scope; None: what the plan says."""


class SteerBody(_Body, frozen=True, kw_only=True):
    """Payload of steer: what is different in the successor. Absent members are those of the superseded run."""

    workflow: str | None = None
    input: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    account: str | None = None
    max_credits: int | None = None


class ForkBody(_Body, frozen=True, kw_only=True):
    """Payload of fork: run again from a step on, and take over what stands before it (P9)."""

    step: str
    """This step and all that follows from it is done anew."""
    max_extra_credits: int | None = None
    """The extra price the client has seen; a fork that would cost more is refused. None: what it is quoted at."""
    account: str | None = None


class CancelBody(_Body, frozen=True, kw_only=True):
    """Payload of cancel."""

    reason: str | None = None


class RetryBody(_Body, frozen=True, kw_only=True):
    """Payload of retry."""

    step: str | None = None
    """One blocked step, or a failed optional one; None: everything that is blocked."""
    accept_double_cost: bool = False
    """The sender accepts that a call whose truth is open may be paid twice."""


class InputBody(_Body, frozen=True, kw_only=True):
    """Payload of provide_input: the answer to a gate, or the new cap for a step that does not fit under the old one."""

    step: str
    answer: dict[str, Any] | None = None
    cap: int | None = None


class EventBody(_Body, frozen=True, kw_only=True):
    """Payload of send_event."""

    name: str
    payload: dict[str, Any] = {}


class EmptyBody(_Body, frozen=True, kw_only=True):
    """Payload of pause and resume."""


class CommandRow(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one kind."""

    kind: CommandKind
    needs_run: bool
    """`targets` names exactly one run, and `expected_revision` says which state of it was seen (follow_up and fork: no
    revision, an ended run does not move)."""
    needs_revision: bool
    starts_run: bool
    allowed: str
    """From which states of the named run."""
    money: str
    scopes: str
    ends_as: tuple[str, ...]
    """Command states it can be answered with, the terminal one last."""
    body: type[_Body]
    action: Action | None
    """The name under which a run advertises it; None: it is about no run."""


_NEW = "none is named"
_HOLD = "holds the cap on the account; prepaid: charges the quote"
_TAKES = "takes the plan's, by its conflict policy"

TABLE: dict[CommandKind, CommandRow] = {
    row.kind: row
    for row in (
        CommandRow(kind="generation", needs_run=False, needs_revision=False, starts_run=True, allowed=_NEW, money=_HOLD,
                   scopes=_TAKES, ends_as=("rejected", "scheduled", "running"), body=StartBody, action=None),
        CommandRow(kind="new_turn", needs_run=False, needs_revision=False, starts_run=True, allowed=_NEW, money=_HOLD,
                   scopes=_TAKES, ends_as=("rejected", "scheduled", "running"), body=StartBody, action=None),
        CommandRow(kind="utility", needs_run=False, needs_revision=False, starts_run=True, allowed=_NEW,
                   money="none: a plan with a price is refused", scopes=_TAKES,
                   ends_as=("rejected", "scheduled", "running"), body=StartBody, action=None),
        CommandRow(kind="export", needs_run=False, needs_revision=False, starts_run=True, allowed=_NEW, money=_HOLD,
                   scopes=_TAKES, ends_as=("rejected", "scheduled", "running"), body=StartBody, action=None),
        CommandRow(kind="follow_up", needs_run=True, needs_revision=False, starts_run=True, allowed="any",
                   money=_HOLD + "; the earlier run is not touched", scopes=_TAKES,
                   ends_as=("rejected", "scheduled", "running"), body=StartBody, action="follow_up_generation"),
        CommandRow(kind="steer", needs_run=True, needs_revision=True, starts_run=True,
                   allowed="active and not on its way out", money="as a start; the superseded run settles like a cancelled one",
                   scopes="waits for those of the superseded run", ends_as=("rejected", "scheduled", "running"),
                   body=SteerBody, action="steer_generation"),
        CommandRow(kind="fork", needs_run=True, needs_revision=False, starts_run=True, allowed="ended",
                   money="holds and charges what is not reused free", scopes=_TAKES,
                   ends_as=("rejected", "scheduled", "running"), body=ForkBody, action="fork_generation"),
        CommandRow(kind="cancel", needs_run=True, needs_revision=True, starts_run=False,
                   allowed="active and not on its way out", money="refunds what no provider has earned",
                   scopes="frees them at once", ends_as=("rejected", "applied"), body=CancelBody,
                   action="cancel_generation"),
        CommandRow(kind="retry", needs_run=True, needs_revision=True, starts_run=False,
                   allowed="something is blocked, or an optional step failed and nothing was built on that",
                   money="none in the same cycle; after a refund the next cycle is charged", scopes="none",
                   ends_as=("rejected", "applied"), body=RetryBody, action="retry_generation"),
        CommandRow(kind="provide_input", needs_run=True, needs_revision=True, starts_run=False,
                   allowed="a step needs input", money="a new cap raises the hold", scopes="none",
                   ends_as=("rejected", "applied"), body=InputBody, action="provide_generation_input"),
        CommandRow(kind="pause", needs_run=True, needs_revision=True, starts_run=False,
                   allowed="active, not paused, not on its way out", money="none", scopes="keeps them",
                   ends_as=("rejected", "applied"), body=EmptyBody, action="pause_generation"),
        CommandRow(kind="resume", needs_run=True, needs_revision=True, starts_run=False, allowed="paused", money="none",
                   scopes="keeps them", ends_as=("rejected", "applied"), body=EmptyBody, action="resume_generation"),
        CommandRow(kind="send_event", needs_run=True, needs_revision=True, starts_run=False,
                   allowed="active, and a step that has not ended waits for an event of that name", money="none",
                   scopes="none", ends_as=("rejected", "attached", "applied"), body=EventBody,
                   action="send_generation_event"),
    )
}  # fmt: skip
"""By kind. `attached`: the event is kept until a step waits for it."""

START_KINDS: tuple[CommandKind, ...] = tuple(kind for kind, row in TABLE.items() if row.starts_run)
DECLARED_STARTS: tuple[CommandKind, ...] = ("generation", "new_turn", "utility", "export", "follow_up")
"""Kinds that a workflow declares to be started by; steer and fork go by the run they name."""
ACTION_KINDS: dict[Action, CommandKind] = {
    row.action: row.kind for row in TABLE.values() if row.action is not None
}
