"""Charging: when a run's credits are taken and given back, in both ways of billing (P8, P9, P10).

prepaid: the quote is taken when the run is accepted. Nothing is taken or given back before the run ends; then a failed
run gives back all of it, a cancelled one what no provider has earned. pay_as_you_go: the decision that hands out the
first work of a step takes its price, for one settlement cycle: tries of the step, also those that a person asks for
while it is blocked, cost no more. A step that settles without a result gives the price back, by its refund rule. A
step that is tried again after that begins the next cycle.

All of it draws on the run's own hold, so that no account is touched. Leaves to others: the laws (money.py), and the
credits of a hold (admission).
"""

from collections.abc import Iterable, Sequence

from longtake.contracts.events import CapRaised, Charged, Refunded, SpendCapReached
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.contracts.signals import ProvideInput
from longtake.workflow import money
from longtake.workflow.draft import Draft
from longtake.workflow.ends import is_kept
from longtake.workflow.run_state import Ending, RunState

STEPS_PER_EVENT_MAX = 500
"""Keeps an event below its size limit."""


def charge_at_beginning(draft: Draft) -> None:
    """Take what a run costs before its first work: prepaid the quote, else the receipts that a fork pays again."""
    state = draft.state
    if state.billing == "prepaid":
        if state.quoted > 0:
            draft.record(Charged(key=money.charge_key(state), amount=state.quoted))
        return
    if state.forked_from is None:
        return
    for position, step in enumerate(state.steps):
        if step.reused == "again" and due_before(state, position) > 0:
            charge_cycle(draft, position)


def charge_fragment(draft: Draft, key: str, amount: int) -> None:
    """Take the price of steps that an expansion adds to a prepaid run, if it fits under the cap.

    Otherwise it is asked for when the first of them would begin. Under pay_as_you_go nothing is taken here: the steps
    are charged when they begin.
    """
    state = draft.state
    if state.billing != "prepaid" or amount == 0 or amount > money.room(state):
        return
    _charge_step(draft, state.plan.position[key], amount)


def charge_before(draft: Draft, positions: Sequence[int]) -> list[int]:
    """Take the price of the steps that begin a settlement cycle; returns those that may begin, in their order.

    Those that do not fit under the cap wait for a larger one, and leave the others alone.
    """
    state = draft.state
    if state.billing != "pay_as_you_go":
        return _of_prepaid(draft, positions)
    begin: list[int] = []
    beyond: list[int] = []
    for position in positions:
        price = due_before(state, position)
        if price > money.room(state):
            beyond.append(position)
            continue
        if price > 0:
            charge_cycle(draft, position)
        begin.append(position)
    for start in range(0, len(beyond), STEPS_PER_EVENT_MAX):
        draft.record(_cap_reached(state, beyond[start : start + STEPS_PER_EVENT_MAX]))
    return begin


def due_before(state: RunState, position: int) -> int:
    """What is taken before the step begins: nothing while its settlement cycle is open."""
    if state.billing != "pay_as_you_go" or state.steps[position].charged > 0:
        return 0
    return state.plan.steps[position].price


def charge_cycle(draft: Draft, position: int) -> None:
    """Begin the next settlement cycle of a step."""
    state = draft.state
    _charge_step(draft, position, state.plan.steps[position].price)


def settle_step(draft: Draft, key: str) -> None:
    """Give back what a step that ended without a result has cost, unless its price is kept; repeated, it does nothing.

    Call it when the step has ended and its open attempt, if any, is known.
    """
    state = draft.state
    position = state.plan.position[key]
    step, plan = state.steps[position], state.plan.steps[position]
    if state.billing != "pay_as_you_go" or step.charged == 0 or not step.ended or step.effect is not None:
        return
    if step.status == "succeeded" or plan.refund == "none":
        return
    if step.late is not None and is_kept(plan, step.late):
        return
    draft.record(
        Refunded(
            key=money.refund_key(state, key, step.cycle),
            amount=step.charged,
            reason=f"step {step.status}",
            step=key,
            cycle=step.cycle,
        )
    )


