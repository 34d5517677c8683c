"""Evidence of a simulated world: its authority in memory, its clients and its provider, in the shape that the checker judges.

with gathered() as found:
    result = play(4711)
verdict = judge(found.history, found.store, found.witness)
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from longtake.contracts.codec import to_json
from longtake.memory.store_session import MemoryDatabase
from longtake.telemetry.recorder import Op
from longtake.testing.checking import StoreDump, WitnessLine
from longtake.testing.checking import store as dumped
from longtake.testing.observing import Observer
from longtake.testing.provider import FakeProvider
from longtake.testing.resting import Judge
from longtake.testing.sessions import Session

STARTS = frozenset({"generation", "new_turn", "utility", "export", "follow_up", "steer", "fork"})


class Gathered:
    """What one world left behind; `store` is None when it never came to rest."""

    def __init__(self) -> None:
        self.store: StoreDump | None = None
        self.witness: list[WitnessLine] = []
        self.history: list[Op] = []
        self._id = 0

    def op(
        self, proc: str, f: str, key: str, asked: Any, type_: Any, told: Any, begun: float, ended: float
    ) -> None:
        """Add a call."""
        self._id += 1
        self.history.append(Op(t=begun, proc=proc, f=f, type="invoke", key=key, value=asked, id=self._id))
        self.history.append(Op(t=ended, proc=proc, f=f, type=type_, key=key, value=told, id=self._id))

    def session(self, session: Session) -> None:
        """What a client was told. A command that was sent again and again is one call until its last answer."""
        for told in session.told:
            command = told.command
            name = str(command.client_command_id)
            starts = command.kind in STARTS
            key = name if starts else command.targets[0]
            asked = {"kind": command.kind, "id": name, "expected_revision": command.expected_revision}
            receipt = told.receipt
            if receipt is None:
                self.op(
                    session.name,
                    "start" if starts else "command",
                    key,
                    asked,
                    "info",
                    None,
                    told.invoked_at,
                    1e9,
                )
                continue
            answer = {"run_id": receipt.run_id, "revision": receipt.revision, "status": receipt.status}
            if receipt.problem is not None:
                answer["problem"] = receipt.problem.slug
            type_ = "ok" if receipt.problem is None else "fail"
            f = "start" if starts else "command"
            self.op(session.name, f, key, asked, type_, answer, told.invoked_at, float(told.answered_at or 0))


@contextmanager
def gathered() -> Iterator[Gathered]:
    """Gather the evidence of the world that is played inside."""
    found = Gathered()
    judge, session_judge, rewound = Judge.judge, Session.judge, Observer.rewound

    def judged(self: Judge) -> None:
        judge(self)
        found.store = dump(self._database)
        found.witness = witness_of(self._provider)

    def told(self: Session, offered_at: Any) -> None:
        session_judge(self, offered_at)
        found.session(self)

    def taken_back(self: Observer) -> None:
        rewound(self)
        now = self.world.monotonic()
        found.op("nemesis", "restore", str(self.database.store_epoch), None, "ok", None, now, now)

    with (
        patch.object(Judge, "judge", judged),
        patch.object(Session, "judge", told),
        patch.object(Observer, "rewound", taken_back),
    ):
        yield found
    found.history.sort(key=lambda op: (op.t, op.type != "invoke"))


def witness_of(provider: FakeProvider) -> list[WitnessLine]:
    """Requests and callbacks. A request is charged for when the provider had not taken its key before."""
    lines, known = [], set()
    for request in provider.witness:
        took = request.verb in ("submit", "hold") and request.taken and request.token not in known
        if took:
            known.add(request.token)
        job = provider.jobs[request.token].ref if request.token in provider.jobs else ""
        lines.append(WitnessLine(t=request.at, key=request.token, kind=request.verb, charged=took, job=job))
    return [line for line in lines if line.key]


def dump(database: MemoryDatabase) -> StoreDump:
    """Every row."""
    tables = database.tables
    return StoreDump(
        now=database.clock.now(),
        store_epoch=database.store_epoch,
        events=[
            _row(dumped.EventRow, row, run=row.run_id, tx=row.tx_id, epoch=row.store_epoch)
            for events in tables.events.values()
            for row in events
        ],
        commands=[
            _row(dumped.CommandRow, row, id=row.client_command_id, run=row.run_id, tx=row.tx_id)
            for row in tables.commands.values()
        ],
        runs=[
            _row(dumped.RunRow, row, run=row.run_id, command=row.command_id, epoch=row.store_epoch)
            for row in tables.runs.values()
        ],
        plans=[
            dumped.PlanRow(tenant=tenant, fingerprint=fingerprint, plan=row.plan.decode())
            for (tenant, fingerprint), row in tables.plans.items()
        ],
        steps=[_row(dumped.StepRow, row, run=run) for (run, _), row in tables.steps.items()],
        effects=[_row(dumped.EffectRow, row, run=row.run_id) for row in tables.effects.values()],
        claims=[
            _row(dumped.ClaimRow, row, effect=row.effect_id, run=row.run_id, claim=row.claim_id)
            for row in sorted(tables.claims.values(), key=lambda row: row.fence)
        ],
        late_receipts=[
            _row(dumped.LateReceiptRow, row, effect=row.effect_id) for row in tables.late_receipts.values()
        ],
        ledger=[_row(dumped.LedgerRow, row, run=row.run_id, tx=row.tx_id) for row in tables.ledger.values()],
        holds=[_row(dumped.HoldRow, row, run=run) for run, row in tables.holds.items()],
        accounts=[
            dumped.AccountRow(tenant=tenant, account=account, balance=row.balance, held=row.held)
            for (tenant, account), row in tables.accounts.items()
        ],
        inbox=[
            _row(dumped.InboxRow, row, key=row.dedupe_key, run=row.run_id) for row in tables.inbox.values()
        ],
        timers=[
            dumped.TimerRow(run=str(run), key=key, due_at=row.due_at)
            for (run, key), row in tables.timers.items()
        ],
        signals=[_row(dumped.SignalRow, row, run=row.run_id) for row in tables.signals.values()],
        dead_letters=[
            dumped.DeadLetterRow(source=row.source, subject=row.subject, reason=row.reason, body=row.body)
            for row in tables.dead_letters
        ],
    )


def _row(kind: Any, row: Any, **other: Any) -> Any:
    """A dumped row of a row in memory: the same names, but for `other`; plain values."""
    values = {name: other[name] if name in other else getattr(row, name) for name in kind.__struct_fields__}
    texts = {field.name for field in msgspec.structs.fields(kind) if field.type in (str, str | None)}
    return kind(**{name: _plain(value, text=name in texts) for name, value in values.items()})


def _plain(value: Any, *, text: bool) -> Any:
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return to_json(value).decode()
    if isinstance(value, tuple):
        return list(value)
    return bytes(value).decode() if text and isinstance(value, bytes | msgspec.Raw) else value
