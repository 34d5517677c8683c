"""Commands, runs and decisions as small as they can be: the clauses are about rows, not about workflows."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from contract.store.bench import ALICE, Bench
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.effects import ClaimedEffect, EffectClosing, EffectIntent, Report
from longtake.contracts.envelope import StoredEvent
from longtake.contracts.ids import effect_id_for, event_id_for
from longtake.contracts.outcomes import Artifact, Cancelled, Failed, Outcome, Succeeded
from longtake.contracts.principal import Principal
from longtake.contracts.summary import Blocker
from longtake.store import NewRun, RunCommit
from longtake.workflow.decision import LedgerEntry, PublishedArtifact
from longtake.workflow.projection import RunRow, StepRow

MOMENT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
APPLICATION = "build-1"


def run_id_of(number: int) -> uuid.UUID:
    """Ids that ascend with their number; the last byte tells the part of the callbacks."""
    return uuid.UUID(int=(number << 64) | number)


def command_of(id: str = "c1", **members: Any) -> Command:
    return Command(**{"kind": "generation", "project": "film", "client_command_id": id, **members})


def receipt_of(id: str = "c1", run_id: uuid.UUID | None = None, **members: Any) -> Receipt:
    text = None if run_id is None else str(run_id)
    return Receipt(**{"command_id": id, "kind": "generation", "status": "running", "run_id": text, **members})


def new_run(
    number: int = 1,
    *,
    project: str = "film",
    cap: int = 0,
    scopes: Sequence[str] = (),
    account: str = "main",
    held: int | None = None,
    plan: bytes = b"{}",
) -> NewRun:
    return NewRun(
        run_id=run_id_of(number), project=project, workflow="w", workflow_version=1, account=account,
        fingerprint=f"print-{number}", plan=plan, input=b"{}", policy=b"{}", quoted=cap, cap=cap,
        scopes=tuple(scopes), application=APPLICATION, held=held,
    )  # fmt: skip


def effect_of(
    number: int = 1, *, step: str = "s", kind: str = "execute", ordinal: int = 1, **members: Any
) -> EffectIntent:
    id_ = effect_id_for(
        run_id_of(number), step=step, attempt=members.get("attempt", 1), kind=kind, ordinal=ordinal
    )
    given = {"attempt": 1, "activity": "a@1", "pool": "pool", "input": b"{}", **members}
    return EffectIntent(id=id_, step=step, kind=kind, ordinal=ordinal, **given)  # type: ignore[arg-type]


def event_of(run_id: uuid.UUID, seq: int, type: str, data: bytes) -> StoredEvent:
    return StoredEvent(
        tenant=ALICE.tenant, run_id=run_id, seq=seq, id=event_id_for(run_id, seq=seq, store_epoch=1), type=type,
        version=1, data=data, meta=b"{}", store_epoch=1, recorded_at=MOMENT, hash=seq.to_bytes(32, "big"),
    )  # fmt: skip


def events_of(run_id: uuid.UUID, after: int, count: int) -> list[StoredEvent]:
    return [event_of(run_id, seq, "noted", b'{ "n":%d}' % seq) for seq in range(after + 1, after + 1 + count)]


def commit_of(
    number: int = 1, *, at: int = 1, events: int = 1, row: dict[str, Any] | None = None, **members: Any
) -> RunCommit:
    """A decision of `events` events onto revision `at`; `row` changes the projection, `members` the rest."""
    run_id = run_id_of(number)
    shown = {
        "status": "running", "phase": "shooting", "label": "Working", "revision": at + events, "charged": 0,
        "refunded": 0, "quoted": 0, "cap": 0, "blockers": (), "ended_at": None, "accepted_at": None,
        "updated_at": None, "summary": b"{}", "poll_at": None,
    }  # fmt: skip
    given = {"steps": [], "effects": [], "head_hash": (at + events).to_bytes(32, "big"), **members}
    return RunCommit(
        run_id=run_id,
        expected_revision=at,
        events=given.pop("written", events_of(run_id, at, events)),
        row=RunRow(**{**shown, **(row or {})}),
        **given,
    )


def closing_of(effect: EffectIntent, *, receipt: bool, disposition: str = "applied") -> EffectClosing:
    return EffectClosing(id=effect.id, disposition=disposition, expect_receipt=receipt)  # type: ignore[arg-type]


def entry_of(number: int = 1, *, kind: str = "charge", step: str | None = "s", cycle: int | None = 1, **members: Any) -> LedgerEntry:  # fmt: skip
    """A charge or refund of a step's cycle, or of the run when `step` is None."""
    rest = "" if step is None else f":{step}:{cycle}"
    debit, credit = ("main", "system:escrow") if kind == "charge" else ("system:escrow", "main")
    given = {"debit": debit, "credit": credit, "amount": 3, **members}
    key = given.pop("key", f"{kind}:{run_id_of(number)}{rest}")
    return LedgerEntry(key=key, kind=kind, step=step, cycle=cycle, **given)  # type: ignore[arg-type]


