"""What can happen to streams and consumers while a service works: each a coroutine that ruins, and says how much it took.

`quick_looks` gives the transports of a test the patience of a test.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from kit.transports import QUICK_PULL
from longtake.jetstream import JetStreamTransport
from longtake.jetstream.topology import (
    LT_CALLBACK,
    LT_COMMAND,
    LT_EFFECT,
    TopologySettings,
    consumer_config,
    stream_configs,
)

STREAMS = (LT_COMMAND, LT_EFFECT, LT_CALLBACK)
FOR_EVER = "2099-01-01T00:00:00Z"

Ruin = Callable[[Client], Awaitable[int]]
"""Returns how many messages, streams or consumers it really touched."""


def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transports built from now on look at streams and consumers several times a second."""
    monkeypatch.setattr("longtake.jetstream.subscriber.PullOptions", lambda: QUICK_PULL)
    monkeypatch.setitem(JetStreamTransport.__init__.__kwdefaults__, "look_seconds", 0.3)


def declare_by(settings: TopologySettings, setattr_: Callable[[object, str, object], None] = setattr) -> None:
    """Transports built from now on declare streams and consumers by these settings. After `quick_looks`, if both."""
    real = JetStreamTransport.__init__

    def init(self: JetStreamTransport, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **{**options, "settings": settings})

    setattr_(JetStreamTransport, "__init__", init)


async def delete_streams(client: Client) -> int:
    """Every stream is deleted, whatever is in it."""
    js = client.jetstream()
    touched = 0
    for name in STREAMS:
        try:
            await js.delete_stream(name)
        except NotFoundError:
            continue
        touched += 1
    return touched


async def recreate_streams(client: Client) -> int:
    """Every stream is deleted and made again, empty and without consumers, by somebody who is not us."""
    touched = await delete_streams(client)
    for config in stream_configs(TopologySettings()):
        await client.jetstream().add_stream(config)
    return touched


async def purge_streams(client: Client) -> int:
    """Every message is taken out one by one, since purging is denied for ever; name, birth and last sequence stay."""
    js = client.jetstream()
    taken = 0
    for name in (LT_EFFECT, LT_CALLBACK):
        taken += (await js.stream_info(name)).state.messages
        await _delete_messages(client, js, name)
    return taken


async def _delete_messages(client: Client, js: JetStreamContext, name: str) -> None:
    state = (await js.stream_info(name)).state
    for sequence in range(state.first_seq, state.last_seq + 1):
        request = json.dumps({"seq": sequence, "no_erase": True}).encode()
        await client.request(f"$JS.API.STREAM.MSG.DELETE.{name}", request, timeout=5)


async def delete_consumers(client: Client) -> int:
    """The consumers are gone, their streams stay."""
    js = client.jetstream()
    touched = 0
    for stream, durable in await _consumers(client):
        try:
            touched += await js.delete_consumer(stream, durable)
        except NotFoundError:
            continue
    return touched


async def pause_consumers(client: Client) -> int:
    """The consumers deliver nothing for the next decades."""
    touched = 0
    for stream, durable in await _consumers(client):
        touched += (await client.jetstream().pause_consumer(stream, durable, FOR_EVER)).paused
    return touched


async def narrow_consumers(client: Client) -> int:
    """One message at a time, and a minute until it comes again: a setting that looks harmless and stalls a pool."""
    touched = 0
    for stream, durable in await _consumers(client):
        _, right = consumer_config(TopologySettings(), durable)
        await client.jetstream().add_consumer(stream, right.evolve(max_ack_pending=1, ack_wait=60.0))
        touched += 1
    return touched


async def reset_consumers(client: Client) -> int:
    """The consumers begin again at the first message: whatever is held is delivered once more."""
    touched = 0
    for stream, durable in await _consumers(client):
        reply = await client.request(f"$JS.API.CONSUMER.RESET.{stream}.{durable}", b"", timeout=5)
        touched += "error" not in json.loads(reply.data)
    return touched


async def _consumers(client: Client) -> list[tuple[str, str]]:
    """Stream and name of each consumer; that of a pool is there from its first worker on."""
    found = []
    for stream in STREAMS:
        try:
            infos = await client.jetstream().consumers_info(stream)
        except NotFoundError:
            continue
        found += [(stream, info.name) for info in infos]
    return found
