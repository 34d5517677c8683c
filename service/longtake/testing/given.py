"""Given a plan, when this happens, then that follows: a run played by hand, with no server and no clock but your own.

The rules are those of the real thing: every step below is decided by the reducer that runs in production, and after each of
them the history is folded again and compared. What you do not tell has not happened.
"""

from collections.abc import Mapping
from typing import Any

from longtake.contracts.signals import PauseRun, ProvideInput, ResumeRun, SendEvent
from longtake.errors import Refused
from longtake.workflow.decision import Decision
from longtake.workflow.plan import Plan
from longtake.workflow.script import Script


class PlayedRun(Script):
    """A run under your hands; every method that tells something returns the run, so that calls can be chained."""

    def start(self) -> "PlayedRun":
        """Admit the run and hand out its first steps."""
        self.accept()
        return self

    def succeed(self, step: str, **result: Any) -> "PlayedRun":  # type: ignore[override]  # chained, where a script decides
        """The step's work is done, with every artifact that the plan expects and this result."""
        super().succeed(step, **result)
        return self

    def fail(  # type: ignore[override]  # as above
        self, step: str, error_class: Any = "transient", message: str = "it broke", **fields: Any
    ) -> "PlayedRun":
        """The step's attempt has failed."""
        super().fail(step, error_class, message, **fields)
        return self

    def answer(self, step: str, answer: Mapping[str, Any]) -> "PlayedRun":
        """A person answers the gate. Raises Refused when the answer is not taken."""
        return self._command(
            ProvideInput(
                command_id=self._next_id(),
                actor="ann",
                expected_revision=self.state.revision,
                step=step,
                answer=dict(answer),
            )
        )

    def send(self, name: str, payload: Mapping[str, Any] | None = None) -> "PlayedRun":
        """A named event comes for a `wait` step, early or in time. Raises Refused when nothing waits for it."""
        return self._command(
            SendEvent(
                command_id=self._next_id(),
                actor="ann",
                expected_revision=self.state.revision,
                name=name,
                payload=dict(payload or {}),
            )
        )

    def pause(self) -> "PlayedRun":
        """A person pauses the run. Raises Refused."""
        return self._command(
            PauseRun(command_id=self._next_id(), actor="ann", expected_revision=self.state.revision)
        )

    def resume(self) -> "PlayedRun":
        """A person lets it go on. Raises Refused."""
        return self._command(
            ResumeRun(command_id=self._next_id(), actor="ann", expected_revision=self.state.revision)
        )

    def wake(self, step: str) -> "PlayedRun":
        """The time of a sleep, or of a gate that nobody answered, has come."""
        self.fire(f"step:{step}")
        return self

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """Keys of steps whose work is handed out and not answered yet."""
        return tuple(dict.fromkeys(row.step for row in self.rows.values()))

    def _next_id(self) -> str:
        return f"c-{len(self.decisions) + 100}"

    def _command(self, signal: ProvideInput | SendEvent | PauseRun | ResumeRun) -> "PlayedRun":
        _taken(self.tell(signal))
        return self


def given(plan: Plan) -> PlayedRun:
    """A run of this plan, not started yet. Plans are taken as they are: `App.plan` is what validates them."""
    return PlayedRun(plan)


def _taken(decision: Decision) -> None:
    if decision.refusal is not None:
        raise Refused(decision.refusal)
