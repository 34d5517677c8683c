"""The restore: what must be done before anybody works on a store that went back to an earlier moment (F70, P2).

nobody is connected -> every history verifies -> both epochs rise above every one there was -> commands of the lost interval are
admitted again -> pointers to nothing are kept as dead letters -> processes may work. A step that cannot be checked is
refused. Whoever repeats a restore that broke off goes through all of it again, under a higher epoch.

The outside is not asked here: each call that it may know is asked about by the worker that would make it (executor.py).
"""

import uuid
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from longtake.contracts.commands import Command, Receipt
from longtake.contracts.pointers import decode_callback_pointers, decode_effect_pointers
from longtake.contracts.principal import Principal
from longtake.engine.audit import Audit
from longtake.engine.commands import read_command, target_of
from longtake.engine.relay import ACTOR_HEADER
from longtake.errors import ConfigurationError, PoisonMessage, Refused
from longtake.store import KeptMessage, RestoreStore, SweepStore, TransportMemory

OVERLAP = timedelta(minutes=5)
"""Commands are read again from this long before the last moment that the store remembers (reliability.md F70)."""
EPOCH_MAX = 32_767
SOURCE = "restore"

Admit = Callable[[Principal, Command], Awaitable[tuple[Receipt, bool]]]
"""Admits one command; its receipt, and whether the store had it already. Raises Refused."""
Say = Callable[[str], None]


class NotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """A command of the lost interval that cannot be taken as it was: somebody must look at it."""

    tenant: str
    actor: str
    id: str
    kind: str
    reason: str


class RestoreReport(msgspec.Struct, kw_only=True):
    """What a restore found and did."""

    environment: str
    timeline: int
    epoch_before: int
    epoch_of_transport: int | None
    epoch: int = 0
    restored_to: datetime | None = None
    runs_verified: int = 0
    processes_buried: int = 0
    commands_again: int = 0
    commands_until: int = 0
    """Sequence of the last command in LT_COMMAND that was looked at."""
    commands_known: int = 0
    commands_not_taken: list[NotTaken] = []
    orphan_pointers: list[str] = []
    calls_in_doubt: int = 0


