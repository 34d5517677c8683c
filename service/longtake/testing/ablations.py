"""Defences taken away one by one: a promise must then break in some seed, or the defence is untested or unneeded (4.7).

Nothing here exists outside of experiments: a rule of the authority in memory is switched off, an object of a process is put
another in its place, or a function is patched while a world runs.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from longtake.contracts import pointers
from longtake.contracts.signals import CallbackArrived, OutcomeReported
from longtake.engine import dispatch_loop, hints, plan_check
from longtake.engine.deciding import LiveRun
from longtake.errors import TransportUnavailable
from longtake.memory import Defences
from longtake.store import Fact, RunCommit
from longtake.testing.scenario import Experiment
from longtake.testing.simulation import Result, play
from longtake.worker import executor
from longtake.workflow import actions, controlling, outcomes, reconciling, settling

Patch = tuple[Any, str, Any]


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """One defence, and how it is taken away."""

    name: str
    what: str
    experiment: Experiment
    elsewhere: str = ""
    """The test on the real service that shows the defence, for those a simulated world cannot miss."""


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an ablation."""

    ablation: Ablation
    seeds: int
    result: Result | None

    @property
    def line(self) -> str:
        """A line of the table."""
        if self.result is None:
            where = f"by {self.ablation.elsewhere}" if self.ablation.elsewhere else "by nothing"
            return f"{self.ablation.name:28} not caught in {self.seeds} seeds, {where}"
        found = self.result.violations[0]
        return f"{self.ablation.name:28} {found.invariant:7} seed {self.result.seed!s:5} {found.message.splitlines()[0][:110]}"


def hunt(ablation: Ablation, seeds: Iterator[int] | range) -> Caught:
    """Play seeds without the defence until a promise breaks."""
    count = 0
    for seed in seeds:
        count += 1
        result = play(seed, experiment=ablation.experiment)
        if result.failed:
            return Caught(ablation=ablation, seeds=count, result=result)
    return Caught(ablation=ablation, seeds=count, result=None)


@contextmanager
def _patched(*patches: Patch) -> Iterator[None]:
    before = [(thing, name, getattr(thing, name)) for thing, name, _ in patches]
    for thing, name, value in patches:
        setattr(thing, name, value)
    try:
        yield
    finally:
        for thing, name, value in before:
            setattr(thing, name, value)


def _without(**rules: bool) -> Experiment:
    return Experiment(defences=Defences(**rules))


def _with_patch(*patches: Patch) -> Experiment:
    return Experiment(patch=lambda: _patched(*patches))


def _instead(name: str, make: Callable[[Any], Any]) -> Experiment:
    return Experiment(wrap=lambda given, thing: make(thing) if given == name else thing)


# --- what stands in the place of a defence -------------------------------------------------------------------------------


class _NoSweeper:
    """A sweeper that finds nothing."""

    def __init__(self, sweeper: Any) -> None:
        self._sweeper = sweeper

    async def pass_once(self) -> bool:
        """Nothing is lost, surely."""
        return False


Decide = Callable[..., RunCommit]


def _any_attempt(inner: Decide) -> Decide:
    """Every outcome is taken for one of the current attempt."""

    def decide(run: LiveRun, facts: list[Fact], *, traceparent: str | None) -> RunCommit:
        return inner(run, [_of_now(run, fact) for fact in facts], traceparent=traceparent)

    return decide


def _of_now(run: LiveRun, fact: Fact) -> Fact:
    signal = fact.signal
    if not isinstance(signal, OutcomeReported):
        return fact
    step = run.state.step_of(signal.step)
    if step is None or step.attempt == signal.attempt or step.effect is None:
        return fact
    # Neither the number of the attempt nor the effect that is open tells it from the current one.
    run.state.open[signal.effect_id] = run.state.open.pop(step.effect)
    step.effect = signal.effect_id
    return msgspec.structs.replace(fact, signal=msgspec.structs.replace(signal, attempt=step.attempt))


