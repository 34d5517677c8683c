"""The report is one page that holds everything, says what the API said and trusts nothing it is given."""

import re
from html.parser import HTMLParser

import pytest

from videoads.report import report_page, write_report
from videoads.report_timeline import timeline_svg

SUMMARY = {
    "run_id": "0198-run",
    "workflow": "short.generation",
    "workflow_version": 1,
    "revision": 41,
    "status": "completed",
    "label": "Your film is ready",
    "progress": {"completed": 9, "total": 9, "percent": 100},
    "cost": {"quoted_credits": 15, "charged_credits": 15, "refunded_credits": 0, "net_credits": 15},
}
STEPS = [
    {"key": "scene.generate:1", "label": "Scene 1 of 4", "status": "succeeded"},
    {"key": "voice.generate", "label": "Narration", "status": "succeeded"},
]
ATTEMPTS = [
    {
        "step": "scene.generate:1",
        "attempt": 1,
        "status": "failed",
        "queued_at": "2026-11-30T10:00:00+00:00",
        "started_at": "2026-11-30T10:00:01+00:00",
        "finished_at": "2026-11-30T10:00:04+00:00",
    },
    {
        "step": "scene.generate:1",
        "attempt": 2,
        "status": "succeeded",
        "started_at": "2026-11-30T10:00:05+00:00",
        "finished_at": "2026-11-30T10:00:09+00:00",
    },
    {"step": "voice.generate", "attempt": 1, "status": "running", "started_at": "2026-11-30T10:00:05+00:00"},
]
LEDGER = [
    {"kind": "charge", "amount": 15, "key": "charge:0198-run", "recorded_at": "2026-11-30T10:00:00+00:00"}
]
EVENTS = [
    {
        "seq": 1,
        "type": "run_accepted",
        "recorded_at": "2026-11-30T10:00:00+00:00",
        "data": {"quoted": 15},
        "hash": "ab" * 32,
    },
    {
        "seq": 2,
        "type": "run_completed",
        "recorded_at": "2026-11-30T10:00:12.5+00:00",
        "data": {},
        "hash": "cd" * 32,
    },
]
INSPECTION = {
    "checks": [
        {"name": "duration", "passed": True, "measured": "14.40 s", "expected": "14.40 s"},
        {
            "name": "true_peak",
            "passed": False,
            "measured": "+0.3 dBTP",
            "expected": "at most -1 dBTP",
            "frame": 60,
            "remedy": "Lower the ceiling",
        },
    ]
}


def page(**changed):
    values = {
        "summary": SUMMARY,
        "steps": STEPS,
        "attempts": ATTEMPTS,
        "ledger": LEDGER,
        "events": EVENTS,
        "film": "data:video/mp4;base64,AAAA",
        "poster": "data:image/jpeg;base64,BBBB",
        "inspection": INSPECTION,
    }
    return report_page(**{**values, **changed})


class Tags(HTMLParser):
    """Collects the tags of a page and refuses one that is not closed in order."""

    VOID = frozenset({"meta", "link", "br", "img", "line", "rect"})

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [
            value for name, value in attrs if name in ("src", "href", "poster", "srcset", "action")
        ]
        if tag not in self.VOID or (tag == "rect" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_fetches_nothing():
    tags = Tags()
    tags.feed(page())

    assert tags.open == []
    assert "script" not in tags.seen
    assert tags.links
    assert all(link.startswith("data:") for link in tags.links)
    assert not re.search(r"@import|url\(|https?://", page())


def test_the_page_says_what_the_api_said():
    text = page()

    for words in (
        "Your film is ready",
        "completed",
        "9 of 9",
        "15 credits",
        "12.5 s",
        "charge:0198-run",
        "ab" * 32,
    ):
        assert words in text
    assert "1 of 2 promises hold" in text
    assert "Lower the ceiling" in text


def test_nothing_in_the_values_becomes_markup():
    evil = "<script>alert(1)</script>\"'"
    text = page(
        summary={**SUMMARY, "label": evil, "failure": {"message": evil}},
        steps=[{"key": evil, "label": evil, "status": evil}],
        attempts=[{**ATTEMPTS[0], "step": evil, "attempt": 1, "status": evil}],
        ledger=[{"kind": evil, "key": evil, "reason": evil}],
        events=[{"seq": evil, "type": evil, "data": {evil: evil}, "hash": evil}],
        inspection={"checks": [{"name": evil, "passed": False, "measured": evil, "remedy": evil}]},
    )
    tags = Tags()
    tags.feed(text)

    assert "<script" not in text
    assert tags.open == []


def test_the_timeline_has_a_bar_for_each_attempt_and_a_thin_line_while_it_waited():
    drawing = timeline_svg(STEPS, ATTEMPTS)

    assert drawing.count('class="bar') == 3
    assert drawing.count('class="bar bad"') == 1
    assert drawing.count('class="waiting"') == 1
    assert "#2" in drawing
    assert "attempt 1 · failed · 3.00 s" in drawing


def test_without_times_the_timeline_says_so_instead_of_drawing_nonsense():
    assert "No attempt recorded a time" in timeline_svg(STEPS, [{"step": "voice.generate", "attempt": 1}])


def test_an_event_too_long_for_the_page_is_cut_and_says_where_the_whole_is():
    assert "history.ndjson" in page(events=[{**EVENTS[0], "data": {"text": "x" * 10_000}}])


@pytest.mark.parametrize(("name", "kind"), [("ad.mp4", "video/mp4"), ("ad.webm", "video/webm")])
def test_film_and_poster_lie_inside_the_written_page(tmp_path, name, kind):
    (tmp_path / name).write_bytes(b"film bytes")
    (tmp_path / "poster.jpg").write_bytes(b"poster bytes")

    out = write_report(
        tmp_path / "report.html",
        summary=SUMMARY,
        steps=STEPS,
        attempts=ATTEMPTS,
        ledger=LEDGER,
        events=EVENTS,
        film=tmp_path / name,
        poster=tmp_path / "poster.jpg",
        inspection=INSPECTION,
    )
    text = out.read_text(encoding="utf-8")
    assert f"data:{kind};base64,ZmlsbSBieXRlcw==" in text
    assert "data:image/jpeg;base64,cG9zdGVyIGJ5dGVz" in text