class Restore:
    """Goes through a restore, once."""

    def __init__(
        self,
        store: RestoreStore,
        sweep: SweepStore,
        memory: TransportMemory,
        audit: Audit,
        *,
        say: Say = lambda line: None,
    ) -> None:
        """`say` gets a line for each step that is done."""
        self._store = store
        self._sweep = sweep
        self._memory = memory
        self._audit = audit
        self._say = say

    async def inspect(self) -> RestoreReport:
        """Check that the store may be restored; nothing is changed. Raises ConfigurationError, BrokenChain."""
        others = await self._store.others()
        if others:
            named = ", ".join(f"{other.name} (pid {other.pid})" for other in others[:5])
            raise ConfigurationError(
                f"{len(others)} other connections are open: {named}. Stop every process that uses this database first"
            )
        self._say("nobody else is connected")
        facts = await self._store.facts()
        known = await self._memory.epoch()
        report = RestoreReport(
            environment=facts.environment,
            timeline=facts.timeline,
            epoch_before=facts.store_epoch,
            epoch_of_transport=known,
            restored_to=facts.remembered_until,
        )
        self._say(
            f"the store of {facts.environment!r}, time line {facts.timeline}, remembers until "
            f"{facts.remembered_until or 'nothing'}; its epoch is {facts.store_epoch}, the transport has seen {known or 'none'}"
        )
        async for run_id, _ in self._audit.runs():
            await self._audit.verify(run_id)
            report.runs_verified += 1
        self._say(f"the histories of {report.runs_verified} runs verify")
        return report

    def next_epoch(self, report: RestoreReport, above: int | None) -> int:
        """An epoch above every one there was. Raises ConfigurationError when nobody can tell which that was."""
        if report.epoch_of_transport is None and above is None:
            raise ConfigurationError(
                "the transport has no note of the epochs that this store had. The same backup may have been restored before: "
                "give --epoch-above N, the highest epoch in any ETag ('e<epoch>-r<revision>') or restore report you know of "
                f"(at least {report.epoch_before})"
            )
        epoch = max(report.epoch_before, report.epoch_of_transport or 0, above or 0) + 1
        if epoch > EPOCH_MAX:
            raise ConfigurationError(
                f"the next epoch would be {epoch}; the highest there can be is {EPOCH_MAX}"
            )
        return epoch

    async def begin(self, report: RestoreReport, epoch: int, *, ask_hours: int) -> None:
        """Raise the epochs, in the store first: a break between the two raises it once more."""
        buried = await self._store.begin(epoch, restored_to=report.restored_to, ask_hours=ask_hours)
        if buried is None:
            raise ConfigurationError(
                f"the store has epoch {epoch} or a higher one by now: somebody else restores it"
            )
        await self._memory.note_epoch(epoch)
        report.epoch, report.processes_buried = epoch, buried
        self._say(f"the epoch is {epoch} now; {buried} processes of the past are declared dead")

    async def replay(self, report: RestoreReport, admit: Admit) -> None:
        """Admit the commands of the lost interval again; what cannot be taken is a dead letter."""
        since = None if report.restored_to is None else report.restored_to - OVERLAP
        async for message in self._memory.commands(since):
            await self._replay_one(report, message, admit)
            report.commands_until = message.seq
        await self._memory.note_replayed(report.commands_until)
        self._say(
            f"{report.commands_again} commands of the lost interval are admitted again, {report.commands_known} were known, "
            f"{len(report.commands_not_taken)} could not be taken"
        )

    async def _replay_one(self, report: RestoreReport, message: KeptMessage, admit: Admit) -> None:
        principal = Principal(
            tenant=message.subject.split(".")[3], actor=message.headers.get(ACTOR_HEADER, "nats")
        )
        kind = message.subject.rpartition(".")[2]
        id_ = ""
        try:
            command = read_command(message.body, key=None)
            id_, kind = str(command.client_command_id), command.kind
            if kind == "cancel":
                # Its revision is of the lost past. Who wanted a run to end must not pay for its going on.
                revision = await self._store.revision(principal.tenant, target_of(command))
                command = msgspec.structs.replace(command, expected_revision=revision)
            receipt, was_known = await admit(principal, command)
            if was_known:
                report.commands_known += 1
                return
            if receipt.problem is None:
                report.commands_again += 1
                return
            reason = f"{receipt.problem.slug}: {receipt.problem.detail}"
        except Refused as refusal:
            reason = f"{refusal.problem.slug}: {refusal.problem.detail}"
        report.commands_not_taken.append(
            NotTaken(tenant=principal.tenant, actor=principal.actor, id=id_, kind=kind, reason=reason)
        )
        await self._keep(message, f"not taken again: {reason}", tenant=principal.tenant)

    async def quarantine(self, report: RestoreReport) -> None:
        """Keep pointers to what this store does not know as dead letters, and take them out of their streams."""
        async for message in self._memory.pointers():
            try:
                unknown = await self._unknown(message)
            except PoisonMessage:
                continue  # whoever would read it buries it
            if unknown:
                await self._keep(message, f"unknown run: {', '.join(unknown)}", tenant=None)
                await self._memory.remove(message)
                report.orphan_pointers += unknown
        self._say(
            f"{len(report.orphan_pointers)} pointers to work that this store does not know are put aside"
        )

    async def _unknown(self, message: KeptMessage) -> list[str]:
        effects: Iterable[uuid.UUID] = ()
        runs: Iterable[uuid.UUID] = ()
        inbox: Iterable[uuid.UUID] = ()
        if message.subject.startswith("longtake.v1.effect."):
            effects = [id_ for id_, _, _ in decode_effect_pointers(message.body).effects]
        else:
            body = decode_callback_pointers(message.body)
            effects, runs, inbox = body.effects, body.runs, body.inbox
        found = await self._store.unknown(effects=list(effects), runs=list(runs), inbox=list(inbox))
        return [f"{what} {id_}" for id_, what in found.items()]

    async def _keep(self, message: KeptMessage, reason: str, *, tenant: str | None) -> None:
        await self._sweep.dead_letter(
            tenant=tenant,
            source=SOURCE,
            subject=message.subject,
            reason=reason,
            body=message.body,
            headers=message.headers,
        )

    async def finish(self, report: RestoreReport) -> None:
        """Let processes work again."""
        report.calls_in_doubt = await self._store.calls_in_doubt()
        await self._store.finish(report.epoch, msgspec.to_builtins(report))
        self._say(
            f"processes may start; {report.calls_in_doubt} open calls are asked about before they are made, and so are those "
            "of runs that come again"
        )
