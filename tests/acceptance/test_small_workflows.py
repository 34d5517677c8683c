"""The small workflows of videoads through the whole service: a new turn, a delivered ad, its export, a probe of it."""

from pathlib import Path

import msgspec
import pytest

from kit.promises import promise
from kit.providers import ProviderBench
from kit.runtimes import PRINCIPAL, fund, runtime
from longtake.client import Client, ProblemReceived
from videoads.application import app, outsiders
from videoads.brief import brief_as_json, parse_brief
from videoads.renderer.inspect.probing import probe
from videoads.showcase import SMALL_BRIEF
from videoads.workflows.film_export import material_of

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("whole-service")]

LANDSCAPE = {"width": 620, "height": 350}


@pytest.fixture
async def client(database, broker, tmp_path, monkeypatch):
    providers = ProviderBench(tmp_path / "providers", arguments=["--speed", "20"], real_media=True)
    await providers.start()
    monkeypatch.setenv("VIDEOADS_PROVIDERS_URL", providers.base_url)
    monkeypatch.setenv("VIDEOADS_WEBHOOK_SECRET", "whsec_" + "bG9uZ3Rha2UtdGVzdC1zZWNyZXQtMDAwMDAwMDAwMDE=")
    try:
        async with runtime(database, broker, tmp_path / "data", app, lease_seconds=20) as process:
            await fund(process)
            key = await process.keys.create(
                tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",)
            )
            async with Client(process.api_server.url, key.text) as opened:
                yield opened
    finally:
        await outsiders.forget()
        await providers.stop()


async def result_of(client: Client, run_id: str | None, step: str) -> dict:
    history = await client.history(str(run_id))
    (done,) = [e for e in history if e.type == "step_succeeded" and e.fields["step"] == step]
    return done.fields["result"]


@promise("H04")
async def test_a_conversation_revises_delivers_exports_and_probes(client: Client, tmp_path: Path) -> None:
    """Each is a run of its own, started by its own kind of command; the export pays for its render alone."""
    brief = brief_as_json(parse_brief(msgspec.json.encode(SMALL_BRIEF), base=None))
    turn = await client.start(
        "script.revise@1",
        {"brief": brief, "changes": {"headline": "Light for early roads"}},
        project="lamp",
        kind="new_turn",
        conversation="c1",
        text="Make it about the morning",
    )
    assert "completed" == (await client.wait(str(turn.run_id), seconds=30)).status
    revised = await result_of(client, turn.run_id, "script.revise")
    assert "music" in revised["changed"] or "shots" in revised["changed"] or "card" in revised["changed"]

    made = await client.start(
        "short.generation@1", {"brief": {**brief, "headline": "Light for early roads"}}, project="lamp"
    )
    assert "completed" == (await client.wait(str(made.run_id), seconds=120)).status
    material = material_of(await client.history(str(made.run_id)))

    exported = await client.start(
        "film.export@1", {"material": material, "size": LANDSCAPE}, project="lamp", kind="export"
    )
    summary = await client.wait(str(exported.run_id), seconds=120)
    assert ("completed", 5) == (summary.status, summary.cost.net_credits), summary
    films = {item.name: item for item in await client.artifacts(str(exported.run_id))}
    film = await client.download(films["ad"], tmp_path / "ad.mp4")
    assert ("film", 620, 350) == tuple(probe(film)[name] for name in ("kind", "width", "height"))

    asset = {"object_key": films["ad"].object_key, "sha256": films["ad"].sha256}
    probed = await client.start("asset.probe@1", {"asset": asset}, project="lamp", kind="utility")
    summary = await client.wait(str(probed.run_id), seconds=30)
    assert ("completed", 0) == (summary.status, summary.cost.charged_credits)
    assert probe(film) == await result_of(client, probed.run_id, "asset.probe")

    with pytest.raises(ProblemReceived) as caught:
        await client.start("asset.probe@1", {"asset": asset}, project="lamp")
    assert "/kind" == caught.value.problem.errors[0].pointer
