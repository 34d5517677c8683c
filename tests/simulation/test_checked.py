"""Simulated worlds before the checker: it finds nothing in good ones, and what is wrong in worlds without a defence.

The simulator looks after every commit; the checker sees the end alone. So two oracles that were written apart judge one
another: neither may accuse a world that the other clears, and what the checker misses is said.
"""

from kit.simulated_evidence import Gathered, gathered
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
