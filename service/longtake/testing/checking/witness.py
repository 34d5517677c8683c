"""The witness: what a provider wrote down of every request before it answered, on its own disk."""

from pathlib import Path

import msgspec

from longtake.testing.checking.history import WITNESS_PREFIX, HistoryUnreadable


class WitnessLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One request as the provider saw it."""

    t: float
    """Seconds of the machine's monotonic clock."""
    key: str
    """Idempotency key: the provider token of one attempt."""
    kind: str
    """submit, poll, cancel, find, callback, ..."""
    charged: bool = False
    """This very request was charged for; the repeat of a known key is not."""
    credits: int = 0
    job: str = ""


_decoder = msgspec.json.Decoder(WitnessLine)


def read_witness(path: Path) -> list[WitnessLine]:
    """All lines of a witness, or of those in a directory; the last may be torn, no file is no line.

    Raises HistoryUnreadable for any other that is none.
    """
    if path.is_dir():
        return sorted(
            (line for file in path.glob(f"{WITNESS_PREFIX}*.jsonl") for line in read_witness(file)),
            key=lambda line: line.t,
        )
    lines = [line for line in path.read_bytes().split(b"\n") if line] if path.exists() else []
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(_decoder.decode(line))
        except msgspec.MsgspecError as error:
            if number < len(lines):
                raise HistoryUnreadable(f"{path}:{number}: {error}") from error
    return found
