"""The finished file, its stills, and the renderer as a process."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np
import pytest
from PIL import Image

from kit.film_briefs import BRIEFS, brief, composed, write_clip
from kit.footage import music_like
from kit.promises import promise
from videoads.brief import brief_as_json
from videoads.renderer.__main__ import main
from videoads.renderer.clips import ClipError
from videoads.renderer.composition import Composition, composition_as_json
from videoads.renderer.film import film_suffix, render_film
from videoads.renderer.sound.wav import as_pcm, write_wav
from videoads.renderer.stills import StillGatherer, stills_of_film

FRAMES = 144


class Studio:
    """A two-bar film of 90 x 160 with its media in one folder."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        given = brief(seconds=4.8, size={"width": 90, "height": 160}, **changes)
        self.composition = composed(given)
        write_clip(folder / "shot-1.mp4", frames=72)
        for key, name in (("logo.svg", "espresso-logo.svg"), ("product.png", "espresso-product.png")):
            (folder / key).write_bytes((BRIEFS / name).read_bytes())
        write_wav(folder / "music.wav", as_pcm(music_like(4.8)), 48000)

    def media(self, key: str) -> Path:
        return self.folder / key


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    yield Studio(tmp_path_factory.mktemp("studio"))


def decoded(film: Path) -> tuple[int, int]:
    """Frames and sound samples that a player gets out of the file."""
    with av.open(str(film)) as container:
        frames = sum(1 for _ in container.decode(video=0))
    with av.open(str(film)) as container:
        samples = sum(frame.samples for frame in container.decode(audio=0))
    return frames, samples


@promise("H69", "H79")
def test_a_film_is_as_long_as_its_composition_in_picture_and_sound(studio: Studio, tmp_path: Path) -> None:
    """Every frame, and the sound to the end, within what a codec's block rounds up."""
    seen: list[int] = []
    report = render_film(
        studio.composition, studio.media, tmp_path / "a.mp4", on_frame=lambda index, _: seen.append(index)
    )
    frames, samples = decoded(tmp_path / "a.mp4")

    assert frames == report.frames == FRAMES
    assert seen == list(range(FRAMES))
    assert abs(samples - FRAMES * 1600) <= 2 * 1024
    assert report.bytes == (tmp_path / "a.mp4").stat().st_size
    assert report.music_only
    assert report.integrated_lufs == pytest.approx(-16, abs=1)


def test_the_index_of_an_mp4_comes_before_its_media(studio: Studio, tmp_path: Path) -> None:
    """So that a player can start before the file has arrived."""
    render_film(studio.composition, studio.media, tmp_path / "a.mp4")
    content = (tmp_path / "a.mp4").read_bytes()

    assert 0 < content.index(b"moov") < content.index(b"mdat")


def test_the_profile_without_gpl_encoders_makes_webm(tmp_path: Path) -> None:
    """vp9 and opus."""
    studio = Studio(tmp_path, profile="vp9-opus")
    out = tmp_path / f"a{film_suffix('vp9-opus')}"
    render_film(studio.composition, studio.media, out)

    with av.open(str(out)) as container:
        assert container.streams.video[0].codec_context.name in ("vp9", "libvpx-vp9")
        assert container.streams.audio[0].codec_context.name in ("opus", "libopus")
    assert out.suffix == ".webm"
    assert decoded(out)[0] == FRAMES


def test_two_renders_have_the_same_sound_and_the_same_stills(studio: Studio, tmp_path: Path) -> None:
    """The MP4's bytes are never compared; what is drawn and mixed is."""
    made: list[dict[int, bytes]] = [{}, {}]
    digests = []
    for number in range(2):
        pictures = made[number]

        def keep(index: int, picture: Image.Image, pictures: dict[int, bytes] = pictures) -> None:
            if index % 12 == 0:
                pictures[index] = picture.tobytes()

        report = render_film(studio.composition, studio.media, tmp_path / f"{number}.mp4", on_frame=keep)
        digests.append(report.pcm_sha256)

    assert made[0] == made[1]
    assert len(made[0]) == 12
    assert digests[0] == digests[1]


def test_a_film_that_fails_leaves_no_file(studio: Studio, tmp_path: Path) -> None:
    """A half file never bears the name of a whole one."""
    (tmp_path / "bad.mp4").write_bytes(b"no clip")

    def media(key: str) -> Path:
        return tmp_path / "bad.mp4" if key == "shot-1.mp4" else studio.media(key)

    with pytest.raises(ClipError):
        render_film(studio.composition, media, tmp_path / "out.mp4")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.mp4"]


def test_the_contact_sheet_has_a_frame_a_second_and_the_poster_is_a_full_still(
    studio: Studio, tmp_path: Path
) -> None:
    """Five pictures of 4.8 seconds; the same from the finished file as while rendering."""
    gatherer = StillGatherer(studio.composition)
    film = tmp_path / "a.mp4"
    render_film(studio.composition, studio.media, film, on_frame=gatherer.see)
    gatherer.write_poster(tmp_path / "poster.jpg")
    gatherer.write_contact(tmp_path / "contact.jpg")
    stills_of_film(film, studio.composition, poster=tmp_path / "p2.jpg", contact=tmp_path / "c2.jpg")
    stills_of_film(film, None, contact=tmp_path / "c3.jpg")

    with Image.open(tmp_path / "poster.jpg") as poster, Image.open(tmp_path / "p2.jpg") as again:
        assert poster.size == again.size == (90, 160)
    sizes, sheets = [], []
    for name in ("contact", "c2", "c3"):
        with Image.open(tmp_path / f"{name}.jpg") as sheet:
            sizes.append(sheet.size)
            sheets.append(np.asarray(sheet).astype(int))
    assert np.abs(sheets[0] - sheets[1]).mean() < 6
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0][0] > 5 * 280
    assert studio.composition.shots[0].frames * 0.5 < gatherer.poster_frame < FRAMES


