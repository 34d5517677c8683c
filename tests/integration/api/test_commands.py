"""Commands over HTTP: what is accepted, what is refused, with which problem, and what either leaves behind."""

import asyncio
import uuid

import pytest

from kit.promises import promise
from kit.shop import assert_problem, control, generation

TABLES = ("commands", "runs", "events", "effects", "ledger_entries")


async def _counts(database) -> dict[str, int]:
    connection = await database.connect()
    return {table: await connection.fetchval(f"select count(*) from longtake.{table}") for table in TABLES}


@promise("G09", "G22")
async def test_a_command_is_answered_with_202_its_run_and_where_to_look(counter):
    response = await counter.post(generation(), key="first")

    assert response.status_code == 202, response.text
    body = response.json()
    assert response.headers["location"] == f"/v1/runs/{body['run_id']}"
    assert response.headers["etag"] == f'"e1-r{body["revision"]}"'
    assert int(response.headers["retry-after"]) >= 1
    assert body["summary"]["status"] == "running"
    assert body["links"]["summary"] == f"/v1/runs/{body['run_id']}/summary"
    assert (await counter.http.get(body["links"]["self"])).status_code == 200
    assert (await counter.http.get(body["links"]["steps"])).status_code == 200


@promise("T13")
async def test_a_repeat_gets_the_same_bytes_and_says_that_it_is_one(counter, database):
    first = await counter.post(generation(), key="again")
    before = await _counts(database)

    second = await counter.post(generation(), key="again")

    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert await _counts(database) == before


@promise("T80")
async def test_twenty_at_once_with_one_id_are_one_run(counter, database):
    answers = await asyncio.gather(*(counter.post(generation(), key="race") for _ in range(20)))

    accepted = [answer for answer in answers if answer.status_code == 202]
    assert accepted and {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.content for answer in accepted}) == 1
    assert (await _counts(database))["runs"] == 1


@promise("G17", "G20")
async def test_the_same_id_with_another_body_is_refused_and_changes_nothing(counter, database):
    await counter.post(generation(), key="taken")
    before = await _counts(database)

    refused = await counter.post(generation(price=7), key="taken")

    assert_problem(refused, 422, "command-conflict", "/client_command_id")
    assert await _counts(database) == before


