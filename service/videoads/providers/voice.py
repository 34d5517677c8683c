"""The client of the narration provider: words in, speech as the answer of a request held open."""

from videoads.providers.held import HeldClient


class VoiceClient(HeldClient):
    """Asks for narration. A request is `{"speech": {...}}`; the report holds the phrases' timings."""

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url, provider="voice", create_path="/voice/v1/speech")
