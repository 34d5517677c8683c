"""The application of the stops on a longtake whose workers give nothing back when they stop: what the stops must notice."""

from typing import Any

from kit.bench.stopping import app
from longtake.postgres.effects import PostgresEffectStore

__all__ = ["app"]


async def _keep(self: PostgresEffectStore, **_said: Any) -> None:
    """Release nothing."""


PostgresEffectStore.release = _keep  # type: ignore[method-assign]
