"""An artifact is stored as what the provider says it sent, and what cannot be that medium is refused."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

import longtake
from kit.calls import call_of
from videoads.activities.clips import ClipGenerate, StillGenerate
from videoads.activities.film import RenderSubmit
from videoads.activities.provider_work import ProviderWork
from videoads.outsiders import Outsiders
from videoads.providers.contract import Fetched, Receipt, Succeeded


class Finished:
    """A provider whose job is done and whose file is of a given type."""

    def __init__(self, media_type: str) -> None:
        self.media_type = media_type

    async def poll(self, ref: str) -> Succeeded:
        receipt = Receipt(request_id=ref, status="done", payload={})
        return Succeeded(ref=ref, cost=7, size_bytes=5, report={}, receipt=receipt)

    async def fetch(self, ref: str, path: Path, *, size_bytes_max: int) -> Fetched:
        path.write_bytes(b"media")
        sha256 = hashlib.sha256(b"media").hexdigest()
        return Fetched(path=path, size_bytes=5, sha256=sha256, media_type=self.media_type)


async def polled(kind: type[ProviderWork], media_type: str, folder: Path) -> Any:
    activity = kind(Outsiders())

    async def provider() -> Finished:
        return Finished(media_type)

    activity.provider = provider  # type: ignore[assignment, method-assign]  # the provider of this test
    return await activity.poll(call_of(folder, {}, external_ref="job-1"))


@pytest.mark.parametrize(
    ("kind", "said", "kept"),
    [
        (RenderSubmit, "video/mp4", "video/mp4"),
        (RenderSubmit, "video/webm", "video/webm"),
        (RenderSubmit, "Video/WebM; codecs=vp9", "video/webm"),
        (RenderSubmit, "application/octet-stream", "video/mp4"),
        (ClipGenerate, "video/webm", "video/webm"),
        (StillGenerate, "image/webp", "image/webp"),
    ],
)
async def test_the_artifact_has_the_type_that_the_provider_named(
    kind: type[ProviderWork], said: str, kept: str, tmp_path: Path
) -> None:
    """Where a server says nothing of what it sends, the usual type is meant."""
    outcome = await polled(kind, said, tmp_path)

    assert isinstance(outcome, longtake.Succeeded)
    assert [artifact.content_type for artifact in outcome.artifacts] == [kept]


@pytest.mark.parametrize(("kind", "said"), [(RenderSubmit, "text/html"), (StillGenerate, "video/mp4")])
async def test_a_medium_of_another_kind_is_bad_output_and_says_what_was_expected(
    kind: type[ProviderWork], said: str, tmp_path: Path
) -> None:
    """An error page is not a film; what the provider charged is known all the same."""
    outcome = await polled(kind, said, tmp_path)

    assert isinstance(outcome, longtake.Failed)
    assert (outcome.error_class, outcome.provider_cost) == ("bad_output", 7)
    assert said in outcome.message and kind.media_types[0] in outcome.message
