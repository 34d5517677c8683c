"""`longtake testbed`: the application's tools, without any server and without any provider."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import videoads
from kit.promises import promise
from videoads.showcase import SMALL_BRIEF

pytestmark = pytest.mark.timeout(180)


def run_tool(*arguments, folder):
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("LONGTAKE_", "VIDEOADS_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "longtake", "testbed", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=150,
        env={**kept, "PYTHONPATH": str(Path(videoads.__file__).parents[1])},
        cwd=folder,
        check=False,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small brief and its film."""
    folder = tmp_path_factory.mktemp("testbed")
    (folder / "brief.json").write_text(json.dumps(SMALL_BRIEF))
    done = run_tool("render", "--brief", "brief.json", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@promise("H69")
def test_a_film_and_one_still_of_it_are_made_on_this_machine_alone(made):
    folder, film = made
    done = run_tool("still", "40", "--brief", "brief.json", "--out", "still.png", "--json", folder=folder)

    assert done.returncode == 0, done.stderr
    assert all((folder / film[name]).is_file() for name in ("film", "poster", "contact", "composition"))
    with Image.open(folder / "still.png") as still:
        assert still.size == (350, 620)
    assert not list(folder.rglob("postgres")) and not list(folder.rglob("nats"))


def test_an_inspection_passes_the_film_and_refuses_a_spoilt_one(made):
    folder, film = made
    good = run_tool("inspect", film["film"], "--json", folder=folder)
    whole = (folder / film["film"]).read_bytes()
    (folder / "out" / "half.mp4").write_bytes(whole[: len(whole) // 2])
    bad = run_tool("inspect", "out/half.mp4", "--json", folder=folder)

    assert good.returncode == 0, good.stdout + good.stderr
    assert json.loads(good.stdout)["passed"] is True
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["passed"] is False


@promise("H72")
def test_a_payload_shows_the_bytes_each_provider_would_be_sent(made):
    """The bodies come from the real clients; the film's is there when its media were made."""
    folder, _ = made
    done = run_tool("payload", "--brief", "brief.json", "--film", "--json", folder=folder)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    bodies = {row["step"]: row["body"] for row in rows if row["method"] == "POST"}

    assert list(bodies) == ["clip.generate:1", "narration.generate", "music.generate", "render.submit"]
    assert bodies["clip.generate:1"]["shot"]["prompt"] == "soft shapes"
    assert bodies["narration.generate"]["speech"]["lines"] == ["It shines for you."]
    assert bodies["render.submit"]["composition"]["output"]["frames"] == 144
    assert any(row["method"] == "PUT" for row in rows)


def test_the_assets_are_listed_with_their_digests(tmp_path):
    done = run_tool("assets", "--json", folder=tmp_path)
    rows = json.loads(done.stdout)

    assert {row["kind"] for row in rows} == {"font", "art", "brief"}
    assert all(len(row["sha256"]) == 64 and row["bytes"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("still", "9999", "--brief", "brief.json"), "frame 9999"),
        (("still", "1", "--brief", "absent.json"), "absent.json"),
        (("inspect", "absent.mp4"), "absent.mp4"),
        (("assets", "--app", "json:loads"), "has no testbed"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_message(made, arguments, said):
    folder, _ = made
    done = run_tool(*arguments, folder=folder)

    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_brief_is_refused_with_all_its_pointers(tmp_path):
    (tmp_path / "brief.json").write_text(json.dumps({**SMALL_BRIEF, "headline": "", "seconds": 900}))
    done = run_tool("payload", "--brief", "brief.json", folder=tmp_path)

    assert done.returncode == 1
    assert "/headline" in done.stderr and "/seconds" in done.stderr
    assert not list(Path(tmp_path).glob(".longtake"))
