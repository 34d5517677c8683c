"""What must hold in every state of a small world, and at its ends (reliability.md 4.5).

Rows are judged in every state, a history once: whenever a state shows a head that nobody has seen. A history is judged
by its events alone, and held against its fold, its projection and its ledger.
Leaves to others: what can be seen at the act itself, such as a fence that does not rise (exhaustive_machine.py, _moves.py).
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from longtake.contracts.signals import CancelRun, PauseRun, ProvideInput, ResumeRun, RetryRun, Signal
from longtake.contracts.summary import Action
from longtake.contracts.upcasters import decode_event
from longtake.engine.audit import Audit
from longtake.engine.deciding import LiveRun
from longtake.errors import BrokenChain
from longtake.memory.tables import EventRow
from longtake.testing.exhaustive_machine import ACCOUNT, FUNDED, TENANT, Broken, Machine
from longtake.testing.exhaustive_state import Node
from longtake.testing.resting import PATIENT, TERMINAL, finish
from longtake.workflow.actions import available_actions
from longtake.workflow.reducer import decide
from longtake.workflow.run_state import RunState
from longtake.workflow.state import dump

TIMES = ("_at", "_until", "until", "paused_for")
"""Ends of the names of what is a moment."""
COUNTED = frozenset({"revision", "since", "updated_seq", "command_id", "run_id", "fingerprint"})
"""Numbers and names that nothing but comparison is made of, or that are the same everywhere."""
LIVE = frozenset({"execute", "poll", "reconcile"})


class _Head(msgspec.Struct, frozen=True):
    """What is known of one history."""

    form: bytes
    offered: tuple[tuple[int, frozenset[Action]], ...]
    """After each commit: revision, and what was offered."""


class Laws:
    """Judges states of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._audit = Audit(machine.audits)
        self._heads: dict[bytes, _Head] = {}
        self._probed: set[bytes] = set()

    @property
    def histories(self) -> int:
        """How many histories were judged."""
        return len(self._heads)

    def run_form(self, node: Node) -> bytes:
        """What is the same of equal run states."""
        return self._heads[node.tables.runs[self._machine.run_id].head_hash].form

    def judge(self, node: Node, before: Node | None) -> None:
        """Judge a state. Raises Broken."""
        run_id = self._machine.run_id
        head = node.tables.runs[run_id].head_hash
        if head not in self._heads:
            offered: tuple[tuple[int, frozenset[Action]], ...] = ()
            if before is not None:
                offered = self._heads[before.tables.runs[run_id].head_hash].offered
            self._heads[head] = self._judge_history(node, offered)
        self._judge_rows(node)

    # --- rows -----------------------------------------------------------------------------------------------------------

    def _judge_rows(self, node: Node) -> None:
        tables = node.tables
        live: dict[str, int] = {}
        busy: set[str] = set()
        for row in node.effects():
            if row.kind in LIVE and row.receipt is None:
                live[row.step] = live.get(row.step, 0) + 1
                busy.add(row.step)
        for step, count in live.items():
            if count > 1:
                raise Broken("I16", f"{count} effects of {step} are under way at once")
        if len(busy) > self._machine.setting.plan.max_parallel:
            raise Broken("I19", f"{sorted(busy)} are under way at once")
        for name in node.given:
            command = tables.commands.get((TENANT, self._machine.principal.actor, name))
            if command is None or command.receipt is None or command.status == "accepted":
                raise Broken("I8", f"the command {name} was answered and is not kept with its answer")
        for held in node.workers:
            if held is not None and held.effect.id not in tables.effects:
                raise Broken("I13", f"{held.effect.step} is worked on without a committed effect")

    # --- histories ------------------------------------------------------------------------------------------------------

    def _judge_history(self, node: Node, offered: tuple[tuple[int, frozenset[Action]], ...]) -> _Head:
        machine = self._machine
        run = machine.live(node)
        run_id, state = machine.run_id, run.state
        try:
            finish(self._audit.verify(run_id))
            differences = finish(self._audit.prove(run_id, TENANT))
        except BrokenChain as error:
            raise Broken("I1", str(error)) from error
        if differences:
            first = differences[0]
            raise Broken("I6", f"{first.place} is {first.stored[:200]} and folds to {first.folded[:200]}")
        rows = node.tables.events[run_id]
        _History(state, rows).judge()
        self._judge_money(node, run)
        here = (state.revision, frozenset(available_actions(state)))
        form = form_of(state)
        if form not in self._probed:
            self._probed.add(form)
            self._judge_offers(node, run, (*offered, here))
        return _Head(form, (*offered, here))

    def _judge_money(self, node: Node, run: LiveRun) -> None:
        tables, state = node.tables, run.state
        events = tables.events[self._machine.run_id]
        for entry in tables.ledger.values():
            if entry.tx_id != events[entry.seq - 1].tx_id:
                raise Broken("I23", f"{entry.key} was not written with its event")
            if entry.kind == "charge":
                begun = [
                    row
                    for row in tables.effects.values()
                    if row.tx_id == entry.tx_id and row.kind == "execute" and entry.step in (None, row.step)
                ]
                if not begun:
                    raise Broken("P9", f"{entry.key} was taken and no work was handed out with it")
        hold = tables.holds.get(self._machine.run_id)
        if hold is not None and state.terminal != (hold.released_at is not None):
            raise Broken("P8", f"the run is {state.ended} and its hold was released at {hold.released_at}")
        account = tables.accounts[TENANT, ACCOUNT]
        spent = state.charged - state.refunded if state.terminal else 0
        held = 0 if hold is None or state.terminal else hold.amount
        if (account.balance, account.held) != (FUNDED - spent, held):
            raise Broken("I21", f"the account has {account.balance}, {account.held} held; {spent} were spent")
        if state.ended == "failed" and state.billing == "prepaid" and state.charged != state.refunded:
            raise Broken("I24", f"the run has failed and still costs {state.charged - state.refunded}")

    # --- offers ---------------------------------------------------------------------------------------------------------

    def _judge_offers(
        self, node: Node, run: LiveRun, offered: tuple[tuple[int, frozenset[Action]], ...]
    ) -> None:
        """What is offered is taken, what is not is refused; a stale command is never taken (P3, I11)."""
        revision, actions = offered[-1]
        oldest = offered[0][0]
        for action, make in _signals(run.state).items():
            for asked in {revision, oldest, revision + 1}:
                now = node.clock if run.clock is None else max(run.clock, node.clock)
                decision = decide(run.state, make(asked), now)
                taken = decision.refusal is None and decision.ignored is None
                always = all(action in there for seen, there in offered if seen >= asked)
                if taken and (not always or asked > revision):
                    raise Broken(
                        "I11", f"{action} seen at {asked} of {revision} is taken, offered {sorted(actions)}"
                    )
                if not taken and asked == revision and action in actions:
                    raise Broken(
                        "P3", f"{action} is offered and refused: {decision.refusal or decision.ignored}"
                    )
                if not taken and asked <= revision and always and action == "cancel_generation":
                    raise Broken(
                        "P3", f"cancel was offered all the time since {asked} and is refused at {revision}"
                    )
                if decision.events:
                    run = self._machine.live(node)


