"""Reading commands: from bytes to a Command, its payload, its target and its signal; everything wrong is named.

What a kind needs stands in the table (contracts/command_table.py); here it is held against what was sent.
Leaves to others: deciding and keeping (admission.py).
"""

import uuid
from typing import Any, TypeVar

import msgspec

from longtake.contracts.command_table import (
    TABLE,
    CancelBody,
    EventBody,
    ForkBody,
    InputBody,
    RetryBody,
    StartBody,
    SteerBody,
)
from longtake.contracts.commands import COMMAND_BYTES_MAX, Command
from longtake.contracts.ids import NAME_PATTERN, is_name
from longtake.contracts.principal import Principal
from longtake.contracts.problems import ProblemError, problem
from longtake.contracts.signals import (
    CancelRun,
    PauseRun,
    ProvideInput,
    ResumeRun,
    RetryRun,
    SendEvent,
    SupersedeRun,
)
from longtake.contracts.twice import named_twice
from longtake.engine.places import place_of
from longtake.errors import Refused
from longtake.store import RunOrigin

Control = CancelRun | RetryRun | PauseRun | ResumeRun | ProvideInput | SendEvent

T = TypeVar("T", bound=msgspec.Struct)

START_YEAR_MAX = 2200
"""The last year in which a run may begin; what is later is a slip."""

_commands = msgspec.json.Decoder(Command)


