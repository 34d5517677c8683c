"""Objects named by their digest: storing the same bytes twice is storing them once (H88).

The identity of an artifact is key + SHA-256. URLs are made at the edge and never stored.
"""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore, ObjectStore

from longtake.contracts.outcomes import Artifact

CHUNK_BYTES = 1024 * 1024


class ObjectMissing(LookupError):
    """The store does not have the object."""


class Objects:
    """Puts files under their digest and reads them back, whole or in part."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def in_directory(cls, directory: Path) -> "Objects":
        """Keep objects as files under a directory, which is made."""
        directory.mkdir(parents=True, exist_ok=True)
        return cls(LocalStore(prefix=directory))

    async def put(self, content: bytes | Path, *, name: str, kind: str, content_type: str) -> Artifact:
        """Store bytes or a file; returns what an outcome says of it. OSError when the file cannot be read."""
        raw = content if isinstance(content, bytes) else content.read_bytes()
        sha256 = hashlib.sha256(raw).hexdigest()
        key = f"objects/{sha256[:2]}/{sha256}"
        try:
            await obstore.put_async(self._store, key, raw, mode="create")
        except AlreadyExistsError:
            pass  # the same bytes were stored before, under the same key
        return Artifact(
            name=name, kind=kind, object_key=key, sha256=sha256, bytes=len(raw), content_type=content_type
        )

    async def read(self, key: str) -> bytes:
        """The whole object. ObjectMissing when there is none."""
        try:
            response = await obstore.get_async(self._store, key)
            return bytes(await response.bytes_async())
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    async def size(self, key: str) -> int:
        """How many bytes the object has. ObjectMissing when there is none."""
        try:
            return int((await obstore.head_async(self._store, key))["size"])
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    async def stream(self, key: str, *, start: int, end: int) -> AsyncIterator[bytes]:
        """Bytes start..end (end excluded) in chunks."""
        for begin in range(start, end, CHUNK_BYTES):
            part = await obstore.get_range_async(
                self._store, key, start=begin, end=min(end, begin + CHUNK_BYTES)
            )
            yield bytes(part)

    async def fetch(self, key: str, path: Path) -> None:
        """Copy an object into a file. ObjectMissing when there is none."""
        path.write_bytes(await self.read(key))
