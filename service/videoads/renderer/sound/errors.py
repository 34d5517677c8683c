"""What can go wrong with sound, each with its facts as fields.

    SoundError
      SoundRequestError     the request itself is wrong (where, what, what would be right)
        NarrationTooLong    a phrase does not fit its window, even spoken faster
      VoiceUnavailable      the speech package is not installed

Nothing here knows about processes or HTTP; `__main__` turns these into one line and an exit code.
"""

__all__ = ["NarrationTooLong", "SoundError", "SoundRequestError", "VoiceUnavailable"]


class SoundError(Exception):
    """The root: everything this package raises on purpose."""


class SoundRequestError(SoundError):
    """A request that cannot be carried out, with the JSON pointer of the part that is wrong."""

    def __init__(self, pointer: str, problem: str, remedy: str) -> None:
        self.pointer = pointer
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{pointer or '/'}: {problem}; {remedy}")


class NarrationTooLong(SoundRequestError):
    """A phrase that is longer than its window by `seconds_over`, at the fastest pace we accept."""

    def __init__(self, pointer: str, *, seconds: float, window_seconds: float, text: str) -> None:
        self.seconds = seconds
        self.window_seconds = window_seconds
        self.seconds_over = round(seconds - window_seconds, 3)
        self.text = text
        super().__init__(
            pointer,
            f"the phrase {text!r} takes {seconds:.2f} s at the fastest pace and its window is "
            f"{window_seconds:.2f} s, {self.seconds_over:.2f} s too long",
            "shorten the line or give it a longer scene",
        )


class VoiceUnavailable(SoundError):
    """The optional speech package is missing. We never replace a voice by tones."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"no voice is installed ({reason}); install the extra with: pip install 'longtake[voice]', "
            "or make the ad without narration"
        )