def _any_callback(inner: Decide) -> Decide:
    """Every callback is taken for one of the current attempt."""

    def decide(run: LiveRun, facts: list[Fact], *, traceparent: str | None) -> RunCommit:
        taken = []
        for fact in facts:
            signal = fact.signal
            step = run.state.step_of(signal.step) if isinstance(signal, CallbackArrived) else None
            if isinstance(signal, CallbackArrived) and step is not None:
                fact = msgspec.structs.replace(
                    fact, signal=msgspec.structs.replace(signal, attempt=step.attempt)
                )
            taken.append(fact)
        return inner(run, taken, traceparent=traceparent)

    return decide


def _nothing_hastened(inner: Decide) -> Decide:
    """A callback is written down, and nobody looks any sooner."""

    def decide(run: LiveRun, facts: list[Fact], *, traceparent: str | None) -> RunCommit:
        commit = inner(run, facts, traceparent=traceparent)
        commit.expedited = []
        return commit

    return decide


def _early_forgotten(inner: Decide) -> Decide:
    """A callback that came before the answer to the submission is not remembered by it."""

    def decide(run: LiveRun, facts: list[Fact], *, traceparent: str | None) -> RunCommit:
        for fact in facts:
            if isinstance(fact.signal, OutcomeReported) and fact.signal.kind == "execute":
                step = run.state.step_of(fact.signal.step)
                if step is not None:
                    step.callback = False
        return inner(run, facts, traceparent=traceparent)

    return decide


def _always_fresh(refusal: Any) -> Any:
    def fresh(state: Any, action: Any, *, expected_revision: int, **rest: Any) -> Any:
        return refusal(state, action, expected_revision=state.revision, **rest)

    return fresh


def _no_look(look: Any) -> Any:
    """An unknown outcome is taken for a failure: the next attempt begins at once."""

    def give_up(draft: Any, key: str, evidence: str, work: Any, **_: Any) -> Any:
        failure = settling.AttemptFailure(
            error_class="unknown", origin="provider", message=evidence, retryable=True
        )
        return settling.fail(draft, key, failure, work)

    return give_up


_numbers = itertools.count()


def _any_token(*_: Any, **__: Any) -> str:
    return f"lt{next(_numbers):032x}"


def _same_id(body: bytes, *, generation: int = 0) -> str:
    """Message ids of the work, whatever the generation of its pointer."""
    plain = msgspec.json.decode(body)
    if plain.get("effects") and isinstance(plain["effects"][0], list):
        plain["effects"] = [[id_, attempt, 0] for id_, attempt, _ in plain["effects"]]
    return real_message_id(msgspec.json.encode(plain))


real_message_id = pointers.message_id


class _NoDeadLetters:
    """A store that keeps no dead letter."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def dead_letter(self, **_: Any) -> None:
        """Forget it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _no_verdict(self: Any, run: Any) -> None:
    return None


async def _settle_nothing(self: Any, readable: Any, poison: Any, unknown: Any, *, deferred: bool) -> None:
    """Poison goes back to where it came from, for ever."""
    for delivery, _ in poison:
        with suppress(TransportUnavailable):
            await delivery.nak(delay_seconds=1.0)
    await real_settle(self, readable, [], unknown, deferred=deferred)


real_settle = dispatch_loop.DispatchLoop._settle

