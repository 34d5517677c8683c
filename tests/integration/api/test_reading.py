"""Reading a run: every address tells the truth of the store, and repeats it cheaply."""

import hashlib
import uuid
from datetime import datetime

import msgspec
import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.shop import CLIP, assert_problem, control
from longtake.contracts.envelope import GENESIS, chain
from longtake.contracts.summary import Summary


@promise("H58")
async def test_a_summary_has_exactly_the_public_shape_and_is_polled_by_etag(shop):
    run_id = await shop.start("gated", "gate@1")
    address = f"/v1/runs/{run_id}/summary"
    first = await shop.http.get(address)

    again = await shop.http.get(address, headers={"If-None-Match": first.headers["etag"]})

    assert set(first.json()) == set(Summary.__struct_fields__) - {"failure"}
    assert first.headers["etag"] == f'"e1-r{first.json()["revision"]}"'
    assert (again.status_code, again.content) == (304, b"")
    # The time to wait is no part of the ETag: a 304 repeats it (P20).
    assert int(again.headers["retry-after"]) >= 1
    assert again.headers["etag"] == first.headers["etag"]

    shop.app.gate.set()
    await eventually(lambda: _is(shop, run_id, "completed"), "the end of the run")
    moved = await shop.http.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert moved.status_code == 200
    assert moved.json()["timing"] == {"poll_after_ms": None}
    assert "retry-after" not in moved.headers


async def test_steps_show_what_runs_what_waits_and_who_works(shop):
    """`running` is read off the live lease; a step that was never scheduled is there too."""
    run_id = await shop.start("gated", "gate@1")

    async def runs():
        steps = (await shop.http.get(f"/v1/runs/{run_id}/steps")).json()["steps"]
        return steps if steps[0]["status"] == "running" and steps[0]["progress"] == 40 else None

    steps = await eventually(runs, "a worker with progress")

    assert [step["key"] for step in steps] == ["wait", "after"]
    assert steps[0]["worker"] == shop.process.owner
    assert steps[0]["attempts"][0]["claims"][0]["owner"] == shop.process.owner
    assert (steps[1]["status"], steps[1]["attempt"], steps[1]["attempts"]) == ("pending", 0, [])
    picture = await shop.http.get(f"/v1/runs/{run_id}/plan?format=mermaid")
    assert picture.headers["content-type"].startswith("text/vnd.mermaid")
    assert picture.text.startswith("flowchart")
    assert ":::running" in picture.text


async def test_a_finished_run_tells_its_steps_effects_plan_money_and_files(shop):
    run_id = await shop.finished("whole")
    base = f"/v1/runs/{run_id}"
    run = (await shop.http.get(base)).json()
    step = (await shop.http.get(f"{base}/steps")).json()["steps"][0]
    effects = (await shop.http.get(f"{base}/effects")).json()["effects"]
    plan = (await shop.http.get(f"{base}/plan")).json()
    ledger = (await shop.http.get(f"{base}/ledger")).json()
    artifacts = (await shop.http.get(f"{base}/artifacts")).json()["artifacts"]

    assert (run["status"], run["charged"], run["workflow"]) == ("completed", 5, "clip")
    assert (step["status"], step["attempt"], step["worker"]) == ("succeeded", 1, None)
    assert [(e["kind"], e["disposition"], e["receipt"]["outcome"]) for e in effects] == [
        ("execute", "applied", "succeeded")
    ]
    assert plan["fingerprint"] == run["plan_fingerprint"]
    assert [s["key"] for s in plan["plan"]["steps"]] == ["make"]
    assert (ledger["charged"], ledger["refunded"], ledger["net"]) == (5, 0, 5)
    assert sum(e["amount"] for e in ledger["entries"] if e["kind"] == "charge") == 5
    assert [(a["name"], a["sha256"]) for a in artifacts] == [("clip", hashlib.sha256(CLIP).hexdigest())]
    assert artifacts[0]["href"] == f"/v1/artifacts/{artifacts[0]['id']}"
    assert step["artifacts"]


async def test_events_carry_the_exact_bytes_that_their_hashes_are_taken_over(shop):
    """A stranger can recompute the chain from the answers alone; one changed byte breaks it."""
    run_id = await shop.finished("chain")
    first = (await shop.http.get(f"/v1/runs/{run_id}/events?limit=2")).content
    page = msgspec.json.decode(first, type=_Page)
    rest = msgspec.json.decode(
        (await shop.http.get(f"/v1/runs/{run_id}/events?after={page.next_after}")).content, type=_Page
    )
    events = page.events + rest.events
    head = (await shop.http.get(f"/v1/runs/{run_id}")).json()["head_hash"]

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (page.next_after, rest.next_after) == (2, None)
    assert _head(events) == head
    events[0] = msgspec.structs.replace(
        events[0], data=msgspec.Raw(bytes(events[0].data).replace(b"clip", b"clap"))
    )
    assert _head(events) != head


