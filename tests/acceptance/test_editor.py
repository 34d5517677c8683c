"""The editor's workflows through the whole service, on real providers: takes and a choice, an autopilot, a render, a batch."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.providers import ProviderBench
from kit.runtimes import PRINCIPAL, fund, runtime
from longtake.client import Client, ProblemReceived
from longtake.contracts.summary import TERMINAL, Summary
from videoads.application import app, outsiders
from videoads.brief import brief_as_json, parse_brief
from videoads.freshness import Fresh, Stale, freshness, main, snapshot_of
from videoads.media import Medium, media_made, render_input
from videoads.showcase import SMALL_BRIEF

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("whole-service")]


def brief_of(**changes: Any) -> dict[str, Any]:
    """One scene, one phrase, 4.8 seconds, small pictures."""
    return brief_as_json(parse_brief(msgspec.json.encode({**SMALL_BRIEF, **changes}), base=None))


BRIEF = brief_of()
TWO_SCENES = brief_of(scenes=SMALL_BRIEF["scenes"] * 2, narration=["It shines.", "For you."], seconds=7.2)


class Studio:
    """A client of a running longtake, and its key."""

    def __init__(self, client: Client, key: str) -> None:
        self.client = client
        self.key = key

    async def start(self, workflow: str, given: dict[str, Any]) -> str:
        """Start a run of one project."""
        accepted = await self.client.start(f"editor.{workflow}@1", given, project="lamp")
        assert accepted.run_id is not None
        return accepted.run_id

    async def ended(self, run_id: str) -> Summary:
        """The end of a run."""
        return await self.client.wait(run_id, seconds=120)

    async def asks(self, run_id: str, step: str) -> Summary:
        """Wait until a step waits for a person."""

        async def there() -> Summary | None:
            summary = await self.client.summary(run_id)
            assert summary.status not in TERMINAL, summary
            return summary if any(blocker.step == step for blocker in summary.blockers) else None

        return await eventually(there, f"{step} of {run_id} asks", 60.0)

    async def done(self, run_id: str) -> dict[str, dict[str, Any]]:
        """What each step of a run told when it succeeded."""
        history = await self.client.history(run_id)
        return {event.fields["step"]: event.fields for event in history if event.type == "step_succeeded"}


@pytest.fixture
async def studio(database, broker, tmp_path, monkeypatch) -> AsyncIterator[Studio]:
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
            async with Client(process.api_server.url, key.text) as client:
                yield Studio(client, key.text)
    finally:
        await outsiders.forget()
        await providers.stop()


@promise("H64", "H67", "H54")
async def test_takes_are_made_a_person_chooses_one_and_other_scenes_are_free_meanwhile(
    studio: Studio,
) -> None:
    """While the choice is open the scene is owned and the rest of the ad is not; what is chosen is what the run delivers."""
    takes = await studio.start("scene.variants", {"brief": TWO_SCENES, "scene": 1, "variants": 3, "keep": 2})
    waiting = await studio.asks(takes, "take.choose")
    assert "needs_input" == waiting.status
    assert ["input_required"] == [blocker.type for blocker in waiting.blockers]

    other = await studio.start("scene.generate", {"brief": TWO_SCENES, "scene": 2})
    for workflow, given in (
        ("scene.regenerate", {"brief": TWO_SCENES, "scene": 1, "seed": 5}),
        ("autopilot", {"brief": TWO_SCENES}),
    ):
        with pytest.raises(ProblemReceived) as refused:
            await studio.start(workflow, given)
        assert "scope-conflict" == refused.value.problem.slug
        assert any("scene:1" in place.message for place in refused.value.problem.errors)
        assert takes in refused.value.problem.detail

    await studio.client.provide_input(takes, "take.choose", answer={"take": 2})
    summary = await studio.ended(takes)
    done = await studio.done(takes)
    shown = [take["clip"]["sha256"] for take in done["takes.shortlist"]["result"]["takes"]]
    clip = media_made(await studio.client.history(takes))["scene:1"]

    assert "completed" == summary.status, summary
    assert 2 == len(set(shown)), "another seed is another picture"
    assert shown[1] == clip.sha256
    assert summary.cost.net_credits in (4, 6), "a take that came too late to be stopped is kept and paid"
    assert "completed" == (await studio.ended(other)).status


@promise("H03", "H11", "H63")
async def test_an_autopilot_delivers_an_ad_which_a_newer_clip_makes_stale_and_not_its_run(
    studio: Studio, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan grows by its script and each step is paid when it begins; freshness is asked for, and is no status."""
    ad = await studio.start("autopilot", {"brief": BRIEF})
    summary = await studio.ended(ad)
    assert ("completed", 11) == (summary.status, summary.cost.net_credits), summary
    assert "scenes:1" in {step.key for step in await studio.client.steps(ad)}
    assert {"ad", "poster", "contact", "inspection"} <= {
        item.name for item in await studio.client.artifacts(ad)
    }
    made = media_made(await studio.client.history(ad))
    snapshot = snapshot_of((await studio.client.plan(ad))["plan"], await studio.client.history(ad))
    assert Fresh() == freshness(snapshot, {slot: medium.sha256 for slot, medium in made.items()})
    assert {"brief", "scene:1", "voice", "music"} == set(snapshot)

    again = await studio.start("scene.regenerate", {"brief": BRIEF, "scene": 1, "seed": 5})
    assert "completed" == (await studio.ended(again)).status
    newest = media_made(await studio.client.history(again))
    stale = freshness(snapshot, {slot: medium.sha256 for slot, medium in newest.items()})

    assert isinstance(stale, Stale)
    assert ["scene:1"] == [change.slot for change in stale.changes]
    assert "completed" == (await studio.client.summary(ad)).status
    server = ("--url", studio.client.url, "--key", studio.key)
    assert [0, 1] == [await asyncio.to_thread(main, [ad, *later, *server]) for later in ([ad], [ad, again])]
    assert ["fresh", "stale"] == [
        msgspec.json.decode(line)["type"] for line in capsys.readouterr().out.splitlines() if '"type"' in line
    ]


