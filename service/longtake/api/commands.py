"""Commands over HTTP: the only way in that changes anything.

The body goes to the same reader and the same admission as a command of NATS. A stored answer is given again with the
same bytes; a stored refusal has its problem's status each time.
"""

import math
from typing import Any

import msgspec
from litestar import Response, get, post

from longtake.api.answers import CommandAnswer, ReceiptAnswer, links_of
from longtake.api.auth import needs_role
from longtake.api.context import Api, ApiContext, Caller, Row
from longtake.api.problems import answer, not_found
from longtake.contracts.codec import to_json
from longtake.contracts.command_table import START_KINDS
from longtake.contracts.commands import COMMAND_BYTES_MAX, Command, Receipt
from longtake.contracts.ids import is_name
from longtake.contracts.problems import ProblemError, problem
from longtake.contracts.summary import TERMINAL
from longtake.crash_points import reach
from longtake.engine.admission import Answer
from longtake.engine.commands import read_command
from longtake.errors import Refused
from longtake.telemetry.tracing import current_traceparent

_receipts = msgspec.json.Decoder(Receipt)


@post("/v1/commands", status_code=202, request_max_body_size=COMMAND_BYTES_MAX)
async def post_command(request: Caller, api: Api) -> Response[Any]:
    """Admit a command; 202 with its receipt once it is decided and kept."""
    needs_role(request.user, "producer")
    _take_json_only(request.headers.get("content-type"))
    raw = await request.body()
    command = read_command(raw, key=request.headers.get("idempotency-key"))
    if_match = request.headers.get("if-match")
    command = _with_precondition(command, if_match, api)
    reach("auth_ok.before_tx")
    given = await api.admission.admit(
        request.user,
        command,
        channel="http",
        traceparent=current_traceparent(),
        strict=if_match is not None,
    )
    reach("after_commit.before_response")
    return _told(given, api)


@get("/v1/commands/{command_id:str}")
async def get_command(request: Caller, api: Api, command_id: str) -> Response[CommandAnswer]:
    """A command of the caller's own, with the status it has now."""
    row = None
    if is_name(command_id):
        row = await api.reads.command(request.user.tenant, request.user.actor, command_id)
    if row is None:
        raise not_found(f"command {command_id[:64]!r} of yours")
    return Response(_stands(row))


def _take_json_only(content_type: str | None) -> None:
    media = (content_type or "").partition(";")[0].strip().lower()
    if media == "application/json" or (media.startswith("application/") and media.endswith("+json")):
        return
    raise Refused(
        problem(
            "unsupported-media-type",
            f"The content type is {media!r}; a command is application/json."
            if media
            else "The request has no content type; a command is application/json.",
        )
    )


def _with_precondition(command: Command, if_match: str | None, api: ApiContext) -> Command:
    """Read If-Match as the expected revision, with the epoch of the store; the run must be at exactly that one (P3)."""
    if if_match is None:
        return command
    opening = f'"e{api.store_epoch}-r'
    digits = if_match.strip().removeprefix(opening).removesuffix('"')
    if not if_match.strip().startswith('"e') or not if_match.strip().endswith('"'):
        raise Refused(
            problem(
                "invalid-parameter",
                "If-Match is not a revision of ours.",
                ProblemError(
                    "/header/If-Match", f"is {if_match[:40]!r}", 'send the ETag of a summary: "e1-r12"'
                ),
            )
        )
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise Refused(
            problem(
                "stale-revision",
                "If-Match is of another epoch of this store.",
                ProblemError("/header/If-Match", f"is {if_match[:40]!r}", "read the summary again"),
            )
        )
    revision = int(digits)
    if command.expected_revision not in (None, revision):
        raise Refused(
            problem(
                "invalid-command",
                "If-Match and expected_revision differ.",
                ProblemError(
                    "/expected_revision",
                    f"is {command.expected_revision}",
                    f"use {revision}, or leave it out",
                ),
            )
        )
    return msgspec.structs.replace(command, expected_revision=revision)


def _told(given: Answer, api: ApiContext) -> Response[Any]:
    receipt = given.receipt
    headers = {"Idempotency-Replayed": "true"} if given.replayed else {}
    if receipt.run_id is not None and receipt.revision is not None:
        headers["ETag"] = f'"e{api.store_epoch}-r{receipt.revision}"'
    if receipt.problem is not None:
        return answer(receipt.problem, instance=f"/v1/commands/{receipt.command_id}", headers=headers)
    place = f"/v1/commands/{receipt.command_id}"
    if receipt.run_id is not None:
        place = f"/v1/runs/{receipt.run_id}"
    headers["Location"] = place
    wait = None if receipt.summary is None else receipt.summary.timing.poll_after_ms
    if wait is not None:
        headers["Retry-After"] = str(math.ceil(wait / 1000))
    body = ReceiptAnswer(
        command_id=receipt.command_id,
        kind=receipt.kind,
        status=receipt.status,
        run_id=receipt.run_id,
        revision=receipt.revision,
        summary=receipt.summary,
        links=None if receipt.run_id is None else links_of(receipt.run_id),
    )
    return Response(to_json(body), status_code=202, media_type="application/json", headers=headers)


def _stands(row: Row) -> CommandAnswer:
    """The row, its status derived from what has become of it since."""
    receipt = None if row["receipt"] is None else _receipts.decode(row["receipt"])
    status = row["status"]
    if row["kind"] in START_KINDS and row["run_status"] is not None and status != "rejected":
        begun = status != "scheduled" or row["run_status"] != "accepted"
        status = row["run_status"] if row["run_status"] in TERMINAL else "running" if begun else "scheduled"
    elif row["consumed"]:
        status = "applied"
    return CommandAnswer(
        command_id=row["client_command_id"],
        kind=row["kind"],
        project=row["project"],
        status=status,
        intent_hash=row["intent_hash"],
        accepted_at=row["accepted_at"],
        run_id=None if row["run_id"] is None else str(row["run_id"]),
        revision=None if receipt is None else receipt.revision,
        problem=None if receipt is None else receipt.problem,
        links=None if row["run_id"] is None else links_of(row["run_id"]),
    )


ROUTES = [post_command, get_command]
