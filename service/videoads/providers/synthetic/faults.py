"""The faults a test or the demo can order, and the rules that say which creates they befall.

Rules and their counters are kept on disk, so a killed provider comes back just as ill-tempered. Acting out a
fault is left to the desk.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

Style = Literal["clips", "stills", "voice", "music", "render"]
STYLES: tuple[Style, ...] = ("clips", "stills", "voice", "music", "render")

FaultKind = Literal[
    "reject",  # refused with `error`, no job
    "throttle",  # 429 with Retry-After, no job
    "lose_request",  # the connection closes, no job
    "lose_response",  # the job is accepted and recorded, then the connection closes
    "garble_response",  # the job is accepted, the answer is 200 and not what was promised
    "server_error",  # the job is accepted, the answer is 500
    "hold_response",  # the job is accepted, the answer waits for a release
    "fail",  # the job ends with `error` after `seconds` (with `spread`: at its own time before that)
    "stall",  # the job does nothing until released, or for `seconds`
    "empty",  # the job succeeds and its file has no bytes
    "webhook_delay",  # the webhook waits for `seconds`, or for a release when 0
    "webhook_early",  # the webhook arrives before the submit is answered
    "webhook_twice",
    "webhook_forged",  # signed with a secret nobody knows
    "webhook_never",
]
ErrorName = Literal[
    "throttled",
    "overloaded",
    "transient",
    "timeout",
    "invalid_input",
    "moderation_input",
    "moderation_output",
    "quota_exhausted",
    "auth",
    "not_found",
    "cancelled",
    "bad_output",
    "provider_bug",
    "unknown",
]


class Fault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that goes wrong."""

    kind: FaultKind
    error: ErrorName = "transient"
    seconds: float = 0.0
    spread: bool = False
    retry_after_seconds: int = 1


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which creates a fault befalls: all conditions given must hold.

    `nth` counts the creates that meet the other conditions, from 1. `once_per_content` strikes the first create
    of each different request, whatever its token: with it every job fails once and succeeds when repeated.
    """

    fault: Fault
    style: Style | None = None
    token: str | None = None
    nth: tuple[int, ...] | None = None
    times: int | None = None
    once_per_content: bool = False


class RuleState(msgspec.Struct, kw_only=True):
    """A rule with what it has seen so far."""

    rule: Rule
    met: int = 0
    struck: int = 0
    contents: set[str] = msgspec.field(default_factory=set)


class Temper(msgspec.Struct, kw_only=True):
    """All that the control plane has ordered."""

    rules: list[RuleState] = msgspec.field(default_factory=list)
    amnesiac: set[str] = msgspec.field(default_factory=set)
    released: set[str] = msgspec.field(default_factory=set)


class RuleBook:
    """The orders in force, kept in one file."""

    def __init__(self, path: Path, *, amnesiac: bool = False) -> None:
        self._path = path
        self._temper = msgspec.json.decode(path.read_bytes(), type=Temper) if path.exists() else Temper()
        if amnesiac:
            self._temper.amnesiac = set(STYLES)

    def add(self, rule: Rule) -> None:
        """Put a rule in force."""
        self._temper.rules.append(RuleState(rule=rule))
        self._save()

    def clear(self) -> None:
        """Forget all rules."""
        self._temper.rules.clear()
        self._save()

    def states(self) -> list[RuleState]:
        """The rules in force and what they have met."""
        return list(self._temper.rules)

    def strike(self, *, style: Style, token: str, content: str) -> tuple[Fault, ...]:
        """The faults that befall this create; counts it."""
        faults = tuple(
            state.rule.fault
            for state in self._temper.rules
            if _strikes(state, style=style, token=token, content=content)
        )
        if self._temper.rules:
            self._save()
        return faults

    def is_amnesiac(self, style: Style) -> bool:
        """Whether this provider offers no look-up now."""
        return style in self._temper.amnesiac

    def set_amnesiac(self, styles: frozenset[Style]) -> None:
        """These providers, and no others, offer no look-up from now on."""
        self._temper.amnesiac = set(styles)
        self._save()

    def release(self, tokens: Iterable[str]) -> None:
        """Let go whatever a fault holds back for these tokens, now and later."""
        self._temper.released.update(tokens)
        self._save()

    def is_released(self, token: str) -> bool:
        """Whether nothing may be held back for this token any more."""
        return token in self._temper.released

    def _save(self) -> None:
        partial = self._path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(self._temper))
        os.replace(partial, self._path)


def _strikes(state: RuleState, *, style: Style, token: str, content: str) -> bool:
    rule = state.rule
    if rule.style not in (None, style) or rule.token not in (None, token):
        return False
    if rule.once_per_content and content in state.contents:
        return False
    state.met += 1
    if rule.nth is not None and state.met not in rule.nth:
        return False
    if rule.times is not None and state.struck >= rule.times:
        return False
    state.struck += 1
    if rule.once_per_content:
        state.contents.add(content)
    return True
