"""What an activity says is checked before it is kept: small, plain, typed, or a failure with its reason."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kit.promises import promise
from longtake import Activity, Artifact, Outcome, Submitted, Succeeded
from longtake.contracts.effects import ClaimedEffect
from longtake.contracts.outcomes import OUTCOME_BYTES_MAX, RETRYABLE, Failed, Throttled, Unknown
from longtake.errors import LeaseLost
from longtake.worker.executor import Executor, checked
from longtake.worker.leases import Trust

DIGEST = "0" * 64


def result_of(size: int) -> Succeeded:
    """A success whose encoded form has exactly this many bytes."""
    empty = len(msgspec.json.encode(Succeeded(result={"text": ""})))
    return Succeeded(result={"text": "x" * (size - empty)})


@promise("T40")
def test_a_result_up_to_the_limit_is_kept_and_one_byte_more_is_a_failure_that_names_the_way_out() -> None:
    kept, encoded = checked(result_of(OUTCOME_BYTES_MAX))
    refused, _ = checked(result_of(OUTCOME_BYTES_MAX + 1))

    assert (OUTCOME_BYTES_MAX, Succeeded) == (len(encoded), type(kept))
    assert isinstance(refused, Failed)
    assert "store an artifact" in refused.message and str(OUTCOME_BYTES_MAX) in refused.message


CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE


@pytest.mark.parametrize(
    "value",
    [1.5, float("nan"), float("inf"), object(), CYCLE],
    ids=["1.5", "nan", "inf", "object", "cycle"],
)
@promise("T40", "W30")
def test_a_result_that_could_not_be_repeated_exactly_is_a_failure_that_no_other_try_cures(value: Any) -> None:
    refused, encoded = checked(Succeeded(result={"value": value}))

    assert isinstance(refused, Failed)
    assert refused.error_class not in RETRYABLE
    assert "plain JSON" in refused.message
    assert b"failed" in encoded


@promise("T40")
def test_a_large_result_travels_as_a_reference_of_a_few_bytes() -> None:
    film = Artifact(
        name="film",
        kind="film",
        object_key=f"sha256/{DIGEST}",
        sha256=DIGEST,
        bytes=10**12,
        content_type="video/mp4",
    )

    assert len(checked(Succeeded(artifacts=(film,)))[1]) < 400


@pytest.mark.parametrize(
    "outcome", [Failed(error_class="transient", message="a\0b"), Unknown(evidence="a\0b")]
)
def test_words_that_no_column_can_hold_are_made_legible(outcome: Any) -> None:
    kept, encoded = checked(outcome)

    assert "a\ufffdb" == getattr(kept, "message", None) or "a\ufffdb" == getattr(kept, "evidence", None)
    assert b"\\u0000" not in encoded


class Store:
    """An effect store that only opens calls, and keeps the order of what happened."""

    def __init__(self, *, opens: bool = True) -> None:
        self.opens = opens
        self.order: list[str] = []

    async def open_call(self, *, effect_id: uuid.UUID, fence: int) -> bool:
        self.order.append("opened")
        return self.opens


class Told(Activity):
    """Says or raises what the test wants."""

    name = "told@2"

    def __init__(self, store: Store, outcome: Outcome | BaseException) -> None:
        self.store = store
        self.outcome = outcome

    async def execute(self, call: Any) -> Outcome:
        self.store.order.append("called")
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    poll = reconcile = cancel = execute


def effect(kind: Any = "execute") -> ClaimedEffect:
    return ClaimedEffect(
        id=uuid.UUID(int=1), tenant="t", run_id=uuid.UUID(int=2), step="a", attempt=3, kind=kind, activity="told@2",
        pool="default", input=b"{}", fence=7, lease_seconds=30, traceparent=None, external_ref=None, call_opened_before=False,
    )  # fmt: skip


async def execute(
    store: Store,
    outcome: Outcome | BaseException,
    kind: Any = "execute",
    *,
    trusted: Callable[[], bool] = lambda: True,
) -> Outcome:
    executor = Executor(
        store,  # type: ignore[arg-type]  # the part of an EffectStore that an executor uses
        {"told@2": Told(store, outcome)},
        artifacts=None,  # type: ignore[arg-type]  # no call of this test touches files
        callback_url=lambda effect, provider: "",
    )
    claimed = effect(kind)
    return (await executor.run(claimed, executor.call_of(claimed), trusted=trusted)).outcome


@promise("T38", "H30")
async def test_the_door_is_marked_open_before_the_call_and_a_lost_lease_keeps_it_shut() -> None:
    store = Store()
    await execute(store, Submitted(external_ref="j"))
    assert ["opened", "called"] == store.order

    shut = Store(opens=False)
    with pytest.raises(LeaseLost):
        await execute(shut, Succeeded())
    assert ["opened"] == shut.order


@pytest.mark.parametrize("kind", ["execute", "compensate", "poll", "reconcile", "cancel"])
async def test_nothing_leaves_once_the_lease_is_not_surely_ours(kind: Any) -> None:
    """F47, F49: by this process's own clock, after the door was opened as well; then the work is put back."""
    now = [100.0]
    trust = Trust(30, since=now[0], clock=lambda: now[0])
    sure, late = Store(), Store()
    now[0] += 26.9
    await execute(sure, Succeeded(), kind, trusted=lambda: trust.holds)
    now[0] += 0.2
    unsent = await execute(late, Succeeded(), kind, trusted=lambda: trust.holds)

    assert "called" in sure.order
    assert "called" not in late.order
    assert unsent == Throttled(retry_after_seconds=0, scope="lease")


@promise("W49")
async def test_what_code_raises_becomes_data_unknown_after_the_door_opened_and_transient_before() -> None:
    after = await execute(Store(), ValueError("boom"))
    before = await execute(Store(), ValueError("boom"), "poll")

    assert isinstance(after, Unknown) and "ValueError: boom" in after.evidence
    assert isinstance(before, Failed) and ("transient", "infrastructure") == (
        before.error_class,
        before.origin,
    )


async def test_a_cancelled_call_stays_cancelled() -> None:
    """A stop of the process is no outcome of the work."""
    with pytest.raises(asyncio.CancelledError):
        await execute(Store(), asyncio.CancelledError())
