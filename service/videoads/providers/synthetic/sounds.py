"""The narration and the music provider over HTTP: the request is held open until its answer is the audio.

Work goes on when the client hangs up; a history list carries the client's token, so what was made is not lost.
"""

from typing import Any, Literal

from videoads.providers.synthetic.asgi import Malformed, Request, Response, Router, answer, header_json
from videoads.providers.synthetic.desk import Broken, Desk, Refusal
from videoads.providers.synthetic.dialects import SOUND_ERRORS
from videoads.providers.synthetic.faults import ErrorName
from videoads.providers.synthetic.jobs import Job
from videoads.providers.synthetic.orders import read_order

REPORT_HEADER_BYTES_MAX = 16 * 1024
STATUS_WORDS = {
    "queued": "generating",
    "running": "generating",
    "succeeded": "done",
    "failed": "failed",
    "cancelled": "failed",
}
CREATE_PATHS = {"voice": "/voice/v1/speech", "music": "/music/v1/compose"}


class SoundFace:
    """One sound provider; two of them stand in this program."""

    def __init__(self, desk: Desk, style: Literal["voice", "music"]) -> None:
        self._desk = desk
        self._style: Literal["voice", "music"] = style

    def mount(self, router: Router) -> None:
        """Add the routes of this provider."""
        history = f"/{self._style}/v1/history"
        router.add("POST", CREATE_PATHS[self._style], self.create)
        router.add("GET", history, self.look_up)
        router.add("GET", history + "/{id}", self.item)
        router.add("GET", history + "/{id}/audio", self.audio)

    async def create(self, request: Request) -> Response:
        """Make sound and answer with it; always new sound, whatever was asked before."""
        try:
            order = read_order(self._style, request.document(), request.body, self._desk.shelf)
        except Malformed as error:
            await self._desk.note(self._style, "create", "", body=request.body)
            return _refusal("invalid_input", str(error))
        try:
            job = await self._desk.create(order)
        except Refusal as refusal:
            return _refusal(refusal.error, refusal.message, retry_after_seconds=refusal.retry_after_seconds)
        except Broken as broken:
            # A 200 of the wrong kind: no history item id, no audio.
            return answer({"ok": True}) if broken.garbled else _refusal("provider_bug", "internal error")
        job = await self._desk.ended(job)
        if job.error is not None:
            return _refusal(job.error, job.message, item=job.id)
        return self._audio(job)

    async def look_up(self, request: Request) -> Response:
        """The history, or the part of it that carries a token."""
        token = request.query.get("token", "")
        await self._desk.note(self._style, "look_up", token)
        if self._desk.rules.is_amnesiac(self._style):
            return answer({"detail": {"status": "no_history", "message": "history is not kept"}}, status=501)
        jobs = self._desk.store.with_token(self._style, token) if token else []
        return answer({"history": [_item(job) for job in jobs], "has_more": False})

    async def item(self, request: Request) -> Response:
        """One entry of the history."""
        job = await self._find("poll", request)
        return _refusal("not_found", "there is no such item") if job is None else answer(_item(job))

    async def audio(self, request: Request) -> Response:
        """The sound again."""
        job = await self._find("fetch", request)
        if job is None or job.media is None:
            return _refusal("not_found", "there is no such audio")
        return self._audio(job)

    async def _find(self, kind: Literal["poll", "fetch"], request: Request) -> Job | None:
        job = self._desk.store.get(self._style, request.parts["id"])
        await self._desk.note(self._style, kind, job.token if job else "", job=request.parts["id"])
        return None if self._desk.rules.is_amnesiac(self._style) else job

    def _audio(self, job: Job) -> Response:
        assert job.media is not None
        headers = {
            "history-item-id": job.id,
            "x-cost-units": str(job.cost),
            "x-content-sha256": job.sha256,
        }
        report = header_json(job.report)
        if len(report) <= REPORT_HEADER_BYTES_MAX:
            headers["x-report"] = report
        return Response(
            file=self._desk.workshop.folder / job.media, media_type=job.media_type, headers=headers
        )


def _item(job: Job) -> dict[str, Any]:
    item: dict[str, Any] = {
        "history_item_id": job.id,
        "token": job.token,
        "state": STATUS_WORDS[job.state],
        "cost_units": 0 if job.error else job.cost,
    }
    if job.state == "succeeded":
        item |= {"size_bytes": job.size_bytes, "report": job.report}
    if job.error is not None:
        item["failure"] = {"status": SOUND_ERRORS[job.error][1], "message": job.message}
    return item


def _refusal(
    error: ErrorName, message: str, *, item: str | None = None, retry_after_seconds: int | None = None
) -> Response:
    status, word = SOUND_ERRORS[error]
    detail = {"status": word, "message": message} | ({} if item is None else {"history_item_id": item})
    headers = {} if retry_after_seconds is None else {"retry-after": str(retry_after_seconds)}
    return answer({"detail": detail}, status=status, headers=headers)
