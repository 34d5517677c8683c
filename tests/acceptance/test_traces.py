"""One run, one story: every span of a run is reachable from the request that began it, by parent or by link."""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from kit.doors import doors_of
from kit.hand_work import Bench
from kit.outside import outside_app, signed
from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import ended, fund, noop_app, runtime, start_run, summary_of
from longtake import App, Failed, Plan, Retry, Submitted
from longtake.contracts.ids import callback_token_for
from longtake.telemetry.setup import Telemetry, TelemetrySettings, setup_telemetry

CALLER_TRACE = 0x0AF7651916CD43DD8448EB211C80319C
CALLER_SPAN = 0xB7AD6B7169203331
CALLER = f"00-{CALLER_TRACE:032x}-{CALLER_SPAN:016x}-01"
STEPS = 3
PATIENT = 20.0
"""Grace in seconds: long enough that no hint of a busy machine counts as lost and is given twice."""


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = setup_telemetry(TelemetrySettings(exporter="memory"))
    yield made
    made.shutdown()


def reachable(spans: Sequence[ReadableSpan], start: ReadableSpan, *, by_link: bool = True) -> set[int]:
    """Ids of the spans that hang together with `start`: each edge is a parent or a link."""
    edges: dict[int, set[int]] = {span.context.span_id: set() for span in spans if span.context}
    for span in spans:
        others = [span.parent.span_id] if span.parent else []
        others += [link.context.span_id for link in span.links] if by_link else []
        for other in others:
            if other in edges:
                edges[span.context.span_id].add(other)
                edges[other].add(span.context.span_id)
    found, waiting = set(), [start.context.span_id]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting += edges[here]
    return found


def lost(spans: Sequence[ReadableSpan], start: ReadableSpan, *, by_link: bool = True) -> list[str]:
    """Names of the spans that nobody finds from the start."""
    found = reachable(spans, start, by_link=by_link)
    return sorted(span.name for span in spans if span.context.span_id not in found)


def orphaned(spans: Iterable[ReadableSpan]) -> list[str]:
    """Names of spans whose parent was never recorded and is not the caller's, or that begin a story without a link."""
    spans = list(spans)
    known = {span.context.span_id for span in spans} | {CALLER_SPAN}
    return sorted(
        span.name
        for span in spans
        if (span.parent is not None and span.parent.span_id not in known)
        or (span.parent is None and not span.links and not span.name.startswith(("GET ", "POST ")))
    )


def the(spans: Sequence[ReadableSpan], name: str) -> ReadableSpan:
    (found,) = [span for span in spans if span.name == name]
    return found


def command(id_: str, workflow: str = "noop@1", **input_: Any) -> dict[str, Any]:
    return {
        "kind": "generation",
        "project": "p1",
        "client_command_id": id_,
        "payload": {"workflow": workflow, "input": input_},
    }


async def _told(telemetry: Telemetry, name: str, number: int) -> tuple[ReadableSpan, ...]:
    """All spans, once this many of that name have ended: the last hop ends a moment after the run is over."""

    def enough() -> bool:
        return sum(span.name == name for span in telemetry.finished_spans()) >= number

    await eventually(enough, f"{number} spans {name}")
    return telemetry.finished_spans()


EXPECTED = {
    "POST /v1/commands": 1,
    "command.admit": 1,
    "effect.publish": STEPS,
    "effect.claim": STEPS,
    "effect.execute": STEPS,
    "effect.report": STEPS,
    "dispatch.batch": STEPS,
    "run.decide": STEPS,
}
"""Of a chain of three steps: each is published, claimed, executed, reported and decided once."""


@promise("W05", "T37")
async def test_the_spans_of_one_run_are_those_expected_and_all_reachable_from_its_request(
    database, broker, tmp_path, telemetry
):
    async with runtime(database, broker, tmp_path, noop_app(), grace_seconds=PATIENT) as process:
        await fund(process)
        async with doors_of(process, broker) as doors:
            said = await doors.send("http", command("traced", steps=STEPS), traceparent=CALLER)
            summary = await ended(process, said.body["run_id"])
        spans = await _told(telemetry, "dispatch.batch", STEPS)

    assert summary["status"] == "completed"
    assert Counter(span.name for span in spans) == EXPECTED
    request = the(spans, "POST /v1/commands")
    assert lost(spans, request) == []
    assert orphaned(spans) == []
    assert request.parent is not None and request.parent.span_id == CALLER_SPAN
    # The steps themselves are in the caller's own trace, not only linked to it.
    for name in ("command.admit", "effect.execute", "run.decide"):
        assert {span.context.trace_id for span in spans if span.name == name} == {CALLER_TRACE}
    # The check can fail: without the links the batches would stand alone.
    assert set(lost(spans, request, by_link=False)) >= {"dispatch.batch", "effect.claim", "effect.report"}


