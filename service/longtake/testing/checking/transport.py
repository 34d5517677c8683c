"""Transport: every row of work is settled, and what names nothing is put away without effect (I29, I30)."""

import uuid
from collections.abc import Iterator

import msgspec

from longtake.contracts.pointers import CallbackPointers, EffectPointers
from longtake.testing.checking.found import Evidence, Violation

_effects = msgspec.json.Decoder(EffectPointers)
_callbacks = msgspec.json.Decoder(CallbackPointers)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Effects, signals and dead letters."""
    store = evidence.store
    for effect in store.effects:
        if (effect.closed_at is None) != (effect.disposition is None) or (effect.state == "closed") != (
            effect.closed_at is not None
        ):
            yield Violation(
                invariant="I29",
                what=f"{effect.kind} of {effect.step}/{effect.attempt} is {effect.state} as {effect.disposition}",
                where=f"effect {effect.id}",
            )
    for signal in store.signals:
        if signal.settled_at is None and evidence.settled and signal.run in evidence.moving:
            yield Violation(
                invariant="I29",
                what=f"the signal {signal.kind} was never settled",
                where=f"signal {signal.id}",
            )
    known = {effect.id for effect in store.effects}
    runs = {run.run for run in store.runs}
    inbox = {row.id for row in store.inbox}
    for letter in store.dead_letters:
        if not letter.reason.startswith("unknown pointer") or evidence.restores:
            continue
        named = [str(id_) for id_ in pointers(letter.body)]
        if named and all(id_ in known or id_ in runs or id_ in inbox for id_ in named):
            yield Violation(
                invariant="I30",
                what="a pointer was put away as unknown, and what it names is there",
                where=f"dead letter on {letter.subject}",
                trace=tuple(named[:5]),
            )


def pointers(body: bytes) -> list[uuid.UUID]:
    """What a pointer message names; nothing when it is none."""
    try:
        return [id_ for id_, _, _ in _effects.decode(body).effects]
    except msgspec.MsgspecError:
        pass
    try:
        found = _callbacks.decode(body)
    except msgspec.MsgspecError:
        return []
    return [*found.inbox, *found.effects, *found.runs]
