"""Publishing: many at once, one honest result each, and nothing kept back while there is no link."""

import asyncio

import pytest
from nats.aio.client import Client

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.proxy import TcpProxy
from kit.transports import POOL, Told, ack_all, pointer, pointers, take, transport_to
from longtake.errors import TransportUnavailable
from longtake.jetstream import JetStreamTransport, TopologySettings
from longtake.jetstream.publisher import IN_FLIGHT_MAX, JetStreamPublisher
from longtake.jetstream.topology import LT_COMMAND, LT_EFFECT, POINTER_BYTES_MAX, command_subject
from longtake.ports import OutgoingMessage
from longtake.telemetry import span

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_every_message_gets_its_own_result_in_order(transport: JetStreamTransport) -> None:
    messages = [
        pointer(b"one", message_id="same"),
        pointer(b"two", message_id="same"),
        OutgoingMessage(subject="nobody.listens", body=b"", message_id="x", stream=LT_EFFECT),
        OutgoingMessage(
            subject=command_subject(tenant="t", kind="k"), body=b"", message_id="y", stream=LT_EFFECT
        ),
        OutgoingMessage(subject="not a subject", body=b"", message_id="z", stream=LT_EFFECT),
        pointer(b"three"),
    ]
    results = await transport.publisher.publish(messages)

    assert [result.state for result in results] == [
        "stored",
        "duplicate",
        "refused",
        "refused",
        "refused",
        "stored",
    ]
    assert [result.detail for result in results[2:4]] == [
        "no stream takes this subject",
        "expected stream does not match (code 400, 10060)",
    ]


async def test_more_messages_than_may_be_in_flight_go_in_slices(
    transport: JetStreamTransport, bystander: Client
) -> None:
    results = await transport.publisher.publish(pointers(IN_FLIGHT_MAX * 2 + 1))

    assert {result.state for result in results} == {"stored"}
    assert (await bystander.jetstream().stream_info(LT_EFFECT)).state.messages == IN_FLIGHT_MAX * 2 + 1


async def test_nothing_to_publish_is_no_work(transport: JetStreamTransport) -> None:
    assert await transport.publisher.publish([]) == []


async def test_a_repetition_with_a_new_generation_in_its_id_is_delivered(
    transport: JetStreamTransport,
) -> None:
    """The cure of finding 3b: the id carries the generation."""
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer(message_id="e1:1:1")])
    await ack_all(await take(subscription, 1))
    (again,) = await transport.publisher.publish([pointer(message_id="e1:1:2")])

    assert again.state == "stored"
    assert await ack_all(await take(subscription, 1)) == [b"pointer"]


@pytest.mark.parametrize(
    ("size", "state"), [(POINTER_BYTES_MAX, "stored"), (POINTER_BYTES_MAX + 1, "refused")]
)
async def test_a_body_is_bounded_before_it_is_sent(
    transport: JetStreamTransport, size: int, state: str
) -> None:
    (result,) = await transport.publisher.publish([pointer(b"x" * size)])

    assert result.state == state


async def test_the_stream_bounds_what_others_publish(
    transport: JetStreamTransport, bystander: Client
) -> None:
    with pytest.raises(Exception, match="maximum"):
        await bystander.jetstream().publish("longtake.v1.effect.short", b"x" * 2 * POINTER_BYTES_MAX)


async def test_a_full_stream_fails_the_publisher_and_loses_nothing(server: LoneNats) -> None:
    """F18: the broken variant would be `discard old`, which answers "stored" to all of them."""
    transport = transport_to(server.url, settings=TopologySettings(pointer_stream_bytes_max=10_000))
    await transport.start()
    assert await transport.wait_ready(10)
    results = await transport.publisher.publish([pointer(b"x" * 1000) for _ in range(20)])
    stored = sum(result.state == "stored" for result in results)
    subscription = await transport.effects(POOL)
    await ack_all(await take(subscription, stored))
    (later,) = await transport.publisher.publish([pointer(b"x" * 1000)])
    await transport.stop()

    assert 0 < stored < 20
    assert {result.state for result in results[stored:]} == {"refused"}
    assert "maximum bytes exceeded" in results[-1].detail
    assert later.state == "stored"


