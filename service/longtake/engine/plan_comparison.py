"""What deployed code would make of a run's accepted plan: the same, something else, or nothing at all (P15).

The engine's plan check and the command line's ask this one function, so that a pipeline foretells what a deployment
does. Leaves to others: finding the runs, and what follows from the answer.
"""

import msgspec

from longtake.contracts.problems import ProblemError
from longtake.errors import Refused
from longtake.store import Planner, UncheckedRun
from longtake.workflow.fingerprint import FieldChange, PlanBasis, differences, price_effect
from longtake.workflow.plan import quote, read_plan

PRICE_BASIS = "/price_basis"
CANNOT_BE_BUILT = "the plan cannot be built"


class PlanComparison(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted plan beside the one that the code builds from the same input and policy."""

    claimed: bool
    """Whether the code has that version of the workflow; if not, it is not asked for an opinion."""
    changes: tuple[FieldChange, ...] = ()
    price_effect: str = ""
    refusals: tuple[ProblemError, ...] = ()
    """Why the code builds no plan at all from the run's input."""

    @property
    def drift(self) -> tuple[str, str] | None:
        """(first field, price effect) as the run's blocker names it; None: the run goes on."""
        if self.refusals:
            return self.refusals[0].pointer, self.price_effect
        return (self.changes[0].pointer, self.price_effect) if self.changes else None


def compare_plan(planner: Planner, run: UncheckedRun) -> PlanComparison:
    """Build the run's plan anew and compare. Raises InvalidPlan when the accepted plan itself cannot be read."""
    if not planner.claims(run.workflow, run.workflow_version):
        return PlanComparison(claimed=False)
    policy = msgspec.json.decode(run.policy)
    try:
        planned = planner.plan(
            f"{run.workflow}@{run.workflow_version}", msgspec.json.decode(run.input), policy
        )
    except Refused as refusal:
        places = refusal.problem.errors or (ProblemError("/", refusal.problem.detail, ""),)
        return PlanComparison(claimed=True, refusals=tuple(places), price_effect=CANNOT_BE_BUILT)
    except Exception as error:  # noqa: BLE001 - a builder is user code; what it raises is of this run alone
        place = ProblemError(
            "/", f"the builder raised {type(error).__name__}: {error}", "make it take the input"
        )
        return PlanComparison(claimed=True, refusals=(place,), price_effect=CANNOT_BE_BUILT)
    if planned.fingerprint == run.fingerprint:
        return PlanComparison(claimed=True)
    accepted = read_plan(bytes(run.plan))
    # Without the run's own price list the new one stands on both sides; what is left then can only be the price list.
    changes = differences(
        PlanBasis(plan=accepted, policy=policy, price_basis=run.price_list or planned.price_list),
        PlanBasis(
            plan=planned.plan, policy=msgspec.json.decode(planned.policy), price_basis=planned.price_list
        ),
    )
    return PlanComparison(
        claimed=True,
        changes=tuple(changes) or (FieldChange(pointer=PRICE_BASIS, after=planned.price_list),),
        price_effect=price_effect(quote(accepted), planned.quoted),
    )
