"""A call to an activity with a store of its own, for tests of activities without a worker."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

from longtake import Artifact, Call
from longtake.storage.objects import Objects


def call_of(folder: Path, given: dict[str, Any], *, external_ref: str | None = None) -> Call:
    """A first attempt with this input; artifacts lie in `folder`."""
    return Call(
        run_id=uuid.UUID(int=1),
        step="step",
        attempt=1,
        kind="execute",
        input=given,
        token="token-1",
        external_ref=external_ref,
        artifacts=Objects.in_directory(folder),
        callback_url=lambda provider: f"http://127.0.0.1:9/v1/callbacks/{provider}/token",
        lost=asyncio.Event(),
    )


async def stored(call: Call, path: Path, *, kind: str, content_type: str) -> dict[str, Any]:
    """A file put into the call's store, as a later step is given it."""
    artifact: Artifact = await call.artifacts.put(path, name=kind, kind=kind, content_type=content_type)
    return {
        "name": artifact.name,
        "kind": artifact.kind,
        "object_key": artifact.object_key,
        "sha256": artifact.sha256,
        "bytes": artifact.bytes,
        "content_type": artifact.content_type,
    }
