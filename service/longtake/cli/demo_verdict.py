"""What is left of a run after the kills, judged: by its API, by its history, and by what its outsiders saw."""

import uuid
from collections import Counter
from collections.abc import Mapping

import msgspec

from longtake.cli.history import auditing
from longtake.cli.up import DEV_TENANT
from longtake.client import Client
from longtake.contracts.ids import provider_token_for
from longtake.errors import BrokenChain
from longtake.settings import Settings

ATTEMPTS_MAX = 20


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One promise and whether it was kept."""

    name: str
    kept: bool
    found: str


async def judge_run(
    client: Client, settings: Settings, run_id: str, *, project: str, accepted_by_token: Mapping[str, int]
) -> list[Check]:
    """Look at everything a crash could have doubled, lost or broken."""
    summary = await client.summary(run_id)
    runs = (await client.runs(project=project)).runs
    ledger = await client.ledger(run_id)
    charges = [entry for entry in ledger.entries if entry.kind == "charge"]
    published = Counter(f"{a.step}/{a.name}" for a in await client.artifacts(run_id))
    twice = [name for name, count in published.items() if count > 1]
    steps = await client.steps(run_id)
    creates = creates_by_step(run_id, [step.key for step in steps], accepted_by_token)
    repeated = {step: count for step, count in creates.items() if count > 1}
    async with auditing(settings) as audit:
        id_ = uuid.UUID(run_id)
        try:
            chain, verifies = f"{await audit.verify(id_)} events", True
        except BrokenChain as error:
            chain, verifies = str(error), False
        drift = await audit.prove(id_, DEV_TENANT)
    return [
        Check(name="the run is completed", kept=summary.status == "completed", found=summary.status),
        Check(
            name="the same run, and no other",
            kept=[run.run_id for run in runs] == [run_id],
            found=f"{len(runs)} in the project",
        ),
        Check(
            name="charged once, nothing given back",
            kept=len(charges) == 1
            and summary.cost.charged_credits == summary.cost.quoted_credits
            and not summary.cost.refunded_credits,
            found=f"{len(charges)} charges, {ledger.charged} - {ledger.refunded} credits",
        ),
        Check(
            name="each artifact published once",
            kept=not twice and bool(published),
            found=", ".join(twice) or f"{len(published)}",
        ),
        Check(name="the hash chain verifies", kept=verifies, found=chain),
        Check(
            name="projections equal the fold",
            kept=not drift,
            found="; ".join(f"{d.place}: {d.stored}, not {d.folded}" for d in drift[:3]) or "no difference",
        ),
        Check(
            name="no step was bought twice",
            kept=not repeated and bool(creates),
            found=", ".join(f"{s}: {n} creates" for s, n in repeated.items()) or f"{creates.total()} creates",
        ),
    ]


def creates_by_step(run_id: str, steps: list[str], accepted_by_token: Mapping[str, int]) -> Counter[str]:
    """Accepted creates of each step of a run, over all of its attempts: the token names one attempt."""
    found: Counter[str] = Counter()
    for step in steps:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            token = provider_token_for(uuid.UUID(run_id), step=step, attempt=attempt)
            if count := accepted_by_token.get(token, 0):
                found[step] += count
    return found
