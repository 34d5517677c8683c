"""What each event means to the observer: its own small model of a run, and what it holds against it (4.5).

Leaves to others: the order of events, their chain and their causes (observing.py).
"""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from longtake.testing.seen import SeenRun
from longtake.workflow.step import Step

if TYPE_CHECKING:
    from longtake.testing.observing import Observer

Handler = Callable[["Observer", uuid.UUID, SeenRun, dict[str, Any]], None]


def _accepted(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    money = data.get("money", data)
    seen.cap = money["cap"]
    seen.application = data["application"]
    seen.scopes = tuple(data.get("scopes", ()))
    if data["plan_fingerprint"] != seen.fingerprint:
        observer.broken("I7", f"{run_id} was accepted with another plan than its row names")


def _charged(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.charged += data["amount"]


def _refunded(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.refunded += data["amount"]


def _cap_raised(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.cap = data["cap"]


def _scheduled(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    row = observer.database.tables.runs[run_id]
    deployed = None if observer.looks_back else observer.database.tables.store[0].application
    if (
        deployed in observer.drifted
        and row.plan_checked == deployed
        and seen.application not in observer.drifted
    ):
        observer.broken("H17", f"{run_id} goes on under code that plans it otherwise")
    if seen.releases_scopes:
        observer.broken("I19", f"{run_id} hands out work although it is on its way out")
    for item in data["steps"]:
        observer.begins(run_id, seen, item["step"], item["attempt"], again=item.get("ordinal", 1) > 1)


def _gates(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    for item in data["gates"]:
        observer.begins(run_id, seen, item["step"], item["attempt"])


def _applied(word: str) -> Handler:
    def apply(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
        step, attempt = data["step"], data.get("attempt", 0)
        if attempt != seen.attempts.get(step, 0):
            observer.broken(
                "I15", f"{word} of {step}/{attempt} applied, the attempt is {seen.attempts.get(step, 0)}"
            )
        if (step, attempt) in seen.applied and word != "ended":
            observer.broken(
                "I15", f"{word} of {step}/{attempt} applied after {seen.applied[step, attempt]} in {run_id}"
            )
        seen.applied[step, attempt] = word
        work = data.get("work")
        row = None if work is None else observer.database.tables.effects.get(uuid.UUID(work["effect_id"]))
        if row is not None and (row.step, row.attempt) != (step, attempt):
            observer.broken("I15", f"{word} of {step}/{attempt} is the outcome of {row.step}/{row.attempt}")

    return apply


def _failed_attempt(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    place = (data["step"], data["attempt"])
    job = observer.provider.job_of(run_id, *place)
    if (
        data["error_class"] in ("timeout", "unknown", "transient")
        and job is not None
        and not job.fails
        and not job.cancelled
        and place not in seen.verdicts
        and observer.lost_past == 0
    ):
        observer.broken(
            "I25", f"{place[0]}/{place[1]} is given up while {job.ref} does the work, and nobody has looked"
        )
    _applied("failure")(observer, run_id, seen, data)
    if data.get("next_effect_id") is not None:
        observer.begins(run_id, seen, data["step"], data["attempt"] + 1)


def _succeeded(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    if data.get("source", "work") != "work" and data["attempt"] == seen.attempts.get(data["step"], 0) + 1:
        # A gate whose answer was there before it: it never stood open.
        observer.begins(run_id, seen, data["step"], data["attempt"])
    _applied("success")(observer, run_id, seen, data)
    seen.status[data["step"]] = "succeeded"


def _step_ended(status: str) -> Handler:
    def end(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
        for key in data["steps"] if "steps" in data else [data["step"]]:
            name = key["step"] if isinstance(key, dict) else key
            if seen.status.get(name) == "succeeded":
                observer.broken("I15", f"{name} of {run_id} is {status} after it has succeeded")
            seen.status[name] = status

    return end


def _retried(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.retries += 1
    for key in data["steps"]:
        seen.status.pop(key, None)


def _blocked(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.was_blocked = True


def _leaving(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.releases_scopes = True


def _step_failed(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.status[data["step"]] = "failed"
    if not data.get("contained"):
        seen.releases_scopes = True


def _queued(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.queued = True


def _started(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.queued = False


def _expanded(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    for item in data["steps"]:
        step = msgspec.convert(item, Step)
        seen.fragments[step.key] = step


def _reused(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    for item in data["steps"]:
        seen.status[item["step"]] = "succeeded"


def _submitted(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    poll_at = datetime.fromisoformat(data["poll_at"])
    place = (data["step"], data["attempt"])
    if place in seen.called_back and not data.get("adopted") and seen.now is not None and poll_at > seen.now:
        seen.called_back.discard(place)
        observer.broken("P4", f"the callback of {place} came first, and nobody looks before {poll_at}")
    seen.called_back.discard(place)
    seen.submitted.add(place)


def _told(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    seen.verdicts.add((data["step"], data["attempt"]))


def _called_back(observer: "Observer", run_id: uuid.UUID, seen: SeenRun, data: dict[str, Any]) -> None:
    row = observer.database.tables.inbox.get(uuid.UUID(data["inbox_id"]))
    if row is not None and row.attempt != data["attempt"]:
        observer.broken(
            "I17", f"a callback of attempt {row.attempt} hastened attempt {data['attempt']} of {row.step}"
        )
    if (data["step"], data["attempt"]) not in seen.submitted:
        seen.called_back.add((data["step"], data["attempt"]))
    for id_ in observer.database.tables.open_effects.get(run_id, ()):
        effect = observer.database.tables.effects[id_]
        if (
            effect.kind == "poll"
            and effect.step == data["step"]
            and effect.state == "queued"
            and effect.leases == 0
            and not observer.clock_stepped
            and not observer.looks_back
            and effect.not_before > observer.world.now() + timedelta(seconds=1)
        ):
            observer.broken(
                "P4", f"{effect.step} was called back, and its poll waits until {effect.not_before}"
            )
    if data["inbox_id"] in seen.callbacks:
        observer.broken("I27", f"callback {data['inbox_id']} became two events of {run_id}")
    seen.callbacks.add(data["inbox_id"])


HANDLERS: dict[str, Handler] = {
    "run_accepted": _accepted,
    "charged": _charged,
    "refunded": _refunded,
    "cap_raised": _cap_raised,
    "steps_scheduled": _scheduled,
    "gates_opened": _gates,
    "attempt_failed": _failed_attempt,
    "step_succeeded": _succeeded,
    "step_failed": _step_failed,
    "steps_skipped": _step_ended("skipped"),
    "step_skipped": _step_ended("skipped"),
    "steps_cancelled": _step_ended("cancelled"),
    "retry_requested": _retried,
    "step_blocked": _blocked,
    "run_blocked": _blocked,
    "cancel_requested": _leaving,
    "supersede_requested": _leaving,
    "run_queued": _queued,
    "run_started": _started,
    "plan_expanded": _expanded,
    "steps_reused": _reused,
    "callback_received": _called_back,
    "attempt_submitted": _submitted,
    "attempt_reconciled": _told,
}
