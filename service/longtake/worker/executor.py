"""The executor: one claimed effect becomes one outcome.

find the activity -> open the call -> run it -> check what it says. Nothing here decides what comes next.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from longtake.contracts.codec import canonical
from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.ids import provider_token_for
from longtake.contracts.outcomes import (
    OUTCOME_BYTES_MAX,
    Failed,
    Impossible,
    NotFound,
    Outcome,
    Submitted,
    Succeeded,
    Throttled,
    Unknown,
)
from longtake.crash_points import reach, reach_unanswered
from longtake.errors import LeaseLost, UncanonicalValue
from longtake.store import EffectStore
from longtake.telemetry.attributes import (
    ATTEMPT,
    EFFECT_ID,
    EFFECT_KIND,
    OUTCOME,
    RUN_ID,
    SPAN_EFFECT_EXECUTE,
    STEP,
)
from longtake.telemetry.tracing import span
from longtake.worker.activity import Activity, ArtifactStore, Call
from longtake.worker.fragments import Expander, with_fragment
from longtake.worker.leases import LeaseProfile

log = structlog.get_logger("longtake.worker")

_outcomes = msgspec.json.Encoder()


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome with its bytes and trace."""

    outcome: Outcome
    encoded: bytes
    traceparent: str | None


class Executor:
    """Runs claimed effects of one application."""

    def __init__(
        self,
        store: EffectStore,
        activities: Mapping[str, Activity],
        artifacts: ArtifactStore,
        callback_url: Callable[[ClaimedEffect, str], str],
        *,
        expanders: Mapping[str, Expander] | None = None,
    ) -> None:
        """`expanders`: what makes a fragment of the result of an activity, by its versioned name."""
        self._store = store
        self._activities = activities
        self._artifacts = artifacts
        self._callback_url = callback_url
        self._expanders = expanders or {}

    def knows(self, activity: str) -> bool:
        """Whether this worker has the activity."""
        return activity in self._activities

    def lease_profile(self, activity: str) -> LeaseProfile:
        """The lease that an activity asks for."""
        return self._activities[activity].lease

    def call_of(self, effect: ClaimedEffect) -> Call:
        """What the activity is given."""
        return Call(
            run_id=effect.run_id,
            step=effect.step,
            attempt=effect.attempt,
            kind=effect.kind,
            input=msgspec.json.decode(effect.input),
            token=_token_of(effect),
            external_ref=effect.external_ref,
            artifacts=self._artifacts,
            traceparent=effect.traceparent,
            callback_url=lambda provider: self._callback_url(effect, provider),
        )

    async def run(
        self, effect: ClaimedEffect, call: Call, *, trusted: Callable[[], bool] = lambda: True
    ) -> Finished:
        """Execute. Raises LeaseLost when the call may not be opened any more, AuthorityUnavailable when nobody knows.

        `trusted`: whether the lease is surely ours. When it is not, no request of any kind leaves (F49): the outcome is
        that nothing was taken, and putting it back asks the authority, by the fence.
        """
        activity = self._activities[effect.activity]
        with span(
            SPAN_EFFECT_EXECUTE,
            kind="consumer",
            parent=effect.traceparent,
            attributes={
                RUN_ID: str(effect.run_id),
                STEP: effect.step,
                ATTEMPT: effect.attempt,
                EFFECT_ID: str(effect.id),
                EFFECT_KIND: effect.kind,
            },
        ) as hop:
            reach("acked.before_provider")
            if effect.asks != "no" and not trusted():
                return _unsent(hop.traceparent)
            if (known := await known_outside(effect, activity, call)) is not None:
                outcome, encoded = checked(known)
                hop.set(OUTCOME, str(type(outcome).__struct_config__.tag))
                return Finished(outcome=outcome, encoded=encoded, traceparent=hop.traceparent)
            opened = effect.kind in ("execute", "compensate") and activity.calls_out
            if opened and not await self._store.open_call(effect_id=effect.id, fence=effect.fence):
                raise LeaseLost(effect.id, effect.fence)
            call.traceparent = hop.traceparent
            # Also after the door was opened: this process may have stood still since, and another have begun.
            if not trusted():
                return _unsent(hop.traceparent)
            try:
                outcome = await reach_unanswered("provider_in_flight", _invoke(activity, call), patient=True)
                reach("provider_ok.before_receipt")
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever an author's code raises is an outcome, not our end
                outcome = _raised(error, opened=opened)
                log.warning(
                    "longtake.activity_raised",
                    activity=effect.activity,
                    step=effect.step,
                    attempt=effect.attempt,
                    error=f"{type(error).__name__}: {error}",
                )
            outcome = with_fragment(outcome, self._expanders.get(effect.activity))
            outcome, encoded = checked(outcome)
            hop.set(OUTCOME, str(type(outcome).__struct_config__.tag))
            return Finished(outcome=outcome, encoded=encoded, traceparent=hop.traceparent)


