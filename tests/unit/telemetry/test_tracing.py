"""Traces go in and out as W3C text, recorded or not."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from longtake.errors import ConfigurationError
from longtake.telemetry import (
    attributes,
    current_traceparent,
    extract,
    inject,
    span,
    trace_id_of,
    traces_of,
    tracing,
)
from longtake.telemetry.setup import (
    TRACE_FILE_NAME,
    NdjsonSpanExporter,
    Telemetry,
    TelemetrySettings,
    setup_telemetry,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-01"


@pytest.fixture
def recorded() -> Iterator[Telemetry]:
    telemetry = setup_telemetry(TelemetrySettings(exporter="memory"))
    yield telemetry
    telemetry.shutdown()


@pytest.fixture
def unrecorded() -> Iterator[None]:
    tracing.disable()
    yield


@pytest.mark.usefixtures("unrecorded")
def test_a_callers_trace_goes_through_unchanged_while_nothing_is_recorded() -> None:
    headers: dict[str, str] = {}

    with span("effect.publish", kind="producer", parent=PARENT) as here:
        inject(headers)
        stored = here.traceparent

    assert (headers, stored) == ({"traceparent": PARENT}, PARENT)
    assert current_traceparent() is None


@pytest.mark.usefixtures("unrecorded")
def test_without_a_caller_and_without_recording_no_header_is_made_up() -> None:
    headers: dict[str, str] = {}

    with span("effect.publish") as here:
        inject(headers)

    assert (headers, here.traceparent) == ({}, None)


@pytest.mark.usefixtures("unrecorded")
def test_a_span_inside_another_hands_on_its_own_callers_trace_and_gives_the_old_one_back() -> None:
    with span("outer", parent=PARENT):
        with span("inner", parent=OTHER):
            inner = current_traceparent()
        after = current_traceparent()

    assert (inner, after) == (OTHER, PARENT)


def test_a_recorded_span_is_a_child_of_the_text_it_was_given(recorded: Telemetry) -> None:
    with span("effect.execute", kind="consumer", parent=PARENT, attributes={attributes.ATTEMPT: 2}) as here:
        handed_on = here.traceparent
    (done,) = recorded.finished_spans()

    assert done.parent is not None
    assert f"{done.parent.span_id:016x}" == "b7ad6b7169203331"
    assert trace_id_of(handed_on) == TRACE
    assert handed_on != PARENT
    assert dict(done.attributes or {}) == {attributes.ATTEMPT: 2}


def test_a_span_within_a_span_needs_no_text(recorded: Telemetry) -> None:
    with span("outer") as outer, span("inner"):
        pass
    inner, _ = recorded.finished_spans()

    assert inner.parent is not None
    assert outer.traceparent is not None
    assert f"{inner.parent.span_id:016x}" in outer.traceparent


def test_links_are_kept_and_unreadable_ones_left_out(recorded: Telemetry) -> None:
    with span("dispatch.batch", links=[PARENT, "not a trace", OTHER]):
        pass
    (done,) = recorded.finished_spans()

    assert [f"{link.context.trace_id:032x}" for link in done.links] == [TRACE, "1" * 32]


def test_the_number_of_links_is_bounded(recorded: Telemetry) -> None:
    with span("dispatch.batch", links=[PARENT] * (tracing.LINKS_MAX + 1)):
        pass
    (done,) = recorded.finished_spans()

    assert len(done.links) == tracing.LINKS_MAX


def test_an_exception_marks_the_span_and_keeps_its_message_out_of_it(recorded: Telemetry) -> None:
    with pytest.raises(ValueError, match="secret"), span("effect.execute"):
        raise ValueError("a secret of the customer")
    (done,) = recorded.finished_spans()

    assert (done.attributes or {})[attributes.ERROR_TYPE] == "ValueError"
    assert not done.status.is_ok
    assert "secret" not in done.to_json()


def test_a_callers_decision_not_to_record_is_kept(recorded: Telemetry) -> None:
    with span("effect.execute", parent=PARENT[:-2] + "00") as here:
        handed_on = here.traceparent

    assert recorded.finished_spans() == ()
    assert handed_on is not None
    assert (trace_id_of(handed_on), handed_on[-2:]) == (TRACE, "00")


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        (PARENT, True),
        ("01" + PARENT[2:] + "-more", True),
        (PARENT + "-more", False),
        ("ff" + PARENT[2:], False),
        (PARENT.upper(), False),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (PARENT + "\n", False),
        ("", False),
    ],
)
def test_only_what_the_standard_calls_valid_is_read(text: str, readable: bool) -> None:
    assert (extract({"traceparent": text}) is not None) is readable


def test_header_names_are_read_in_any_case() -> None:
    assert extract({"Traceparent": PARENT}) == PARENT
    assert extract(None) is None


def test_a_context_that_a_message_brings_is_not_replaced(recorded: Telemetry) -> None:
    headers = {"traceparent": OTHER}
    with span("effect.publish"):
        inject(headers)

    assert headers == {"traceparent": OTHER}


def test_spans_can_be_read_from_a_file_without_any_collector(tmp_path: Path) -> None:
    telemetry = setup_telemetry(TelemetrySettings(exporter="file", directory=tmp_path, roles=("relay",)))
    with span("effect.publish", parent=PARENT):
        pass
    telemetry.shutdown()
    (line,) = (tmp_path / TRACE_FILE_NAME).read_text().splitlines()
    written = json.loads(line)

    assert written["name"] == "effect.publish"
    assert written["context"]["trace_id"] == f"0x{TRACE}"
    assert written["resource"]["attributes"]["longtake.roles"] == ["relay"]


def test_the_file_of_spans_turns_over_at_its_bound(tmp_path: Path) -> None:
    telemetry = setup_telemetry(TelemetrySettings(exporter="memory"))
    for _ in range(2):
        with span("effect.publish"):
            pass
    first, second = telemetry.finished_spans()
    telemetry.shutdown()
    path = tmp_path / "traces.ndjson"
    exporter = NdjsonSpanExporter(path, bytes_max=10)
    exporter.export([first])
    exporter.export([second])
    exporter.shutdown()

    assert len(path.read_text().splitlines()) == 1
    assert len(path.with_name("traces.ndjson.1").read_text().splitlines()) == 1


def test_after_shutdown_nothing_is_recorded_and_traces_still_go_through() -> None:
    telemetry = setup_telemetry(TelemetrySettings(exporter="memory"))
    telemetry.shutdown()
    telemetry.shutdown()
    with span("effect.publish", parent=PARENT) as here:
        handed_on = here.traceparent

    assert (handed_on, telemetry.finished_spans()) == (PARENT, ())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (TelemetrySettings(exporter="memory", sample_ratio=1.5), "between 0"),
        (TelemetrySettings(exporter="file"), "needs a directory"),
    ],
)
def test_settings_that_make_no_sense_are_refused_with_a_remedy(
    settings: TelemetrySettings, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        setup_telemetry(settings)


def test_traces_that_become_known_on_the_way_are_linked_once_and_up_to_the_bound(recorded: Telemetry) -> None:
    many = [f"00-{number:032x}-{number:016x}-01" for number in range(1, 100)]

    with span("effect.claim", links=[OTHER]) as here:
        here.link([PARENT, None, OTHER, "nonsense", PARENT])
        here.link(many)

    (made,) = recorded.finished_spans()
    linked = [link.context.trace_id for link in made.links]
    assert linked[:2] == [int(OTHER[3:35], 16), int(TRACE, 16)]
    assert len(linked) == len(set(linked))
    assert len(linked) < tracing.LINKS_MAX + 1 < len(many)


def test_the_traces_of_a_batch_are_gathered_only_while_somebody_records(recorded: Telemetry) -> None:
    batch = [SimpleNamespace(traceparent=text) for text in (PARENT, None, OTHER, PARENT)]

    assert traces_of(batch) == [PARENT, OTHER]
    recorded.shutdown()
    assert traces_of(batch) == ()
