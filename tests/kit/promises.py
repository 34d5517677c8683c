"""The mark that ties a test to the mission items it proves.

`make mission` collects these marks and prints which items have none.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

T = TypeVar("T", bound=Callable[..., Any])

PROMISES_PER_TEST_MAX = 3


def promise(*ids: str) -> Callable[[T], T]:
    """Mark a test as the proof of one to three mission items, for example `@promise("G31")`."""
    if not 1 <= len(ids) <= PROMISES_PER_TEST_MAX:
        raise ValueError(f"a test proves 1 to {PROMISES_PER_TEST_MAX} mission items, not {len(ids)}: {ids}")
    return pytest.mark.promise(*ids)
