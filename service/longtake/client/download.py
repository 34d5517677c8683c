"""Downloads: in pieces, going on where the last try ended, and believed only when the digest is right."""

import asyncio
import hashlib
from pathlib import Path

import httpx2

from longtake.client.answers import PublishedArtifact
from longtake.client.errors import ServerUnreachable
from longtake.client.http import Wire
from longtake.errors import LongtakeError

TRIES_MAX = 8
_PIECE_BYTES = 1024 * 1024


class DownloadDamaged(LongtakeError):
    """The bytes that came are not those of the artifact."""

    def __init__(self, path: Path, *, expected: str, actual: str) -> None:
        super().__init__(f"{path}: SHA-256 is {actual}, {expected} was expected; the file was removed.")
        self.path = path
        self.expected = expected
        self.actual = actual


async def download(wire: Wire, artifact: PublishedArtifact, path: Path) -> Path:
    """Fetch into `path` by way of `path.part`. Raises DownloadDamaged, ServerUnreachable."""
    partial = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, TRIES_MAX + 1):
        try:
            await _go_on(wire, artifact, partial)
            break
        except httpx2.TransportError as error:
            if attempt == TRIES_MAX:
                raise ServerUnreachable(wire.url, str(error) or type(error).__name__) from error
            await asyncio.sleep(0.2 * attempt)
    actual = await asyncio.to_thread(_digest, partial)
    if actual != artifact.sha256:
        partial.unlink(missing_ok=True)
        raise DownloadDamaged(path, expected=artifact.sha256, actual=actual)
    partial.replace(path)
    return path


async def _go_on(wire: Wire, artifact: PublishedArtifact, partial: Path) -> None:
    have = partial.stat().st_size if partial.exists() else 0
    if have > artifact.bytes:
        partial.unlink()
        have = 0
    if have == artifact.bytes:
        partial.touch()
        return
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": f'"{artifact.sha256}"'}
    async with wire.streaming("GET", artifact.href, headers=headers) as response:
        with partial.open("ab" if response.status_code == 206 else "wb") as file:
            async for piece in response.aiter_bytes(_PIECE_BYTES):
                file.write(piece)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
