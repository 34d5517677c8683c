"""What stands in the streams, as relay and sweeper ask for it: nothing there, something there, or no stream at all."""

import asyncio

import pytest
from nats.aio.client import Client

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import POOL, pointer, transport_to
from longtake.errors import TransportUnavailable
from longtake.jetstream import JetStreamTransport
from longtake.jetstream.readiness import StreamsReady
from longtake.jetstream.topology import LT_EFFECT


async def test_the_oldest_message_is_told_and_none_is_told_apart_from_no_stream(
    server: LoneNats, bystander: Client
) -> None:
    """A relay that took a missing stream for an empty one marked pointers as published that nobody could take."""
    transport = transport_to(server.url)
    await transport.start()
    try:
        await StreamsReady(transport).start()
        assert await transport.oldest_effect(POOL) is None
        assert await transport.oldest_callback(0) is None

        await transport.publisher.publish([pointer()])
        assert await transport.oldest_effect(POOL) is not None
    finally:
        await transport.stop()

    await bystander.jetstream().delete_stream(LT_EFFECT)
    late = transport_to(server.url)
    await late.connection.start()
    try:
        assert await late.connection.wait_linked(5)
        with pytest.raises(TransportUnavailable, match="stream not found"):
            await late.oldest_effect(POOL)
    finally:
        await late.connection.stop()


async def test_a_question_whose_link_breaks_does_not_sit_out_its_timeout(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    """The words tell the two ends apart: a timeout would say that JetStream does not answer."""
    proxy.blackhole()
    client = frail.connection.client
    asked = client.stats["out_msgs"]
    asking = asyncio.create_task(frail.oldest_effect(POOL))
    await eventually(lambda: client.stats["out_msgs"] > asked, "a question that was sent")
    proxy.cut()
    with pytest.raises(TransportUnavailable, match="lost before the answer"):
        await asking


async def test_a_start_without_nats_waits_no_longer_than_it_says() -> None:
    transport = transport_to("nats://127.0.0.1:9")
    await transport.start()
    try:
        await StreamsReady(transport, seconds=0.1).start()
    finally:
        await transport.stop()
