"""The client of the music provider: a plan in, music as the answer of a request held open."""

from videoads.providers.held import HeldClient


class MusicClient(HeldClient):
    """Asks for music. A request is `{"plan": {...}}`."""

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url, provider="music", create_path="/music/v1/compose")
