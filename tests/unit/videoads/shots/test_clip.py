"""Clips and stills as files: whole, playable, nearly lossless; and the command that makes them."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import av
import msgspec
import numpy as np
import pytest
from PIL import Image

from kit.shot_requests import small_request
from videoads.renderer.shots import ShotError, open_shot, write_clip, write_still
from videoads.renderer.shots.__main__ import main


def decoded(path: Path) -> list["np.ndarray[tuple[int, ...], np.dtype[np.uint8]]"]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def keyframes(path: Path) -> list[int]:
    with av.open(str(path)) as container:
        return [
            number
            for number, packet in enumerate(p for p in container.demux(video=0) if p.size)
            if packet.is_keyframe
        ]


def test_a_clip_has_the_frames_size_and_rate_it_was_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "clip.mp4"
    seen: list[tuple[int, int]] = []
    report = write_clip(
        small_request("espresso.dawn"), out, progress=lambda done, of: seen.append((done, of))
    )

    assert (report.set_piece, report.frames, report.seconds) == ("espresso.dawn", 24, 0.8)
    assert seen == [(number, 24) for number in range(1, 25)]
    with av.open(str(out)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.average_rate, stream.codec_context.name) == (
            90,
            160,
            30,
            "h264",
        )
    assert len(decoded(out)) == 24


def test_a_clip_is_nearly_what_was_painted(tmp_path: Path) -> None:
    """It will be encoded again: at least 36 dB to the painted frame, and far less to a wrong one."""
    request = small_request("espresso.pour", width=180, height=320)
    write_clip(request, tmp_path / "clip.mp4")
    frames, shot = decoded(tmp_path / "clip.mp4"), open_shot(request)

    def decibels(index: int, other: int) -> float:
        apart = frames[index].astype(np.float64) - np.asarray(shot.frame(other), np.float64)
        return float(10 * np.log10(255**2 / np.mean(apart**2)))

    assert all(decibels(index, index) > 36 for index in (0, 11, 23))
    assert decibels(0, 23) < 30


def test_a_long_clip_can_be_cut_every_72_frames(tmp_path: Path) -> None:
    write_clip(small_request("abstract", frames=150), tmp_path / "clip.mp4")

    places = [*keyframes(tmp_path / "clip.mp4"), 150]
    assert max(b - a for a, b in pairwise(places)) <= 72


def test_a_clip_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(done: int, _: int) -> None:
        if done == 5:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_clip(small_request(), tmp_path / "clip.mp4", progress=refuse)
    assert list(tmp_path.iterdir()) == []


def test_two_clips_of_one_request_show_the_same_pictures(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        write_clip(small_request("light.ride"), tmp_path / name)

    pairs = zip(decoded(tmp_path / "a.mp4"), decoded(tmp_path / "b.mp4"), strict=True)
    assert all((a == b).all() for a, b in pairs)


@pytest.mark.parametrize("name", ["still.png", "still.jpg", "still.webp"])
def test_a_still_is_the_frame(name: str, tmp_path: Path) -> None:
    request = small_request("service.wipe")
    write_still(request, 10, tmp_path / name)

    with Image.open(tmp_path / name) as picture:
        apart = np.abs(
            np.asarray(picture.convert("RGB"), np.int16) - np.asarray(open_shot(request).frame(10), np.int16)
        )
    assert apart.mean() < 6


def test_a_still_needs_a_picture_s_ending(tmp_path: Path) -> None:
    with pytest.raises(ShotError, match=r"\.png, \.jpg or \.webp"):
        write_still(small_request(), 0, tmp_path / "still.txt")


def test_the_command_prints_one_json_line(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_bytes(msgspec.json.encode(small_request("light.road")))
    ran = subprocess.run(
        [sys.executable, "-m", "videoads.renderer.shots", str(request), str(tmp_path / "out.mp4")],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    (line,) = ran.stdout.splitlines()
    assert json.loads(line)["set_piece"] == "light.road"
    assert len(decoded(tmp_path / "out.mp4")) == 24


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (b"{", 1, "request.json"),
        (b"{}", 1, "prompt"),
        (msgspec.json.encode(small_request()).replace(b'"frames":24', b'"frames":0'), 1, "/frames"),
        (msgspec.json.encode(small_request()).replace(b'"seed":7', b'"seed":7,"sead":1'), 1, "sead"),
    ],
)
def test_a_bad_request_is_one_readable_line(
    content: bytes, status: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "request.json").write_bytes(content)

    assert main([str(tmp_path / "request.json"), str(tmp_path / "out.mp4")]) == status
    error = capsys.readouterr().err
    assert words in error and len(error.splitlines()) == 1
    assert not (tmp_path / "out.mp4").exists()


def test_the_command_explains_its_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "REQUEST.json" in capsys.readouterr().err


def test_the_command_paints_a_still(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "request.json").write_bytes(msgspec.json.encode(small_request()))

    assert main([str(tmp_path / "request.json"), str(tmp_path / "still.png"), "7"]) == 0
    assert json.loads(capsys.readouterr().out) == {"still": "still.png", "frame": 7}