async def test_pages_of_runs_hold_every_run_once_and_a_cursor_is_of_its_query(counter):
    made = [await counter.start(f"page-{number}") for number in range(5)]
    seen, address = [], "/v1/runs?project=p1&limit=2"
    while address:
        page = await counter.http.get(address)
        assert page.status_code == 200, page.text
        seen += [run["run_id"] for run in page.json()["runs"]]
        cursor = page.json()["next_cursor"]
        address = f"/v1/runs?project=p1&limit=2&cursor={cursor}" if cursor else None
        assert ('rel="next"' in page.headers.get("link", "")) is (cursor is not None)

    assert seen == list(reversed(made))
    cursor = (await counter.http.get("/v1/runs?project=p1&limit=2")).json()["next_cursor"]
    for other in ("project=p2&", "", "project=p1&status=running&"):
        assert_problem(await counter.http.get(f"/v1/runs?{other}cursor={cursor}"), 400, "bad-cursor")
    forged = cursor[:-4] + ("AAAA" if cursor[-4:] != "AAAA" else "BBBB")
    assert_problem(await counter.http.get(f"/v1/runs?project=p1&cursor={forged}"), 400, "bad-cursor")
    assert_problem(await counter.rival.get(f"/v1/runs?project=p1&cursor={cursor}"), 400, "bad-cursor")


async def test_lists_are_filtered_by_status_and_workflow(counter):
    run_id = await counter.start("one")
    cancelled = await counter.start("two", "gate@1")
    revision = (await counter.http.get(f"/v1/runs/{cancelled}")).json()["revision"]
    await counter.post(control("cancel", cancelled, revision), key="c")

    by_workflow = (await counter.http.get("/v1/runs?workflow=clip")).json()["runs"]
    by_status = (await counter.http.get("/v1/runs?status=running")).json()["runs"]

    assert [run["run_id"] for run in by_workflow] == [run_id]
    assert [run["run_id"] for run in by_status] == [run_id]


@pytest.mark.parametrize(
    ("address", "pointer"),
    [
        ("/v1/runs?limit=0", "/query/limit"),
        ("/v1/runs?limit=201", "/query/limit"),
        ("/v1/runs?limit=ten", "/query/limit"),
        ("/v1/runs?limit=%D9%A1", "/query/limit"),
        ("/v1/runs?status=happy", "/query/status"),
        ("/v1/runs?project=a%00b", "/query/project"),
        ("/v1/runs?project=", "/query/project"),
        ("/v1/runs/{run}/events?after=-1", "/query/after"),
        ("/v1/runs/{run}/events?after=99999999999999999999", "/query/after"),
        ("/v1/runs/{run}/events/stream?after=x", "/query/after"),
        ("/v1/runs/{run}/plan?format=svg", "/query/format"),
    ],
)
async def test_a_parameter_that_makes_no_sense_is_named(address, pointer, counter):
    run_id = await counter.start("any")

    refused = await counter.http.get(address.replace("{run}", run_id))

    assert_problem(refused, 400, "invalid-parameter", pointer)


async def test_health_says_that_the_authority_answers_and_how_nats_is(counter):
    live, ready = await counter.http.get("/health/live"), await counter.http.get("/health/ready")

    assert live.json() == {"status": "live"}
    assert ready.json() == {"status": "ready", "postgres": "up", "nats": "up", "store_epoch": 1}
    assert "python_info" in (await counter.http.get("/metrics")).text


class _Event(msgspec.Struct):
    seq: int
    type: str
    version: int
    recorded_at: datetime
    store_epoch: int
    data: msgspec.Raw
    meta: msgspec.Raw
    id: uuid.UUID


class _Page(msgspec.Struct):
    events: list[_Event]
    next_after: int | None


def _head(events: list[_Event]) -> str:
    previous = GENESIS
    for event in events:
        previous = chain(
            previous,
            store_epoch=event.store_epoch,
            seq=event.seq,
            type_=event.type,
            version=event.version,
            recorded_at=event.recorded_at,
            data=bytes(event.data),
            meta=bytes(event.meta),
        )
    return previous.hex()


async def _is(shop, run_id: str, status: str) -> bool:
    return (await shop.http.get(f"/v1/runs/{run_id}")).json()["status"] == status
