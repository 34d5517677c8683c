"""Clients: they send commands, lose answers, repeat, act on what they read, and remember what they were told (4.6).

Each session keeps its own history; what it may conclude from it is checked as it goes (I2, I8 to I12) and, where the whole
history is needed, at rest.
Leaves to others: which commands there are (commanding.py), how a request travels (nodes.py).
"""

import uuid
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Literal

import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.principal import Principal
from longtake.errors import AuthorityUnavailable, Refused
from longtake.memory.store_session import MemoryDatabase
from longtake.testing.observing import Observer
from longtake.testing.world import World

UNTARGETED = {
    "cancel": "cancel_generation",
    "pause": "pause_generation",
    "resume": "resume_generation",
    "steer": "steer_generation",
}
"""Kinds that are about the whole run and always mean the same, with the name under which they are offered."""


class Lost(Exception):
    """No answer came: the command may have been taken or not."""


class Told(msgspec.Struct, kw_only=True):
    """One command of a session and what it was told."""

    command: Command
    principal: Principal
    invoked_at: float
    answered_at: float | None = None
    receipt: Receipt | None = None
    refused: str | None = None
    read_revision: int | None = None
    """Revision of the summary that the session acted on."""
    offered: bool = False
    """That summary offered the action."""
    epoch: int = 0


Admit = Callable[[Principal, Command, str], Awaitable[Any]]
"""Sends a command to whatever process serves now; raises Lost."""


