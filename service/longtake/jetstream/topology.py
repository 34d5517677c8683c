"""Streams and consumers, declared from code: the names, limits and promises of the transport.

`ensure_topology` may run as often as anybody likes and from every process at once: it creates what is missing, brings back what was
changed and touches nothing else. It returns who the streams are - name and birth - because a stream that was deleted and made again
has forgotten everything, and the store must then raise its transport epoch and publish again (F10).

Why these values: `reliability.md` 5.2 in short. `max_deliver` is -1, for at its limit a message is orphaned, not dead-lettered. No
`backoff`, for it adds itself to every delayed nak. `discard new`, so a full stream fails the publisher instead of losing what is not
yet consumed. Purge is denied; the deletion of one message stays possible for operators.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamInfo,
)
from nats.js.errors import BadRequestError, NotFoundError, ServerError

from longtake.contracts.ids import is_name, subject_token
from longtake.errors import ConfigurationError, TransportUnavailable

_INVALID = (BadRequestError, ServerError)
# nats-server answers 400 to some configurations it will not have and 500 to others.

LT_COMMAND: Final = "LT_COMMAND"
LT_EFFECT: Final = "LT_EFFECT"
LT_CALLBACK: Final = "LT_CALLBACK"

COMMAND_CONSUMER: Final = "commands"
CALLBACK_PARTS: Final = 4

COMMAND_BYTES_MAX: Final = 262_144
POINTER_BYTES_MAX: Final = 16_384
MESSAGE_BYTES_MAX: Final = {
    LT_COMMAND: COMMAND_BYTES_MAX,
    LT_EFFECT: POINTER_BYTES_MAX,
    LT_CALLBACK: POINTER_BYTES_MAX,
}
"""The largest body of each stream; the publisher refuses a larger one before it is sent (F28)."""

HEADER_BYTES_MAX: Final = 4_096
"""JetStream counts headers into a message's size; ours are four short ones."""

_STREAM_FIELDS: Final = (
    "subjects",
    "retention",
    "storage",
    "num_replicas",
    "discard",
    "max_bytes",
    "max_age",
    "max_msg_size",
    "duplicate_window",
    "deny_purge",
    "deny_delete",
    "no_ack",
)
_CONSUMER_FIELDS: Final = (
    "filter_subject",
    "ack_policy",
    "ack_wait",
    "max_deliver",
    "max_ack_pending",
    "max_waiting",
    "backoff",
    "inactive_threshold",
    "headers_only",
)

_WEEK_SECONDS: Final = 7 * 24 * 3600.0


class StreamIdentity(msgspec.Struct, frozen=True):
    """Which stream it is: one that was deleted and made again has the name but not the birth."""

    name: str
    created: datetime


class TopologySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between a laptop and a cluster."""

    replicas: int = 1
    command_stream_bytes_max: int = 256 << 20
    pointer_stream_bytes_max: int = 128 << 20
    command_ack_wait_seconds: float = 30.0
    effect_ack_wait_seconds: float = 10.0
    """Short, because an effect is acknowledged when it is claimed, not when it is done."""
    callback_ack_wait_seconds: float = 30.0
    ack_pending_max: int = 256
    """Never 1: order comes from the authority, and 1 puts a whole part behind one slow message."""


def topology_of(redelivery_seconds: float) -> TopologySettings:
    """The topology in which a message that nobody settles comes again after so long; 0: what suits each stream."""
    if not redelivery_seconds:
        return TopologySettings()
    return TopologySettings(
        command_ack_wait_seconds=redelivery_seconds,
        effect_ack_wait_seconds=redelivery_seconds,
        callback_ack_wait_seconds=redelivery_seconds,
    )


def command_subject(*, tenant: str, kind: str) -> str:
    """Where a producer publishes a command."""
    return f"longtake.v1.command.{subject_token(tenant)}.{subject_token(kind)}"


def effect_subject(pool: str) -> str:
    """Where the relay publishes pointers to effects of a pool."""
    return f"longtake.v1.effect.{subject_token(pool)}"


def callback_subject(part: int) -> str:
    """Where pointers to callbacks and reports of a part are published."""
    return f"longtake.v1.callback.{part}"


def stream_configs(settings: TopologySettings) -> tuple[StreamConfig, ...]:
    """The three streams."""
    return (
        _stream(
            settings,
            LT_COMMAND,
            "longtake.v1.command.*.*",
            # Limits, not a work queue: commands have no other home, so they stay to be read again after a restore.
            retention=RetentionPolicy.LIMITS,
            max_age=_WEEK_SECONDS,
            max_bytes=settings.command_stream_bytes_max,
            duplicate_window=600.0,
        ),
        _stream(settings, LT_EFFECT, "longtake.v1.effect.*", max_bytes=settings.pointer_stream_bytes_max),
        _stream(settings, LT_CALLBACK, "longtake.v1.callback.*", max_bytes=settings.pointer_stream_bytes_max),
    )


def consumer_config(settings: TopologySettings, durable: str) -> tuple[str, ConsumerConfig]:
    """The stream and the settings of a durable consumer, found from its name alone."""
    if durable == COMMAND_CONSUMER:
        return LT_COMMAND, _consumer(settings, durable, None, settings.command_ack_wait_seconds)
    if durable.startswith("effects_"):
        subject = effect_subject(durable.removeprefix("effects_"))
        return LT_EFFECT, _consumer(settings, durable, subject, settings.effect_ack_wait_seconds)
    if durable.startswith("callback_"):
        subject = callback_subject(int(durable.removeprefix("callback_")))
        return LT_CALLBACK, _consumer(settings, durable, subject, settings.callback_ack_wait_seconds)
    raise ConfigurationError(
        f"no consumer is called {durable!r}; there are 'commands', 'effects_<pool>' and 'callback_<part>'"
    )


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


async def ensure_topology(
    js: JetStreamContext, pools: Sequence[str] = (), settings: TopologySettings | None = None
) -> tuple[StreamIdentity, ...]:
    """Create what is missing, mend what was changed, and say who the streams are."""
    settings = settings or TopologySettings()
    durables = [
        COMMAND_CONSUMER,
        *map(effect_consumer, pools),
        *map(callback_consumer, range(CALLBACK_PARTS)),
    ]
    identities = [await _ensure_stream(js, wanted) for wanted in stream_configs(settings)]
    for durable in durables:
        await ensure_consumer(js, durable, settings)
    return tuple(identities)


async def ensure_consumer(js: JetStreamContext, durable: str, settings: TopologySettings) -> bool:
    """Create a consumer that is missing or mend one that was changed; True when there was something to do.

    NotFoundError when its stream is missing: then the whole topology must be declared again.
    """
    stream, wanted = consumer_config(settings, durable)
    try:
        info = await js.consumer_info(stream, durable)
    except NotFoundError:
        await js.add_consumer(stream, wanted)
        return True
    if info.paused:
        # A declaration neither pauses nor resumes a consumer that exists: the server leaves that to a request of its own.
        await js.resume_consumer(stream, durable)
    if _same(wanted, info.config):
        return bool(info.paused)
    try:
        await js.add_consumer(stream, wanted)
    except _INVALID:
        # Some fields of a consumer can never be changed. Its place in the stream is worth nothing to us: whatever
        # it had delivered and not seen acknowledged comes again, and the authority knows what is done.
        await js.delete_consumer(stream, durable)
        await js.add_consumer(stream, wanted)
    return True


async def stream_ends(js: JetStreamContext) -> dict[StreamIdentity, int]:
    """Who the streams are now, each with the sequence of its last message; the missing ones are left out."""
    found = {}
    for name in (LT_COMMAND, LT_EFFECT, LT_CALLBACK):
        try:
            info = await js.stream_info(name)
        except NotFoundError:
            continue
        found[_identity(name, info.created)] = info.state.last_seq
    return found


def unavailable(error: Exception) -> TransportUnavailable:
    """Translate what nats-py raises when JetStream does not answer."""
    return TransportUnavailable(f"JetStream does not answer: {error or type(error).__name__}")


async def _ensure_stream(js: JetStreamContext, wanted: StreamConfig) -> StreamIdentity:
    assert wanted.name is not None
    try:
        info = await _create_or_mend(js, wanted, wanted.name)
    except _INVALID as error:
        raise ConfigurationError(
            f"stream {wanted.name} cannot be declared: {error.description}. If an older stream of that name or with its "
            f"subjects ({', '.join(wanted.subjects or ())}) is in the way and nothing else uses it, delete it: what it "
            f"holds are hints that are published again"
        ) from error
    return _identity(wanted.name, info.created)


async def _create_or_mend(js: JetStreamContext, wanted: StreamConfig, name: str) -> StreamInfo:
    try:
        info = await js.stream_info(name)
    except NotFoundError:
        # Two processes may get here at once: the server takes the second, equal declaration as a repetition.
        return await js.add_stream(wanted)
    return info if _same(wanted, info.config) else await js.update_stream(wanted)


def _identity(name: str, created: datetime | None) -> StreamIdentity:
    assert created is not None, f"nats-server did not say when {name} was created"
    return StreamIdentity(name, created)


def _same(wanted: StreamConfig | ConsumerConfig, found: StreamConfig | ConsumerConfig | None) -> bool:
    """Whether every field that matters to us is as we declare it, the ones that we leave empty included."""
    names = _STREAM_FIELDS if isinstance(wanted, StreamConfig) else _CONSUMER_FIELDS
    return found is not None and all(
        _plain(getattr(wanted, name)) == _plain(getattr(found, name)) for name in names
    )


def _plain(value: object) -> object:
    # Servers spell "not set" as null, zero, false or an empty list, and nats-py gives enumerations as text.
    return getattr(value, "value", value) or None


def _stream(
    settings: TopologySettings,
    name: str,
    subject: str,
    *,
    max_bytes: int,
    retention: RetentionPolicy = RetentionPolicy.WORK_QUEUE,
    max_age: float | None = None,
    duplicate_window: float = 120.0,
) -> StreamConfig:
    return StreamConfig(
        name=name,
        subjects=[subject],
        retention=retention,
        storage=StorageType.FILE,
        num_replicas=settings.replicas,
        discard=DiscardPolicy.NEW,
        max_bytes=max_bytes,
        max_age=max_age,
        max_msg_size=MESSAGE_BYTES_MAX[name] + HEADER_BYTES_MAX,
        duplicate_window=duplicate_window,
        deny_purge=True,
        deny_delete=False,
    )


def _consumer(
    settings: TopologySettings, durable: str, subject: str | None, ack_wait_seconds: float
) -> ConsumerConfig:
    return ConsumerConfig(
        name=durable,
        durable_name=durable,
        filter_subject=subject,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ack_wait_seconds,
        max_deliver=-1,
        max_ack_pending=settings.ack_pending_max,
        max_waiting=512,
    )