async def test_the_trace_travels_in_the_headers(transport: JetStreamTransport) -> None:
    subscription = await transport.effects(POOL)
    with span("effect.publish", parent=TRACE):
        await transport.publisher.publish([pointer(message_id="traced")])
    (delivery,) = await take(subscription, 1)
    await delivery.ack()

    assert delivery.headers == {
        "Nats-Msg-Id": "traced",
        "Nats-Expected-Stream": LT_EFFECT,
        "traceparent": TRACE,
    }


async def test_while_there_is_no_link_publishing_fails_at_once_and_nothing_is_kept_back(
    frail: JetStreamTransport, proxy: TcpProxy, bystander: Client
) -> None:
    proxy.refuse()
    await frail.connection.wait_lost(5)
    with pytest.raises(TransportUnavailable, match="no connection to NATS at nats://"):
        await frail.publisher.publish([pointer(b"refused")])
    proxy.heal()
    assert await frail.connection.wait_linked(5)
    await frail.publisher.publish([pointer(b"sent")])

    assert (await bystander.jetstream().stream_info(LT_EFFECT)).state.messages == 1


async def test_an_acknowledgement_that_never_comes_is_unknown_not_stored(
    frail: JetStreamTransport, proxy: TcpProxy, bystander: Client
) -> None:
    """And it may well be stored: this one is, later."""
    publisher = JetStreamPublisher(frail.connection, ack_seconds=0.1)
    await publisher.publish([pointer(b"first")])
    proxy.blackhole()
    (result,) = await publisher.publish([pointer(b"second")])
    proxy.heal()
    js = bystander.jetstream()

    assert (result.state, result.detail) == ("unknown", "no acknowledgement in time")

    async def arrived() -> bool:
        return (await js.stream_info(LT_EFFECT)).state.messages == 2

    await eventually(arrived, "the message that was unknown is stored after all")


async def test_a_link_that_breaks_in_the_middle_answers_without_waiting_for_the_timeout(
    frail: JetStreamTransport, proxy: TcpProxy
) -> None:
    publisher = JetStreamPublisher(frail.connection, ack_seconds=60.0)
    await publisher.publish([pointer()])
    proxy.cut_after(20_000)
    async with asyncio.timeout(10):
        results = await publisher.publish(pointers(500))

    assert len(results) == 500
    assert {result.state for result in results} <= {"stored", "unknown"}
    assert results[-1].state == "unknown"


async def test_publishers_side_by_side_do_not_mix_up_their_answers(transport: JetStreamTransport) -> None:
    await transport.publisher.publish([pointer(message_id="known")])
    batches = [
        [pointer(message_id="known"), *pointers(20)] if turn % 2 else pointers(21) for turn in range(20)
    ]
    answers = await asyncio.gather(*(transport.publisher.publish(batch) for batch in batches))

    for turn, results in enumerate(answers):
        assert [result.state for result in results] == (
            ["duplicate", *["stored"] * 20] if turn % 2 else ["stored"] * 21
        )


async def test_a_process_may_start_before_its_server(server: LoneNats, told: Told) -> None:
    await server.stop()
    transport = transport_to(server.url, told)
    await transport.start()
    with pytest.raises(TransportUnavailable):
        await transport.publisher.publish([pointer()])
    await server.start()
    assert await transport.wait_ready(10)
    (result,) = await transport.publisher.publish([pointer()])
    await transport.stop()

    assert (result.state, len(told.identities)) == ("stored", 1)


async def test_commands_are_kept_after_they_were_acknowledged(
    transport: JetStreamTransport, bystander: Client
) -> None:
    """They have no other home, so they can be read again after the store was restored (finding 16)."""
    subscription = await transport.commands()
    subject = command_subject(tenant="acme", kind="generation")
    await transport.publisher.publish(
        [OutgoingMessage(subject=subject, body=b"{}", message_id="c1", stream=LT_COMMAND)]
    )
    await ack_all(await take(subscription, 1))

    assert (await bystander.jetstream().stream_info(LT_COMMAND)).state.messages == 1


async def test_the_oldest_message_of_a_pool_says_how_far_its_workers_are(
    transport: JetStreamTransport,
) -> None:
    """P12: a pointer that is older than the oldest message of its pool was delivered, or lost."""
    nothing = await transport.oldest_effect(POOL)
    await transport.publisher.publish([pointer(pool="other"), *pointers(2)])
    subscription = await transport.effects(POOL)
    first = await transport.oldest_effect(POOL)
    await ack_all(await take(subscription, 1))
    second = await transport.oldest_effect(POOL)

    assert nothing is None
    assert first is not None
    assert second is not None
    assert first < second
