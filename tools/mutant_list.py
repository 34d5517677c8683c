"""The mutants of the core's first half: attempts, open truths, money of a prepaid run, commands (see mutants.py).

Leaves to others: running them (mutants.py), those of the rest of the language (mutant_language.py).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One line of the core, broken."""

    file: str
    line: str
    broken: str
    promise: str


MUTANTS = (
    Mutant(
        "outcomes.py",
        "if signal.attempt != step.attempt:",
        "if False:",
        "an outcome of an older attempt changes nothing",
    ),
    Mutant(
        "outcomes.py",
        "is_open or _is_evidence(state, signal, step)",
        "True",
        "a repeated outcome decides nothing",
    ),
    Mutant(
        "outcomes.py",
        'return isinstance(outcome, (Succeeded, Submitted, Failed))',
        "return False",
        "a late receipt of the call wins over its look-up",
    ),
    Mutant(
        "settling.py",
        "if failure.retryable and step.attempt < step.attempts_allowed:",
        "if failure.retryable and step.attempt <= step.attempts_allowed:",
        "a step is tried as often as its policy says, and not once more",
    ),
    Mutant(
        "settling.py",
        "if failure.retryable and step.attempt < step.attempts_allowed:",
        "if step.attempt < step.attempts_allowed:",
        "what another try cannot cure is not tried again",
    ),
    Mutant(
        "settling.py",
        "if artifact.bytes <= 0:",
        "if artifact.bytes < 0:",
        "an empty artifact is a failed attempt",
    ),
    Mutant(
        "settling.py",
        "poll_at=draft.now if step.callback else",
        "poll_at=draft.now if False else",
        "a callback that outran the submission makes the poll due at once",
    ),
    Mutant(
        "reconciling.py",
        'if draft.state.plan_of(key).ambiguous_policy == "block":',
        "if False:",
        "no second paid call while the truth is open",
    ),
    Mutant(
        "reconciling.py",
        "if step.looks < looks_max:",
        "if True:",
        "look-ups are not repeated for ever",
    ),
    Mutant(
        "lapses.py",
        'case "execute" if begun:',
        'case "execute" if not begun:',
        "a call that may have been taken is looked up, one that was not is tried again",
    ),
    Mutant(
        "scheduling.py",
        "return bool(state.run_blockers) or state.paused_at is not None",
        "return state.paused_at is not None",
        "a blocked run hands out nothing new",
    ),
    Mutant(
        "scheduling.py",
        "state.plan.plan.max_parallel - len(state.open)",
        "state.plan.plan.max_parallel",
        "steps under way never exceed max_parallel",
    ),
    Mutant(
        "actions.py",
        "if since <= expected_revision <= state.revision:",
        "if expected_revision <= state.revision:",
        "a stale click is refused",
    ),
    Mutant(
        "actions.py",
        "if state.ending is not None:",
        "if False:",
        "a cancel is monotonic",
    ),
    Mutant(
        "money.py",
        'return left if state.ending.outcome == "failed" else max(0, left - state.kept)',
        "return left",
        "a cancel does not give back what was worked for",
    ),
    Mutant(
        "charging.py",
        "draft.record(Charged(key=money.charge_key(state), amount=state.quoted))",
        "pass",
        "the charge stands in the decision that hands out the first work",
    ),
    Mutant(
        "controlling.py",
        "if is_truth_open(state, key) and not signal.accept_double_cost",
        "if False",
        "a retry looks before it pays again",
    ),
    Mutant(
        "timers.py",
        "if due_at is None or draft.now < due_at:",
        "if due_at is None:",
        "a timer whose time was moved does nothing",
    ),
    Mutant(
        "callbacks.py",
        "if step.callback:",
        "if False:",
        "a repeated callback is no event",
    ),
    Mutant(
        "draft.py",
        "if effect_id not in state.open and effect_id not in self._closings:",
        "if False:",
        "what stops being open is closed",
    ),
    Mutant(
        "evolve_attempts.py",
        "step.grace = min(step.grace + 1, GRACE_MAX)",
        "pass",
        "an attempt that was never taken does not count against the policy",
    ),
    Mutant(
        "evolve_run.py",
        "step.base = step.attempt + plan.retry.max_attempts",
        "pass",
        "a person's retry brings a fresh allowance",
    ),
    Mutant(
        "joins.py",
        "if successes == total and not still_open:",
        "if successes and not still_open:",
        "a barrier waits for every step of its group",
    ),
    Mutant(
        "ends.py",
        "if read.readers == 0:",
        "if False:",
        "results are dropped when nobody can need them",
    ),
    Mutant(
        "blocking.py",
        'state.since["retry_generation"] = state.revision',
        'state.since.setdefault("retry_generation", state.revision)',
        "a retry of all is stale when its target has changed",
    ),
    Mutant(
        "ends.py",
        "if plan.cancellable is not False:",
        "if False:",
        "a provider that holds a request is told to stop",
    ),
    Mutant(
        "retry.py",
        "max(delay, 1000 * (retry_after_seconds or 0))",
        "delay",
        "a provider that says when to come back is heeded",
    ),
)  # fmt: skip
