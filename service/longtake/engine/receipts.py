"""Receipts: the answers of admission, and the refusals that are kept as answers, each with what would be right."""

from collections.abc import Sequence
from datetime import datetime

from longtake.contracts.commands import Command, CommandStatus, Receipt
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.engine.deciding import LiveRun
from longtake.store import Funds, HeldScope
from longtake.workflow.summary import summarize


def applied(command: Command, run: LiveRun, status: CommandStatus, now: datetime) -> Receipt:
    """The command was decided; the run stands like this now."""
    return Receipt(
        command_id=str(command.client_command_id),
        kind=command.kind,
        status=status,
        run_id=str(run.head.run_id),
        revision=run.state.revision,
        summary=summarize(run.state, now=now),
    )


def rejected(command: Command, refusal: Problem, run: LiveRun | None = None) -> Receipt:
    """The command was refused; a repeat is refused with the same words (P23)."""
    return Receipt(
        command_id=str(command.client_command_id),
        kind=command.kind,
        status="rejected",
        run_id=None if run is None else str(run.head.run_id),
        revision=None if run is None else run.revision,
        problem=refusal,
    )


def moved_on(current: int, expected: int) -> Problem:
    """If-Match named another revision (P3, the strict way)."""
    return problem(
        "stale-revision",
        f"The run is at revision {current}; If-Match asked for exactly {expected}. Nothing was changed.",
        ProblemError(
            "/header/If-Match",
            f"is revision {expected}, the run is at {current}",
            "read the summary again, or send expected_revision, which an unrelated event does not make stale",
        ),
    )


def scope_conflict(held: Sequence[HeldScope]) -> Problem:
    """Another active run owns a scope, or was in line for it first; every one is named (H54)."""
    places = tuple(
        ProblemError(
            "/payload/input",
            f"scope {item.scope!r} is held by run {item.run_id}"
            if item.holds
            else f"run {item.run_id} is in line for scope {item.scope!r}",
            'wait, cancel that run, or send "on_conflict": "queue"',
        )
        for item in held
    )
    first = held[0]
    return problem(
        "scope-conflict",
        f"Run {first.run_id} is active in phase {first.phase or 'none'} and holds {first.scope!r}."
        if first.holds
        else f"Run {first.run_id} was accepted earlier and is in line for {first.scope!r}.",
        *places,
    )


def cannot_pay(account: str, funds: Funds | None, cap: int) -> Problem:
    """The account is missing, or promised too much already."""
    if funds is None:
        return problem(
            "insufficient-funds",
            f"There is no account {account!r}.",
            ProblemError("/payload/account", "does not exist", "name an account that has been funded"),
        )
    free = funds.balance - funds.held
    return problem(
        "insufficient-funds",
        f"The account {account!r} has {free} credits free ({funds.balance} less {funds.held} promised to active runs); "
        f"this run may cost up to {cap}.",
        ProblemError("/payload/account", "cannot pay", f"add {cap - free} credits"),
    )


def cannot_raise(account: str, funds: Funds | None, more: int) -> Problem:
    """The account cannot promise what a larger cap asks for."""
    free = 0 if funds is None else funds.balance - funds.held
    return problem(
        "insufficient-funds",
        f"The account {account!r} has {free} credits free; the larger cap asks for {more} more. Nothing was changed.",
        ProblemError("/payload/cap", f"asks {account!r} for {more} credits", f"add {more - free} credits"),
    )


def still_checked() -> Problem:
    """The deployed code has not yet said whether it builds the run's plan (P15)."""
    return problem(
        "command-in-progress",
        "The run's plan is being compared with the deployed code; try again.",
        retry_after_seconds=1,
    )


def still_held() -> Problem:
    """Another transaction holds the command, its run or its project for longer than anybody waits (P23)."""
    return problem(
        "command-in-progress",
        "The command, its run or its project is held by another transaction; try again.",
        retry_after_seconds=1,
    )


def wrong_project(actual: str, given: str) -> Problem:
    """A run that begins with another one belongs to the same project."""
    return problem(
        "invalid-command",
        f"The run belongs to the project {actual!r}.",
        ProblemError("/project", f"is {given!r}", f"use {actual!r}"),
    )


def intent_taken(command_id: str) -> Problem:
    """The id belongs to another intent (G20)."""
    return problem(
        "command-conflict",
        f"The id {command_id!r} was used before for another command. Nothing was changed.",
        ProblemError("/client_command_id", "is taken by another intent", "use a new id for a new intent"),
    )


def no_such_run(run_id: object) -> Problem:
    """The target is not a run of the caller's."""
    return problem(
        "not-found",
        f"There is no run {run_id} here.",
        ProblemError("/targets/0", "names no run of yours", "use the run_id of a receipt"),
    )
