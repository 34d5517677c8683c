"""What streams and consumers promise, as data, and the topology of longtake in these words.

The names, limits and waits are those of the JetStream adapter; a test compares them one by one, for neither adapter may
import the other. Leaves to others: keeping the promises (broker_stream.py, broker_consumer.py).
"""

from typing import Final, Literal

import msgspec

from longtake.contracts.ids import is_name, subject_token
from longtake.errors import ConfigurationError

LT_COMMAND: Final = "LT_COMMAND"
LT_EFFECT: Final = "LT_EFFECT"
LT_CALLBACK: Final = "LT_CALLBACK"

COMMAND_CONSUMER: Final = "commands"
CALLBACK_PARTS: Final = 4
HEADER_BYTES_MAX: Final = 4_096
BODY_BYTES_MAX: Final = {LT_COMMAND: 262_144, LT_EFFECT: 16_384, LT_CALLBACK: 16_384}
"""The largest body of each stream; a publisher refuses a larger one before it is sent."""

Retention = Literal["limits", "work_queue"]


class StreamRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a stream was declared. A limit of None is none. A full stream refuses what is new."""

    name: str
    subject: str
    """Tokens with dots between; `*` stands for any one token."""
    retention: Retention = "work_queue"
    bytes_max: int | None = None
    message_bytes_max: int | None = None
    age_seconds_max: float | None = None
    duplicate_window_seconds: float = 120.0
    deny_purge: bool = False


class ConsumerRules(msgspec.Struct, frozen=True, kw_only=True):
    """How a durable pull consumer with explicit acks was declared."""

    stream: str
    durable: str
    subject: str | None = None
    """The subject whose messages it gets; None for all of the stream."""
    ack_wait_seconds: float = 30.0
    max_deliver: int = -1
    ack_pending_max: int = 256
    backoff_seconds: tuple[float, ...] = ()


class BrokerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between deployments; the defaults are those of the real transport."""

    command_stream_bytes_max: int = 256 << 20
    pointer_stream_bytes_max: int = 128 << 20
    command_ack_wait_seconds: float = 30.0
    effect_ack_wait_seconds: float = 10.0
    callback_ack_wait_seconds: float = 30.0
    ack_pending_max: int = 256


def effect_subject(pool: str) -> str:
    """Where pointers to effects of a pool are published."""
    return f"longtake.v1.effect.{subject_token(pool)}"


def callback_subject(part: int) -> str:
    """Where pointers to callbacks and reports of a part are published."""
    return f"longtake.v1.callback.{part}"


def effect_consumer(pool: str) -> str:
    """The durable consumer of a pool."""
    token = subject_token(pool)
    if not is_name(token):
        raise ConfigurationError(
            f"pool {pool!r} cannot be part of a subject; use 1 to 64 letters, digits, '_', '-' or '.'"
        )
    return f"effects_{token}"


def callback_consumer(part: int) -> str:
    """The durable consumer of a part."""
    if not 0 <= part < CALLBACK_PARTS:
        raise ConfigurationError(f"there is no callback part {part}; parts are 0 to {CALLBACK_PARTS - 1}")
    return f"callback_{part}"


def stream_rules(settings: BrokerSettings) -> tuple[StreamRules, ...]:
    """The three streams."""
    return (
        StreamRules(
            name=LT_COMMAND,
            subject="longtake.v1.command.*.*",
            retention="limits",
            bytes_max=settings.command_stream_bytes_max,
            message_bytes_max=BODY_BYTES_MAX[LT_COMMAND] + HEADER_BYTES_MAX,
            age_seconds_max=7 * 24 * 3600.0,
            duplicate_window_seconds=600.0,
            deny_purge=True,
        ),
        *(
            StreamRules(
                name=name,
                subject=subject,
                bytes_max=settings.pointer_stream_bytes_max,
                message_bytes_max=BODY_BYTES_MAX[name] + HEADER_BYTES_MAX,
                deny_purge=True,
            )
            for name, subject in (
                (LT_EFFECT, "longtake.v1.effect.*"),
                (LT_CALLBACK, "longtake.v1.callback.*"),
            )
        ),
    )


def consumer_rules(settings: BrokerSettings, durable: str) -> ConsumerRules:
    """The rules of a durable consumer of longtake, found from its name alone."""
    if durable == COMMAND_CONSUMER:
        stream, subject, wait = LT_COMMAND, None, settings.command_ack_wait_seconds
    elif durable.startswith("effects_"):
        stream, subject = LT_EFFECT, effect_subject(durable.removeprefix("effects_"))
        wait = settings.effect_ack_wait_seconds
    elif durable.startswith("callback_"):
        stream, subject = LT_CALLBACK, callback_subject(int(durable.removeprefix("callback_")))
        wait = settings.callback_ack_wait_seconds
    else:
        raise ConfigurationError(
            f"no consumer is called {durable!r}; there are 'commands', 'effects_<pool>' and 'callback_<part>'"
        )
    return ConsumerRules(
        stream=stream,
        durable=durable,
        subject=subject,
        ack_wait_seconds=wait,
        ack_pending_max=settings.ack_pending_max,
    )


def subject_matches(pattern: str | None, subject: str) -> bool:
    """Whether a subject is one of a pattern's, in which `*` stands for any one token."""
    if pattern is None or pattern == subject:
        return True
    wanted, found = pattern.split("."), subject.split(".")
    return len(wanted) == len(found) and all(
        want in ("*", have) for want, have in zip(wanted, found, strict=True)
    )


def subjects_overlap(one: str | None, other: str | None) -> bool:
    """Whether some subject is of both patterns."""
    if one is None or other is None:
        return True
    left, right = one.split("."), other.split(".")
    return len(left) == len(right) and all(
        "*" in pair or pair[0] == pair[1] for pair in zip(left, right, strict=True)
    )
