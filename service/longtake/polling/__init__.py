"""No broker at all: the transport's ports over the authority alone (G54, floor 4)."""

from longtake.polling.transport import PollingTransport

__all__ = ["PollingTransport"]