def request(studio: Studio, path: Path) -> Path:
    """Write a render request as the render provider does."""
    keys = ["shot-1.mp4", "music.wav", "logo.svg", "product.png"]
    document = {
        "composition": msgspec.to_builtins(studio.composition),
        "media": {key: str(studio.media(key)) for key in keys},
    }
    path.write_text(json.dumps(document))
    return path


def test_the_renderer_is_a_process_that_reports_in_json_lines(studio: Studio, tmp_path: Path) -> None:
    """Progress while it works, the report last, status 0."""
    order = request(studio, tmp_path / "request.json")
    out = [str(tmp_path / name) for name in ("a.mp4", "poster.jpg", "contact.jpg")]
    done = subprocess.run(
        [sys.executable, "-m", "videoads.renderer", "render", str(order), *out],
        capture_output=True, text=True, check=False, timeout=90,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert (done.returncode, done.stderr) == (0, "")
    assert [line["progress"]["frames_done"] for line in lines[:-1]] == [24, 48, 72, 96, 120, 144]
    assert lines[-1]["frames"] == FRAMES
    assert all(Path(path).stat().st_size > 500 for path in out)


def test_a_still_and_a_schema_can_be_asked_for(
    studio: Studio, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command writes its file and one line."""
    order = request(studio, tmp_path / "request.json")

    assert main(["still", str(order), "100", str(tmp_path / "still.png")]) == 0
    assert main(["schema", str(tmp_path / "schema.json")]) == 0

    with Image.open(tmp_path / "still.png") as still:
        assert still.size == (90, 160)
    assert json.loads((tmp_path / "schema.json").read_bytes())["title"] == "Composition"
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_brief_can_be_composed_by_the_process(tmp_path: Path) -> None:
    """The same composition as in the library."""
    given = brief("glasklar")
    keys = {"clips": [f"shot-{n}.mp4" for n in (1, 2, 3, 4)], "music": "music.wav", "logo": "logo.svg"}
    (tmp_path / "r.json").write_text(json.dumps({"brief": brief_as_json(given), "media": keys}))

    assert main(["compose", str(tmp_path / "r.json"), str(tmp_path / "c.json")]) == 0

    assert (tmp_path / "c.json").read_bytes() == composition_as_json(composed(given))


Spoiler = Callable[[Studio, Path], list[str]]


def _no_file(studio: Studio, folder: Path) -> list[str]:
    return ["render", str(folder / "none.json"), str(folder / "a.mp4")]


def _no_json(studio: Studio, folder: Path) -> list[str]:
    (folder / "r.json").write_text("{")
    return ["render", str(folder / "r.json"), str(folder / "a.mp4")]


def _no_clip(studio: Studio, folder: Path) -> list[str]:
    order = request(studio, folder / "r.json")
    document = json.loads(order.read_text())
    del document["media"]["shot-1.mp4"]
    order.write_text(json.dumps(document))
    return ["render", str(order), str(folder / "a.mp4")]


def _no_such_frame(studio: Studio, folder: Path) -> list[str]:
    return ["still", str(request(studio, folder / "r.json")), str(FRAMES), str(folder / "a.png")]


def _no_picture_ending(studio: Studio, folder: Path) -> list[str]:
    return ["still", str(request(studio, folder / "r.json")), "3", str(folder / "a.txt")]


def _bad_brief(studio: Studio, folder: Path) -> list[str]:
    (folder / "r.json").write_text(
        json.dumps({"brief": {"product": 3}, "media": {"clips": [], "music": "m"}})
    )
    return ["compose", str(folder / "r.json"), str(folder / "c.json")]


def _no_film(studio: Studio, folder: Path) -> list[str]:
    (folder / "a.mp4").write_bytes(b"no film")
    return ["poster", str(folder / "a.mp4"), str(folder / "p.jpg")]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_no_file, "No such file"),
        (_no_json, "not a JSON object"),
        (_no_clip, "/shots/0/media: no file for 'shot-1.mp4'"),
        (_no_such_frame, "give 0 to 143"),
        (_no_picture_ending, "use .png"),
        (_bad_brief, "/brief/product: a number, not a text"),
        (_no_film, "a.mp4"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_bad_input_is_one_readable_line_and_a_status(
    studio: Studio, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Spoiler, words: str
) -> None:
    """No traceback; the line says which file and what is wrong with it."""
    status = main(spoil(studio, tmp_path))
    told = capsys.readouterr()

    assert status == 1
    assert words in told.err
    assert len(told.err.splitlines()) == 1
    assert told.out == ""


@pytest.mark.parametrize("arguments", [[], ["dance"], ["render"], ["still", "a", "b"]])
def test_a_wrong_command_line_shows_the_commands(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, as is usual for misuse."""
    assert main(arguments) == 2

    assert "render  REQUEST.json" in capsys.readouterr().err


def test_a_composition_of_another_film_is_refused_by_name(studio: Studio, tmp_path: Path) -> None:
    """A bare composition takes its media from its own folder; what is missing is said with its pointer."""
    other: Composition = studio.composition
    (tmp_path / "c.json").write_bytes(composition_as_json(other))

    assert main(["render", str(tmp_path / "c.json"), str(tmp_path / "a.mp4")]) == 1
