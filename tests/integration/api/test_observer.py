"""The client observes: it may go, come back as somebody else, or never have listened, and the run does not care."""

import httpx2

from kit.doors import doors_of
from kit.probe import eventually
from kit.promises import promise
from kit.shop import generation, open_shop
from longtake.client import Client

REWRITTEN = """update longtake.runs set status = 'blocked',
    summary = replace(summary::text, '"status":"running"', '"status":"blocked"')::json"""


def _key(shop) -> str:
    return shop.http.headers["authorization"].removeprefix("Bearer ")


@promise("G02", "G03", "G07")
async def test_a_run_outlives_every_connection_and_its_id_is_all_one_needs(shop):
    """Connection and stream are gone before the first step ends; a stranger with the id reads the true end."""
    async with httpx2.AsyncClient(base_url=shop.url, trust_env=False, headers=shop.http.headers) as tab:
        answer = await tab.post(
            "/v1/commands", json=generation("gate@1"), headers={"Idempotency-Key": "left"}
        )
        run_id = answer.json()["run_id"]
        async with tab.stream("GET", f"/v1/runs/{run_id}/events/stream") as stream:
            async for line in stream.aiter_lines():
                assert "run_completed" not in line
                break
    shop.app.gate.set()

    async with Client(shop.url, _key(shop)) as stranger:
        summary = await stranger.wait(run_id, seconds=15)
        events = await stranger.history(run_id)

    assert answer.status_code == 202
    assert (summary.status, events[-1].type) == ("completed", "run_completed")
    assert summary.revision == events[-1].seq


@promise("G02", "G04")
async def test_whoever_follows_or_reads_moves_nothing(shop, database):
    """Twenty readings of every kind at a run that waits: no row of it has moved."""
    run_id = await shop.start("watched", "gate@1")
    connection = await database.connect()

    async def working() -> bool:
        return await connection.fetchval("select state = 'leased' from longtake.effects")

    await eventually(working, "the run to be at its gate")
    before = await connection.fetchrow("select revision, head_hash, updated_at from longtake.runs")
    async with Client(shop.url, _key(shop)) as client:
        for _ in range(20):
            await client.summary(run_id)
            await client.run(run_id)
            await client.events(run_id)
            await client.plan(run_id)
            async for event in client.stream(run_id):
                assert event.seq == 1
                break
    after = await connection.fetchrow("select revision, head_hash, updated_at from longtake.runs")
    counted = await connection.fetchrow(
        "select (select count(*) from longtake.effects), (select count(*) from longtake.effect_claims)"
    )

    assert tuple(after) == tuple(before)
    assert tuple(counted) == (1, 1)


@promise("G14", "G38", "H84")
async def test_every_door_and_every_reader_is_told_the_one_stored_status(database, broker, tmp_path):
    """Summary, run, list, client, NATS and a second process: one answer, of the rows and of nobody's memory."""
    async with open_shop(database, broker, tmp_path) as shop:
        run_id = await shop.start("told", "gate@1")

        async def at_the_gate() -> bool:
            steps = (await shop.http.get(f"/v1/runs/{run_id}/steps")).json()["steps"]
            return steps[0]["status"] == "running"

        await eventually(at_the_gate, "the run to be at its gate")
        connection = await database.connect()
        async with (
            doors_of(shop.process, broker) as doors,
            open_shop(database, broker, tmp_path / "other", roles=("api",)) as other,
            Client(shop.url, _key(shop)) as client,
        ):
            for change in (None, REWRITTEN):
                if change:
                    await connection.execute(change)
                told = [
                    (await shop.http.get(f"/v1/runs/{run_id}/summary")).json()["status"],
                    (await shop.http.get(f"/v1/runs/{run_id}")).json()["status"],
                    (await shop.http.get("/v1/runs")).json()["runs"][0]["status"],
                    (await other.http.get(f"/v1/runs/{run_id}/summary")).json()["status"],
                    (await client.summary(run_id)).status,
                    (await doors.summary(run_id)).body["status"],
                ]
                # The row is the source: when it says something else, so does every reader.
                assert set(told) == {"blocked" if change else "running"}


@promise("H61", "H02")
async def test_a_published_file_does_not_make_the_run_ready(shop):
    """The film is there and can be fetched; the run is completed only when its delivery was checked."""
    run_id = await shop.start("film", "checked@1")

    async def published() -> list:
        return (await shop.http.get(f"/v1/runs/{run_id}/artifacts")).json()["artifacts"]

    (film,) = await eventually(published, "the film to be published")
    early = (await shop.http.get(f"/v1/runs/{run_id}/summary")).json()
    fetched = await shop.http.get(film["href"])
    shop.app.gate.set()
    async with Client(shop.url, _key(shop)) as client:
        late = await client.wait(run_id, seconds=15)

    assert fetched.status_code == 200
    assert (early["status"], early["progress"]["completed"], early["progress"]["percent"]) == (
        "running",
        1,
        50,
    )
    assert late.status == "completed"


@promise("H88")
async def test_no_url_is_stored_anywhere_and_an_artifact_is_its_digest(shop, database):
    run_id = await shop.finished("stored")
    connection = await database.connect()
    tables = await connection.fetch(
        "select table_name from information_schema.tables where table_schema = 'longtake'"
    )
    shown = {
        table: await connection.fetch(f"select t::text as row from longtake.{table} t")
        for table in (row["table_name"] for row in tables)
    }
    artifact = (await shop.http.get(f"/v1/runs/{run_id}/artifacts")).json()["artifacts"][0]
    key = await connection.fetchval("select object_key from longtake.artifacts")

    assert [table for table, rows in shown.items() if any("://" in row["row"] for row in rows)] == []
    assert sum(len(rows) for rows in shown.values()) > 10
    assert artifact["sha256"] in key
    assert artifact["href"].startswith("/v1/artifacts/")


async def test_a_stored_url_would_be_seen(shop, database):
    """The search above finds one where there is one."""
    run_id = await shop.finished("planted")
    connection = await database.connect()
    await connection.execute(
        "update longtake.steps set error_message = 'https://signed.example/x?sig=1' where run_id = $1", run_id
    )
    rows = await connection.fetch("select t::text as row from longtake.steps t")

    assert any("://" in row["row"] for row in rows)
