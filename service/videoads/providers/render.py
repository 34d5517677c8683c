"""The client of the render provider: upload media, submit a composition, be told by a signed webhook, or ask.

Our token is the name of the output; by it `reconcile` finds what was asked for. A webhook is a hint: it is
verified here, and the truth is then asked for with `poll`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from videoads.providers.contract import (
    Accepted,
    CancelOutcome,
    Document,
    ErrorClass,
    Failed,
    FetchOutcome,
    Found,
    Gone,
    Impossible,
    NotFound,
    Pending,
    PollOutcome,
    Receipt,
    ReconcileOutcome,
    Rejected,
    SubmitOutcome,
    Succeeded,
    Unknown,
    Unsupported,
    VerifyOutcome,
    require_token,
)
from videoads.providers.exchange import (
    Answer,
    Exchange,
    Lost,
    NotSent,
    seconds_until,
    throttled,
    upload,
    without_answer,
)
from videoads.providers.reading import number, sub_document, sub_documents, text
from videoads.providers.webhooks import WebhookVerifier

POLL_AFTER_SECONDS = 2.0

ERRORS = {
    "RateExceeded": ErrorClass.THROTTLED,
    "CapacityExceeded": ErrorClass.OVERLOADED,
    "TransientFault": ErrorClass.TRANSIENT,
    "RenderTimeout": ErrorClass.TIMEOUT,
    "ValidationError": ErrorClass.INVALID_INPUT,
    "ContentRefused": ErrorClass.MODERATION_INPUT,
    "OutputRefused": ErrorClass.MODERATION_OUTPUT,
    "BudgetExceeded": ErrorClass.QUOTA_EXHAUSTED,
    "AccessDenied": ErrorClass.AUTH,
    "NotFound": ErrorClass.NOT_FOUND,
    "Cancelled": ErrorClass.CANCELLED,
    "EmptyOutput": ErrorClass.BAD_OUTPUT,
    "RendererCrash": ErrorClass.PROVIDER_BUG,
}
# Server errors for which the provider documents that it began nothing.
NOTHING_BEGUN = frozenset({"CapacityExceeded", "TransientFault"})


class RenderClient:
    """Talks to the render provider. A request is `{"composition": {...}, "media": {key: sha256}, "webhook": {...}}`."""

    def __init__(self, base_url: str, *, secrets: Sequence[str]) -> None:
        self._exchange = Exchange(base_url)
        self._verifier = WebhookVerifier(secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def upload(self, path: Path) -> str:
        """Give the provider an input file; repeating it is harmless. Answers the digest to name it by."""
        return await upload(self._exchange, "/render/v1/assets", path)

    async def submit(self, request: Document, token: str, deadline: datetime) -> SubmitOutcome:
        """Ask for a film, once."""
        body = msgspec.json.encode({**request, "out_name": require_token(token)})
        timeout = seconds_until(deadline)
        match await self._exchange.call("POST", "/render/v1/renders", body=body, timeout_seconds=timeout):
            case Answer() as answer:
                return _submitted(answer)
            case missing:
                return without_answer(missing)

    async def poll(self, ref: str) -> PollOutcome:
        """Ask for the render's state."""
        match await self._exchange.call("GET", f"/render/v1/renders/{ref}"):
            case Answer(status=200) as answer:
                return _polled(ref, answer)
            case Answer(status=404 | 410) as answer:
                return Gone(evidence=answer.evidence())
            case Answer() as answer:
                return Pending(poll_after_seconds=POLL_AFTER_SECONDS, trouble=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return Pending(poll_after_seconds=POLL_AFTER_SECONDS, trouble=reason)

    async def reconcile(self, token: str) -> ReconcileOutcome:
        """Look for renders that write our output. The oldest that did not fail is the one to adopt."""
        match await self._exchange.call("GET", f"/render/v1/outputs/{require_token(token)}"):
            case Answer(status=200) as answer:
                return _reconciled(answer)
            case Answer(status=404) as answer if text(answer.document() or {}, "type") == "NotFound":
                return NotFound(authoritative=True, evidence=answer.evidence())
            case Answer(status=404 | 405 | 501) as answer:
                return Impossible(evidence=answer.evidence())
            case Answer() as answer:
                return NotFound(authoritative=False, evidence=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return NotFound(authoritative=False, evidence=reason)

    async def cancel(self, ref: str) -> CancelOutcome:
        """There is no cancel."""
        return Unsupported()

    async def fetch(self, ref: str, path: Path, *, size_bytes_max: int) -> FetchOutcome:
        """Stream the film to `path`."""
        return await self._exchange.download(
            f"/render/v1/renders/{ref}/output", path, size_bytes_max=size_bytes_max
        )

    def verify(self, headers: Mapping[str, str], raw: bytes, *, now: datetime | None = None) -> VerifyOutcome:
        """Whether a callback is the provider's, before anything of it is parsed or stored."""
        return self._verifier.verify(headers, raw, now=now)


def _submitted(answer: Answer) -> SubmitOutcome:
    document = answer.document() or {}
    if answer.status == 200:
        if not (ref := text(document, "render_id")):
            return Unknown(evidence=f"an answer without a render id: {answer.evidence()}")
        return Accepted(
            ref=ref,
            cost_estimate=int(number(document, "cost_estimate")),
            poll_after_seconds=POLL_AFTER_SECONDS,
            receipt=Receipt(request_id=ref, status="queued", payload=document),
        )
    code = text(document, "type")
    message = text(document, "message") or answer.evidence()
    if answer.status == 429:
        return throttled(answer, "render", message)
    if answer.status == 408 or (answer.status >= 500 and code not in NOTHING_BEGUN):
        return Unknown(evidence=answer.evidence())
    return Rejected(error=ERRORS.get(code, ErrorClass.UNKNOWN), code=code, message=message)


def _polled(ref: str, answer: Answer) -> PollOutcome:
    render = answer.document() or {}
    cost = int(number(sub_document(render, "costs"), "accrued"))
    match text(render, "status"):
        case "done":
            return Succeeded(
                ref=ref,
                cost=cost,
                size_bytes=int(number(render, "size_bytes")),
                report=sub_document(render, "report"),
                receipt=Receipt(request_id=ref, status="done", payload=render),
            )
        case "failed":
            errors = sub_documents(render, "errors")
            first = errors[0] if errors else {}
            code = text(first, "type")
            error = ERRORS.get(code, ErrorClass.UNKNOWN)
            return Failed(error=error, code=code, message=text(first, "message"), cost=cost)
        case "queued" | "rendering":
            return Pending(poll_after_seconds=POLL_AFTER_SECONDS, progress=number(render, "overall_progress"))
        case _:
            return Pending(poll_after_seconds=POLL_AFTER_SECONDS, trouble=f"unreadable: {answer.evidence()}")


def _reconciled(answer: Answer) -> ReconcileOutcome:
    renders = sub_documents(answer.document() or {}, "renders")
    if not renders:
        return NotFound(authoritative=False, evidence=f"unreadable: {answer.evidence()}")
    standing = [render for render in renders if text(render, "status") != "failed"]
    chosen = (standing or renders)[0]
    evidence = f"{len(renders)} render(s) write this output, the adopted one is {text(chosen, 'status')}"
    return Found(ref=text(chosen, "render_id"), jobs=len(renders), evidence=evidence)
