"""The inbox: a provider's callback is authenticated, kept, and only then believed to exist (P4, H38-H42).

The URL carries the signed (run, step, attempt); the bytes are verified before anything is stored, and only a redacted
digest of them is. A copy meets the first one on its row. A 2xx is sent after the commit.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import structlog

from longtake.contracts.codec import to_json
from longtake.contracts.ids import effect_id_for, inbox_id_for, read_callback_token
from longtake.contracts.problems import problem
from longtake.crash_points import reach
from longtake.engine.hints import Hints
from longtake.errors import Refused
from longtake.store import InboxStore
from longtake.telemetry.attributes import ATTEMPT, PROVIDER, RUN_ID, SPAN_CALLBACK_RECEIVE, STEP
from longtake.telemetry.tracing import span

CALLBACK_BYTES_MAX = 1024 * 1024

log = structlog.get_logger("longtake.engine.inbox")


class AuthenticCallback(msgspec.Struct, frozen=True, kw_only=True):
    """What a verified callback says. `payload` is redacted: no secrets, no signed URLs."""

    dedupe_key: str
    type: str
    external_ref: str | None = None
    payload: dict[str, Any] = {}


class CallbackVerifier(Protocol):
    """One provider's way of signing; supplied by the application."""

    def __call__(self, headers: Mapping[str, str], raw: bytes) -> AuthenticCallback | None:
        """Verify raw bytes; None when they are not the provider's."""
        ...


class CallbackAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider is told."""

    inbox_id: uuid.UUID
    duplicate: bool


class Inbox:
    """Receives callbacks of all providers that the application knows."""

    def __init__(
        self, store: InboxStore, hints: Hints, *, secret: bytes, verifiers: Mapping[str, CallbackVerifier]
    ) -> None:
        self._store = store
        self._hints = hints
        self._secret = secret
        self._verifiers = verifiers

    async def receive(
        self, provider: str, token: str, headers: Mapping[str, str], raw: bytes, *, traceparent: str | None
    ) -> CallbackAnswer:
        """Keep one callback. Raises Refused: not-found, bad-signature, too-large; AuthorityUnavailable."""
        if len(raw) > CALLBACK_BYTES_MAX:
            raise Refused(problem("too-large", f"A callback may have {CALLBACK_BYTES_MAX} bytes."))
        verifier = self._verifiers.get(provider)
        place = read_callback_token(self._secret, token)
        if verifier is None or place is None:
            log.warning("longtake.callback_refused", provider=provider, reason="unknown provider or token")
            raise Refused(problem("not-found", "No such callback address was ever given out."))
        authentic = verifier(headers, raw)
        if authentic is None:
            log.warning("longtake.callback_refused", provider=provider, reason="signature")
            raise Refused(
                problem("bad-signature", "The signature over the raw body does not verify. Nothing was kept.")
            )
        reach("verified.before_inbox")
        run_id, step, attempt = place
        with span(
            SPAN_CALLBACK_RECEIVE,
            kind="server",
            parent=traceparent,
            attributes={PROVIDER: provider, RUN_ID: str(run_id), STEP: step, ATTEMPT: attempt},
        ) as hop:
            effect_id = effect_id_for(run_id, step=step, attempt=attempt, kind="execute", ordinal=1)
            found = await self._store.callback_run(run_id, effect_id)
            if found is None:
                raise Refused(problem("not-found", "The run of this callback does not exist here."))
            tenant, step_trace = found
            # Providers do not hand our context back: the link is the way from the callback to its step.
            hop.link([step_trace])
            # The key is the provider's delivery id or the digest of what it said, under the attempt it speaks of:
            # "succeeded" after "processing" is not a copy (P4).
            dedupe_key = _legible(f"{run_id}/{step}/{attempt}/{authentic.dedupe_key}")
            inbox_id = inbox_id_for(tenant=tenant, provider=provider, dedupe_key=dedupe_key)
            copies = await self._store.insert_callback(
                id=inbox_id,
                tenant=tenant,
                provider=provider,
                dedupe_key=dedupe_key,
                run_id=run_id,
                step=step,
                attempt=attempt,
                external_ref=_legible(authentic.external_ref) if authentic.external_ref else None,
                type=_legible(authentic.type),
                payload=to_json(authentic.payload),
                traceparent=hop.traceparent,
            )
            duplicate = (copies or 0) > 1
            reach("inbox.before_hint")
            if not duplicate:
                await self._hints.look_at(inbox=[(inbox_id, run_id)], traceparent=hop.traceparent)
            return CallbackAnswer(inbox_id=inbox_id, duplicate=duplicate)


def _legible(text: str) -> str:
    """Without NUL, which JSON has and a text column has not: the provider would call again for ever."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
