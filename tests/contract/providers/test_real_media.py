"""What the providers deliver is real: clips that decode, stills that open, speech and music with sound in them."""

import wave
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import av
import numpy
import pytest_asyncio
from PIL import Image

from kit.promises import promise
from kit.providers import ProviderBench, WebhookReceiver
from videoads.providers.clips import ClipsClient
from videoads.providers.contract import (
    Accepted,
    Authentic,
    Completed,
    ErrorClass,
    Failed,
    Fetched,
    Rejected,
    Succeeded,
)
from videoads.providers.music import MusicClient
from videoads.providers.render import RenderClient
from videoads.providers.voice import VoiceClient

SECRET = "whsec_" + "bG9uZ3Rha2UtdGVzdC1zZWNyZXQtMDAwMDAwMDAwMDE="
SIZE_MAX = 20_000_000
PALETTE = {
    "background": "#1b120c",
    "surface": "#3a2417",
    "ink": "#fff4e6",
    "accent": "#d9822b",
    "light": "#ffd9a0",
}
SHOT = {
    "prompt": "espresso at dawn, steam over a cup",
    "frames": 48,
    "fps": 30,
    "width": 720,
    "height": 1280,
    "seed": 7,
    "palette": PALETTE,
    "title": "dawn",
}


@pytest_asyncio.fixture
async def maker(tmp_path: Path) -> AsyncIterator[ProviderBench]:
    """Providers that make media with the renderer itself, tiny."""
    bench = ProviderBench(
        tmp_path / "providers",
        arguments=["--speed", "50", "--size", "tiny", "--profile", "plain"],
        real_media=True,
    )
    await bench.start()
    yield bench
    await bench.stop()


async def fetched(
    bench: ProviderBench, client: ClipsClient, shot: dict[str, Any], soon: datetime, path: Path
) -> Any:
    outcome = await client.submit({"shot": shot}, path.name, soon)
    assert isinstance(outcome, Accepted), outcome
    await bench.wait(token=path.name, open_jobs=0, settled=True)
    polled = await client.poll(outcome.ref)
    assert isinstance(polled, Succeeded), polled
    assert isinstance(await client.fetch(outcome.ref, path, size_bytes_max=SIZE_MAX), Fetched)
    return polled


