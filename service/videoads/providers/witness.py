"""Reads the synthetic providers' witness file and judges it: who was asked for what, how often, at what cost.

The witness is written outside the system under test; every claim "was called once", "was paid once" is
checked against it. Writing it is the providers' part.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import msgspec

RequestKind = Literal["create", "poll", "look_up", "fetch", "cancel", "upload"]


class WitnessLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request as the provider saw it, on disk before the answer left."""

    time: str
    provider: str
    request: RequestKind
    token: str
    body_sha256: str
    accepted: bool
    cost: int
    job: str | None
    open_jobs: int
    note: str = ""


class WitnessVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The witness in numbers."""

    requests: int
    creates: int
    accepted: int
    cost: int
    open_jobs_max: dict[str, int]
    accepted_by_token: dict[str, int]
    repeated: dict[str, int]


def read_witness(path: Path) -> list[WitnessLine]:
    """All whole lines. A last line without a line end was never acknowledged, so its request had no answer."""
    if not path.exists():
        return []
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    return [msgspec.json.decode(line, type=WitnessLine) for line in whole.splitlines()]


def accepted_creates(lines: Iterable[WitnessLine]) -> Counter[str]:
    """How many jobs were made for each token, over all providers."""
    return Counter(line.token for line in lines if line.request == "create" and line.accepted)


def total_cost(lines: Iterable[WitnessLine]) -> int:
    """What the accepted jobs cost together."""
    return sum(line.cost for line in lines if line.request == "create" and line.accepted)


def judge(
    lines: Iterable[WitnessLine], group_of: Callable[[str], str] = lambda token: token
) -> WitnessVerdict:
    """Count, and name the groups (by default: tokens) for which more than one job was made."""
    seen = list(lines)
    by_token = accepted_creates(seen)
    by_group: Counter[str] = Counter()
    for token, count in by_token.items():
        by_group[group_of(token)] += count
    open_max: dict[str, int] = {}
    for line in seen:
        open_max[line.provider] = max(open_max.get(line.provider, 0), line.open_jobs)
    return WitnessVerdict(
        requests=len(seen),
        creates=sum(line.request == "create" for line in seen),
        accepted=by_token.total(),
        cost=total_cost(seen),
        open_jobs_max=open_max,
        accepted_by_token=dict(by_token),
        repeated={group: count for group, count in by_group.items() if count > 1},
    )
