"""The shape that all provider activities share: submit, poll, look up, cancel; media are fetched into our store.

Subclasses name their client and their media. Nothing here decides about retries or money.
"""

import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import longtake
from longtake import Activity, Call, Outcome
from videoads.activities import speech_acts
from videoads.outsiders import Outsiders
from videoads.providers import contract
from videoads.providers.exchange import traceparent

Client = TypeVar("Client", bound=contract.Adapter)

# Media types by which a server says nothing of what it sends.
UNSAID = frozenset({"", "application/octet-stream", "binary/octet-stream"})


class ProviderWork(Activity, ABC, Generic[Client]):
    """One kind of job at one provider."""

    paid = True
    medium: ClassVar[str]
    """Name and kind of the artifact."""
    media_types: ClassVar[tuple[str, ...]]
    """What the provider may answer with; the first is meant where it does not say."""

    def __init__(self, outsiders: Outsiders) -> None:
        self.outsiders = outsiders

    @abstractmethod
    async def provider(self) -> Client:
        """The provider's client."""

    async def client(self, call: Call) -> Client:
        """The provider's client, its calls carrying on the trace of this one."""
        traceparent.set(call.traceparent)
        return await self.provider()

    def result(self, report: contract.Document) -> dict[str, object]:
        """What later steps need of the provider's report; whole numbers only."""
        return {}

    async def poll(self, call: Call) -> Outcome:
        """Look at the job; fetch what it made."""
        client = await self.client(call)
        ref = str(call.external_ref)
        match await client.poll(ref):
            case contract.Succeeded() as done:
                return await self.fetched(client, ref, call, cost=done.cost, report=done.report)
            case other:
                return speech_acts.polled(other)

    async def reconcile(self, call: Call) -> Outcome:
        """Ask whether a job with this attempt's token exists."""
        return speech_acts.reconciled(await (await self.client(call)).reconcile(call.token))

    async def cancel(self, call: Call) -> Outcome:
        """Ask the provider to stop."""
        return speech_acts.cancelled(await (await self.client(call)).cancel(str(call.external_ref)))

    async def fetched(
        self, client: contract.Adapter, ref: str, call: Call, *, cost: int, report: contract.Document
    ) -> Outcome:
        """Copy the medium into our store before the step succeeds: the provider's addresses expire."""
        with tempfile.TemporaryDirectory(prefix="videoads-") as folder:
            path = Path(folder) / "media"
            match await client.fetch(ref, path, size_bytes_max=speech_acts.MEDIA_BYTES_MAX):
                case contract.Fetched(size_bytes=0):
                    return longtake.Failed(
                        error_class="bad_output", message="the file is empty", provider_cost=cost
                    )
                case contract.Fetched(media_type=media_type):
                    return await self.kept(path, ref, call, media_type=media_type, cost=cost, report=report)
                case contract.FetchFailed(error=contract.ErrorClass.NOT_FOUND, message=message):
                    return longtake.Failed(error_class="bad_output", message=message, provider_cost=cost)
                case contract.FetchFailed():
                    # The job is done and paid: look again instead of failing an attempt.
                    return longtake.Pending(poll_after_seconds=2)

    async def kept(
        self,
        content: Path | bytes,
        ref: str,
        call: Call,
        *,
        media_type: str,
        cost: int,
        report: contract.Document,
    ) -> Outcome:
        """Store the medium as what the provider says it is, and succeed."""
        known = media_type.partition(";")[0].strip().lower()
        if known in UNSAID:
            known = self.media_types[0]
        if known not in self.media_types:
            expected = " or ".join(self.media_types)
            return longtake.Failed(
                error_class="bad_output",
                message=f"the {self.medium} came as {known}, not as {expected}",
                provider_cost=cost,
            )
        artifact = await call.artifacts.put(content, name=self.medium, kind=self.medium, content_type=known)
        return longtake.Succeeded(
            result=self.result(report), artifacts=(artifact,), external_ref=ref, provider_cost=cost
        )