def settle_run(draft: Draft, ending: Ending) -> None:
    """Give back what the run owes before it ends: prepaid by the run's end, pay_as_you_go by each step's."""
    state = draft.state
    if state.billing == "pay_as_you_go":
        for plan in state.plan.steps:
            settle_step(draft, plan.key)
        return
    amount, reason = money.refund_due(state), f"run {ending.outcome}"
    for plan, step in zip(state.plan.steps, state.steps, strict=True):
        # What an expansion added was taken under a key of its own.
        part = min(amount, step.charged)
        if part > 0:
            amount -= part
            refund = money.refund_key(state, plan.key, step.cycle)
            draft.record(Refunded(key=refund, amount=part, reason=reason, step=plan.key, cycle=step.cycle))
    if amount > 0:
        draft.record(Refunded(key=money.refund_key(state), amount=amount, reason=reason))


def raise_cap(draft: Draft, signal: ProvideInput) -> Problem | None:
    """Allow the run to cost more, as somebody answered to a step that waits for it (spend_cap); or say why not.

    What fits then is ready: whoever calls this goes on with `advance`. Admission adds the difference to the hold before
    it writes the decision (P8).
    """
    state = draft.state
    price = state.plan_of(signal.step).price if state.billing == "pay_as_you_go" else money.owed(state)
    least = max(state.cap, net(state) + price)
    if signal.cap is None or signal.cap < least:
        given = "is absent" if signal.cap is None else f"is {signal.cap}"
        wanted = f"send at least {least}; {state.blockers[signal.step].details['needed']} lets everything begin that waits for it"
        return _refused("/payload/cap", given, wanted)
    draft.raise_hold(signal.cap - state.held)
    draft.record(CapRaised(command_id=signal.command_id, actor=signal.actor, cap=signal.cap, held=signal.cap))
    return None


def net(state: RunState) -> int:
    """What the run has cost so far."""
    return state.charged - state.refunded


def _charge_step(draft: Draft, position: int, amount: int) -> None:
    state = draft.state
    step, cycle = state.plan.steps[position].key, state.steps[position].cycle + 1
    draft.record(Charged(key=money.charge_key(state, step, cycle), amount=amount, step=step, cycle=cycle))


def _of_prepaid(draft: Draft, positions: Sequence[int]) -> list[int]:
    """All of them are paid, but for steps of an expansion that did not fit under the cap: these wait for a larger one."""
    state = draft.state
    owed = money.owed(state)
    added = [
        position for position in positions if owed > 0 and state.plan.steps[position].price_key is not None
    ]
    if not added:
        return list(positions)
    if owed <= money.room(state):
        _charge_step(draft, added[0], owed)
        return list(positions)
    beyond = [position for position in added if state.plan.steps[position].price > 0]
    for start in range(0, len(beyond), STEPS_PER_EVENT_MAX):
        keys = tuple(
            state.plan.steps[position].key for position in beyond[start : start + STEPS_PER_EVENT_MAX]
        )
        needed = net(state) + owed
        draft.record(
            SpendCapReached(steps=keys, net=net(state), cap=min(state.cap, state.held), needed=needed)
        )
    return [position for position in positions if position not in set(beyond)]


def _cap_reached(state: RunState, beyond: Iterable[int]) -> SpendCapReached:
    keys = tuple(state.plan.steps[position].key for position in beyond)
    waiting = [key for key, blocker in state.blockers.items() if blocker.type == "spend_cap"]
    prices = sum(state.plan_of(key).price for key in {*waiting, *keys})
    return SpendCapReached(
        steps=keys, net=net(state), cap=min(state.cap, state.held), needed=net(state) + prices
    )


def _refused(pointer: str, message: str, remedy: str) -> Problem:
    return problem(
        "invalid-command", f"The cap cannot be raised: {message}.", ProblemError(pointer, message, remedy)
    )
