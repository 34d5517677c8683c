"""The mix: level, ceiling, ducking, sameness, and what it refuses."""

from itertools import pairwise

import msgspec
import numpy as np
import pytest
from sound_kit import RATE, MixedAd, meter, through_codec

from kit.promises import promise
from videoads.renderer.sound import (
    FrameWindow,
    MixPlan,
    Narration,
    PhraseTiming,
    SoundRequestError,
    ducking_depth_db,
    integrated_lufs,
    mix,
    pcm_digest,
    true_peak_dbtp,
)


@promise("H79")
def test_the_mix_is_as_long_as_the_film_and_at_its_loudness_under_its_ceiling(ad: MixedAd):
    assert ad.report.pcm.shape == (288 * RATE // 30, 2)
    loudness, peak = meter(ad.report.pcm)
    assert loudness == pytest.approx(-16.0, abs=0.3)
    assert peak <= -1.0
    assert ad.report.integrated_lufs == pytest.approx(loudness, abs=0.2)
    assert ad.report.true_peak_dbtp == pytest.approx(peak, abs=0.2)


@pytest.mark.parametrize(("codec", "container"), [("aac", "mp4"), ("libopus", "webm")])
def test_the_promise_survives_the_codec(ad: MixedAd, codec, container):
    decoded = through_codec(ad.report.pcm, codec, container)
    assert integrated_lufs(decoded, RATE) == pytest.approx(-16.0, abs=1.0)
    assert true_peak_dbtp(decoded) <= -1.0


def test_a_mix_that_was_turned_up_afterwards_breaks_both_promises(ad: MixedAd):
    """The broken variants: clipped peaks and wrong loudness are seen by the same measures."""
    louder = np.clip(ad.report.pcm.astype(np.int32) * 2, -32768, 32767).astype(np.int16)
    assert true_peak_dbtp(louder) > -1.0
    assert abs(integrated_lufs(louder, RATE) + 16.0) > 1.0


def test_music_ducks_at_least_nine_decibels_under_speech(ad: MixedAd):
    assert ad.report.ducking_db >= 9.0


def test_a_mix_without_ducking_is_seen(ad: MixedAd):
    """The broken variant: everything alike, only the music does not yield."""
    flat = mix(msgspec.structs.replace(ad.plan, ducking_db=0.0), music=ad.music, narration=ad.narration)
    assert ducking_depth_db(flat.pcm, ad.music, ad.windows, RATE) < 3.0


def test_the_music_is_back_for_its_final_hit(ad: MixedAd):
    """A phrase that ends a tenth of a second before the hit must not swallow it."""
    hit = 216 * RATE // 30
    phrase = PhraseTiming("x", hit - 60000, hit - 4800)
    pcm = np.zeros(hit, np.int16)
    pcm[phrase.start_sample : phrase.end_sample] = ad.narration.pcm[12000 : 12000 + 55200]
    narration = Narration(pcm, RATE, (phrase,), "babble")
    plan = MixPlan(frames=288, hit_frame=216)
    punchy = mix(plan, music=ad.music, narration=narration).pcm.astype(float)
    late = mix(msgspec.structs.replace(plan, hit_frame=None), music=ad.music, narration=narration).pcm.astype(
        float
    )
    window = slice(hit, hit + RATE // 20)
    assert np.sum(punchy[window] ** 2) > 1.5 * np.sum(late[window] ** 2)


def test_the_same_plan_gives_the_same_samples_and_another_seed_gives_others(ad: MixedAd):
    again = mix(ad.plan, music=ad.music, narration=ad.narration)
    assert again.digest == ad.report.digest == pcm_digest(again.pcm)
    other = mix(msgspec.structs.replace(ad.plan, seed=8), music=ad.music, narration=ad.narration)
    assert other.digest != ad.report.digest


def test_without_narration_the_music_does_not_duck_and_the_level_is_the_same(ad: MixedAd):
    report = mix(ad.plan, music=ad.music)
    assert report.music_only and report.narration == () and report.ducking_db == 0.0
    assert meter(report.pcm)[0] == pytest.approx(-16.0, abs=0.3)
    assert ducking_depth_db(report.pcm, ad.music, ad.windows, RATE) < 1.0


def test_a_whoosh_swells_towards_its_cut(ad: MixedAd):
    """Heard against silence: energy grows up to the cut and is gone soon after it."""
    silence = np.zeros((288 * 1600, 2), np.int16)
    report = mix(MixPlan(frames=288, whoosh_frames=(144,)), music=silence)
    cut = 144 * 1600
    block = RATE // 10
    levels = [
        float(np.sum(report.pcm[at : at + block].astype(float) ** 2))
        for at in range(cut - 4 * block, cut, block)
    ]
    assert all(a < b for a, b in pairwise(levels))
    after = float(np.sum(report.pcm[cut + 3 * block : cut + 4 * block].astype(float) ** 2))
    assert after < 0.05 * levels[-1]


def test_the_pour_is_heard_in_its_window_only():
    silence = np.zeros((300 * 1600, 2), np.int16)
    pcm = mix(MixPlan(frames=300, pour=FrameWindow(90, 180)), music=silence).pcm.astype(float)
    assert np.sum(pcm[90 * 1600 : 180 * 1600] ** 2) > 0
    assert not np.any(pcm[: 90 * 1600]) and not np.any(pcm[180 * 1600 :])


def test_music_that_is_too_short_or_in_one_channel_is_padded_not_looped(ad: MixedAd):
    report = mix(MixPlan(frames=288), music=ad.music[: RATE * 2, :1])
    assert report.pcm.shape == (288 * 1600, 2)
    assert not np.any(report.pcm[RATE * 2 + RATE // 2 :])


@pytest.mark.parametrize(
    ("plan", "pointer"),
    [
        (MixPlan(frames=0), "/frames"),
        (MixPlan(frames=20_001), "/frames"),
        (MixPlan(frames=30, fps=0), "/fps"),
        (MixPlan(frames=30, rate=4000), "/rate"),
        (MixPlan(frames=30, ducking_db=-1.0), "/ducking_db"),
        (MixPlan(frames=30, target_lufs=0.0), "/target_lufs"),
        (MixPlan(frames=30, ceiling_dbtp=1.0), "/ceiling_dbtp"),
        (MixPlan(frames=30, whoosh_frames=(3, 30)), "/whoosh_frames/1"),
        (MixPlan(frames=30, impact_frames=(-1,)), "/impact_frames/0"),
        (MixPlan(frames=30, hit_frame=30), "/hit_frame"),
        (MixPlan(frames=30, pour=FrameWindow(20, 20)), "/pour"),
        (MixPlan(frames=30, pour=FrameWindow(20, 31)), "/pour"),
    ],
)
def test_a_bad_plan_is_refused_with_the_place(plan, pointer, ad: MixedAd):
    with pytest.raises(SoundRequestError) as refusal:
        mix(plan, music=ad.music)
    assert refusal.value.pointer == pointer
    assert refusal.value.remedy


def test_a_phrase_that_leaves_the_film_is_refused(ad: MixedAd):
    with pytest.raises(SoundRequestError, match="/narration/phrases/2"):
        mix(MixPlan(frames=150), music=ad.music, narration=ad.narration)


def test_a_film_of_one_frame_still_has_sound(ad: MixedAd):
    assert mix(MixPlan(frames=1), music=ad.music).pcm.shape == (1600, 2)
