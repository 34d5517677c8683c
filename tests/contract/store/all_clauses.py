"""Every clause of the store's contract, whatever module it stands in."""

from contract.store import (
    admission_clauses,
    answer_clauses,
    decision_clauses,
    effect_clauses,
    habit_clauses,
    line_clauses,
    money_clauses,
    sweep_clauses,
    window_clauses,
)
from contract.store.clauses import CLAUSES

MODULES = (
    admission_clauses,
    answer_clauses,
    decision_clauses,
    effect_clauses,
    habit_clauses,
    line_clauses,
    money_clauses,
    sweep_clauses,
    window_clauses,
)

__all__ = ["CLAUSES", "MODULES"]