def artifact_of(name: str = "film", *, size: int = 4) -> PublishedArtifact:
    kept = Artifact(
        name=name, kind="film", object_key="sha256/1", sha256="1" * 64, bytes=size, content_type="video/mp4"
    )
    return PublishedArtifact(step="s", attempt=1, artifact=kept)


def step_of(key: str = "s", **members: Any) -> StepRow:
    shown = {
        "ordinal": 1, "attempt": 1, "max_attempts": 3, "status": "queued", "phase": "shooting", "label": "Scene",
        "external_ref": None, "error_class": None, "error_message": None, "provider_cost": None, "artifacts": (),
        "started_at": None, "updated_seq": 1,
    }  # fmt: skip
    return StepRow(**{"key": key, **shown, **members})


def blocker_of(type: str) -> Blocker:
    return Blocker(type=type)


SUCCEEDED = msgspec.json.encode(Succeeded())
FAILED = msgspec.json.encode(Failed(error_class="transient", message="no"))
CANCELLED = msgspec.json.encode(Cancelled())


async def begin(
    bench: Bench,
    number: int = 1,
    *,
    effects: Sequence[EffectIntent] = (),
    cap: int = 0,
    scopes: Sequence[str] = (),
    plan: bytes = b"{}",
    principal: Principal = ALICE,
    **members: Any,
) -> uuid.UUID:
    """Admit run `number` with one event; it is at revision 1 then."""
    id_, run = f"c{number}", new_run(number, cap=cap, scopes=scopes, plan=plan)
    async with bench.admission.transaction(principal, channel="local", traceparent="00-t") as transaction:
        now = await transaction.insert_command(command_of(id_), intent_hash="h")
        assert now is not None, "the command is new"
        assert await transaction.lay_down(run, command_id=id_, now=now), "the account can pay"
        commit = commit_of(
            number,
            at=0,
            effects=[(effect, None) for effect in effects],
            row={"cap": cap, "quoted": cap},
            **members,
        )
        result = await transaction.commit_run(commit, receipt_of(id_, run.run_id))
        assert run.run_id in result.committed
    return run.run_id


async def claim(bench: Bench, *effects: EffectIntent, owner: str = "worker", limit: int = 10, claim_id: int = 1, lease_seconds: int = 30) -> list[ClaimedEffect]:  # fmt: skip
    return await bench.effects.claim(
        claim_id=uuid.UUID(int=claim_id),
        effects=[(effect.id, effect.attempt) for effect in effects],
        limit=limit,
        owner=owner,
        lease_seconds=lease_seconds,
    )


async def one(bench: Bench, effect: EffectIntent, **options: Any) -> ClaimedEffect:
    """Claim one effect, which must be claimable."""
    claimed = await claim(bench, effect, **options)
    assert len(claimed) == 1, f"claimed {len(claimed)}"
    return claimed[0]


async def report(
    bench: Bench, effect: EffectIntent, fence: int, *, owner: str = "worker", outcome: bytes = SUCCEEDED
) -> list[tuple[uuid.UUID, uuid.UUID]]:
    return await bench.effects.report(
        [Report(effect_id=effect.id, fence=fence, owner=owner, outcome=outcome)]
    )


async def fact_of(bench: Bench, effect: EffectIntent) -> Any:
    """What lies on an effect's row for the reducer; None when nothing does."""
    batch = await bench.decisions.facts(effects=[effect.id], inbox=[], runs=[])
    return batch.facts[0].signal if batch.facts else None


def outcome_of(signal: Any) -> Outcome:
    return signal.outcome
