"""The demo as its user meets it: a program of its own, files, one JSON line last, and no process left behind."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kit.probe import eventually_sync
from kit.promises import promise
from kit.providers import ProviderBench
from longtake.cli.demo_result import suffix_of
from videoads.renderer.inspect.decoding import decode_film
from videoads.showcase import SMALL_BRIEF

ENDINGS = {"ad.mp4", "poster.jpg", "contact.jpg", "inspection.json", "report.html", "history.ndjson"}

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("whole-service")]


def command(*arguments):
    return [sys.executable, "-m", "longtake", "demo", *map(str, arguments)]


def demo(*arguments, seconds=150):
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=seconds, env=plain(), check=False
    )


def plain():
    """An environment without colours and without anything that leads elsewhere."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LONGTAKE_", "VIDEOADS_"))
    }
    return {**kept, "NO_COLOR": "1", "PYTHONIOENCODING": "ascii:backslashreplace"}


def small_brief(folder, **changes):
    path = folder / "brief.json"
    path.write_text(json.dumps({**SMALL_BRIEF, **changes}))
    return path


def processes_of(place):
    """Every process whose command line or environment of work names this place."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if os.fsencode(place) in words and state != "Z" and int(entry.name) != os.getpid():
            found.append(words.replace(b"\0", b" ").decode())
    return found


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """One demo of a small brief: its folder and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    brief = small_brief(folder)
    done = demo("--brief", brief, "--out", folder / "out", "--data-dir", folder / "data", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done


@promise("H01", "H02")
def test_a_demo_leaves_a_verified_film_and_everything_about_it(shown):
    folder, _ = shown
    out = folder / "out"

    assert {path.name for path in out.iterdir()} == ENDINGS
    assert all(check["passed"] for check in json.loads((out / "inspection.json").read_bytes())["checks"])
    assert len(decode_film(out / "ad.mp4", whole_frames=()).thumbnails) == 144
    report = (out / "report.html").read_text()
    assert "<video" in report and "data:video/mp4" in report and "<svg" in report
    history = [json.loads(line) for line in (out / "history.ndjson").read_text().splitlines()]
    assert [event["seq"] for event in history] == list(range(1, len(history) + 1))
    assert history[-1]["type"] == "run_completed"


def test_the_last_line_is_one_object_for_programs(shown):
    folder, done = shown
    last = json.loads(done.stdout.splitlines()[-1])

    assert list(last) == ["run_id", "status", "artifact", "sha256", "summary", "provider_requests"]
    assert last["status"] == last["summary"]["status"] == "completed"
    assert last["artifact"] == str(folder / "out" / "ad.mp4")
    assert last["provider_requests"] > 4


def test_a_demo_counts_what_it_took_and_says_how_to_look_again(shown):
    _, done = shown

    assert "events in" in done.stdout and "messages and" in done.stdout
    for phase in ("start", "script", "scenes", "sound", "render", "delivery", "stop"):
        assert f"{phase} " in done.stdout
    assert "longtake up" in done.stdout and "dev.key" in done.stdout and "/v1/runs/" in done.stdout
    assert "\x1b" not in done.stdout, "neither colours nor cursor moves without a terminal"


def test_a_demo_leaves_no_process_behind(shown):
    folder, _ = shown

    assert processes_of(folder) == []
    with subprocess.Popen([sys.executable, "-c", "input()", str(folder)], stdin=subprocess.PIPE) as left:
        assert processes_of(folder), "one that was left would be seen"
        left.communicate(b"\n")


def test_a_bad_brief_is_refused_with_every_problem_and_its_pointer(tmp_path):
    brief = small_brief(tmp_path, headline="", seconds=900, colours={"ink": "red"})
    done = demo("--brief", brief, "--data-dir", tmp_path / "data")

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for pointer in ("/headline", "/seconds", "/colours"):
        assert pointer in done.stderr
    assert not (tmp_path / "data").exists(), "nothing is started for a brief that cannot be made"


def test_pictures_too_heavy_for_a_command_are_named(tmp_path):
    logo = SMALL_BRIEF["logo"]["base64"]
    heavy = {"media_type": "image/svg+xml", "base64": padded(logo, 300_000)}
    done = demo("--brief", small_brief(tmp_path, logo=heavy), "--data-dir", tmp_path / "data")

    assert done.returncode == 1
    assert "KiB" in done.stderr and "/logo" in done.stderr


def padded(base64_text, size):
    """The same drawing with a long comment in it."""
    drawing = base64.b64decode(base64_text).decode()
    return base64.b64encode(drawing.replace("</svg>", f"<!--{'x' * size}--></svg>").encode()).decode()


def test_the_next_demo_first_finishes_the_run_of_one_that_was_killed(tmp_path):
    """SIGKILL of the demo in the middle of its run: nothing goes on running, and the run is finished by the next."""
    data, brief = tmp_path / "data", small_brief(tmp_path)
    arguments = ("--brief", brief, "--data-dir", data, "--out", tmp_path / "out")
    with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, text=True, env=plain()) as killed:
        for line in killed.stdout:
            if "charged" in line:
                break
        killed.send_signal(signal.SIGKILL)
    eventually_sync(lambda: not processes_of(data), "the end of everything the killed demo had started", 30.0)

    done = demo(*arguments, "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "finishing the run that an earlier demo left" in done.stdout
    assert "it is completed" in done.stdout


def test_ctrl_c_ends_the_demo_and_everything_it_started(tmp_path):
    data = tmp_path / "data"
    arguments = ("--brief", small_brief(tmp_path), "--data-dir", data, "--out", tmp_path / "out")
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=plain()
    ) as interrupted:
        for line in interrupted.stdout:
            if "charged" in line:
                break
        interrupted.send_signal(signal.SIGINT)
        _, complaints = interrupted.communicate(timeout=60)

    assert interrupted.returncode == 130
    assert complaints == ""
    assert processes_of(data) == []


@promise("G08")
async def test_a_run_that_cannot_be_finished_says_why_and_ends_with_one(tmp_path):
    """The clip provider refuses the prompt: class, origin, step and money are readable; the history is there."""
    providers = ProviderBench(tmp_path / "data" / "providers", real_media=True)
    await providers.start()
    await providers.order("reject", error="moderation_input", style="clips")
    try:
        done = await asyncio.to_thread(
            demo,
            *("--brief", small_brief(tmp_path), "--data-dir", tmp_path / "data"),
            *("--out", tmp_path / "out", "--json"),
        )
    finally:
        await providers.stop()

    last = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1, done.stdout + done.stderr
    assert last["status"] != "completed" and last["artifact"] is None
    assert "moderation_input" in done.stdout and "clip.generate:1" in done.stdout
    assert last["summary"]["failure"]["money"] in done.stdout
    assert (tmp_path / "out" / "history.ndjson").exists()


@pytest.mark.parametrize(
    ("content_type", "suffix"), [("video/mp4", ".mp4"), ("video/webm", ".webm"), ("image/jpeg", ".jpg")]
)
def test_file_names_follow_what_the_artifact_is(content_type, suffix):
    assert suffix_of(content_type) == suffix
