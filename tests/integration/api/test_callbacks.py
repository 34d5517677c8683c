"""Callbacks: verified over raw bytes before anything is kept; a copy is welcome and changes nothing."""

import uuid

import pytest

from kit.outside import outside_app, signed
from kit.promises import promise
from kit.runtimes import fund, runtime, start_run
from kit.shop import assert_problem, sign
from longtake.contracts.ids import callback_token_for

BODY = b'{"job": "job-1",  "state": "done"}'


async def _address(shop, **changes) -> str:
    run_id = uuid.UUID(changes.pop("run_id", None) or await shop.start("calls", "gate@1"))
    place = {"step": "wait", "attempt": 1, **changes}
    return f"/v1/callbacks/studio/{callback_token_for(shop.process.secret, run_id=run_id, **place)}"


async def _inbox(database) -> int:
    return await (await database.connect()).fetchval("select count(*) from longtake.inbox")


@promise("H41")
async def test_an_authentic_callback_is_kept_once_and_a_copy_is_thanked_too(counter, database):
    address = await _address(counter)
    headers = {"X-Signature": sign(BODY), "Authorization": ""}

    first = await counter.http.post(address, content=BODY, headers=headers)
    copy = await counter.http.post(address, content=BODY, headers=headers)

    assert (first.status_code, copy.status_code) == (200, 200), first.text
    assert (first.json()["duplicate"], copy.json()["duplicate"]) == (False, True)
    assert first.json()["inbox_id"] == copy.json()["inbox_id"]
    assert await _inbox(database) == 1


@promise("T58")
@pytest.mark.parametrize(
    ("what", "status", "slug"),
    [
        ("no signature", 401, "bad-signature"),
        ("a signature over other bytes", 401, "bad-signature"),
        ("bytes that mean the same and are not the same", 401, "bad-signature"),
        ("a forged token", 404, "not-found"),
        ("an unknown provider", 404, "not-found"),
        ("a run that is not here", 404, "not-found"),
        ("too many bytes", 413, "too-large"),
    ],
)
async def test_a_callback_that_proves_nothing_leaves_nothing(what, status, slug, counter, database):
    address, body, headers = await _address(counter), BODY, {"X-Signature": sign(BODY)}
    match what:
        case "no signature":
            headers = {}
        case "a signature over other bytes":
            headers = {"X-Signature": sign(b"{}")}
        case "bytes that mean the same and are not the same":
            body = BODY.replace(b"  ", b" ")
        case "a forged token":
            address = address[:-3] + ("AAA" if not address.endswith("AAA") else "BBB")
        case "an unknown provider":
            address = address.replace("studio", "nobody")
        case "a run that is not here":
            address = await _address(counter, run_id=str(uuid.UUID(int=5)))
        case "too many bytes":
            body = b" " * (1024 * 1024 + 1)

    response = await counter.http.post(address, content=body, headers=headers)

    assert_problem(response, status, slug)
    assert await _inbox(database) == 0


@promise("H38", "H42")
async def test_the_inbox_names_provider_place_and_type_and_keeps_none_of_the_raw_bytes(counter, database):
    """Everything that may be matched later has its column; of the body only what the verifier let pass is there."""
    run_id = await counter.start("inboxed", "gate@1")
    address = await _address(counter, run_id=run_id)
    told = await counter.http.post(address, content=BODY, headers={"X-Signature": sign(BODY)})

    row = await (await database.connect()).fetchrow("select * from longtake.inbox")

    assert told.status_code == 200
    assert (row["provider"], row["callback_type"], row["external_ref"]) == ("studio", "done", "job-1")
    assert (str(row["run_id"]), row["step"], row["attempt"]) == (run_id, "wait", 1)
    assert (row["status"], row["payload"], row["copies"], row["settled_at"]) == ("pending", "{}", 1, None)
    assert row["dedupe_key"].startswith(f"{run_id}/wait/1/")
    assert BODY.decode() not in str(dict(row)) and '"state"' not in str(dict(row))


@promise("H38")
async def test_an_authentic_callback_with_text_that_no_column_takes_is_kept_all_the_same(
    database, broker, tmp_path
):
    """A NUL in the provider's own words is no reason to answer 500 and be called again for ever."""
    async with runtime(database, broker, tmp_path, outside_app(), roles=("api",)) as process:
        await fund(process)
        receipt = await start_run(process, "odd", "outside@1")
        token = callback_token_for(process.secret, run_id=uuid.UUID(receipt.run_id), step="make", attempt=1)
        raw, headers = signed(id="d\0", job="job\0", type="done\0")
        folded = {name.lower(): value for name, value in headers.items()}

        first = await process.inbox.receive("acme", token, folded, raw, traceparent=None)
        again = await process.inbox.receive("acme", token, folded, raw, traceparent=None)
        row = await (await database.connect()).fetchrow(
            "select external_ref, callback_type from longtake.inbox"
        )

    assert (first.duplicate, again.duplicate) == (False, True)
    assert tuple(row) == ("job\ufffd", "done\ufffd")