CASES = {
    "no idempotency key": ({"json": generation()}, 400, "idempotency-key-missing", "/client_command_id"),
    "an id that cannot travel": (
        {"json": generation(), "headers": {"Idempotency-Key": "a b"}}, 422, "invalid-command", "/client_command_id",
    ),
    "header and body differ": (
        {"json": {**generation(), "client_command_id": "x1"}, "headers": {"Idempotency-Key": "x2"}},
        422, "invalid-command", "/client_command_id",
    ),
    "not JSON": ({"content": b"{", "headers": {"Idempotency-Key": "k"}}, 400, "malformed", None),
    "not UTF-8": ({"content": b'{"kind": "\xff"}', "headers": {"Idempotency-Key": "k"}}, 400, "malformed", None),
    "an unknown member": (
        {"json": {**generation(), "tenant": "rival"}, "headers": {"Idempotency-Key": "k"}}, 422, "invalid-command", "",
    ),
    "an unknown kind": (
        {"json": {**generation(), "kind": "destroy"}, "headers": {"Idempotency-Key": "k"}}, 422, "invalid-command", "/kind",
    ),
    "a member of the wrong type": (
        {"json": {**generation(), "targets": [7]}, "headers": {"Idempotency-Key": "k"}}, 422, "invalid-command",
        "/targets/0",
    ),
    "U+0000": (
        {"json": generation(title="a\x00b"), "headers": {"Idempotency-Key": "k"}}, 422, "invalid-command",
        "/payload/input/title",
    ),
    "an unknown workflow": (
        {"json": generation("nope@1"), "headers": {"Idempotency-Key": "k"}}, 422, "unknown-workflow", "/payload/workflow",
    ),
    "an unknown policy": (
        {
            "json": {**generation(), "payload": {"workflow": "clip@1", "policy": {"model": "x"}}},
            "headers": {"Idempotency-Key": "k"},
        },
        422, "invalid-command", "/payload/policy/model",
    ),
    "an empty body": ({"content": b"", "headers": {"Idempotency-Key": "k"}}, 400, "malformed", None),
    "another media type": (
        {"content": b"{}", "headers": {"Idempotency-Key": "k", "Content-Type": "text/plain"}}, 415,
        "unsupported-media-type", None,
    ),
    "a form": ({"data": {"kind": "generation"}, "headers": {"Idempotency-Key": "k"}}, 415, "unsupported-media-type", None),
    "a body of a megabyte": (
        {"json": generation(title="x" * 1_000_000), "headers": {"Idempotency-Key": "k"}}, 413, "too-large", None,
    ),
    "a body as large as the limit": (
        {"content": b" " * (256 * 1024), "headers": {"Idempotency-Key": "k"}}, 400, "malformed", None,
    ),
    "a byte beyond the limit": (
        {"content": b" " * (256 * 1024 + 1), "headers": {"Idempotency-Key": "k"}}, 413, "too-large", None,
    ),
    "a cancel of nothing": (
        {"json": {"kind": "cancel", "project": "p1", "expected_revision": 1}, "headers": {"Idempotency-Key": "k"}},
        422, "invalid-command", "/targets",
    ),
    "a cancel without a revision": (
        {"json": control("cancel", str(uuid.UUID(int=1)), None), "headers": {"Idempotency-Key": "k"}}, 428,
        "precondition-missing", "/expected_revision",
    ),
    "a cancel of an unknown run": (
        {"json": control("cancel", str(uuid.UUID(int=1)), 1), "headers": {"Idempotency-Key": "k"}}, 404, "not-found",
        "/targets/0",
    ),
    "a strange If-Match": (
        {"json": control("cancel", str(uuid.UUID(int=1)), 1), "headers": {"Idempotency-Key": "k", "If-Match": "12"}}, 400,
        "invalid-parameter", "/header/If-Match",
    ),
    "an If-Match of another epoch": (
        {
            "json": control("cancel", str(uuid.UUID(int=1)), None),
            "headers": {"Idempotency-Key": "k", "If-Match": '"e9-r1"'},
        },
        412, "stale-revision", "/header/If-Match",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_what_cannot_be_taken_is_refused_and_nothing_is_recorded(case, counter, database):
    """Status, problem type and pointer of every refusal; no table has a row more."""
    request, status, slug, pointer = CASES[case]
    headers = {"Content-Type": "application/json"} if "content" in request else {}

    response = await counter.http.post(
        "/v1/commands", **{**request, "headers": {**headers, **request.get("headers", {})}}
    )

    assert_problem(response, status, slug, pointer)
    assert set((await _counts(database)).values()) == {0}


async def test_an_account_that_cannot_pay_refuses_and_the_refusal_is_given_again(counter, database):
    """A decided refusal is kept: the repeat has the same status and problem, and says that it is one."""
    first = await counter.post(generation(price=2_000_000), key="poor")
    second = await counter.post(generation(price=2_000_000), key="poor")

    assert_problem(first, 409, "insufficient-funds", "/payload/account")
    assert_problem(second, 409, "insufficient-funds", "/payload/account")
    assert second.headers["idempotency-replayed"] == "true"
    counts = await _counts(database)
    assert (counts["commands"], counts["runs"], counts["ledger_entries"]) == (1, 0, 0)
    told = (await counter.http.get("/v1/commands/poor")).json()
    assert (told["status"], told["problem"]["status"]) == ("rejected", 409)


async def test_a_scope_that_is_held_is_named_with_its_holder(counter):
    run_id = await counter.start("one", scopes=["film"])

    refused = await counter.post(generation(scopes=["film"]), key="two")

    assert_problem(refused, 409, "scope-conflict", "/payload/input")
    assert run_id in refused.json()["detail"]


@promise("H37")
async def test_a_stale_command_is_refused_with_412_and_a_current_one_is_applied(counter):
    run_id = await counter.start("stale")
    etag = (await counter.http.get(f"/v1/runs/{run_id}/summary")).headers["etag"]

    future = await counter.post(control("cancel", run_id, 99), key="c1")
    by_etag = await counter.post(control("cancel", run_id, None), key="c2", If_Match=etag)
    late = await counter.post(control("cancel", run_id, 99), key="c1")

    assert_problem(future, 412, "stale-revision", None)
    assert by_etag.status_code == 202, by_etag.text
    assert (late.status_code, late.headers["idempotency-replayed"]) == (412, "true")


async def test_if_match_and_expected_revision_must_agree(counter):
    run_id = await counter.start("both")

    refused = await counter.post(control("cancel", run_id, 1), key="c1", If_Match='"e1-r2"')

    assert_problem(refused, 422, "invalid-command", "/expected_revision")


async def test_an_action_that_is_not_offered_is_refused_with_409(shop):
    run_id = await shop.finished("over")
    revision = (await shop.http.get(f"/v1/runs/{run_id}")).json()["revision"]

    refused = await shop.post(control("retry", run_id, revision), key="r1")

    assert_problem(refused, 409, "action-not-available", None)


async def test_a_commands_status_follows_its_run(shop):
    run_id = await shop.start("follow", "gate@1")
    assert (await shop.http.get("/v1/commands/follow")).json()["status"] == "running"

    shop.app.gate.set()
    async with shop.http.stream("GET", f"/v1/runs/{run_id}/events/stream") as stream:
        assert "event: end" in [line async for line in stream.aiter_lines()]

    assert (await shop.http.get("/v1/commands/follow")).json()["status"] == "completed"


async def test_a_key_without_the_role_may_look_and_not_act(counter):
    reader = await counter.process.keys.create(tenant="acme", actor="reader", roles=("reader",))
    headers = {"Authorization": f"Bearer {reader.text}", "Idempotency-Key": "k"}

    refused = await counter.http.post("/v1/commands", json=generation(), headers=headers)
    looked = await counter.http.get("/v1/runs", headers=headers)

    assert_problem(refused, 403, "forbidden", None)
    assert looked.status_code == 200
