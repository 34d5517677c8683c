"""Crash runs: killed at seeded moments, a run ends as if nothing had happened; without a safeguard it does not.

`make crash N=20` is the long form. Here: one seed as the demo shows it, and each ablation with a seed that catches it.
"""

import os
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

import pytest

from kit.promises import promise
from longtake.cli.demo_kills import Kill, Progress, kills_of
from longtake.cli.demo_verdict import creates_by_step
from longtake.client import StepNow
from longtake.contracts.ids import provider_token_for

ROOT = Path(__file__).parents[2]
PHASES = ("script", "scenes", "sound", "render", "delivery")
PROVIDERS = ("clips", "voice", "music", "render")
CATCHING_SEED = "2"
"""Kills while the music provider holds a request open: what an ablation loses is lost there."""

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("whole-service")]


def run(*arguments):
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LONGTAKE_", "VIDEOADS_"))
    }
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=220,
        env=kept,
        check=False,
    )


def step(key, phase, status):
    return StepNow(
        key=key, ordinal=0, phase=phase, label=key, activity="a@1", group=None, price=0, status=status, attempt=1,
        max_attempts=3, progress=None, worker=None, external_ref=None, error_class=None, error_message=None,
        provider_cost=None, artifacts=[], started_at=None, updated_seq=1, attempts=[],
    )  # fmt: skip


def seen(*steps, events=0, created=None, open_=None):
    return Progress(events=events, steps=steps, created=created or {}, open=open_ or {})


MUSIC, FILM = step("music", "sound", "running"), step("film", "render", "pending")


@promise("G37", "H81")
def test_a_run_under_kills_ends_as_if_nothing_had_happened():
    """Service, Postgres and nats-server die on the way; one charge, one film, nothing bought twice."""
    done = run("-m", "longtake", "demo", "--crash", "--seed", "7")

    assert done.returncode == 0, done.stdout + done.stderr
    kills = [line for line in done.stdout.splitlines() if "SIGKILL" in line]
    assert len(kills) >= 3
    assert any("and postgres" in line for line in kills) and any("and nats-server" in line for line in kills)
    assert all("in flight:" in line and "back after" in line for line in kills)
    assert "every promise kept" in done.stdout and "BROKEN" not in done.stdout


@pytest.mark.parametrize("safeguard", ["reconcile", "receipt"])
def test_a_run_without_a_safeguard_is_found_out(safeguard):
    """The same kills on an application that does not look up, or loses a receipt: something is bought twice."""
    done = run(
        ROOT / "tools" / "crash.py",
        "--runs",
        "1",
        "--seed",
        CATCHING_SEED,
        "--ablate",
        safeguard,
        "--stop-at-first",
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN  no step was bought twice" in done.stdout
    assert f"FAILED  seed {CATCHING_SEED} broke a promise" in done.stdout


def test_a_seed_places_the_same_kills_each_time_and_takes_both_servers():
    for seed in range(200):
        kills = kills_of(seed, phases=PHASES, providers=PROVIDERS)
        targets = Counter(kill.target for kill in kills)

        assert kills == kills_of(seed, phases=PHASES, providers=PROVIDERS)
        assert len(kills) >= 3
        assert targets["service and postgres"] == targets["service and nats-server"] == 1
        assert sum(kill.at == "request" for kill in kills) == 1


def test_eight_neighbouring_seeds_reach_every_provider_and_both_ends():
    kills = [kill for seed in range(5, 13) for kill in kills_of(seed, phases=PHASES, providers=PROVIDERS)]

    assert {kill.place for kill in kills if kill.at == "request"} == set(PROVIDERS)
    assert {kill.place for kill in kills if kill.at == "phase"} == {"script", "scenes", "render", "delivery"}


@pytest.mark.parametrize(
    ("kill", "too_early", "due"),
    [
        (
            Kill(at="phase", place="scenes", target="service", order=1),
            seen(step("script", "script", "running"), step("clip", "scenes", "pending")),
            seen(step("script", "script", "succeeded"), step("clip", "scenes", "queued")),
        ),
        (
            Kill(at="request", place="music", target="service", order=1),
            seen(MUSIC, FILM, created={"voice": 1}, open_={"voice": 1}),
            seen(MUSIC, FILM, created={"music": 1}, open_={"music": 1}),
        ),
        (
            Kill(at="request", place="music", target="service", order=1),
            seen(MUSIC, FILM, created={"music": 1}),
            seen(MUSIC, FILM, created={"music": 1, "render": 1}, open_={"render": 1}),
        ),
        (
            Kill(at="commit", place="7", target="service", order=1),
            seen(step("music", "sound", "running"), events=6),
            seen(step("music", "sound", "running"), events=7),
        ),
    ],
    ids=["phase", "request", "the next request", "commit"],
)
def test_a_kill_waits_for_its_moment(kill, too_early, due):
    assert not kill.is_due(too_early)
    assert kill.is_due(due)


def test_creates_are_counted_by_step_over_all_attempts():
    """A second purchase under the token of the next attempt is a second purchase."""
    run_id = "6a1f8d1e-0000-8000-8000-000000000001"
    tokens = {
        str(provider_token_for(uuid.UUID(run_id), step=step_, attempt=attempt)): 1
        for step_, attempt in (("clip", 1), ("clip", 2), ("music", 1))
    }

    assert creates_by_step(run_id, ["clip", "music"], tokens) == {"clip": 2, "music": 1}
