"""Pause and resume: no new attempts, while everything under way is still collected (P19).

At a pause nothing more is handed out. Attempts that are not due yet are taken back at once, others if nobody has claimed
them; the authority answers such an effect with Cancelled(stopped). Taken back means ready: the same attempt is handed out
again afterwards. What was begun ends as it ends, and its outcome, polls, look-ups, callbacks, events and answers count.
Deadlines of gates, sleeps, steps, blockers and the run are extended by the pause.
Leaves to others: not scheduling (scheduling.py), what the events leave behind (evolve_control.py).
"""

from longtake.contracts.events import AttemptsWithdrawn, RunPaused, RunResumed
from longtake.contracts.signals import PauseRun, ResumeRun
from longtake.workflow.actions import refusal
from longtake.workflow.decision import Decision
from longtake.workflow.draft import Draft
from longtake.workflow.scheduling import advance

STEPS_PER_EVENT_MAX = 500
"""Keeps an event below its size limit."""


def on_pause(draft: Draft, signal: PauseRun) -> Decision:
    """Hand out nothing more, and take back what nobody has begun."""
    state = draft.state
    problem = refusal(state, "pause_generation", expected_revision=signal.expected_revision)
    if problem is not None:
        return draft.refused(problem)
    draft.record(RunPaused(command_id=signal.command_id, actor=signal.actor))
    early: list[str] = []
    for effect_id, effect in sorted(state.open.items(), key=lambda item: item[1].step):
        if effect.kind != "execute":
            continue
        if effect.due_at > draft.now:
            early.append(state.plan.steps[effect.step].key)
        else:
            draft.withdraw(effect_id)
    for start in range(0, len(early), STEPS_PER_EVENT_MAX):
        draft.record(AttemptsWithdrawn(steps=tuple(early[start : start + STEPS_PER_EVENT_MAX])))
    return draft.decision()


def on_resume(draft: Draft, signal: ResumeRun) -> Decision:
    """Go on where the run stood, with all its times extended."""
    problem = refusal(draft.state, "resume_generation", expected_revision=signal.expected_revision)
    if problem is not None:
        return draft.refused(problem)
    draft.record(RunResumed(command_id=signal.command_id, actor=signal.actor))
    advance(draft)
    return draft.decision()


def take_back(draft: Draft, key: str) -> None:
    """An attempt that a pause recalled was not begun: it is handed out again, now or after the pause."""
    draft.record(AttemptsWithdrawn(steps=(key,)))
    advance(draft)
