"""The error tree.

LongtakeError
 ├── Refused                 a command, plan or brief that cannot be taken; carries a Problem
 ├── InvalidInput            a builder cannot plan this input; lists every place
 ├── InvalidPlan             a builder made a plan that breaks a rule; lists every place
 ├── UncanonicalValue        a value without canonical bytes
 ├── PoisonMessage           a message that no redelivery will cure
 ├── UnreadableHistory       an event that this program does not know
 ├── BrokenChain             a stored history that does not verify; names run and seq
 ├── LeaseLost               the claim is no longer ours: stop work at once
 ├── AuthorityUnavailable    Postgres cannot be reached; nothing was decided
 │    └── LockTimeout        it can, and somebody else held what was asked for too long
 ├── DecisionRefused         Postgres does not take the rows of a decision, however often they come
 ├── TransportUnavailable    NATS cannot be reached; hints are late, nothing is lost
 ├── ConfigurationError      settings that make no sense; names the setting and the remedy
 └── MigrationError          the schema and the migrations disagree
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtake.contracts.problems import Problem, ProblemError


class LongtakeError(Exception):
    """Base of all errors that longtake raises on purpose."""


class Refused(LongtakeError):
    """The caller asked for something that cannot be; the problem says what, where and what would be right."""

    def __init__(self, problem: "Problem") -> None:
        super().__init__(problem.detail)
        self.problem = problem


class InvalidPlan(LongtakeError):
    """A plan breaks rules; every broken one is listed with its JSON pointer."""

    def __init__(self, errors: "tuple[ProblemError, ...]") -> None:
        super().__init__("; ".join(f"{error.pointer}: {error.message}" for error in errors))
        self.errors = errors


class InvalidInput(LongtakeError):
    """The input of a workflow is wrong; raised by builders. Pointers are inside the input."""

    def __init__(self, errors: "tuple[ProblemError, ...]") -> None:
        super().__init__("; ".join(f"{error.pointer}: {error.message}" for error in errors))
        self.errors = errors


class UncanonicalValue(LongtakeError):
    """A value has no canonical bytes."""

    def __init__(self, pointer: str, message: str, remedy: str) -> None:
        super().__init__(f"{pointer or '/'}: {message}")
        self.pointer = pointer
        self.message = message
        self.remedy = remedy


class PoisonMessage(LongtakeError):
    """A message cannot be read; it is kept as a dead letter and terminated."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"unreadable {what} message: {reason}")
        self.what = what
        self.reason = reason


class UnreadableHistory(LongtakeError):
    """A stored event is of a type or version that nothing here can read."""

    def __init__(self, type_: str, version: int, reason: str) -> None:
        super().__init__(f"event {type_} v{version}: {reason}")
        self.type = type_
        self.version = version
        self.reason = reason


class BrokenChain(LongtakeError):
    """The history of a run does not verify from this event on."""

    def __init__(self, run_id: object, seq: int, reason: str) -> None:
        super().__init__(f"run {run_id} seq {seq}: {reason}")
        self.run_id = run_id
        self.seq = seq
        self.reason = reason


class LeaseLost(LongtakeError):
    """The lease of an effect ended or went to another worker."""

    def __init__(self, effect_id: object, fence: int) -> None:
        super().__init__(f"effect {effect_id} is no longer ours under fence {fence}")
        self.effect_id = effect_id
        self.fence = fence


class AuthorityUnavailable(LongtakeError):
    """Postgres cannot be reached now. Safe to try again."""


class StoreRewound(LongtakeError):
    """The store was restored to a past that is older than what this process or the transport knows (F70)."""


class LockTimeout(AuthorityUnavailable):
    """Another transaction held a row longer than the lock timeout. Nothing of this one stands; safe to try again."""


class DecisionRefused(LongtakeError):
    """Some row of the decisions breaks a rule of its table; nothing of them was written. Trying again cures nothing."""


class TransportUnavailable(LongtakeError):
    """NATS cannot be reached now. Hints come late; the sweeper finds what they were about."""


class ConfigurationError(LongtakeError):
    """A setting makes no sense; the message names it, its value and the remedy."""


class MigrationError(LongtakeError):
    """Applied migrations and files disagree, or the schema is newer than the program."""