def read_command(raw: bytes, *, key: str | None) -> Command:
    """Read a command's bytes. `key` is the idempotency key of the channel; body and channel must agree.

    Raises Refused: too-large, malformed, invalid-command, idempotency-key-missing.
    """
    if len(raw) > COMMAND_BYTES_MAX:
        raise Refused(
            problem("too-large", f"The command has {len(raw)} bytes; at most {COMMAND_BYTES_MAX} are taken.")
        )
    try:
        command = _commands.decode(raw)
    except msgspec.ValidationError as error:
        raise Refused(
            problem("invalid-command", f"The command is not valid: {error}.", place_of(error, Command))
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(problem("malformed", f"The body is not JSON: {error}.")) from error
    except RecursionError as error:
        raise Refused(problem("malformed", "The body nests too deep to be read.")) from error
    _take_names_once(raw)
    if key is not None and command.client_command_id not in (None, key):
        raise Refused(
            problem(
                "invalid-command",
                "The idempotency key of the request and the client_command_id of the body differ.",
                ProblemError(
                    "/client_command_id", f"is {command.client_command_id!r}", f"use {key!r}, or leave it out"
                ),
            )
        )
    id_ = key if key is not None else command.client_command_id
    if id_ is None:
        raise Refused(
            problem(
                "idempotency-key-missing",
                "A command needs an id of the client's own, so that a repeat is known as one.",
                ProblemError(
                    "/client_command_id", "is absent", "send an Idempotency-Key header or this member"
                ),
            )
        )
    if not is_name(id_):
        raise Refused(
            problem(
                "invalid-command",
                "The idempotency key has characters that cannot travel.",
                ProblemError(
                    "/client_command_id", f"is {id_!r}", f"use 1 to 64 characters of {NAME_PATTERN}"
                ),
            )
        )
    return msgspec.structs.replace(command, client_command_id=id_)


def payload_of(command: Command, shape: type[T]) -> T:
    """The payload in the shape of the command's kind. Raises Refused: invalid-command."""
    try:
        made = msgspec.convert(command.payload, shape)
    except msgspec.ValidationError as error:
        place = place_of(error, shape, prefix="/payload")
        raise Refused(
            problem(
                "invalid-command", f"The payload of a {command.kind} command is not valid: {error}.", place
            )
        ) from error
    fault = _fault_of(made)
    if fault is not None:
        raise Refused(
            problem(
                "invalid-command",
                f"The payload of a {command.kind} command is not valid: {fault.message}.",
                fault,
            )
        )
    return made


def check(command: Command) -> None:
    """Hold a command against the row of its kind: payload, targets and revision. Raises Refused."""
    row = TABLE[command.kind]
    payload_of(command, row.body)
    if row.needs_run:
        target_of(command)
    elif command.targets:
        raise Refused(
            problem(
                "invalid-command",
                f"A {command.kind} command is about no run that exists.",
                ProblemError("/targets", f"names {len(command.targets)}", "leave it out"),
            )
        )
    if row.needs_revision:
        revision_of(command)
    elif command.expected_revision is not None:
        raise Refused(
            problem(
                "invalid-command",
                f"A {command.kind} command moves no run, so it asks for no revision.",
                ProblemError("/expected_revision", "has no meaning here", "leave it out, and If-Match too"),
            )
        )


def start_of(command: Command, origin: RunOrigin | None) -> StartBody:
    """What a command starts. A steer says what is different from the run it names; policies are merged by member."""
    if command.kind != "steer":
        return payload_of(command, StartBody)
    assert origin is not None, "a steer names a run"
    changed = payload_of(command, SteerBody)
    name = f"{origin.workflow}@{origin.workflow_version}"
    same = changed.workflow in (None, name)
    policy = msgspec.json.decode(origin.policy) if same else {}
    return StartBody(
        workflow=changed.workflow or name,
        input=msgspec.json.decode(origin.input) if changed.input is None else changed.input,
        policy={**policy, **(changed.policy or {})},
        account=changed.account or origin.account,
        max_credits=changed.max_credits,
    )


def target_of(command: Command) -> uuid.UUID:
    """The one run that the command is about. Raises Refused: invalid-command."""
    try:
        if len(command.targets) != 1:
            raise ValueError(f"{len(command.targets)} targets")
        return uuid.UUID(command.targets[0])
    except ValueError as error:
        raise Refused(
            problem(
                "invalid-command",
                f"A {command.kind} command is about exactly one run.",
                ProblemError("/targets", f"does not name one run: {error}", "give the run_id of the run"),
            )
        ) from error


def revision_of(command: Command) -> int:
    """The revision its sender saw. Raises Refused: precondition-missing."""
    if command.expected_revision is None:
        raise Refused(
            problem(
                "precondition-missing",
                f"A {command.kind} command says which revision of the run its sender saw.",
                ProblemError(
                    "/expected_revision", "is absent", "send the revision of the summary, here or as If-Match"
                ),
            )
        )
    return command.expected_revision


def signal_of(command: Command, principal: Principal) -> Control:
    """The fact that a command which starts nothing is to its run."""
    command_id, actor, revision = str(command.client_command_id), principal.actor, revision_of(command)
    match command.kind:
        case "cancel":
            cancel = payload_of(command, CancelBody)
            return CancelRun(
                command_id=command_id, actor=actor, expected_revision=revision, reason=cancel.reason
            )
        case "retry":
            retry = payload_of(command, RetryBody)
            return RetryRun(
                command_id=command_id,
                actor=actor,
                expected_revision=revision,
                step=retry.step,
                accept_double_cost=retry.accept_double_cost,
            )
        case "pause":
            return PauseRun(command_id=command_id, actor=actor, expected_revision=revision)
        case "resume":
            return ResumeRun(command_id=command_id, actor=actor, expected_revision=revision)
        case "provide_input":
            given = payload_of(command, InputBody)
            return ProvideInput(
                command_id=command_id,
                actor=actor,
                expected_revision=revision,
                step=given.step,
                answer=given.answer,
                cap=given.cap,
            )
        case "send_event":
            event = payload_of(command, EventBody)
            return SendEvent(
                command_id=command_id,
                actor=actor,
                expected_revision=revision,
                name=event.name,
                payload=event.payload,
            )
        case _:
            raise AssertionError(f"a {command.kind} command starts a run")


def supersede_of(command: Command, principal: Principal, by_run: uuid.UUID) -> SupersedeRun:
    """The fact that a steer command is to the run whose place is taken."""
    return SupersedeRun(
        by_run=by_run,
        command_id=str(command.client_command_id),
        actor=principal.actor,
        expected_revision=revision_of(command),
    )


def _fault_of(body: Any) -> ProblemError | None:
    """What the types of a payload cannot say."""
    match body:
        case InputBody() if (body.answer is None) == (body.cap is None):
            what = "both are given" if body.cap is not None else "neither is given"
            return ProblemError(
                "/payload/answer",
                f"of answer and cap {what}",
                "send the answer a gate asks for, or the new cap of a step that does not fit",
            )
        case InputBody(cap=int(cap)) if cap < 1:
            return ProblemError("/payload/cap", f"is {cap}", "send the new cap in whole credits")
        case EventBody() if not is_name(body.name):
            return ProblemError(
                "/payload/name", f"is {body.name[:64]!r}", f"use 1 to 64 characters of {NAME_PATTERN}"
            )
        case StartBody(start_at=start_at) if start_at is not None and start_at.tzinfo is None:
            return ProblemError(
                "/payload/start_at",
                f"{start_at.isoformat()} has no time zone",
                'end it with "Z" or an offset',
            )
        case StartBody(start_at=start_at) if start_at is not None and start_at.year > START_YEAR_MAX:
            return ProblemError(
                "/payload/start_at",
                f"{start_at.isoformat()} is beyond the year {START_YEAR_MAX}",
                "send the time when the run may begin, or leave it out",
            )
        case StartBody(max_credits=int(most)) | SteerBody(max_credits=int(most)) if most < 0:
            return ProblemError("/payload/max_credits", f"is {most}", "send whole credits, 0 or more")
        case ForkBody(max_extra_credits=int(most)) if most < 0:
            return ProblemError("/payload/max_extra_credits", f"is {most}", "send whole credits, 0 or more")
        case _:
            return None


def _take_names_once(raw: bytes) -> None:
    twice = named_twice(raw)
    if twice is not None:
        place = ProblemError(twice, "stands twice in its object", "send it once")
        raise Refused(problem("malformed", f"The body names {twice} twice; readers would disagree.", place))
