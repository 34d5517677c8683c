"""Artifacts: the files that steps published, whole or in part. Identity is key and digest; the address is only ours."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import structlog
from litestar import HttpMethod, Response, get, route
from litestar.response import Stream

from longtake.api.answers import ArtifactAnswer, Artifacts
from longtake.api.context import Api, Caller, Row
from longtake.api.parameters import identifier
from longtake.api.problems import answer, not_found
from longtake.api.runs import matches
from longtake.contracts.problems import problem

_RANGE = re.compile(r"^bytes=(\d{0,18})-(\d{0,18})$")

log = structlog.get_logger("longtake.api.artifacts")


@get("/v1/runs/{run_id:str}/artifacts")
async def list_artifacts(request: Caller, api: Api, run_id: str) -> Response[Artifacts]:
    """Every published artifact of the run."""
    id_ = identifier(run_id, "run")
    if await api.reads.summary(request.user.tenant, id_) is None:
        raise not_found(f"run {run_id}")
    rows = await api.reads.artifacts(request.user.tenant, id_)
    return Response(
        Artifacts(
            run_id=id_,
            artifacts=[ArtifactAnswer(**dict(row), href=f"/v1/artifacts/{row['id']}") for row in rows],
        )
    )


@route("/v1/artifacts/{artifact_id:str}", http_method=[HttpMethod.GET, HttpMethod.HEAD], status_code=200)
async def get_artifact(request: Caller, api: Api, artifact_id: str) -> Any:
    """The bytes, or the part that Range asks for; ETag is their SHA-256."""
    row = await api.reads.artifact(request.user.tenant, identifier(artifact_id, "artifact"))
    if row is None:
        raise not_found(f"artifact {artifact_id[:64]}")
    etag = f'"{row["sha256"]}"'
    headers = _headers(row, etag)
    if matches(request.headers.get("if-none-match"), etag):
        return Response(None, status_code=304, headers=headers)
    try:
        size = await api.objects.size(row["object_key"])
    except LookupError:
        log.error("longtake.object_missing", artifact=str(row["id"]), object_key=row["object_key"])
        return answer(
            problem("internal", "The artifact is known, but its bytes are not in the store."),
            instance=request.url.path,
        )
    wanted = _wanted(request, size, etag)
    if wanted == "beyond":
        return answer(
            problem("range-not-satisfiable", f"The artifact has {size} bytes."),
            instance=request.url.path,
            headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"},
        )
    start, end, status = (0, size, 200) if wanted is None else (*wanted, 206)
    if status == 206:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers["Content-Length"] = str(end - start)
    # The framework would take the route's media type before the response's.
    headers["Content-Type"] = row["content_type"]
    body = (
        _nothing()
        if request.method == "HEAD"
        else api.objects.stream(row["object_key"], start=start, end=end)
    )
    return Stream(body, status_code=status, headers=headers)


def _headers(row: Row, etag: str) -> dict[str, str]:
    return {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=31536000, immutable",
        "Content-Disposition": f"inline; filename*=UTF-8''{quote(row['name'], safe='')}",
        # What a workflow made may be HTML or SVG: it must not run as a page of ours.
        "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:",
        "Last-Modified": row["published_at"].strftime("%a, %d %b %Y %H:%M:%S GMT"),
    }


def _wanted(request: Caller, size: int, etag: str) -> tuple[int, int] | str | None:
    """(start, end) of a satisfiable single range, "beyond", or None for the whole (RFC 9110, 14.2)."""
    text = request.headers.get("range")
    if_range = request.headers.get("if-range")
    if text is None or (if_range is not None and if_range.strip() != etag):
        return None
    found = _RANGE.fullmatch(text.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if first == "":
        if int(last) == 0 or size == 0:
            return "beyond"
        return max(size - int(last), 0), size
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        return "beyond"
    return int(first), min(int(last) + 1, size) if last else size


async def _nothing() -> AsyncIterator[bytes]:
    parts: tuple[bytes, ...] = ()
    for part in parts:
        yield part


ROUTES = [list_artifacts, get_artifact]
