"""Commands to a script, as a person would send them who has just looked."""

import uuid
from typing import Any

from longtake.contracts.signals import PauseRun, ProvideInput, ResumeRun, SendEvent, SupersedeRun
from longtake.workflow.decision import Decision
from longtake.workflow.script import Script

SUCCESSOR = uuid.UUID("00000000-0000-8000-8000-00000000f2f2")


def _said(script: Script, revision: int | None, id_: str) -> dict[str, Any]:
    seen = script.state.revision if revision is None else revision
    return {"command_id": id_, "actor": "ann", "expected_revision": seen}


def pause(script: Script, *, revision: int | None = None) -> Decision:
    return script.tell(PauseRun(**_said(script, revision, "pause")))


def resume(script: Script, *, revision: int | None = None) -> Decision:
    return script.tell(ResumeRun(**_said(script, revision, "resume")))


def answer(
    script: Script, step: str, answer: dict[str, Any] | None = None, *, cap: int | None = None, revision: int | None = None,
    id_: str = "answer",
) -> Decision:  # fmt: skip
    return script.tell(ProvideInput(**_said(script, revision, id_), step=step, answer=answer, cap=cap))


def send_event(
    script: Script, name: str, payload: dict[str, Any] | None = None, *, revision: int | None = None, id_: str = "event"
) -> Decision:  # fmt: skip
    return script.tell(SendEvent(**_said(script, revision, id_), name=name, payload=payload or {}))


def steer(script: Script, *, revision: int | None = None, by_run: uuid.UUID = SUCCESSOR) -> Decision:
    return script.tell(SupersedeRun(by_run=by_run, **_said(script, revision, "steer")))
