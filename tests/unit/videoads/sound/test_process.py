"""The sound as a process: three requests, one report line each, one readable line when something is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from videoads.renderer.sound import pcm_digest, read_wav
from videoads.renderer.sound.__main__ import main

TINY_MUSIC = {"bars": 1, "mood": "clean", "bpm": 240, "seed": 2}


def request(folder: Path, body: object) -> str:
    path = folder / "request.json"
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return str(path)


def test_music_speech_and_mix_as_three_processes(tmp_path):
    def run(kind: str, body: object, out: str) -> dict:
        command = [
            sys.executable,
            "-m",
            "videoads.renderer.sound",
            kind,
            request(tmp_path, body),
            str(tmp_path / out),
        ]
        result = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, env=os.environ
        )
        assert result.returncode == 0, result.stderr
        assert len(result.stdout.strip().splitlines()) == 1
        return json.loads(result.stdout)

    music = run("music", TINY_MUSIC, "music.wav")
    assert music["seconds"] == 1.0
    voice = run("speak", {"lines": ["Come home now."], "seed": 1}, "voice.wav")
    assert voice["phrases"][0]["text"] == "Come home now."
    mixed = run(
        "mix",
        {
            "plan": {"frames": 60, "fps": 30, "whoosh_frames": [15]},
            "music": "music.wav",
            "narration": {"media": "voice.wav", "phrases": voice["phrases"]},
        },
        "mix.wav",
    )
    assert mixed["integrated_lufs"] == pytest.approx(-16.0, abs=1.0)
    assert mixed["true_peak_dbtp"] <= -1.0
    pcm, rate = read_wav(tmp_path / "mix.wav")
    assert (len(pcm), rate) == (96_000, 48_000)
    assert pcm_digest(pcm) == mixed["digest"]


@pytest.mark.parametrize(
    ("kind", "body", "line"),
    [
        ("music", {**TINY_MUSIC, "mood": "jazz"}, "music: /mood: "),
        ("music", {**TINY_MUSIC, "bars": 900}, "music: /bars: 900 bars; give 1 to 64"),
        ("music", {**TINY_MUSIC, "tempo": 9}, "music: /: Object contains unknown field `tempo`"),
        ("music", "{", "music: /: it is not JSON"),
        ("music", " " * 1_100_000, "music: /: 1100000 bytes; at most 1048576"),
        ("speak", {"lines": ["ok", 7]}, "speak: /lines/1: Expected `str`, got `int`"),
        ("speak", {"lines": []}, "speak: /lines: 0 lines"),
        (
            "mix",
            {"plan": {"frames": 9, "whoosh_frames": [1, "x"]}, "music": "m.wav"},
            "mix: /plan/whoosh_frames/1: ",
        ),
        ("mix", {"plan": {"frames": 9}, "music": "nowhere.wav"}, "mix: /music: "),
        ("mix", {"plan": {"frames": 9}, "music": "request.json"}, "mix: /music: "),
        ("paint", {}, "paint: /: 'paint' is not a request"),
    ],
)
def test_bad_input_is_one_readable_line(tmp_path, capsys, kind, body, line):
    assert main([kind, request(tmp_path, body), str(tmp_path / "out.wav")]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(line) and shown.err.count("\n") == 1
    assert not (tmp_path / "out.wav").exists()


def test_a_missing_request_and_an_unwritable_output_are_told_apart(tmp_path, capsys):
    assert main(["music", str(tmp_path / "none.json"), "out.wav"]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["music", request(tmp_path, TINY_MUSIC), str(tmp_path / "no" / "folder.wav")]) == 4
    assert "cannot be written" in capsys.readouterr().err


def test_wrong_usage_shows_the_right_one(capsys):
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: ")


def test_a_missing_voice_has_an_exit_code_of_its_own(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("videoads.renderer.sound.speech.voice_available", lambda: False)
    assert main(["speak", request(tmp_path, {"lines": ["Hello."]}), str(tmp_path / "out.wav")]) == 3
    assert "longtake[voice]" in capsys.readouterr().err


def test_music_alone_never_loads_the_voice(tmp_path):
    """Small requests stay quick: the speech package costs half a second."""
    code = (
        "import sys\nfrom videoads.renderer.sound.__main__ import main\n"
        f"main(['music', {request(tmp_path, TINY_MUSIC)!r}, {str(tmp_path / 'm.wav')!r}])\n"
        "print([m for m in ('hibari', 'onnxruntime', 'av', 'PIL') if m in sys.modules])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.splitlines()[-1] == "[]"