def _unsent(traceparent: str | None) -> Finished:
    outcome, encoded = checked(Throttled(retry_after_seconds=0, scope="lease"))
    return Finished(outcome=outcome, encoded=encoded, traceparent=traceparent)


def _token_of(effect: ClaimedEffect) -> str:
    if effect.kind == "compensate":
        # Undoing is asked under one name however often, and never under that of what is undone.
        return provider_token_for(effect.run_id, step=f"{effect.step}#undo", attempt=1)
    return provider_token_for(effect.run_id, step=effect.step, attempt=effect.attempt)


async def known_outside(effect: ClaimedEffect, activity: Activity, call: Call) -> Outcome | None:
    """After a restore: what the provider knows of a call that this store may have forgotten; None: it may be made (F70).

    The attempt's token is derived, so it is the one of the lost past. What the look-up cannot tell is an open truth, and
    goes the way of every other: it is looked up again later, and in the end the step's policy decides.
    """
    if effect.asks == "no" or effect.kind != "execute" or not (activity.calls_out and activity.paid):
        return None
    try:
        outcome = await activity.reconcile(call)
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever an author's look-up raises, nothing was learned
        return Unknown(
            evidence=f"asked after a restore, the look-up raised {type(error).__name__}: {error}"[:500]
        )
    match outcome:
        case NotFound():
            return None
        case Succeeded() | Submitted():
            return outcome
        case Failed(adopted=True):
            return outcome
        case Impossible() if effect.asks == "new":
            # Begun after the restore, most likely for the first time; nobody could tell, today as on any other day.
            return None
        case _:
            told = getattr(outcome, "evidence", None) or getattr(outcome, "message", "")
            return Unknown(evidence=f"asked after a restore, the look-up could not tell: {told}"[:500])


def checked(outcome: Outcome) -> tuple[Outcome, bytes]:
    """Refuse results that could not be replayed or referred to: floats, cycles, too many bytes (W29, W30)."""
    if isinstance(outcome, Succeeded):
        try:
            canonical(outcome.result)
        except (UncanonicalValue, TypeError, RecursionError) as error:
            return _unfit(f"the result is not plain JSON: {error}")
    outcome = _legible(outcome)
    encoded = _outcomes.encode(outcome)
    if len(encoded) > OUTCOME_BYTES_MAX:
        return _unfit(
            f"the outcome has {len(encoded)} bytes, at most {OUTCOME_BYTES_MAX} are kept: store an artifact"
        )
    return outcome, encoded


def _legible(outcome: Outcome) -> Outcome:
    """Take NUL out of the words of an outcome: text that people read is kept in columns that cannot hold it."""
    for name in ("message", "evidence"):
        words = getattr(outcome, name, "")
        if "\0" in words:
            outcome = msgspec.structs.replace(
                outcome, **{name: words.replace("\0", "\N{REPLACEMENT CHARACTER}")}
            )
    return outcome


async def _invoke(activity: Activity, call: Call) -> Outcome:
    match call.kind:
        case "execute" | "compensate":
            # What undoes a step is an activity of its own.
            return await activity.execute(call)
        case "poll":
            return await activity.poll(call)
        case "reconcile":
            return await activity.reconcile(call)
        case "cancel":
            return await activity.cancel(call)


def _raised(error: Exception, *, opened: bool) -> Outcome:
    evidence = f"{type(error).__name__}: {error}"[:500]
    if opened:
        return Unknown(evidence=f"the activity raised after its call was opened: {evidence}")
    return Failed(error_class="transient", origin="infrastructure", message=evidence)


def _unfit(message: str) -> tuple[Outcome, bytes]:
    failed = Failed(error_class="unknown", origin="infrastructure", message=message)
    return failed, _outcomes.encode(failed)
