"""When the next try is due: growing delays with a jitter that is derived, never drawn (design.md 2.4).

Leaves to others: whether there is a next try (settling.py).
"""

import hashlib
import uuid
from datetime import datetime, timedelta

from longtake.workflow.step import Retry

LOOK_UP = Retry(max_attempts=5, first_delay_ms=2000, factor=2, delay_ms_max=60_000)
"""How look-ups and lost polls are spaced."""


def delay_ms(retry: Retry, *, tries: int, run_id: uuid.UUID, step: str, attempt: int) -> int:
    """Milliseconds to wait after `tries` failed tries: between half of the grown delay and all of it."""
    grown = retry.first_delay_ms
    for _ in range(tries - 1):
        grown *= retry.factor
        if grown >= retry.delay_ms_max:
            break
    grown = min(grown, retry.delay_ms_max)
    # The same run, step and attempt always draw the same number: a decision taken twice is one decision.
    drawn = int.from_bytes(hashlib.sha256(f"jitter|{run_id}|{step}|{attempt}".encode()).digest()[:4], "big")
    half = grown // 2
    return half + ((grown - half) * drawn >> 32)


def retry_time(
    retry: Retry,
    *,
    tries: int,
    run_id: uuid.UUID,
    step: str,
    attempt: int,
    now: datetime,
    retry_after_seconds: int | None = None,
) -> datetime:
    """When the next try is due; never before the provider said it would answer again."""
    delay = delay_ms(retry, tries=tries, run_id=run_id, step=step, attempt=attempt)
    return now + timedelta(milliseconds=max(delay, 1000 * (retry_after_seconds or 0)))
