"""Simulated worlds before the checker: it finds nothing in good ones, and what is wrong in worlds without a defence.

The simulator looks after every commit; the checker sees the end alone. So two oracles that were written apart judge one
another: neither may accuse a world that the other clears, and what the checker misses is said.
"""

import pytest

from kit.simulated_evidence import Gathered, gathered
from longtake.testing.ablations import ABLATIONS
from longtake.testing.checking import Violation, judge
from longtake.testing.simulation import FUNDS, TENANTS, play

FUNDED = {(tenant, "main"): FUNDS for tenant in TENANTS}
GOOD = 30
"""Seeds of the suite."""


def judged(found: Gathered) -> list[Violation]:
    """All but tail-ok: clients of simulated worlds give up after six tries."""
    assert found.store is not None
    verdict = judge(found.history, found.store, found.witness, funded=FUNDED, restore_may_lose=True)
    return [violation for violation in verdict.violations if violation.invariant != "tail-ok"]


def test_worlds_that_the_simulator_clears_are_cleared_by_the_checker():
    restores = runs = acknowledged = 0
    for seed in range(72_000, 72_000 + GOOD):
        with gathered() as found:
            result = play(seed)
        assert not result.failed
        assert judged(found) == [], f"seed {seed}"
        verdict = judge(found.history, found.store, found.witness)
        restores += verdict.counters["restores"]
        runs += verdict.counters["runs"]
        acknowledged += verdict.counters["acknowledged"]

    assert restores > 0
    assert runs > 3 * GOOD
    assert acknowledged > 3 * GOOD


WITHOUT = {
    "unique run, seq": "I1",
    "command key": "I10",
    "attempt of an outcome": "I15",
    "inbox uniqueness": "I26",
    "attach, submit side": "P4",
    "derived tokens": "I13",
}
"""Defences that are missed within a few seeds, and by which invariant."""


@pytest.mark.parametrize(
    "ablation", [a for a in ABLATIONS if a.name in WITHOUT], ids=lambda ablation: ablation.name
)
def test_a_world_without_a_defence_is_not_cleared(ablation):
    found: set[str] = set()
    for seed in range(12):
        with gathered() as evidence:
            play(seed, experiment=ablation.experiment, stop_at_first=False)
        if evidence.store is not None:
            found |= {violation.invariant for violation in judged(evidence)}
        if WITHOUT[ablation.name] in found:
            return

    pytest.fail(f"only {found}")


def test_the_defences_that_are_left_out_are_there():
    assert set(WITHOUT) <= {ablation.name for ablation in ABLATIONS}