def flaky_app() -> App:
    """One step that fails once and is tried again a moment later: by then only the relay publishes it."""
    app = App("flaky")

    @app.activity("flaky@1")
    async def flaky(call: Any) -> Any:
        if call.attempt == 1:
            return Failed(error_class="transient", message="come again")
        return None

    @app.workflow("flaky", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("once", activity="flaky@1", retry=Retry(max_attempts=2, first_delay_ms=1500))

    return app


@promise("T09")
async def test_the_story_goes_on_when_the_relay_is_restarted_between_two_hops(
    database, broker, tmp_path, telemetry
):
    app = flaky_app()
    most = ("api", "dispatcher", "worker", "sweeper")
    async with runtime(database, broker, tmp_path, app, roles=most, grace_seconds=PATIENT) as process:
        await fund(process)
        connection = await database.connect()
        async with doors_of(process, broker) as doors:
            async with runtime(database, broker, tmp_path / "1", None, roles=("relay",)):
                said = await doors.send("http", command("restarted", "flaky@1"), traceparent=CALLER)

                async def failed() -> bool:
                    return bool(
                        await connection.fetchval(
                            "select true from longtake.steps where status = 'retry_scheduled'"
                        )
                    )

                await eventually(failed, "the first attempt to fail")
            async with runtime(database, broker, tmp_path / "2", None, roles=("relay",)) as relay:
                summary = await ended(process, said.body["run_id"])
                publisher = await connection.fetchval(
                    "select incarnation from longtake.effects where attempt = 2"
                )
        spans = await _told(telemetry, "dispatch.batch", 2)

    assert summary["status"] == "completed"
    assert publisher == relay.incarnation
    counted = Counter(span.name for span in spans)
    assert counted["effect.publish"] == counted["effect.execute"] == counted["run.decide"] == 2
    assert lost(spans, the(spans, "POST /v1/commands")) == []
    assert orphaned(spans) == []


async def test_what_a_sweeper_finds_belongs_to_the_story_it_repairs(database, broker, tmp_path, telemetry):
    async with runtime(database, broker, tmp_path, noop_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            async with doors_of(process, broker) as doors:
                said = await doors.send("http", command("unheard", steps=2), traceparent=CALLER)
            await bench.report(await bench.claim())  # and the doorbell is never rung
            async with runtime(
                database, broker, tmp_path, None, roles=("sweeper", "dispatcher"), grace_seconds=0.1
            ):

                async def moved() -> bool:
                    return (await summary_of(process, said.body["run_id"]))["progress"]["completed"] == 1

                await eventually(moved, "the sweeper to find the report")
                spans = await _told(telemetry, "dispatch.batch", 1)
        finally:
            await bench.close()

    assert {"sweep.batch", "run.decide"} <= {span.name for span in spans}
    assert lost(spans, the(spans, "POST /v1/commands")) == []
    assert orphaned(spans) == []


async def test_a_callback_without_our_context_is_linked_to_the_step_it_answers(
    database, broker, tmp_path, telemetry
):
    async with runtime(database, broker, tmp_path, outside_app(), roles=("api",)) as process:
        await fund(process)
        bench = await Bench.open(process)
        try:
            async with doors_of(process, broker) as doors:
                said = await doors.send("http", command("called", "outside@1"), traceparent=CALLER)
                run_id = uuid.UUID(said.body["run_id"])
                await bench.settle(Submitted(external_ref="job-1", poll_after_seconds=600))
                token = callback_token_for(process.secret, run_id=run_id, step="make", attempt=1)
                raw, headers = signed(id="d1")
                answer = await doors.http.post(f"/v1/callbacks/acme/{token}", content=raw, headers=headers)
        finally:
            await bench.close()
        spans = telemetry.finished_spans()

    assert answer.status_code == 200
    received = the(spans, "callback.receive")
    assert [link.context.trace_id for link in received.links] == [CALLER_TRACE]
    assert lost(spans, the(spans, "POST /v1/commands")) == []


async def test_a_command_of_the_stream_begins_its_story_at_its_admission(
    database, broker, tmp_path, telemetry
):
    async with runtime(database, broker, tmp_path, noop_app(), grace_seconds=PATIENT) as process:
        await fund(process)
        async with doors_of(process, broker) as doors:
            said = await doors.send("stream", command("streamed", steps=2), traceparent=CALLER)
            await ended(process, said.body["run_id"])
            spans = await _told(telemetry, "dispatch.batch", 2)

    admitted = the(spans, "command.admit")
    assert admitted.parent is not None and admitted.parent.span_id == CALLER_SPAN
    assert lost(spans, admitted) == []
    assert orphaned(spans) == []


async def test_without_tracing_the_callers_context_still_goes_all_the_way(database, broker, tmp_path):
    """Nothing is recorded, and whoever is called at the end still sees the trace that the client began."""
    seen: list[str | None] = []
    app = App("passing")

    @app.activity("pass@1")
    async def note(call: Any) -> None:
        seen.append(call.traceparent)

    @app.workflow("passing", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("a", activity="pass@1").step("b", activity="pass@1", depends_on=["a"])

    async with runtime(database, broker, tmp_path, app) as process:
        await fund(process)
        async with doors_of(process, broker) as doors:
            said = await doors.send("http", command("passed", "passing@1"), traceparent=CALLER)
            await ended(process, said.body["run_id"])

    assert seen == [CALLER, CALLER]


@promise("W05")
async def test_a_retry_is_a_warning_an_end_is_an_error_and_the_expected_is_silence(
    database, broker, tmp_path
):
    import structlog

    with structlog.testing.capture_logs() as lines:
        async with runtime(database, broker, tmp_path, flaky_app(), roles=("api",)) as process:
            await fund(process)
            bench = await Bench.open(process)
            try:
                receipt = await start_run(process, "told", "flaky@1")
                await bench.settle(Failed(error_class="transient", message="one"))
                await bench.pool.execute("update longtake.effects set not_before = now()")
                await bench.settle(Failed(error_class="transient", message="two"))
                summary = await summary_of(process, str(receipt.run_id))
            finally:
                await bench.close()

    assert summary["status"] == "failed"
    told = [(line["event"], line["log_level"]) for line in lines if line.get("run_id") == str(receipt.run_id)]
    assert told == [
        ("longtake.attempt_failed", "warning"),
        ("longtake.step_failed", "error"),
        ("longtake.run_failed", "error"),
    ]
    assert "one" not in str(lines)
