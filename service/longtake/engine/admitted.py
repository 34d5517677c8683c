"""What an admission comes to: the answer, what was committed for it, and what must still be announced.

Leaves to others: deciding (admission.py), announcing (hints.py).
"""

import uuid

import msgspec

from longtake.contracts.commands import Receipt
from longtake.contracts.signals import Outgoing
from longtake.engine.deciding import LiveRun
from longtake.store import AdmissionTransaction, CommitResult


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The receipt, and whether it was there before."""

    receipt: Receipt
    replayed: bool = False


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of workers that were decided before the command."""

    run: LiveRun
    result: CommitResult
    told: tuple[Outgoing, ...]


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and what was committed for it."""

    answer: Answer
    result: CommitResult | None = None
    run: LiveRun | None = None
    superseded: LiveRun | None = None
    is_new_run: bool = False
    told: tuple[Outgoing, ...] = ()
    """Facts for others that were committed with it."""

    def with_heard(self, heard: Heard) -> "Admitted":
        """The same, with what was committed before the command: that is announced even when the command was refused."""
        mine = self.result
        result = (
            heard.result
            if mine is None
            else CommitResult(
                committed=heard.result.committed | mine.committed,
                pointers=(*heard.result.pointers, *mine.pointers),
                withdrawn=(*heard.result.withdrawn, *mine.withdrawn),
            )
        )
        run = heard.run if self.run is None else self.run
        return msgspec.structs.replace(self, result=result, run=run, told=(*heard.told, *self.told))


async def reject(transaction: AdmissionTransaction, receipt: Receipt) -> Admitted:
    """Keep the refusal as the command's answer: a repeat gets it again (P23)."""
    await transaction.settle_command(receipt)
    return Admitted(answer=Answer(receipt=receipt))


class Moved(Exception):
    """The run changed between its reading and its writing; the transaction is rolled back and tried again."""

    def __init__(self, ended: tuple[uuid.UUID, ...]) -> None:
        super().__init__(ended)
        self.ended = ended
        """Effects that the decision ends: one of them may have been answered."""