@promise("H03", "H54", "H56")
async def test_a_film_is_made_of_what_other_runs_made_and_nobody_changes_that_meanwhile(
    studio: Studio,
) -> None:
    """Scene, voice and music are runs side by side; the render owns all three until it has ended."""
    orders = [("scene.generate", {"scene": 1}), ("voice.generate", {}), ("music.generate", {})]
    parts = [await studio.start(workflow, {"brief": BRIEF, **given}) for workflow, given in orders]
    assert [("completed", 2)] * 3 == [
        (summary.status, summary.cost.net_credits)
        for summary in [await studio.ended(run_id) for run_id in parts]
    ]
    media: dict[str, Medium] = {}
    for run_id in parts:
        media |= media_made(await studio.client.history(run_id))

    film = await studio.start("render", render_input(BRIEF, media))
    for workflow, given in orders:
        with pytest.raises(ProblemReceived) as refused:
            await studio.start(workflow, {"brief": BRIEF, **given})
        assert ("scope-conflict", True) == (
            refused.value.problem.slug,
            film in refused.value.problem.detail,
        )
    summary = await studio.ended(film)

    assert ("completed", 5) == (summary.status, summary.cost.net_credits), summary
    snapshot = snapshot_of((await studio.client.plan(film))["plan"])
    assert Fresh() == freshness(snapshot, {slot: medium.sha256 for slot, medium in media.items()})


@promise("H03", "H12")
async def test_a_batch_reports_what_its_runs_made_and_which_of_them_did_not(studio: Studio) -> None:
    """One scene is owned by somebody else: its run is refused, the other delivers, and the report names both."""
    takes = await studio.start("scene.variants", {"brief": TWO_SCENES, "scene": 1, "variants": 2})
    batch = await studio.start("batch", {"brief": TWO_SCENES, "scenes": [1, 2]})
    summary = await studio.ended(batch)
    done = await studio.done(batch)
    report = done["batch.report"]["result"]
    made = media_made(await studio.client.history(batch))

    assert ("completed", 0) == (summary.status, summary.cost.charged_credits), summary
    assert (1, 1) == (report["made"], report["missing"])
    assert [("scene 1", "missing"), ("scene 2", "made")] == [
        (item["name"], item["status"]) for item in report["items"]
    ]
    child = await studio.client.run(report["items"][1]["run_id"])
    assert "editor.scene.generate" == child.workflow
    assert report["items"][1]["artifacts"]["clip"] == made["scene:2"].sha256
    await studio.client.cancel(takes)
    assert "cancelled" == (await studio.ended(takes)).status