def form_of(state: RunState) -> bytes:
    """What a state is when clocks and counters are taken away."""
    plain = msgspec.json.decode(dump(state))
    return msgspec.json.encode(_bare(plain))


def _bare(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: (item is not None if key.endswith(TIMES) else _bare(item))
                for key, item in sorted(value.items())
                if key not in COUNTED
            }
        case list():
            return [_bare(item) for item in value]
        case _:
            return value


def _signals(state: RunState) -> dict[Action, Callable[[int], Signal]]:
    common: Any = {"command_id": "probe", "actor": "ann"}
    asks: dict[Action, Callable[[int], Signal]] = {
        "cancel_generation": lambda seen: CancelRun(**common, expected_revision=seen),
        "retry_generation": lambda seen: RetryRun(**common, expected_revision=seen, accept_double_cost=True),
        "pause_generation": lambda seen: PauseRun(**common, expected_revision=seen),
        "resume_generation": lambda seen: ResumeRun(**common, expected_revision=seen),
    }
    if "approve" in state.plan.position:
        asks["provide_generation_input"] = lambda seen: ProvideInput(
            **common, expected_revision=seen, step="approve", answer={"word": "yes"}
        )
    return asks


class _History:
    """The events of one run, read by a model of their own."""

    def __init__(self, state: RunState, rows: list[EventRow]) -> None:
        self._state = state
        self._rows = rows
        self._attempt: dict[str, int] = {}
        self._ended: dict[str, str] = {}
        self._settled: set[tuple[str, int]] = set()
        self._told: set[tuple[str, int]] = set()
        """Attempts whose truth a look-up has told, or has said that it cannot."""
        self._retries = 0
        self._charged = self._refunded = 0
        self._keys: set[str] = set()
        self._over = ""

    def judge(self) -> None:
        """Raises Broken."""
        for row in self._rows:
            event: Any = decode_event(row.type, row.version, row.data)
            if self._over:
                raise Broken("I3", f"{row.type} after {self._over}")
            match row.type:
                case "steps_scheduled":
                    for item in event.steps:
                        self._begin(item.step, item.attempt, again=item.ordinal > 1)
                case "gates_opened":
                    for gate in event.gates:
                        self._begin(gate.step, gate.attempt, again=False)
                case "step_succeeded":
                    self._settle(event.step, event.attempt)
                    self._end(event.step, "succeeded")
                case "attempt_failed":
                    self._settle(event.step, event.attempt)
                    if event.error_class == "unknown" and (event.step, event.attempt) not in self._told:
                        raise Broken(
                            "I25", f"{event.step}/{event.attempt} is given up and nobody has looked it up"
                        )
                    if event.retry_at is not None and event.next_effect_id is not None:
                        self._begin(event.step, event.attempt + 1, again=False)
                case "attempt_reconciled":
                    self._told.add((event.step, event.attempt))
                case "step_failed":
                    self._end(event.step, "failed")
                case "steps_skipped" | "steps_cancelled":
                    for step in event.steps:
                        self._end(step, row.type)
                case "retry_requested":
                    self._retries += 1
                case "charged" | "refunded":
                    self._move(row.type, event.key, event.amount)
                case "run_completed" | "run_failed" | "run_cancelled" | "run_superseded":
                    self._over = row.type
                case _:
                    pass
        if bool(self._over) != self._state.terminal:
            raise Broken("I3", f"the run is {self._state.ended} and its history ends with {self._over!r}")

    def _begin(self, step: str, attempt: int, *, again: bool) -> None:
        before = self._attempt.get(step, 0)
        if attempt != before + 1 and not (again and attempt == before):
            raise Broken("I16", f"{step} goes from attempt {before} to {attempt}")
        if step in self._ended:
            raise Broken("I19", f"{step} begins although it has {self._ended[step]}")
        plan = self._state.plan_of(step)
        most = plan.retry.max_attempts + self._state.steps[self._state.plan.position[step]].grace
        if plan.is_worked and attempt > most * (self._retries + 1):
            raise Broken("I19", f"{step} is at attempt {attempt}, {most} are allowed")
        waiting = [str(key) for key in plan.depends_on if self._ended.get(str(key)) != "succeeded"]
        if attempt == 1 and waiting:
            raise Broken("I19", f"{step} begins before {', '.join(waiting)}")
        self._attempt[step] = attempt

    def _settle(self, step: str, attempt: int) -> None:
        if (step, attempt) in self._settled:
            raise Broken("I15", f"two outcomes of {step}/{attempt} were applied")
        if attempt != self._attempt.get(step):
            raise Broken(
                "I15", f"an outcome of {step}/{attempt} was applied at attempt {self._attempt.get(step)}"
            )
        self._settled.add((step, attempt))

    def _end(self, step: str, how: str) -> None:
        if step in self._ended:
            raise Broken("I15", f"{step} has {self._ended[step]}, and then {how}")
        self._ended[step] = how

    def _move(self, kind: str, key: str, amount: int) -> None:
        if key in self._keys:
            raise Broken("I22", f"{key} was booked twice")
        self._keys.add(key)
        if kind == "charged":
            self._charged += amount
        else:
            self._refunded += amount
        if not 0 <= self._refunded <= self._charged:
            raise Broken("I20", f"charged {self._charged}, refunded {self._refunded}")
        if self._charged - self._refunded > self._state.cap:
            raise Broken("I20", f"net {self._charged - self._refunded} is above the cap {self._state.cap}")


def stuck(node: Node, machine: Machine) -> Iterator[tuple[str, str]]:
    """What is wrong with a state in which nothing goes on by itself: (invariant, message)."""
    run = node.tables.runs[machine.run_id]
    tables = node.tables
    if run.status not in TERMINAL | PATIENT:
        yield "I35", f"the run is {run.status}, and nothing happens any more"
    elif run.status in PATIENT and b'"available_actions":[]' in (run.summary or b""):
        yield "I35", f"the run is {run.status} and offers nothing"
    # Whoever waits for a person waits for nothing else: no work of another branch may lie forgotten beside it.
    for row in node.effects():
        yield "I14", f"the {row.kind} of {row.step}/{row.attempt} is {row.state}, and nobody goes on with it"
    for callback in tables.inbox.values():
        if callback.status == "pending":
            yield "I27", f"a callback of {callback.step}/{callback.attempt} was never looked at"
    if tables.timers:
        yield "I29", f"timers are armed and do not go off: {sorted(key for _, key in tables.timers)}"
    for held in node.workers:
        if held is not None:
            yield "I14", f"a worker holds {held.effect.step}/{held.effect.attempt} for ever"
