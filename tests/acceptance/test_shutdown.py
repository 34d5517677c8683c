"""Workers that are told to stop at random moments (F74; `make sigterm` is the long form), and that stand still (F49)."""

import pytest

from kit.bench.stopping import stopping
from kit.bench.zombie import zombie

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("faults")]

STOPS = 12


async def test_a_worker_that_is_told_to_stop_gives_back_at_once_what_it_has_not_begun(tmp_path):
    report = await stopping(tmp_path / "bench", times=STOPS, seed=1)
    print(report.text())
    assert report.passed, f"{report.text()}\n{report.verdict and report.verdict.text()}"
    assert report.stops == STOPS
    assert report.reported > 0


async def test_a_worker_that_keeps_its_leases_when_it_stops_is_found_out(tmp_path):
    """The planted fault: the release is left out. Nobody ends a lease of 300 s for it."""
    report = await stopping(tmp_path / "bench", times=2, seed=1, app="kit.bench.keeping_app:app")
    print(report.text())
    assert report.kept > 0
    assert not report.passed


async def test_a_worker_that_stood_still_past_its_lease_sends_nothing_when_it_goes_on(tmp_path):
    """SIGSTOP between the claim of a poll and its request; another worker polls, then SIGCONT (F49)."""
    assert await zombie(tmp_path / "bench") == 1


async def test_a_worker_that_trusts_its_lease_for_ever_is_found_out(tmp_path):
    """The planted fault: the trust never ends, and the provider is asked twice."""
    assert await zombie(tmp_path / "bench", app="kit.bench.trusting_app:app") == 2
