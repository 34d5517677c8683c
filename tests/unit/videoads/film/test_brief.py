"""What a brief may say, and how everything wrong in it is told at once."""

import base64
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import videoads
from kit.promises import promise
from videoads.brief import BRIEF_BYTES_MAX, Brief, BriefError, brief_as_json, parse_brief, read_brief

BRIEFS = Path(videoads.__file__).parent / "fixtures" / "briefs"
SHIPPED = ("espresso", "bike_light", "glasklar")

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10"><path d="M1 1 L9 9" stroke="#000"/></svg>'


def document() -> dict[str, Any]:
    """A small brief without a fault."""
    return {
        "product": "Lantern",
        "headline": "Light for late roads",
        "seconds": 9.6,
        "colours": {
            "background": "#101010",
            "surface": "#ffffff",
            "ink": "#101010",
            "accent": "#b94f1f",
            "light": "#ffd9a3",
        },
        "scenes": [{"prompt": "a lamp", "line": "It shines"}, {"prompt": "a road", "call_outs": ["Steel"]}],
        "narration": ["It shines.", "It goes on."],
        "closing": {"offer": "Two for one", "button": "Take one", "address": "lantern.example"},
    }


def raw(changed: dict[str, Any]) -> bytes:
    return json.dumps(changed, ensure_ascii=False).encode()


def picture(kind: str, size: tuple[int, int] = (8, 8)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "#b94f1f").save(out, format=kind)
    return out.getvalue()


def inline(content: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(content).decode()}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_brief_reads_and_travels_alone(name: str) -> None:
    """Once read, a brief holds its pictures, so that it can be parsed again where its folder is not."""
    brief = read_brief(BRIEFS / f"{name}.json")

    assert parse_brief(raw(brief_as_json(brief)), base=None) == brief


def test_the_shipped_briefs_differ_in_kind() -> None:
    """Three styles, two languages, one of them without narration and with umlauts."""
    briefs = [read_brief(BRIEFS / f"{name}.json") for name in SHIPPED]

    assert {brief.style for brief in briefs} == {"warm-editorial", "bold-dark", "clean-service"}
    assert [brief.language for brief in briefs if brief.narration is None] == ["de"]
    assert any("ü" in scene.line for scene in briefs[2].scenes)


def test_a_small_brief_without_a_fault_is_accepted() -> None:
    """The cases below change one thing in this one."""
    assert isinstance(parse_brief(raw(document()), base=None), Brief)


def put(*path: str | int) -> Callable[[Any], Callable[[dict[str, Any]], None]]:
    """Return a change that puts a value at a path."""

    def with_value(value: Any) -> Callable[[dict[str, Any]], None]:
        def change(changed: dict[str, Any]) -> None:
            place: Any = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value

        return change

    return with_value


FAULTS: list[tuple[str, str, Callable[[dict[str, Any]], None]]] = [
    ("/colours/accent", "is not a colour", put("colours", "accent")("orange")),
    ("/colours/ink", "contrast", put("colours", "ink")("#eeeeee")),
    ("/colours", "not an object", put("colours")([])),
    ("/product", "empty", put("product")("  ")),
    ("/product", "a number, not a text", put("product")(7)),
    ("/headline", "U+0000", put("headline")("Light\u0000")),
    ("/headline", "49 characters, 48 fit", put("headline")("a " * 24 + "b")),
    ("/headline", "no glyph for 光", put("headline")("光 for late roads")),
    ("/headline", "25 letters and fits no line", put("headline")("x" * 25)),
    ("/seconds", "out of range", put("seconds")(3)),
    ("/seconds", "not a number", put("seconds")("long")),
    ("/seconds", "a boolean", put("seconds")(True)),
    ("/fps", "not offered", put("fps")(25)),
    ("/style", "not offered", put("style")("neon")),
    ("/profile", "not offered", put("profile")("av1")),
    ("/language", "not offered", put("language")("fr")),
    ("/scenes", "no scenes", put("scenes")([])),
    ("/scenes", "9 scenes, the limit is 8", put("scenes")([{"prompt": "x"}] * 9)),
    ("/scenes", "3 scenes do not fit", put("scenes")([{"prompt": "x"}] * 3)),
    ("/scenes/1/line", "characters", put("scenes", 1, "line")("w " * 40)),
    ("/scenes/0/call_outs", "at most two", put("scenes", 0, "call_outs")(["a", "b", "c"])),
    ("/scenes/0/shows_product", "a text", put("scenes", 0, "shows_product")("yes")),
    ("/scenes/0/promt", "unknown member", put("scenes", 0, "promt")("x")),
    ("/a~1b", "unknown member", put("a/b")(1)),
    ("/narration", "1 lines for 2 scenes", put("narration")(["one"])),
    (
        "/narration/0",
        "cannot be spoken",
        put("narration", 0)("so many words that nobody can say them in one bar"),
    ),
    ("/closing/button", "missing", put("closing")({"offer": "a", "address": "b"})),
    ("/size/width", "not possible", put("size")({"width": 721, "height": 1280})),
    ("/logo", "not one of SVG, PNG", put("logo")(inline(picture("JPEG")))),
    ("/logo", "cannot be read from here", put("logo")("logo.svg")),
    ("/logo/base64", "not base64", put("logo")({"base64": "%%%"})),
    ("/logo", "script", put("logo")(inline(SVG.replace("<path", "<script/><path").encode()))),
    ("/logo", "script in onload", put("logo")(inline(SVG.replace("<path", '<path onload="x()"').encode()))),
    ("/logo", "document type", put("logo")(inline(b'<!DOCTYPE svg [<!ENTITY a "b">]>' + SVG.encode()))),
    ("/logo", "outside itself", put("logo")(inline(SVG.replace("#000", "url(http://a.example/b)").encode()))),
    (
        "/logo",
        "outside itself",
        put("logo")(inline(SVG.replace("<path", '<use href="http://a.example/#b"/><path').encode())),
    ),
    ("/logo", "text", put("logo")(inline(SVG.replace("<path", "<text>a</text><path").encode()))),
    ("/logo", "not well-formed", put("logo")(inline(SVG.replace("</svg>", "").encode()))),
    ("/product_picture", "cannot be opened", put("product_picture")(inline(picture("PNG", (64, 64))[:70]))),
    ("/product_picture", "not one of PNG, JPEG, WEBP", put("product_picture")(inline(b"GIF89a"))),
]


