"""Seeds that once failed, kept as files and replayed for ever (reliability.md 4.6)."""

from pathlib import Path

import msgspec

from longtake.testing.faults import Profile
from longtake.testing.simulation import Result


class KeptSeed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failing seed, as small as it was made."""

    seed: int | str
    profile: Profile
    invariant: str
    """The promise it broke."""
    message: str
    cured_by: str = ""
    """What was wrong, once that is known."""


def keep(result: Result, folder: Path) -> Path:
    """Write a failing seed into the folder of kept ones; returns the file."""
    violation = result.violations[0]
    kept = KeptSeed(
        seed=result.seed,
        profile=result.profile,
        invariant=violation.invariant,
        message=violation.message[:400],
    )
    path = folder / f"{violation.invariant.lower()}-{result.seed}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    return path


def read_kept(folder: Path) -> list[tuple[Path, KeptSeed]]:
    """All kept seeds, by name of their file."""
    return [
        (path, msgspec.json.decode(path.read_bytes(), type=KeptSeed))
        for path in sorted(folder.glob("*.json"))
    ]
