"""The client of the clip provider and, at another address, of the still provider: submit, id, poll.

The provider has no idempotency key. Our token travels as its `external_task_id`, by which `reconcile` finds
what was made; the error codes it documents are translated here and nowhere else.
"""

from datetime import datetime
from pathlib import Path
from typing import Literal

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
    Stopped,
    SubmitOutcome,
    Succeeded,
    TooLate,
    Unknown,
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

POLL_AFTER_SECONDS_DEFAULT = 5.0
POLL_AFTER_SECONDS_MAX = 60.0

ERRORS = {
    1303: ErrorClass.THROTTLED,
    5001: ErrorClass.OVERLOADED,
    5002: ErrorClass.TRANSIENT,
    5004: ErrorClass.TIMEOUT,
    1201: ErrorClass.INVALID_INPUT,
    1301: ErrorClass.MODERATION_INPUT,
    1302: ErrorClass.MODERATION_OUTPUT,
    1101: ErrorClass.QUOTA_EXHAUSTED,
    1000: ErrorClass.AUTH,
    1202: ErrorClass.NOT_FOUND,
    1401: ErrorClass.CANCELLED,
    5003: ErrorClass.BAD_OUTPUT,
    5000: ErrorClass.PROVIDER_BUG,
}
# Server errors for which the provider documents that no task was made. Every other one leaves that open.
NOTHING_MADE = frozenset({5001, 5002})


class ClipsClient:
    """Talks to one task provider. A request is `{"shot": {...}, "product_picture_sha256": ...}`."""

    def __init__(self, base_url: str, *, style: Literal["clips", "stills"] = "clips") -> None:
        self._exchange = Exchange(base_url)
        self._style = style
        self._tasks = f"/{style}/v1/tasks"

    async def close(self) -> None:
        """Close the connections."""
        await self._exchange.close()

    async def upload(self, path: Path) -> str:
        """Give the provider an input file; repeating it is harmless. Answers the digest to name it by."""
        return await upload(self._exchange, f"/{self._style}/v1/assets", path)

    async def submit(self, request: Document, token: str, deadline: datetime) -> SubmitOutcome:
        """Offer one task, once."""
        body = msgspec.json.encode({**request, "external_task_id": require_token(token)})
        match await self._exchange.call(
            "POST", self._tasks, body=body, timeout_seconds=seconds_until(deadline)
        ):
            case Answer() as answer:
                return self._submitted(answer)
            case missing:
                return without_answer(missing)

    async def poll(self, ref: str) -> PollOutcome:
        """Ask for the task's state."""
        match await self._exchange.call("GET", f"{self._tasks}/{ref}"):
            case Answer(status=200) as answer:
                return _polled(ref, answer)
            case Answer(status=404 | 410) as answer:
                return Gone(evidence=answer.evidence())
            case Answer() as answer:
                return Pending(poll_after_seconds=POLL_AFTER_SECONDS_DEFAULT, trouble=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return Pending(poll_after_seconds=POLL_AFTER_SECONDS_DEFAULT, trouble=reason)

    async def reconcile(self, token: str) -> ReconcileOutcome:
        """Look the task up by our own id. The oldest task that did not fail is the one to adopt."""
        match await self._exchange.call("GET", f"{self._tasks}?external_task_id={require_token(token)}"):
            case Answer(status=200) as answer:
                return _reconciled(answer)
            case Answer(status=404 | 405 | 501) as answer:
                return Impossible(evidence=answer.evidence())
            case Answer() as answer:
                return NotFound(authoritative=False, evidence=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return NotFound(authoritative=False, evidence=reason)

    async def cancel(self, ref: str) -> CancelOutcome:
        """Ask the provider to stop the task; repeating it is harmless."""
        match await self._exchange.call("POST", f"{self._tasks}/{ref}/cancel"):
            case Answer(status=200) as answer:
                data = sub_document(answer.document() or {}, "data")
                if text(data, "task_status") == "canceled":
                    return Stopped(cost=int(number(data, "final_unit_deduction")))
                return TooLate(evidence=answer.evidence())
            case Answer(status=404 | 409 | 410) as answer:
                return TooLate(evidence=answer.evidence())
            case Answer() as answer:
                return Unknown(evidence=answer.evidence())
            case NotSent(reason=reason) | Lost(reason=reason):
                return Unknown(evidence=reason)

    async def fetch(self, ref: str, path: Path, *, size_bytes_max: int) -> FetchOutcome:
        """Stream the media to `path`."""
        return await self._exchange.download(
            f"{self._tasks}/{ref}/content", path, size_bytes_max=size_bytes_max
        )

    def _submitted(self, answer: Answer) -> SubmitOutcome:
        document = answer.document()
        if answer.status == 200:
            data = sub_document(document or {}, "data")
            if not (ref := text(data, "task_id")):
                return Unknown(evidence=f"an answer without a task id: {answer.evidence()}")
            return Accepted(
                ref=ref,
                cost_estimate=int(number(data, "estimated_units")),
                poll_after_seconds=_poll_after(answer),
                receipt=_receipt(answer, data),
            )
        code = int(number(document or {}, "code"))
        message = text(document or {}, "message") or answer.evidence()
        if answer.status == 429:
            return throttled(answer, self._style, message)
        if answer.status == 408 or (answer.status >= 500 and code not in NOTHING_MADE):
            return Unknown(evidence=answer.evidence())
        return Rejected(error=ERRORS.get(code, ErrorClass.UNKNOWN), code=str(code), message=message)


def _polled(ref: str, answer: Answer) -> PollOutcome:
    data = sub_document(answer.document() or {}, "data")
    cost = int(number(data, "final_unit_deduction"))
    match text(data, "task_status"):
        case "succeed":
            return Succeeded(
                ref=ref,
                cost=cost,
                size_bytes=int(number(data, "size_bytes")),
                report=sub_document(data, "report"),
                receipt=_receipt(answer, data),
            )
        case "failed" | "canceled":
            code = int(number(data, "failure_code"))
            error = ERRORS.get(code, ErrorClass.UNKNOWN)
            return Failed(error=error, code=str(code), message=text(data, "task_status_msg"), cost=cost)
        case "submitted" | "processing":
            return Pending(poll_after_seconds=_poll_after(answer))
        case _:
            return Pending(poll_after_seconds=_poll_after(answer), trouble=f"unreadable: {answer.evidence()}")


def _reconciled(answer: Answer) -> ReconcileOutcome:
    document = answer.document()
    if document is None or not isinstance(document.get("data"), list):
        return NotFound(authoritative=False, evidence=f"unreadable: {answer.evidence()}")
    tasks = sub_documents(document, "data")
    if not tasks:
        return NotFound(authoritative=True, evidence="the provider lists no task with this external task id")
    standing = [task for task in tasks if text(task, "task_status") not in ("failed", "canceled")]
    chosen = (standing or tasks)[0]
    evidence = f"{len(tasks)} task(s) listed, the adopted one is {text(chosen, 'task_status')}"
    return Found(ref=text(chosen, "task_id"), jobs=len(tasks), evidence=evidence)


def _poll_after(answer: Answer) -> float:
    try:
        seconds = float(answer.headers.get("x-poll-after-ms", "")) / 1000
    except ValueError:
        return POLL_AFTER_SECONDS_DEFAULT
    return seconds if 0 <= seconds <= POLL_AFTER_SECONDS_MAX else POLL_AFTER_SECONDS_DEFAULT


def _receipt(answer: Answer, data: Document) -> Receipt:
    return Receipt(
        request_id=answer.headers.get("x-request-id", ""), status=text(data, "task_status"), payload=data
    )
