"""The edge: keys, hosts, methods and strangers - and that no tenant sees another's."""

import asyncio

import httpx2
import pytest

from kit.shop import assert_problem, generation

ROUTES = ("", "/summary", "/steps", "/effects", "/events", "/events/stream", "/plan", "/ledger", "/artifacts")


async def test_no_address_tells_another_tenant_anything(shop):
    """Foreign and absent are the same answer, byte for byte but for the id; lists and commands do not show them."""
    run_id = await shop.finished("secret")
    artifact = (await shop.http.get(f"/v1/runs/{run_id}/artifacts")).json()["artifacts"][0]["id"]
    absent = "00000000-0000-0000-0000-000000000001"

    for route in ROUTES:
        assert (await shop.http.get(f"/v1/runs/{run_id}{route}")).status_code == 200, route
        foreign = await shop.rival.get(f"/v1/runs/{run_id}{route}")
        nothing = await shop.rival.get(f"/v1/runs/{absent}{route}")
        assert_problem(foreign, 404, "not-found")
        assert _without_traces(foreign, run_id) == _without_traces(nothing, absent), route
    for method in ("GET", "HEAD"):
        assert (await shop.rival.request(method, f"/v1/artifacts/{artifact}")).status_code == 404
    assert (await shop.rival.get("/v1/runs")).json()["runs"] == []
    assert (await shop.rival.get("/v1/commands/secret")).status_code == 404
    for kind in ("cancel", "retry"):
        body = {"kind": kind, "project": "p1", "targets": [run_id], "expected_revision": 1}
        refused = await shop.rival.post("/v1/commands", json=body, headers={"Idempotency-Key": kind})
        assert_problem(refused, 404, "not-found", "/targets/0")


async def test_two_tenants_may_use_the_same_command_id(counter):
    mine = await counter.http.post("/v1/commands", json=generation(), headers={"Idempotency-Key": "same"})
    theirs = await counter.rival.post("/v1/commands", json=generation(), headers={"Idempotency-Key": "same"})

    assert (mine.status_code, theirs.status_code) == (202, 202)
    assert mine.json()["run_id"] != theirs.json()["run_id"]


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer nonsense",
        "Basic bHQ6eA==",
        "Bearer lt_abc_def",
        "Bearer " + "x" * 5000,
    ],
)
async def test_a_request_without_a_good_key_is_refused(authorization, counter):
    response = await counter.http.get("/v1/runs", headers={"Authorization": authorization})

    assert_problem(response, 401, "unauthenticated")
    assert response.headers["www-authenticate"].startswith("Bearer")


async def test_a_key_opens_only_with_its_secret_and_only_until_it_is_revoked(counter):
    made = await counter.process.keys.create(tenant="acme", actor="new", roles=("producer",))
    good = {"Authorization": f"Bearer {made.text}"}
    wrong = {"Authorization": f"Bearer {made.text[:-1]}{'A' if made.text[-1] != 'A' else 'B'}"}

    assert_problem(await counter.http.get("/v1/runs", headers=wrong), 401, "unauthenticated")
    await counter.process.keys.revoke(made.key_id)
    assert_problem(await counter.http.get("/v1/runs", headers=good), 401, "unauthenticated")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8600", "127.0.0.1.evil.example", "10.0.0.1", "a@localhost"]
)
async def test_a_foreign_host_is_refused_everywhere_even_with_a_good_key(host, counter):
    """A page of another site that resolves its own name to us gets nothing (DNS rebinding)."""
    for address in ("/v1/runs", "/health/live", "/nowhere"):
        assert_problem(
            await counter.http.get(address, headers={"Host": host}), 403, "bad-host", "/header/Host"
        )


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "127.8.8.8", "[::1]:8600", "x.localhost"]
)
async def test_loopback_names_are_taken(host, counter):
    assert (await counter.http.get("/health/live", headers={"Host": host})).status_code == 200


async def test_other_addresses_and_methods_are_problems_too(counter):
    nowhere = await counter.http.get("/nowhere")
    deleted = await counter.http.delete("/v1/runs")
    malformed = await counter.http.get("/v1/runs/not-an-id")

    assert_problem(nowhere, 404, "not-found")
    assert_problem(deleted, 405, "method-not-allowed")
    assert "GET" in deleted.headers["allow"]
    assert_problem(malformed, 404, "not-found")
    assert deleted.headers["x-content-type-options"] == "nosniff"


async def test_bytes_that_are_no_http_do_not_hurt(counter):
    """A line of rubbish is answered or dropped; the next caller is served."""
    reader, writer = await asyncio.open_connection("127.0.0.1", counter.process.api_server.port)
    writer.write(b"\x16\x03\x01 rubbish\r\n\r\n")
    await writer.drain()
    async with asyncio.timeout(10):
        assert b"500" not in (await reader.read(200))[:20]
    writer.close()

    assert (await counter.http.get("/health/live")).status_code == 200


async def test_the_server_answers_many_at_once(counter):
    answers = await asyncio.gather(*(counter.http.get("/v1/runs") for _ in range(60)))

    assert {answer.status_code for answer in answers} == {200}


def _without_traces(response: httpx2.Response, id_: str) -> str:
    body = {name: value for name, value in response.json().items() if name != "trace_id"}
    return repr(body).replace(id_, "ID")
