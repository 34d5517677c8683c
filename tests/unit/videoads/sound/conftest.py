"""Fixtures of the sound tests: one small mixed ad and a maker of sines."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sound_kit import RATE, BabbleVoice, MixedAd  # the folder has to be on the path first

from videoads.renderer.sound import (
    FrameWindow,
    MixPlan,
    MusicPlan,
    Pcm,
    PhraseWindow,
    compose_music,
    mix,
    speak,
)
from videoads.renderer.sound.wav import as_pcm


@pytest.fixture(scope="session")
def ad() -> MixedAd:
    """Four bars at 100 BPM with three phrases; mixed once for all tests."""
    music = compose_music(MusicPlan(bars=4, mood="warm", seed=7, cut_bars=(1, 2), card_bar=2))
    narration = speak(
        ["A morning begins.", "One patient pour.", "Come home to it."],
        seed=7,
        windows=[PhraseWindow(8, 66), PhraseWindow(80, 138), PhraseWindow(160, 250)],
        voice=BabbleVoice(),
    )
    plan = MixPlan(frames=288, seed=7, whoosh_frames=(72, 144), pour=FrameWindow(80, 130), hit_frame=216)
    return MixedAd(music, narration, plan, mix(plan, music=music, narration=narration))


@pytest.fixture(scope="session")
def tone() -> Callable[..., Pcm]:
    """A maker of sines: hz, level in dBFS, seconds, channels, phase in degrees."""

    def make(
        hz: float, level: float, seconds: float = 3.0, channels: int = 2, rate: int = RATE, phase: float = 0.0
    ) -> Pcm:
        t = np.arange(int(seconds * rate)) / rate
        wave = 10 ** (level / 20) * np.sin(2 * np.pi * hz * t + np.deg2rad(phase))
        return as_pcm(np.stack([wave] * channels))

    return make
