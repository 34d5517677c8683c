"""The outsiders: clients of the providers, found or started when they are first needed.

VIDEOADS_PROVIDERS_URL names running providers; otherwise the synthetic ones are started beside the data of longtake,
in a session of their own, so that they outlive the service (VIDEOADS_PROVIDERS_DIR, VIDEOADS_PROVIDERS_ARGS).
"""

import asyncio
import base64
import os
import secrets
import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from longtake import AuthenticCallback
from videoads.providers.clips import ClipsClient
from videoads.providers.contract import Authentic
from videoads.providers.launch import start_providers
from videoads.providers.music import MusicClient
from videoads.providers.render import RenderClient
from videoads.providers.voice import VoiceClient
from videoads.providers.webhooks import WebhookVerifier

DIRECTORY_DEFAULT = ".longtake/providers"


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """One client a provider."""

    clips: ClipsClient
    stills: ClipsClient
    voice: VoiceClient
    music: MusicClient
    render: RenderClient


class Outsiders:
    """Finds the providers and keeps their clients."""

    def __init__(self) -> None:
        self._clients: Clients | None = None
        self._lock = asyncio.Lock()
        self._secret: str | None = None

    @property
    def directory(self) -> Path:
        """Where the synthetic providers keep their data."""
        return Path(os.environ.get("VIDEOADS_PROVIDERS_DIR", DIRECTORY_DEFAULT)).absolute()

    async def clients(self) -> Clients:
        """The clients; starts the synthetic providers when nobody named others."""
        async with self._lock:
            if self._clients is None:
                base = os.environ.get("VIDEOADS_PROVIDERS_URL") or await self._start()
                self._clients = Clients(
                    clips=ClipsClient(base),
                    stills=ClipsClient(base, style="stills"),
                    voice=VoiceClient(base),
                    music=MusicClient(base),
                    render=RenderClient(base, secrets=[self.webhook_secret()]),
                )
            return self._clients

    async def forget(self) -> None:
        """Nothing was reached: look for the providers anew before the next call."""
        async with self._lock:
            clients, self._clients = self._clients, None
        if clients is not None:
            for client in (clients.clips, clients.stills, clients.voice, clients.music, clients.render):
                await client.close()

    def webhook_secret(self) -> str:
        """The secret that the render provider signs its webhooks with; made once, readable by us alone."""
        if self._secret is None:
            given = os.environ.get("VIDEOADS_WEBHOOK_SECRET")
            self._secret = given or _kept_secret(self.directory / "webhook.secret")
        return self._secret

    def verify_render(self, headers: Mapping[str, str], raw: bytes) -> AuthenticCallback | None:
        """Verify a webhook of the render provider over its raw bytes; None when it is not theirs."""
        match WebhookVerifier([self.webhook_secret()]).verify(headers, raw):
            case Authentic(dedupe_key=key, body=body):
                document = msgspec.json.decode(body)
                said = {
                    name: document[name]
                    for name in ("type", "render_id", "out_name", "status")
                    if isinstance(document.get(name), str)
                }
                return AuthenticCallback(
                    dedupe_key=key,
                    type=said.get("type", "unknown"),
                    external_ref=said.get("render_id"),
                    payload=said,
                )
            case _:
                return None

    async def _start(self) -> str:
        arguments = shlex.split(os.environ.get("VIDEOADS_PROVIDERS_ARGS", ""))
        return (await start_providers(self.directory, arguments=arguments)).base_url


def _kept_secret(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text()
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    with os.fdopen(descriptor, "w") as file:
        file.write(secret)
    return secret
