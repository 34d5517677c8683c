"""The simulated world: it comes to rest, it is the same twice, it finds what is planted, and kept seeds hold for ever."""

from pathlib import Path

import pytest

from kit.promises import promise
from longtake.testing.ablations import ABLATIONS, hunt
from longtake.testing.faults import Profile, draw_profile
from longtake.testing.scenario import Experiment
from longtake.testing.seeds import KeptSeed, keep, read_kept
from longtake.testing.shrinking import explain, shrink
from longtake.testing.simulation import play
from longtake.testing.swarm import digest_of, play_many

SEEDS = Path(__file__).parent.parent / "seeds"
SHORT = 120
"""Seeds of the suite; `make simulate SEEDS=20000` plays the rest."""


@pytest.fixture(scope="module")
def tally() -> object:
    return play_many(range(70_000, 70_000 + SHORT), processes=2, stop_after=3)


@promise("H76", "H77")
def test_no_seed_breaks_a_promise_and_every_one_comes_to_rest(tally) -> None:
    told = "\n".join(explain(failing) for failing in tally.failing)
    assert not tally.failing, told
    assert tally.at_rest == tally.seeds == SHORT


def test_worlds_are_large_and_draw_the_whole_language(tally) -> None:
    assert tally.events / tally.seeds >= 60
    for dimension, names in {
        "kind": ("activity", "input", "sleep", "wait", "run", "expand"),
        "join": ("all_succeeded", "all_terminal", "at_least"),
        "command": ("generation", "follow_up", "steer", "fork", "pause", "resume", "send_event", "provide_input", "retry", "cancel"),
        "fault": ("crash_before", "crash_after", "not_executed", "executed_and_lost", "frozen", "loss", "duplicate", "zombie_ack",
                  "power_loss", "stream_deleted", "store_rewound", "deployed", "clock_step"),
    }.items():  # fmt: skip
        seen = tally.occurred[dimension]
        assert not [name for name in names if name not in seen], f"{dimension}: only {sorted(seen)}"


@promise("H75")
def test_a_seed_gives_the_same_world_twice_and_another_seed_another() -> None:
    first, again, other = play(4711), play(4711), play(4712)
    assert digest_of(first) == digest_of(again)
    assert first.counts == again.counts
    assert digest_of(first) != digest_of(other)


def test_a_world_without_faults_makes_no_fault() -> None:
    result = play(1, profile=Profile(safety_seconds=120.0))
    assert not result.failed
    assert not result.counts["fault"]


def _planted(name: str) -> Experiment:
    return next(ablation.experiment for ablation in ABLATIONS if ablation.name == name)


def test_a_reducer_that_retries_what_may_have_been_done_is_found_and_made_small() -> None:
    """A planted reducer bug: an unknown outcome is tried again without a look-up."""
    experiment = _planted("reconcile before retry")
    failing = next(result for seed in range(200) if (result := play(seed, experiment=experiment)).failed)
    assert failing.violations[0].invariant == "I25"
    small = shrink(
        failing, lambda profile: play(failing.seed, profile=profile, experiment=experiment), plays_max=60
    )
    assert small.violations[0].invariant == "I25"
    assert len(small.happened) <= len(failing.happened)
    told = explain(small)
    assert f"FROM={failing.seed}" in told
    assert "I25" in told
    assert not play(failing.seed).failed, "the same seed holds with the look-up in its place"


@pytest.mark.parametrize(
    "name", ["command key", "sweeper", "inbox uniqueness", "derived tokens", "poison cut-off"]
)
def test_a_defence_that_is_taken_away_is_missed(name: str) -> None:
    ablation = next(ablation for ablation in ABLATIONS if ablation.name == name)
    caught = hunt(ablation, range(60))
    assert caught.result is not None, f"nobody noticed that {ablation.what}"
    assert not play(caught.result.seed).failed, "the same seed holds with the defence up"


def test_a_failing_seed_is_kept_as_a_file_that_says_all(tmp_path: Path) -> None:
    failing = next(
        result for seed in range(60) if (result := play(seed, experiment=_planted("command key"))).failed
    )
    path = keep(failing, tmp_path)
    ((found, kept),) = read_kept(tmp_path)
    assert found == path
    assert kept.seed == failing.seed
    assert kept.profile == failing.profile
    assert kept.invariant == failing.violations[0].invariant


@pytest.mark.parametrize(("path", "kept"), read_kept(SEEDS), ids=lambda value: getattr(value, "stem", ""))
def test_what_once_failed_holds(path: Path, kept: KeptSeed) -> None:
    result = play(kept.seed, profile=kept.profile)
    assert not result.failed, explain(result)


def test_profiles_differ_from_seed_to_seed() -> None:
    profiles = [draw_profile(seed) for seed in range(50)]
    assert len({str(sorted(profile.rates)) for profile in profiles}) > 30
    assert any(not profile.rates for profile in (draw_profile(seed) for seed in range(200)))
