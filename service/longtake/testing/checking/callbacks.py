"""Callbacks: each authentic one is kept once and ends somewhere, and nothing else is kept (I26 to I28)."""

import uuid
from collections.abc import Iterator

from longtake.contracts.ids import provider_token_for
from longtake.testing.checking.found import Evidence, Violation


def check(evidence: Evidence) -> Iterator[Violation]:
    """The inbox against the log, and against what the provider says that it sent."""
    store = evidence.store
    told: dict[str, int] = {}
    for event in store.events:
        if event.type == "callback_received":
            inbox_id = str(event.body["inbox_id"])
            told[inbox_id] = told.get(inbox_id, 0) + 1
    rows = {row.id: row for row in store.inbox}
    kept: set[tuple[str, str, str]] = set()
    sent = {line.key for line in evidence.witness if line.kind == "callback"}
    for row in store.inbox:
        where = f"inbox {row.id}"
        place = (row.tenant, row.provider, row.key)
        if place in kept:
            yield Violation(invariant="I26", what=f"callback {row.key} is kept twice", where=where)
        kept.add(place)
        if row.status == "pending" and evidence.settled and row.run in evidence.moving:
            yield Violation(
                invariant="I27",
                what=f"the callback of {row.step}/{row.attempt} was never looked at",
                where=where,
            )
        token = str(provider_token_for(uuid.UUID(row.run), step=row.step, attempt=row.attempt))
        if sent and token not in sent:
            yield Violation(
                invariant="I28",
                what=f"the callback of {row.step}/{row.attempt} was kept and never sent by the provider",
                where=where,
            )
    for inbox_id, count in told.items():
        row_ = rows.get(inbox_id)
        if count > 1:
            yield Violation(
                invariant="I27", what=f"the callback became {count} events", where=f"inbox {inbox_id}"
            )
        if row_ is None or row_.status != "dispatched":
            said = "is not there" if row_ is None else f"is {row_.status}"
            yield Violation(
                invariant="I27",
                what=f"its event is there, and the callback {said}",
                where=f"inbox {inbox_id}",
            )