@pytest.mark.parametrize(
    ("pointer", "message", "change"), FAULTS, ids=[f"{p} {m}"[:60] for p, m, _ in FAULTS]
)
def test_a_fault_is_told_with_its_pointer(
    pointer: str, message: str, change: Callable[[dict[str, Any]], None]
) -> None:
    """What was wrong, where, and what would be right."""
    changed = document()
    change(changed)

    with pytest.raises(BriefError) as refused:
        parse_brief(raw(changed), base=None)

    found = [problem for problem in refused.value.problems if problem.pointer == pointer]
    assert found, refused.value.problems
    assert any(message in problem.message for problem in found), found
    assert all(problem.remedy for problem in refused.value.problems)


def test_all_faults_are_told_at_once() -> None:
    """Nobody has to send a brief five times to learn five things."""
    changed = document()
    for _, _, change in (FAULTS[0], FAULTS[9], FAULTS[13], FAULTS[22]):
        change(changed)

    with pytest.raises(BriefError) as refused:
        parse_brief(raw(changed), base=None)

    pointers = {problem.pointer for problem in refused.value.problems}
    assert {"/colours/accent", "/seconds", "/style", "/scenes/0/promt"} <= pointers


def test_words_too_wide_for_the_picture_are_refused_before_anything_is_made() -> None:
    """Few characters can still be too wide: they are set once while the brief is read."""
    changed = document()
    changed["headline"] = "W" * 24 + " " + "W" * 23

    with pytest.raises(BriefError) as refused:
        parse_brief(raw(changed), base=None)

    assert [problem.pointer for problem in refused.value.problems] == ["/headline"]
    assert "does not fit" in refused.value.problems[0].message


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
def test_what_is_no_object_is_refused(content: bytes) -> None:
    """The pointer of the whole document is empty."""
    with pytest.raises(BriefError) as refused:
        parse_brief(content, base=None)

    assert refused.value.problems[0].pointer == ""


def test_a_brief_at_the_size_limit_is_read_and_one_byte_more_is_not() -> None:
    """The limit is a number, and it is the number."""
    text = raw(document())

    parse_brief(text + b" " * (BRIEF_BYTES_MAX - len(text)), base=None)

    with pytest.raises(BriefError, match="the limit is"):
        parse_brief(text + b" " * (BRIEF_BYTES_MAX - len(text) + 1), base=None)


@pytest.mark.parametrize(
    ("kind", "media_type"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")]
)
def test_a_product_picture_may_be_png_jpeg_or_webp(kind: str, media_type: str) -> None:
    """What it is, its bytes say; a wrong label does not matter."""
    changed = document()
    changed["product_picture"] = {**inline(picture(kind)), "media_type": "text/plain"}

    brief = parse_brief(raw(changed), base=None)

    assert brief.product_picture is not None
    assert brief.product_picture.media_type == media_type
    assert brief.product_picture.content() == picture(kind)


def test_a_named_picture_must_lie_beside_the_brief(tmp_path: Path) -> None:
    """A brief cannot fetch other files of the machine that reads it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.svg").write_text(SVG)
    (tmp_path / "in" / "logo.svg").write_text(SVG)
    good, bad = document(), document()
    good["logo"], bad["logo"] = "logo.svg", "../secret.svg"

    assert parse_brief(raw(good), base=tmp_path / "in").logo is not None

    with pytest.raises(BriefError, match="leaves the brief's folder"):
        parse_brief(raw(bad), base=tmp_path / "in")


@promise("H73")
def test_a_brief_is_independent_of_the_folder_it_came_from(tmp_path: Path) -> None:
    """Assets are gathered when the brief is read; what is sent on names no path."""
    (tmp_path / "logo.svg").write_text(SVG)
    changed = document()
    changed["logo"] = "logo.svg"

    travelling = brief_as_json(parse_brief(raw(changed), base=tmp_path))

    assert str(tmp_path) not in json.dumps(travelling)
    assert travelling["logo"]["media_type"] == "image/svg+xml"


def test_a_brief_can_be_read_where_the_renderer_is_not_installed() -> None:
    """The service refuses bad briefs without Pillow, numpy or PyAV; the renderer looks again at what they see."""
    program = (
        "import sys\n"
        "for name in ('PIL', 'numpy', 'av', 'resvg_py'):\n"
        "    sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from videoads.brief import BriefError, parse_brief, read_brief\n"
        "from videoads.script import write_script\n"
        f"print(write_script(read_brief(Path({str(BRIEFS / 'espresso.json')!r}))).frames)\n"
        "try:\n"
        "    parse_brief(b'{}', base=None)\n"
        "except BriefError as error:\n"
        "    print(len(error.problems) > 4)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "/usr/bin:/bin"},
    )

    assert (done.stdout.split(), done.stderr) == (["432", "True"], "")
