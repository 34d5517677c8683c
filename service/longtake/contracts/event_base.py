"""The ground all events stand on.

Each type is a frozen struct with a version; stored data are its fields as exact JSON bytes. Changing a shape means a new
version and an upcaster (upcasters.py).
"""

import uuid
from datetime import datetime
from typing import ClassVar

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Common ground of all events: a wire type and a version."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1


class Work(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who did the work an outcome speaks of, so that pruning effects costs the auditor nothing (P25)."""

    effect_id: uuid.UUID
    owner: str | None = None
    fence: int | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
