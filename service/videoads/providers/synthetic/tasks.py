"""The clip and the still provider over HTTP: submit, get an id, poll it; look-up by our external task id."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from videoads.providers.synthetic.asgi import Malformed, Request, Response, Router, answer
from videoads.providers.synthetic.desk import Broken, Desk, Refusal
from videoads.providers.synthetic.dialects import TASK_ERRORS
from videoads.providers.synthetic.faults import ErrorName
from videoads.providers.synthetic.jobs import Job
from videoads.providers.synthetic.orders import read_order

POLL_AFTER_MILLISECONDS = 300
STATUS_WORDS = {
    "queued": "submitted",
    "running": "processing",
    "succeeded": "succeed",
    "failed": "failed",
    "cancelled": "canceled",
}


class TaskFace:
    """One task provider; two of them stand in this program."""

    def __init__(self, desk: Desk, style: Literal["clips", "stills"]) -> None:
        self._desk = desk
        self._style: Literal["clips", "stills"] = style

    def mount(self, router: Router) -> None:
        """Add the routes of this provider."""
        tasks = f"/{self._style}/v1/tasks"
        router.add("POST", tasks, self.create)
        router.add("GET", tasks, self.look_up)
        router.add("GET", tasks + "/{id}", self._known("poll", self.poll))
        router.add("POST", tasks + "/{id}/cancel", self._known("cancel", self.cancel))
        router.add("GET", tasks + "/{id}/content", self._known("fetch", self.content))
        router.add("PUT", f"/{self._style}/v1/assets/{{sha256}}", self.upload)

    async def create(self, request: Request) -> Response:
        """A new task, whatever was asked before."""
        try:
            order = read_order(self._style, request.document(), request.body, self._desk.shelf)
        except Malformed as error:
            await self._desk.note(self._style, "create", "", body=request.body)
            return _refusal("invalid_input", str(error))
        try:
            job = await self._desk.create(order)
        except Refusal as refusal:
            return _refusal(refusal.error, refusal.message, refusal.retry_after_seconds)
        except Broken as broken:
            return answer({"code": 0}) if broken.garbled else _refusal("provider_bug", "internal error")
        return _task(self._desk.current(job))

    async def look_up(self, request: Request) -> Response:
        """All tasks that carry the external task id."""
        token = request.query.get("external_task_id", "")
        await self._desk.note(self._style, "look_up", token)
        if self._desk.rules.is_amnesiac(self._style):
            return answer({"code": 1404, "message": "tasks can not be looked up"}, status=501)
        jobs = self._desk.store.with_token(self._style, token) if token else []
        return answer({"code": 0, "data": [_task_data(job) for job in jobs]})

    async def poll(self, job: Job) -> Response:
        """How the task is doing."""
        return _task(job)

    async def cancel(self, job: Job) -> Response:
        """Stop the task; one that has ended is left alone."""
        if not job.open:
            return _refusal("cancelled", f"the task is {STATUS_WORDS[job.state]}")
        return _task(await self._desk.cancel(job))

    async def content(self, job: Job) -> Response:
        """The media itself."""
        if job.media is None:
            return _refusal("not_found", f"the task is {STATUS_WORDS[job.state]}")
        return Response(
            file=self._desk.workshop.folder / job.media,
            media_type=job.media_type,
            headers={"x-content-sha256": job.sha256},
        )

    async def upload(self, request: Request) -> Response:
        """Keep an input under its digest."""
        await self._desk.note(self._style, "upload", "", body=request.body)
        try:
            self._desk.shelf.put(request.parts["sha256"], request.body)
        except Malformed as error:
            return _refusal("invalid_input", str(error))
        return answer({"code": 0})

    def _known(
        self, kind: Literal["poll", "cancel", "fetch"], handler: Callable[[Job], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def find_then_handle(request: Request) -> Response:
            job = self._desk.store.get(self._style, request.parts["id"])
            token = job.token if job is not None else ""
            await self._desk.note(self._style, kind, token, body=request.body, job=request.parts["id"])
            if job is None:
                return _refusal("not_found", "there is no such task")
            return await handler(self._desk.current(job))

        return find_then_handle


def _task(job: Job) -> Response:
    headers = {"x-request-id": f"req_{job.id}", "x-poll-after-ms": str(POLL_AFTER_MILLISECONDS)}
    return answer(
        {"code": 0, "data": _task_data(job)},
        headers=headers if job.open else {"x-request-id": f"req_{job.id}"},
    )


def _task_data(job: Job) -> dict[str, Any]:
    data: dict[str, Any] = {
        "task_id": job.id,
        "task_status": STATUS_WORDS[job.state],
        "task_info": {"external_task_id": job.token},
        "estimated_units": job.cost,
    }
    if job.state == "succeeded":
        data |= {"final_unit_deduction": job.cost, "size_bytes": job.size_bytes, "report": job.report}
    if job.error is not None:
        spent = job.cost if job.state == "cancelled" else 0
        data |= {
            "failure_code": TASK_ERRORS[job.error][1],
            "task_status_msg": job.message,
            "final_unit_deduction": spent,
        }
    return data


def _refusal(error: ErrorName, message: str, retry_after_seconds: int | None = None) -> Response:
    status, code = TASK_ERRORS[error]
    headers = {} if retry_after_seconds is None else {"retry-after": str(retry_after_seconds)}
    return answer({"code": code, "message": message}, status=status, headers=headers)