class Session:
    """One client. `admit` carries a command to the service."""

    def __init__(
        self,
        world: World,
        database: MemoryDatabase,
        observer: Observer,
        admit: Admit,
        *,
        name: str,
        principal: Principal,
    ) -> None:
        self.world = world
        self.database = database
        self.observer = observer
        self._admit = admit
        self.name = name
        self.principal = principal
        self.chance = Random(f"{world.seed}|{name}")
        self.told: list[Told] = []
        self.runs: list[uuid.UUID] = []
        self._seen: dict[uuid.UUID, tuple[int, int]] = {}
        self._number = 0
        self.kinds: dict[str, int] = {}
        """How often each kind was sent."""
        self.answers: dict[str, int] = {}

    def new_id(self) -> str:
        """An id that no other command of anybody has."""
        self._number += 1
        return f"{self.name}-{self._number}"

    async def read(self, run_id: uuid.UUID) -> dict[str, Any] | None:
        """Read the summary of a run; revisions never fall for one reader (I2, I12)."""
        await self.world.pause("reads.summary")
        row = self.database.tables.runs.get(run_id)
        if row is None or row.summary is None:
            return None
        epoch = self.database.store_epoch
        before = self._seen.get(run_id)
        if before is not None and before[0] == epoch and row.revision < before[1]:
            self.observer.broken(
                "I2", f"{self.name} read revision {row.revision} of {run_id} after {before[1]}"
            )
        self._seen[run_id] = (epoch, row.revision)
        summary: dict[str, Any] = msgspec.json.decode(row.summary)
        if summary["revision"] != row.revision:
            self.observer.broken("I6", f"the summary of {run_id} speaks of revision {summary['revision']}")
        return summary

    async def send(
        self,
        command: Command,
        *,
        read_revision: int | None = None,
        offered: bool = False,
        tries: int = 6,
        channel: Literal["http", "nats"] = "http",
    ) -> Told | None:
        """Send a command until it is answered; None when it never was."""
        told = Told(
            command=command,
            principal=self.principal,
            invoked_at=self.world.monotonic(),
            read_revision=read_revision,
            offered=offered,
            epoch=self.database.store_epoch,
        )
        self.told.append(told)
        self.kinds[command.kind] = self.kinds.get(command.kind, 0) + 1
        for attempt in range(tries):
            try:
                answer = await self._admit(self.principal, command, channel)
            except (Lost, AuthorityUnavailable):
                await self.world.sleep(0.3 + self.chance.random() * 3 * (attempt + 1))
                continue
            except Refused as refusal:
                told.refused = refusal.problem.slug
                told.answered_at = self.world.monotonic()
                if refusal.problem.slug in ("command-in-progress", "unavailable"):
                    await self.world.sleep(0.5 + self.chance.random() * 3)
                    continue
                return told
            self._hear(told, answer.receipt)
            return told
        return None

    def _hear(self, told: Told, receipt: Receipt) -> None:
        told.refused = None
        if (
            told.receipt is not None
            and to_json(told.receipt) != to_json(receipt)
            and told.epoch == self.database.store_epoch
        ):
            self.observer.broken("I9", f"{told.command.client_command_id} was answered in two ways")
        told.receipt = receipt
        told.answered_at = self.world.monotonic()
        status = receipt.status if receipt.problem is None else receipt.problem.slug
        self.answers[status] = self.answers.get(status, 0) + 1
        if receipt.run_id is not None and receipt.revision is not None:
            run_id = uuid.UUID(receipt.run_id)
            before = self._seen.get(run_id)
            epoch = self.database.store_epoch
            if before is None or before[0] != epoch or receipt.revision > before[1]:
                self._seen[run_id] = (epoch, receipt.revision)

    async def repeat(self) -> None:
        """Send an earlier command again: the same answer; or another one under its id: a conflict (I9)."""
        known = [told for told in self.told if told.receipt is not None]
        if not known:
            return
        told = self.chance.choice(known)
        changed = self.chance.random() < 0.3
        command = msgspec.structs.replace(told.command, text="something else") if changed else told.command
        epoch = self.database.store_epoch
        try:
            answer = await self._admit(self.principal, command, "http")
        except (Lost, AuthorityUnavailable):
            return
        except Refused as refusal:
            slug = refusal.problem.slug
            if (
                not changed
                and slug not in ("command-in-progress", "unavailable")
                and epoch == told.epoch == self.database.store_epoch
            ):
                self.observer.broken("I9", f"the repeat of {command.client_command_id} was refused: {slug}")
            return
        if epoch != told.epoch or epoch != self.database.store_epoch:
            return
        if changed:
            self.observer.broken("I9", f"{command.client_command_id} was taken with two intents")
        elif to_json(answer.receipt) != to_json(told.receipt):
            self.observer.broken(
                "I9",
                f"the repeat of {command.client_command_id} was answered {answer.receipt} after {told.receipt}",
            )

    def judge(self, offered_at: Callable[[uuid.UUID], list[frozenset[str]]]) -> None:
        """At rest: every receipt has its row, nobody's command was lost, and order was kept (I8, I10, I11)."""
        tables = self.database.tables
        if self.observer.lost_past:
            return  # what was promised in the lost past is for the restore to replay
        for told in self.told:
            receipt = told.receipt
            if receipt is None:
                continue
            self._judge_freshness(told, receipt, offered_at)
            key = (self.principal.tenant, self.principal.actor, str(told.command.client_command_id))
            row = tables.commands.get(key)
            if row is None or row.receipt is None:
                self.observer.broken("I8", f"{key[2]} was answered {receipt.status} and has no row")
                continue
            if to_json(row.receipt) != to_json(receipt):
                self.observer.broken(
                    "I9", f"the row of {key[2]} says something else than its sender was told"
                )
            if (
                receipt.problem is None
                and receipt.run_id is not None
                and uuid.UUID(receipt.run_id) not in tables.runs
            ):
                self.observer.broken("I8", f"{key[2]} was answered with a run that does not exist")

    def _judge_freshness(
        self, told: Told, receipt: Receipt, offered_at: Callable[[uuid.UUID], list[frozenset[str]]]
    ) -> None:
        """What was accepted had stood since the revision its sender saw (P3, I11)."""
        action = UNTARGETED.get(told.command.kind)
        expected = told.command.expected_revision
        if action is None or expected is None or receipt.problem is not None:
            return
        run_id = uuid.UUID(told.command.targets[0])
        cause = f'"causation":"command:{told.command.client_command_id}"'.encode()
        events = self.database.tables.events.get(run_id, ())
        before = next((event.seq - 1 for event in events if cause in event.meta), None)
        if before is None or before == expected:
            return
        offered = offered_at(run_id)
        if expected > before or any(action not in offered[at] for at in range(expected, before + 1)):
            self.observer.broken(
                "I11",
                f"{told.command.kind} was seen at revision {expected} and accepted at {before} of {run_id}",
            )
