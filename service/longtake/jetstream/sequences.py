"""The highest sequence known of each stream: a stream that is behind it has lost what it had acknowledged.

A server that lost its power comes back with its files as they were at the last sync: the stream has its name, its birth and
its subjects, but the end of it is gone, and the numbers of the lost messages are given to others (F04). Two
things tell: the stream's own last sequence is lower than one we saw, or, when others have filled it up meanwhile, a
new message is stored under a number that was taken before the link was lost.

Within one link the answers of a stream come in the order of their sequences, so only marks of earlier links are compared.
A mark lives in this process; after a power loss that took the processes too, all are new, and what the dead ones published
is published again for that reason (P12).
"""


class Sequences:
    """What one process has seen of the streams it publishes into and looks at."""

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}
        self._of_this_link: dict[str, int] = {}
        self._behind: set[str] = set()

    def stored(self, stream: str, sequence: int) -> bool:
        """A message of ours was stored, not as a duplicate; True when its number had been given away before."""
        if sequence > self._of_this_link.get(stream, 0):
            self._of_this_link[stream] = sequence
        if sequence > self._marks.get(stream, 0) or stream in self._behind:
            return False
        self._behind.add(stream)
        return True

    def link_lost(self) -> None:
        """What was acknowledged up to now must be there after the next link."""
        for stream, sequence in self._of_this_link.items():
            self._marks[stream] = max(sequence, self._marks.get(stream, 0))
        self._of_this_link.clear()

    def highest(self, stream: str) -> int:
        """The mark of the stream, to be asked for before a look at it begins."""
        return max(self._marks.get(stream, 0), self._of_this_link.get(stream, 0))

    def looked(self, stream: str, last_sequence: int, *, expected: int) -> None:
        """A look found this last sequence; `expected` is what was `highest` when the look began."""
        if last_sequence < expected:
            self._behind.add(stream)
        elif last_sequence > self._of_this_link.get(stream, 0):
            self._of_this_link[stream] = last_sequence

    @property
    def behind(self) -> tuple[str, ...]:
        """Streams that have lost something, until `forget`."""
        return tuple(sorted(self._behind))

    def forget(self, *streams: str) -> None:
        """These were made anew, or their loss is known to the store: count from what comes."""
        for stream in streams:
            self._marks.pop(stream, None)
            self._of_this_link.pop(stream, None)
            self._behind.discard(stream)
