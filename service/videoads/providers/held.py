"""What the narration and the music client share: a request held open until the audio is its answer.

A connection lost while it was open proves nothing; the provider's history carries our token and is where
`reconcile`, `poll` and `fetch` look.
"""

from datetime import datetime
from pathlib import Path

import msgspec

from videoads.providers.contract import (
    CancelOutcome,
    Completed,
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
    require_token,
)
from videoads.providers.exchange import (
    Answer,
    Exchange,
    Lost,
    NotSent,
    seconds_until,
    throttled,
    without_answer,
)
from videoads.providers.reading import number, sub_document, sub_documents, text

POLL_AFTER_SECONDS = 1.0

ERRORS = {
    "too_many_concurrent_requests": ErrorClass.THROTTLED,
    "system_busy": ErrorClass.OVERLOADED,
    "try_again": ErrorClass.TRANSIENT,
    "generation_timeout": ErrorClass.TIMEOUT,
    "validation_error": ErrorClass.INVALID_INPUT,
    "text_blocked": ErrorClass.MODERATION_INPUT,
    "output_blocked": ErrorClass.MODERATION_OUTPUT,
    "quota_exceeded": ErrorClass.QUOTA_EXHAUSTED,
    "invalid_api_key": ErrorClass.AUTH,
    "voice_not_found": ErrorClass.NOT_FOUND,
    "generation_cancelled": ErrorClass.CANCELLED,
    "empty_generation": ErrorClass.BAD_OUTPUT,
    "internal_error": ErrorClass.PROVIDER_BUG,
}
# Server errors for which the provider documents that it began nothing.
NOTHING_BEGUN = frozenset({"system_busy", "try_again"})


class HeldClient:
    """Talks to one sound provider; the two below it only know their addresses."""

    def __init__(self, base_url: str, *, provider: str, create_path: str) -> None:
        self._exchange = Exchange(base_url)
        self._provider = provider
        self._create_path = create_path
        self._history = f"/{provider}/v1/history"

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def submit(self, request: Document, token: str, deadline: datetime) -> SubmitOutcome:
        """Ask for sound, once, and wait for it until the deadline."""
        body = msgspec.json.encode({**request, "token": require_token(token)})
        timeout = seconds_until(deadline)
        match await self._exchange.call("POST", self._create_path, body=body, timeout_seconds=timeout):
            case Answer() as answer:
                return self._submitted(answer)
            case missing:
                return without_answer(missing)

    async def poll(self, ref: str) -> PollOutcome:
        """Ask for the history item; only needed after a lost answer."""
        match await self._exchange.call("GET", f"{self._history}/{ref}"):
            case Answer(status=200) as answer:
                return _polled(ref, answer)
            case Answer(status=404 | 410) as answer:
                return Gone(evidence=answer.evidence())
            case Answer() as answer:
                return Pending(poll_after_seconds=POLL_AFTER_SECONDS, trouble=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return Pending(poll_after_seconds=POLL_AFTER_SECONDS, trouble=reason)

    async def reconcile(self, token: str) -> ReconcileOutcome:
        """Look for our token in the history. The oldest item that did not fail is the one to adopt."""
        match await self._exchange.call("GET", f"{self._history}?token={require_token(token)}"):
            case Answer(status=200) as answer:
                return _reconciled(answer, token)
            case Answer(status=404 | 405 | 501) as answer:
                return Impossible(evidence=answer.evidence())
            case Answer() as answer:
                return NotFound(authoritative=False, evidence=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return NotFound(authoritative=False, evidence=reason)

    async def cancel(self, ref: str) -> CancelOutcome:
        """There is no cancel: closing the connection does not stop the work."""
        return Unsupported()

    async def fetch(self, ref: str, path: Path, *, size_bytes_max: int) -> FetchOutcome:
        """Stream the audio of a history item to `path`."""
        return await self._exchange.download(
            f"{self._history}/{ref}/audio", path, size_bytes_max=size_bytes_max
        )

    def _submitted(self, answer: Answer) -> SubmitOutcome:
        if answer.status == 200:
            return _completed(answer)
        detail = sub_document(answer.document() or {}, "detail")
        status = text(detail, "status")
        message = text(detail, "message") or answer.evidence()
        item = text(detail, "history_item_id") or None
        if answer.status == 429 and item is None:
            return throttled(answer, self._provider, message)
        # An error that names its history item is that item's verdict, whatever its number.
        settled = item is not None or status in NOTHING_BEGUN
        if answer.status == 408 or (answer.status >= 500 and not settled):
            return Unknown(evidence=answer.evidence())
        return Rejected(error=ERRORS.get(status, ErrorClass.UNKNOWN), code=status, message=message, ref=item)


def _completed(answer: Answer) -> SubmitOutcome:
    ref = answer.headers.get("history-item-id", "")
    media_type = answer.headers.get("content-type", "")
    if not ref or not media_type.startswith("audio/"):
        return Unknown(evidence=f"an answer without audio or history item: {answer.evidence()}")
    if not answer.body:
        return Rejected(error=ErrorClass.BAD_OUTPUT, code="empty", message="the audio has no bytes", ref=ref)
    receipt = Receipt(request_id=ref, status="done", payload={"size_bytes": len(answer.body)})
    return Completed(
        ref=ref,
        cost=_whole(answer.headers.get("x-cost-units", "")),
        content=answer.body,
        media_type=media_type,
        report=_header_report(answer),
        receipt=receipt,
    )


def _polled(ref: str, answer: Answer) -> PollOutcome:
    item = answer.document() or {}
    cost = int(number(item, "cost_units"))
    match text(item, "state"):
        case "done":
            return Succeeded(
                ref=ref,
                cost=cost,
                size_bytes=int(number(item, "size_bytes")),
                report=sub_document(item, "report"),
                receipt=Receipt(request_id=ref, status="done", payload=item),
            )
        case "failed":
            failure = sub_document(item, "failure")
            code = text(failure, "status")
            error = ERRORS.get(code, ErrorClass.UNKNOWN)
            return Failed(error=error, code=code, message=text(failure, "message"), cost=cost)
        case "generating":
            return Pending(poll_after_seconds=POLL_AFTER_SECONDS)
        case _:
            return Pending(poll_after_seconds=POLL_AFTER_SECONDS, trouble=f"unreadable: {answer.evidence()}")


def _reconciled(answer: Answer, token: str) -> ReconcileOutcome:
    document = answer.document()
    if document is None or not isinstance(document.get("history"), list):
        return NotFound(authoritative=False, evidence=f"unreadable: {answer.evidence()}")
    items = [item for item in sub_documents(document, "history") if text(item, "token") == token]
    if not items:
        whole = document.get("has_more") is False
        return NotFound(authoritative=whole, evidence="the history has no item with this token")
    standing = [item for item in items if text(item, "state") != "failed"]
    chosen = (standing or items)[0]
    evidence = f"{len(items)} item(s) in the history, the adopted one is {text(chosen, 'state')}"
    return Found(ref=text(chosen, "history_item_id"), jobs=len(items), evidence=evidence)


def _header_report(answer: Answer) -> Document:
    try:
        report = msgspec.json.decode(answer.headers.get("x-report", "{}"))
    except msgspec.DecodeError:
        return {}
    return report if isinstance(report, dict) else {}


def _whole(value: str) -> int:
    return int(value) if value.isascii() and value.isdigit() else 0
