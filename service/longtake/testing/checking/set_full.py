"""The set of accepted commands: what was answered is there, once, with one answer (I8, I9).

Every command id is an element. Categories are Jepsen's: attempts, acknowledged, read (in the store at the end),
unexpected (in the store, never sent), recovered (in the store, though its sender never knew), unknown (neither),
lost (acknowledged, not in the store), which is a prefix, the middle or a postfix of what was acknowledged.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.history import ADMITTED, Call
from longtake.testing.checking.store import CommandRow

OF_THE_SERVICE = ("child-", "schedule-")
"""How ids of commands begin that the service gives itself."""
COMPARED = ("run_id", "revision")


class SetFull(msgspec.Struct, kw_only=True):
    """Command ids by category."""

    attempts: set[str] = set()
    acknowledged: set[str] = set()
    read: set[str] = set()
    unexpected: set[str] = set()
    recovered: set[str] = set()
    unknown: set[str] = set()
    refused: set[str] = set()
    lost_prefix: set[str] = set()
    lost_middle: set[str] = set()
    lost_postfix: set[str] = set()

    @property
    def lost(self) -> set[str]:
        """Acknowledged and gone."""
        return self.lost_prefix | self.lost_middle | self.lost_postfix


def sort_out(evidence: Evidence) -> SetFull:
    """Put every command id into its categories."""
    sent = _sent(evidence)
    found = SetFull(attempts=set(sent))
    rows = {row.id for row in evidence.store.commands}
    found.read = rows & found.attempts
    found.unexpected = {
        row.id
        for row in evidence.store.commands
        if row.id not in sent and not row.id.startswith(OF_THE_SERVICE)
    }
    order: list[str] = []
    for id_, calls in sent.items():
        if any(call.type == "ok" for call in calls):
            found.acknowledged.add(id_)
            order.append(id_)
        elif any(call.type == "info" for call in calls):
            (found.recovered if id_ in rows else found.unknown).add(id_)
        else:
            found.refused.add(id_)
    there = [index for index, id_ in enumerate(order) if id_ in rows]
    for index, id_ in enumerate(order):
        if id_ in rows:
            continue
        if there and index < there[0]:
            found.lost_prefix.add(id_)
        elif not there or index > there[-1]:
            found.lost_postfix.add(id_)
        else:
            found.lost_middle.add(id_)
    return found


def check(evidence: Evidence) -> Iterator[Violation]:
    """I8, I9 over the whole history."""
    found = sort_out(evidence)
    sent = _sent(evidence)
    rows: dict[str, list[CommandRow]] = {}
    for row in evidence.store.commands:
        rows.setdefault(row.id, []).append(row)
    last_restore = max(evidence.restores, default=None)
    for part in ("prefix", "middle", "postfix"):
        for id_ in sorted(getattr(found, f"lost_{part}")):
            answered = [call for call in sent[id_] if call.type == "ok"]
            if (
                evidence.restore_may_lose
                and last_restore is not None
                and all(c.begun < last_restore for c in answered)
            ):
                continue
            yield Violation(
                invariant="I8",
                what=f"command {id_} was acknowledged and is not in the store (lost-{part})",
                where=f"op {answered[0].id}",
                trace=tuple(map(str, answered)),
            )
    if evidence.all_clients:
        for id_ in sorted(found.unexpected):
            yield Violation(
                invariant="I8",
                what=f"command {id_} is in the store and nobody sent it (unexpected)",
                where=f"command {id_}",
            )
    runs = {row.run for row in evidence.store.runs}
    started: dict[tuple[str, str, str], int] = {}
    for run in evidence.store.runs:
        place = (run.tenant, run.actor, run.command)
        started[place] = started.get(place, 0) + 1
    for place, count in started.items():
        if count > 1:
            yield Violation(
                invariant="I9",
                what=f"command {place[2]} of {place[1]} began {count} runs",
                where=f"command {place[2]}",
            )
    for row in evidence.store.commands:
        if row.receipt is None and evidence.settled:
            yield Violation(
                invariant="I8", what=f"command {row.id} was never resolved", where=f"command {row.id}"
            )
        if row.run is not None and row.run not in runs and not row.answer.get("problem"):
            yield Violation(
                invariant="I8",
                what=f"command {row.id} was accepted with run {row.run}, which does not exist",
                where=f"command {row.id}",
            )
    for id_, calls in sent.items():
        yield from _answers(evidence, id_, calls, rows.get(id_, []), refused=id_ in found.refused)


def _sent(evidence: Evidence) -> dict[str, list[Call]]:
    sent: dict[str, list[Call]] = {}
    for call in evidence.calls:
        if call.f in ADMITTED and call.command:
            sent.setdefault(call.command, []).append(call)
    return sent


def _answers(
    evidence: Evidence, id_: str, calls: list[Call], rows: list[CommandRow], *, refused: bool
) -> Iterator[Violation]:
    """One answer for ever, and it is the stored one. Of different pasts of the store only the run is compared."""
    first: dict[int, Call] = {}
    runs = {run for call in calls if call.type == "ok" and (run := call.said("run_id"))}
    if len(runs) > 1 and evidence.restores:
        yield Violation(
            invariant="I9",
            what=f"command {id_} began another run after a restore",
            where=f"command {id_}",
            trace=tuple(sorted(runs)),
        )
    for call in calls:
        if call.type != "ok" or not evidence.one_past(call):
            continue
        past = evidence.past(call.ended)
        before = first.setdefault(past, call)
        if _compared(before.told) != _compared(call.told):
            yield Violation(
                invariant="I9",
                what=f"command {id_} was answered in two ways",
                where=f"op {call.id}",
                trace=(str(before), str(call)),
            )
        stored = rows[0].answer if len(rows) == 1 else {}
        if (
            past == len(evidence.restores)
            and stored
            and _compared(stored, like=call.told) != _compared(call.told)
        ):
            yield Violation(
                invariant="I9",
                what=f"the row of command {id_} says something else than its sender was told",
                where=f"op {call.id}",
                trace=(str(call), f"stored: {dict(stored)}"),
            )
    taken = [row for row in rows if row.answer and not row.answer.get("problem")]
    if refused and taken and all(call.type == "fail" for call in calls):
        yield Violation(
            invariant="I9",
            what=f"command {id_} was refused and took effect",
            where=f"op {calls[0].id}",
            trace=tuple(map(str, calls)),
        )


def _compared(answer: Any, like: Any = None) -> dict[str, Any]:
    if not isinstance(answer, dict):
        return {}
    names = COMPARED if like is None else [name for name in COMPARED if name in (like or {})]
    return {name: answer[name] for name in names if answer.get(name) is not None}
