"""Requests over NATS: the commands and summaries of HTTP for callers that speak NATS (design.md 10).

`longtake.v1.service.command` takes a command and answers with its receipt after the commit, `longtake.v1.service.summary` takes
`{"run_id": ...}` and answers with the summary. The API key is the Authorization header, as over HTTP. Leaves to others: the
subjects, and how a refusal is sent (jetstream/services.py).
"""

from collections.abc import Mapping

import msgspec

from longtake.api.auth import Authenticator, needs_role
from longtake.api.context import ApiContext
from longtake.api.parameters import identifier
from longtake.api.problems import not_found
from longtake.api.runs import summary_now
from longtake.contracts.codec import to_json
from longtake.contracts.problems import ProblemError, problem
from longtake.engine.commands import read_command
from longtake.errors import Refused
from longtake.jetstream.services import ServiceRequest


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    run_id: str


_questions = msgspec.json.Decoder(_Question)


class NatsRequests:
    """The two handlers."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._authenticator = Authenticator(context.keys)

    async def command(self, request: ServiceRequest) -> bytes:
        """Admit a command and answer with its receipt. Raises Refused, with the stored problem of a rejected command too."""
        principal = await self._authenticator.principal(_header(request.headers, "authorization"))
        needs_role(principal, "producer")
        command = read_command(request.body, key=_header(request.headers, "idempotency-key"))
        # A request passes through no stream. As a command of HTTP it is copied to LT_COMMAND by the relay, so that a
        # restore finds it there; the channel `nats` is that of commands that came from the stream.
        given = await self._context.admission.admit(
            principal, command, channel="http", traceparent=request.traceparent
        )
        if given.receipt.problem is not None:
            raise Refused(given.receipt.problem)
        return to_json(given.receipt)

    async def summary(self, request: ServiceRequest) -> bytes:
        """Answer with the summary of one run of the caller's tenant. Raises Refused."""
        principal = await self._authenticator.principal(_header(request.headers, "authorization"))
        try:
            question = _questions.decode(request.body)
        except msgspec.DecodeError as error:
            place = ProblemError("/run_id", str(error), 'send {"run_id": "..."}')
            raise Refused(problem("malformed", "The question names no run.", place)) from error
        row = await self._context.reads.summary(principal.tenant, identifier(question.run_id, "run"))
        if row is None:
            raise not_found(f"run {question.run_id}")
        return to_json(summary_now(row))


def _header(headers: Mapping[str, str], name: str) -> str | None:
    """A header by its name in any case: NATS keeps what the sender wrote."""
    return next((value for given, value in headers.items() if given.lower() == name), None)
