"""Reading commands: from bytes to a Command, its payload, its target and its signal; everything wrong is named.

Leaves to others: deciding and keeping (admission.py).
"""

import uuid
from typing import TypeVar

import msgspec

from longtake.contracts.commands import COMMAND_BYTES_MAX, Command
from longtake.contracts.ids import NAME_PATTERN, is_name
from longtake.contracts.principal import Principal
from longtake.contracts.problems import ProblemError, problem
from longtake.contracts.signals import CancelRun, RetryRun
from longtake.errors import Refused

DEFAULT_ACCOUNT = "main"

T = TypeVar("T")

_commands = msgspec.json.Decoder(Command)


class GenerationBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Payload of a generation command."""

    workflow: str
    input: dict[str, object] = {}
    policy: dict[str, object] = {}
    account: str = DEFAULT_ACCOUNT


class _CancelBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str | None = None


class _RetryBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    step: str | None = None
    accept_double_cost: bool = False


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
            problem("invalid-command", f"The command is not valid: {error}.", _place_of(error))
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(problem("malformed", f"The body is not JSON: {error}.")) from error
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
    try:
        return msgspec.convert(command.payload, shape)
    except msgspec.ValidationError as error:
        place = _place_of(error, prefix="/payload")
        raise Refused(
            problem(
                "invalid-command", f"The payload of a {command.kind} command is not valid: {error}.", place
            )
        ) from error


def _place_of(error: msgspec.ValidationError, prefix: str = "") -> ProblemError:
    """Turn msgspec's `... - at `$.a[0]`` into a JSON pointer."""
    message, _, path = str(error).partition(" - at `$")
    pointer = path.rstrip("`").replace("[", ".").replace("]", "").replace(".", "/")
    return ProblemError(prefix + pointer, message, "see the schema `command` under schemas/")


def target_of(command: Command) -> tuple[uuid.UUID, int]:
    try:
        if len(command.targets) != 1:
            raise ValueError(f"{len(command.targets)} targets")
        run_id = uuid.UUID(command.targets[0])
    except ValueError as error:
        raise Refused(
            problem(
                "invalid-command",
                f"A {command.kind} command is about exactly one run.",
                ProblemError("/targets", f"does not name one run: {error}", "give the run_id of the run"),
            )
        ) from error
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
    return run_id, command.expected_revision


def signal_of(command: Command, principal: Principal, command_id: str, revision: int) -> CancelRun | RetryRun:
    if command.kind == "cancel":
        cancel = payload_of(command, _CancelBody)
        return CancelRun(
            command_id=command_id, actor=principal.actor, expected_revision=revision, reason=cancel.reason
        )
    retry = payload_of(command, _RetryBody)
    return RetryRun(
        command_id=command_id,
        actor=principal.actor,
        expected_revision=revision,
        step=retry.step,
        accept_double_cost=retry.accept_double_cost,
    )