ABLATIONS: tuple[Ablation, ...] = (
    Ablation(name="unique run, seq", what="two events of a run may have one number",
             experiment=_without(unique_run_seq=False, run_lock=False)),
    Ablation(name="run row lock", what="a decision is written onto any revision", experiment=_without(run_lock=False)),
    Ablation(name="command key", what="a command id is kept as often as it comes", experiment=_without(command_unique=False)),
    Ablation(name="body hash", what="the same id with another intent passes", experiment=_without(body_hash_kept=False)),
    Ablation(name="attempt of an outcome", what="an outcome of any attempt counts", experiment=_instead("decide", _any_attempt)),
    Ablation(name="fence in claim", what="a claim does not raise the fence", experiment=_without(claim_fence=False)),
    Ablation(name="lease expiry", what="a lease never ends", experiment=_without(lease_expiry=False)),
    Ablation(name="trust window", what="leases end although the authority was away", experiment=_without(trust_window=False),
             elsewhere="tests/integration/engine/test_working.py"),
    Ablation(name="outbox in transaction", what="effects are written after the decision",
             experiment=_without(outbox_in_transaction=False)),
    Ablation(name="generation in message id", what="a pointer that is told again looks like the first",
             experiment=_with_patch((hints, "message_id", _same_id))),
    Ablation(name="sweeper", what="nobody looks for what was lost", experiment=_instead("sweeper", _NoSweeper)),
    Ablation(name="inbox uniqueness", what="copies of a callback are kept apart", experiment=_without(inbox_unique=False)),
    Ablation(name="attach, submit side", what="a callback before the answer is forgotten",
             experiment=_instead("decide", _early_forgotten)),
    Ablation(name="attach, inbox side", what="a callback hastens nothing", experiment=_instead("decide", _nothing_hastened)),
    Ablation(name="stale callback", what="a callback of an old attempt counts", experiment=_instead("decide", _any_callback)),
    Ablation(name="revision of a command", what="a command is never stale",
             experiment=_with_patch((controlling, "refusal", _always_fresh(actions.refusal)))),
    Ablation(name="ledger key", what="an entry may be booked twice", experiment=_without(ledger_unique=False),
             elsewhere="tests/contract/store"),
    Ablation(name="refund guard", what="more may be given back than was taken", experiment=_without(refund_guard=False),
             elsewhere="tests/contract/store"),
    Ablation(name="reconcile before retry", what="an unknown outcome is tried again at once",
             experiment=_with_patch((outcomes, "look", _no_look(reconciling.look)))),
    Ablation(name="derived tokens", what="the provider is given a new token each time",
             experiment=_with_patch((executor, "provider_token_for", _any_token))),
    Ablation(name="epoch in fences", what="a restored store counts fences on from its past",
             experiment=_without(fence_floor=False)),
    Ablation(name="quarantine", what="what names nothing is settled and forgotten", experiment=_instead("sweep", _NoDeadLetters)),
    Ablation(name="plan check", what="code that plans otherwise goes on",
             experiment=_with_patch((plan_check.PlanCheck, "drift_of", _no_verdict))),
    Ablation(name="poison cut-off", what="an unreadable message comes back for ever",
             experiment=_with_patch((dispatch_loop.DispatchLoop, "_settle", _settle_nothing))),
)  # fmt: skip
"""The list of reliability.md 4.7, in its order."""

MORE: tuple[Ablation, ...] = (
    Ablation(name="torn check", what="a decision ends what was answered meanwhile", experiment=_without(torn_check=False)),
    Ablation(name="first receipt stands", what="a later receipt takes the place of the first",
             experiment=_without(stored_receipt_first_wins=False)),
    Ablation(name="receipt, any fence", what="only the last holder may report", experiment=_without(receipt_whatever_fence=False)),
    Ablation(name="late receipt", what="a receipt for what was given up is not looked at",
             experiment=_without(late_receipt_reopens=False)),
    Ablation(name="claim of queued only", what="what is leased may be claimed", experiment=_without(claim_state=False)),
    Ablation(name="call needs lease", what="a call is opened after the lease", experiment=_without(call_needs_lease=False)),
    Ablation(name="opened call asks", what="a lease lost in a call is a retry", experiment=_without(call_opened_asks=False)),
    Ablation(name="scope has one holder", what="a scope may be held twice", experiment=_without(scopes_unique=False, project_lock=False)),
    Ablation(name="account covered", what="an account promises more than it has", experiment=_without(account_covered=False)),
    Ablation(name="plan checked at claim", what="unchecked plans are executed", experiment=_without(plan_checked=False)),
)  # fmt: skip
"""Defences beyond that list."""


__all__ = ["ABLATIONS", "MORE", "Ablation", "Caught", "hunt"]
