"""The zombie's application on a longtake that trusts a lease for ever: what its test must notice."""

from kit.bench.zombie import app
from longtake.worker.leases import Trust

__all__ = ["app"]


Trust.holds = property(lambda self: True)  # type: ignore[assignment,method-assign]
