"""editor.voice.generate@1 and editor.music.generate@1: the narration, or the music, of an ad anew.

The words, their windows and the bars of the music are frozen in the plan.
"""

from collections.abc import Mapping
from typing import Any

from longtake import Plan, Retry
from videoads.script_requests import music_request, speech_request
from videoads.workflows.editor_order import problem_at, read_order

VOICE_POLICY: dict[str, Any] = {
    "voice_price_credits": 2,
    "voice_model": "synthetic-voice-1",
    "retry_first_delay_ms": 1000,
}
MUSIC_POLICY: dict[str, Any] = {
    "music_price_credits": 2,
    "music_model": "synthetic-music-1",
    "retry_first_delay_ms": 1000,
}


def build_voice(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief", "seed"?}: the narration of the brief, spoken."""
    order = read_order(given, "seed")
    if order.brief.narration is None:
        raise problem_at("/brief/narration", "is missing", "give the lines that are to be spoken")
    seed = order.seed()
    return Plan(scopes=order.scopes("voice"), delivers="narration.generate").step(
        "narration.generate",
        activity="narration.generate@1",
        phase="sound",
        label="Speaking the narration",
        input={
            "speech": {**speech_request(order.script), **({} if seed is None else {"seed": seed})},
            "model": policy["voice_model"],
        },
        price=policy["voice_price_credits"],
        retry=Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"]),
        artifacts=["narration"],
    )


def build_music(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"brief", "seed"?}: music of the brief's mood and length, cut to its bars."""
    order = read_order(given, "seed")
    seed = order.seed()
    return Plan(scopes=order.scopes("music"), delivers="music.generate").step(
        "music.generate",
        activity="music.generate@1",
        phase="sound",
        label="Composing the music",
        input={
            "plan": {**music_request(order.script), **({} if seed is None else {"seed": seed})},
            "model": policy["music_model"],
        },
        price=policy["music_price_credits"],
        retry=Retry(max_attempts=3, first_delay_ms=policy["retry_first_delay_ms"]),
        artifacts=["music"],
    )
