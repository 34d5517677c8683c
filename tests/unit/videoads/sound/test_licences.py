"""`docs/licences.md` names every asset that is not code and every encoder that the renderer calls."""

import re
from fnmatch import fnmatch
from pathlib import Path

import videoads

ROOT = Path(videoads.__file__).parents[2]
PAGE = (ROOT / "docs" / "licences.md").read_text()
CODE = {".py", ".pyc", ".pyi", ".sql", ".typed"}


def assets() -> list[str]:
    files = (path for path in (ROOT / "service" / "videoads").rglob("*") if path.is_file())
    return sorted(str(path.relative_to(ROOT)) for path in files if path.suffix not in CODE)


def unnamed(page: str, paths: list[str]) -> list[str]:
    """The paths that no pattern in the page's first column covers."""
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `service/")]
    patterns = []
    for row in rows:
        named = re.findall(r"`([^`]+)`", row)
        folder = named[0].rsplit("/", 1)[0]
        patterns += [name if "/" in name else f"{folder}/{name}" for name in named]
    texts = [path for path in paths if Path(path).name.startswith("OFL-") and Path(path).name in page]
    return [path for path in paths if path not in texts and not any(fnmatch(path, p) for p in patterns)]


def encoders() -> set[str]:
    """The encoders named in the renderer's code."""
    code = "\n".join(path.read_text() for path in (ROOT / "service" / "videoads").rglob("*.py"))
    return set(re.findall(r"\"(lib(?:x264|x265|vpx|opus|svtav1|mp3lame|aom)[\w-]*|aac|mpeg4)\"", code))


def test_every_asset_is_named():
    assert assets()
    assert unnamed(PAGE, assets()) == []


def test_an_asset_without_an_entry_is_found():
    """The broken variant: a picture someone put there without saying where it is from."""
    stranger = "service/videoads/fixtures/briefs/found-on-the-web.jpg"
    assert unnamed(PAGE, [*assets(), stranger]) == [stranger]


def test_every_font_has_its_licence_text_beside_it():
    for font in (path for path in assets() if path.endswith((".woff2", ".ttf", ".otf"))):
        family = re.split(r"-(?:latin|cyrillic|greek|vietnamese)", Path(font).name)[0]
        text = (ROOT / font).parent / f"OFL-{family}.txt"
        assert "SIL OPEN FONT LICENSE Version 1.1" in text.read_text(), font


def test_every_encoder_is_named():
    used = encoders()
    assert "libx264" in used
    for encoder in used:
        assert encoder.removesuffix("-vp9").lower() in PAGE.lower(), encoder
