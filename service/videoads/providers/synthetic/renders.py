"""The render provider over HTTP: upload media, submit a composition, be told by a signed webhook.

The webhook may come before the submit is answered and may come twice. Look-up is by the name of the output.
"""

from typing import Any, Literal

from videoads.providers.synthetic.asgi import Malformed, Request, Response, Router, answer
from videoads.providers.synthetic.desk import Broken, Desk, Refusal
from videoads.providers.synthetic.dialects import RENDER_ERRORS
from videoads.providers.synthetic.faults import ErrorName
from videoads.providers.synthetic.jobs import Job
from videoads.providers.synthetic.orders import read_order

STATUS_WORDS = {
    "queued": "queued",
    "running": "rendering",
    "succeeded": "done",
    "failed": "failed",
    "cancelled": "failed",
}
PROGRESS = {"queued": 0.0, "running": 0.5, "succeeded": 1.0, "failed": 1.0, "cancelled": 1.0}


class RenderFace:
    """The render provider."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def mount(self, router: Router) -> None:
        """Add the routes of this provider."""
        router.add("PUT", "/render/v1/assets/{sha256}", self.upload)
        router.add("POST", "/render/v1/renders", self.create)
        router.add("GET", "/render/v1/renders/{id}", self.poll)
        router.add("GET", "/render/v1/outputs/{name}", self.look_up)
        router.add("GET", "/render/v1/renders/{id}/output", self.output)

    async def upload(self, request: Request) -> Response:
        """Keep an input under its digest."""
        await self._desk.note("render", "upload", "", body=request.body)
        try:
            self._desk.shelf.put(request.parts["sha256"], request.body)
        except Malformed as error:
            return _refusal("invalid_input", str(error))
        return answer({"stored": request.parts["sha256"]})

    async def create(self, request: Request) -> Response:
        """A new render, whatever was asked before and even under the same output name."""
        try:
            order = read_order("render", request.document(), request.body, self._desk.shelf)
        except Malformed as error:
            await self._desk.note("render", "create", "", body=request.body)
            return _refusal("invalid_input", str(error))
        try:
            job = await self._desk.create(order)
        except Refusal as refusal:
            return _refusal(refusal.error, refusal.message, refusal.retry_after_seconds)
        except Broken as broken:
            return answer({}) if broken.garbled else _refusal("provider_bug", "internal error")
        return answer({"render_id": job.id, "cost_estimate": job.cost})

    async def poll(self, request: Request) -> Response:
        """How the render is doing."""
        job = await self._find("poll", request)
        return _refusal("not_found", "there is no such render") if job is None else answer(_render(job))

    async def look_up(self, request: Request) -> Response:
        """The renders that were asked to write this output, the first of them first."""
        name = request.parts["name"]
        await self._desk.note("render", "look_up", name)
        if self._desk.rules.is_amnesiac("render"):
            return answer({"type": "NoLookUp", "message": "outputs can not be looked up"}, status=501)
        jobs = self._desk.store.with_token("render", name)
        if not jobs:
            return _refusal("not_found", f"no render writes {name}")
        return answer({"out_name": name, "renders": [_render(job) for job in jobs]})

    async def output(self, request: Request) -> Response:
        """The film."""
        job = await self._find("fetch", request)
        if job is None or job.media is None:
            return _refusal("not_found", "there is no output")
        return Response(
            file=self._desk.workshop.folder / job.media,
            media_type=job.media_type,
            headers={"x-content-sha256": job.sha256},
        )

    async def _find(self, kind: Literal["poll", "fetch"], request: Request) -> Job | None:
        job = self._desk.store.get("render", request.parts["id"])
        await self._desk.note("render", kind, job.token if job else "", job=request.parts["id"])
        return job


def _render(job: Job) -> dict[str, Any]:
    render: dict[str, Any] = {
        "render_id": job.id,
        "out_name": job.token,
        "status": STATUS_WORDS[job.state],
        "overall_progress": PROGRESS[job.state],
        "costs": {"accrued": 0 if job.error else job.cost},
        "errors": [],
    }
    if job.state == "succeeded":
        render |= {"size_bytes": job.size_bytes, "report": job.report}
    if job.error is not None:
        render["errors"] = [{"type": RENDER_ERRORS[job.error][1], "message": job.message}]
    return render


def _refusal(error: ErrorName, message: str, retry_after_seconds: int | None = None) -> Response:
    status, name = RENDER_ERRORS[error]
    headers = {} if retry_after_seconds is None else {"retry-after": str(retry_after_seconds)}
    return answer({"type": name, "message": message}, status=status, headers=headers)