@promise("H68")
async def test_clips_and_stills_are_tiny_real_pictures_and_equal_orders_share_them(
    maker: ProviderBench, soon: datetime, tmp_path: Path
) -> None:
    clips = ClipsClient(maker.base_url)
    stills = ClipsClient(maker.base_url, style="stills")

    polled = await fetched(maker, clips, SHOT, soon, tmp_path / "clip-1")
    await fetched(maker, clips, SHOT, soon, tmp_path / "clip-2")
    await fetched(maker, stills, SHOT, soon, tmp_path / "still-1")

    with av.open(str(tmp_path / "clip-1")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert (len(frames), frames[0].shape) == (24, (160, 90, 3))
    assert polled.report["set_piece"] and numpy.std(frames[-1]) > 5
    assert numpy.abs(frames[0].astype(int) - frames[-1]).mean() > 0.5
    assert (tmp_path / "clip-1").read_bytes() == (tmp_path / "clip-2").read_bytes()
    with Image.open(tmp_path / "still-1") as still:
        assert still.size == (90, 160)
    assert len(list((maker.data / "media").glob("*.mp4"))) == 1
    assert (await maker.numbers("clips"))["accepted"] == 2
    await clips.close()
    await stills.close()


@promise("H68")
async def test_speech_and_music_are_sound_and_speech_reports_its_phrases(
    maker: ProviderBench, soon: datetime, tmp_path: Path
) -> None:
    voice, music = VoiceClient(maker.base_url), MusicClient(maker.base_url)

    spoken = await voice.submit({"speech": {"lines": ["Good morning."], "seed": 3}}, "voice-1", soon)
    played = await music.submit({"plan": {"bpm": 100, "bars": 1, "mood": "warm", "seed": 3}}, "music-1", soon)

    assert isinstance(spoken, Completed), spoken
    assert isinstance(played, Completed), played
    (phrase,) = spoken.report["phrases"]
    assert phrase["text"] == "Good morning." and phrase["end_sample"] > phrase["start_sample"] >= 0
    for name, sound in (("voice", spoken), ("music", played)):
        (tmp_path / name).write_bytes(sound.content)
        with wave.open(str(tmp_path / name)) as source:
            samples = numpy.frombuffer(source.readframes(source.getnframes()), dtype="<i2")
            assert source.getframerate() == 48000
        assert numpy.abs(samples.astype(int)).max() > 1000
    await voice.close()
    await music.close()


async def test_what_the_renderer_refuses_is_the_requests_fault_and_says_where(
    maker: ProviderBench, soon: datetime
) -> None:
    clips, voice = ClipsClient(maker.base_url), VoiceClient(maker.base_url)
    pink = {**SHOT, "palette": {**PALETTE, "accent": "pink"}}

    accepted = await clips.submit({"shot": pink}, "clip-1", soon)
    refused = await voice.submit({"speech": {"words": "none"}}, "voice-1", soon)

    assert isinstance(accepted, Accepted)
    await maker.wait(token="clip-1", state="failed")
    failed = await clips.poll(accepted.ref)
    assert isinstance(failed, Failed) and failed.error is ErrorClass.INVALID_INPUT
    assert "/palette/accent" in failed.message
    assert isinstance(refused, Rejected) and refused.error is ErrorClass.INVALID_INPUT, refused
    await clips.close()
    await voice.close()


def composition(profile: str) -> dict[str, Any]:
    """The smallest film: one shot of 24 frames and music."""
    return {
        "version": 1,
        "product": "espresso",
        "language": "en",
        "style": "warm-editorial",
        "output": {"width": 90, "height": 160, "fps": 30, "frames": 24, "profile": profile},
        "palette": PALETTE,
        "shots": [{"key": "dawn", "media": "clip", "start_frame": 0, "frames": 24, "transition": "cut"}],
        "titles": [],
        "call_outs": [],
        "captions": [],
        "logo": None,
        "card": None,
        "audio": {
            "rate": 48000,
            "narration": None,
            "music": "music",
            "effects": {"whoosh_frames": [], "pour": None, "hit_frame": 12},
            "seed": 3,
        },
        "cuts": [],
    }


@promise("H68", "H69")
async def test_a_clip_and_music_from_two_providers_become_a_film_at_the_third(
    maker: ProviderBench, receiver: WebhookReceiver, soon: datetime, tmp_path: Path
) -> None:
    clips, music = ClipsClient(maker.base_url), MusicClient(maker.base_url)
    render = RenderClient(maker.base_url, secrets=[SECRET])
    await fetched(maker, clips, SHOT, soon, tmp_path / "clip")
    played = await music.submit({"plan": {"bpm": 100, "bars": 1, "mood": "warm", "seed": 3}}, "music", soon)
    assert isinstance(played, Completed), played
    (tmp_path / "music").write_bytes(played.content)
    media = {name: await render.upload(tmp_path / name) for name in ("clip", "music")}

    for profile, codec in (("h264-aac", "h264"), ("vp9-opus", "vp9")):
        webhook = {"url": receiver.url, "secret": SECRET, "custom_data": {"profile": profile}}
        request = {"composition": composition(profile), "media": media, "webhook": webhook}
        accepted = await render.submit(request, f"film-{profile}", soon)
        assert isinstance(accepted, Accepted), accepted
        assert isinstance(render.verify(*await receiver.next()), Authentic)
        polled = await render.poll(accepted.ref)
        assert isinstance(polled, Succeeded), polled
        got = await render.fetch(accepted.ref, tmp_path / profile, size_bytes_max=SIZE_MAX)

        assert isinstance(got, Fetched), got
        with av.open(str(got.path)) as film:
            assert film.streams.video[0].codec_context.name.startswith(codec)
            assert len(list(film.decode(video=0))) == 24
            assert len(film.streams.audio) == 1
    broken = {"composition": {**composition("h264-aac"), "cuts": [5]}, "media": media}
    refused = await render.submit(broken, "film-broken", soon)
    await maker.wait(token="film-broken", state="failed")
    assert isinstance(refused, Accepted)
    failed = await render.poll(refused.ref)
    assert isinstance(failed, Failed) and "/cuts" in failed.message, failed
    for client in (clips, music, render):
        await client.close()
