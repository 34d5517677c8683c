"""What providers are asked for, made of a script: one request a shot, one for the speech, one for the music.

Pure: builders freeze these requests into plans, and `script.write@1` hands them on as its result. Whole numbers only.
"""

from typing import Any

import msgspec

from videoads.script import Script

__all__ = ["music_request", "shot_requests", "speech_request"]


def shot_requests(script: Script) -> list[dict[str, Any]]:
    """One request a shot, in the order of the film."""
    return [
        {
            "prompt": shot.prompt,
            "frames": shot.frames,
            "fps": script.fps,
            "width": script.width,
            "height": script.height,
            "seed": shot.seed,
            "palette": msgspec.to_builtins(script.colours),
            "title": script.product,
        }
        for shot in script.shots
    ]


def speech_request(script: Script) -> dict[str, Any]:
    """Every phrase with the window in which it is spoken."""
    return {
        "lines": [phrase.text for phrase in script.phrases],
        "seed": script.music.seed,
        "fps": script.fps,
        "windows": [
            {"start_frame": phrase.start_frame, "end_frame": phrase.end_frame} for phrase in script.phrases
        ],
    }


def music_request(script: Script) -> dict[str, Any]:
    """What is to be composed."""
    request: dict[str, Any] = msgspec.to_builtins(script.music)
    return request
