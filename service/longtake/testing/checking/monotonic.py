"""Sessions: nobody sees a revision fall, and who has an answer reads at least that (I2, I12)."""

from collections.abc import Iterator

from longtake.testing.checking.found import Evidence, Violation
from longtake.testing.checking.history import CLIENT, Call

GONE = frozenset({"not-found", "run-not-found"})


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every client's calls, in the order in which it made them; of calls that overlap nothing is said."""
    known: dict[tuple[str, str], tuple[int, int, Call]] = {}
    """(session, run) -> the epoch or past, the revision, and who said so."""
    epochs: dict[str, tuple[int, Call]] = {}
    for call in evidence.calls:
        if call.f not in CLIENT or call.type == "info":
            continue
        session = call.proc.partition("#")[0]
        past = evidence.past(call.ended)
        if call.f == "read" and call.type == "fail" and call.said("problem") in GONE:
            before = known.get((session, call.key))
            if (
                before is not None
                and before[0] == evidence.past(call.begun) == past
                and _later(call, before[2])
            ):
                yield _fell(
                    "I12", f"run {call.key} is not there for who has been told of it", before[2], call
                )
            continue
        if call.type != "ok" or not evidence.one_past(call):
            continue
        epoch = call.said("epoch")
        if epoch is not None:
            last = epochs.get(session)
            if last is not None and epoch < last[0] and _later(call, last[1]):
                yield _fell("I2", f"{session} read epoch {epoch} after {last[0]}", last[1], call)
            epochs[session] = (epoch, call)
        run, revision = _run(call), call.said("revision")
        if run is None or revision is None:
            continue
        before = known.get((session, run))
        fell = before is not None and before[0] == past and call.f == "read" and revision < before[1]
        if before is not None and fell and _later(call, before[2]):
            invariant = "I2" if before[2].f == "read" else "I12"
            yield _fell(invariant, f"{session} read revision {revision} after {before[1]}", before[2], call)
        if before is None or before[0] != past or revision > before[1]:
            known[session, run] = (past, revision, call)


def _later(call: Call, before: Call) -> bool:
    return before.ended <= call.begun


def _run(call: Call) -> str | None:
    if call.f == "start":
        run = call.said("run_id")
        return None if run is None else str(run)
    return call.key or None


def _fell(invariant: str, what: str, before: Call, call: Call) -> Violation:
    return Violation(invariant=invariant, what=what, where=f"op {call.id}", trace=(str(before), str(call)))
