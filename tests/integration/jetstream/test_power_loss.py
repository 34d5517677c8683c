"""A server that lost its power has lost what it acknowledged, and the transport says so (findings 1 and F04)."""

import nats

from kit.lone_nats import LoneNats
from kit.probe import eventually
from kit.transports import POOL, Told, ack_all, pointer, pointers, take, transport_to
from longtake.jetstream import JetStreamTransport
from longtake.jetstream.topology import LT_CALLBACK, LT_COMMAND, LT_EFFECT


async def last_sequence(server: LoneNats) -> int:
    client = await nats.connect(server.url)
    info = await client.jetstream().stream_info(LT_EFFECT)
    await client.close()
    return int(info.state.last_seq)


async def test_acknowledged_messages_are_lost_with_the_power_and_the_store_is_told(
    transport: JetStreamTransport, told: Told, server: LoneNats
) -> None:
    await transport.publisher.publish(pointers(5))
    server.save()
    results = await transport.publisher.publish(pointers(7))
    before = await last_sequence(server)
    await server.lose_power()
    after = await last_sequence(server)
    await eventually(lambda: told.behind, "the store is told of the loss")
    assert await transport.connection.wait_linked(10)
    subscription = await transport.effects(POOL)
    await transport.publisher.publish([pointer(b"again")])

    assert [result.state for result in results] == ["stored"] * 7
    assert (before, after) == (12, 5), "the loss really happened"
    assert told.behind == [(LT_EFFECT,)]
    assert len(told.identities) == 1, (
        "name and birth are as they were: without the sequence nothing would tell"
    )
    assert (await ack_all(await take(subscription, 6)))[-1] == b"again"


async def test_who_only_reads_notices_too(server: LoneNats, transport: JetStreamTransport) -> None:
    told = Told()
    reader = transport_to(server.url, told)
    server.save()
    await transport.publisher.publish(pointers(7))
    await reader.start()
    assert await reader.wait_ready(10)
    await eventually(lambda: reader._sequences.highest(LT_EFFECT) == 7, "the reader has looked")
    await server.lose_power()
    await eventually(lambda: told.behind, "the store is told of the loss")
    await reader.stop()

    assert told.behind == [(LT_EFFECT,)]


async def test_a_server_that_kept_everything_is_not_accused(
    transport: JetStreamTransport, told: Told, server: LoneNats
) -> None:
    """The other side: a kill alone loses nothing, and no epoch must rise for it."""
    await transport.publisher.publish(pointers(5))
    for turn in range(3):
        links = transport.connection.links
        await server.kill()
        await server.start()
        await eventually(lambda before=links: transport.connection.links > before, "there is a new link")
        (stored,) = await transport.publisher.publish([pointer()])
        assert (stored.state, await last_sequence(server)) == ("stored", 6 + turn)
    looked = transport._look_once
    await looked()

    assert told.behind == []


async def test_a_loss_that_the_store_could_not_be_told_is_told_at_the_next_look(
    server: LoneNats, told: Told
) -> None:
    class Away(Told):
        failures = 0

        async def take_behind(self, streams: tuple[str, ...]) -> None:
            if not self.failures:
                self.failures += 1
                raise OSError("the store is away")
            await super().take_behind(streams)

    away = Away()
    transport = transport_to(server.url, away)
    await transport.start()
    assert await transport.wait_ready(10)
    server.save()
    await transport.publisher.publish(pointers(2))
    await server.lose_power()
    await eventually(lambda: away.behind, "the store is told at last")
    await transport.stop()

    assert (away.failures, away.behind) == (1, [(LT_EFFECT,)])


async def test_streams_that_went_back_together_are_told_together(
    transport: JetStreamTransport, told: Told, server: LoneNats
) -> None:
    client = await nats.connect(server.url)
    server.save()
    for subject in ("longtake.v1.command.t.k", "longtake.v1.callback.0", "longtake.v1.effect.short"):
        await client.jetstream().publish(subject, b"x")
    await client.close()
    marks = transport._sequences
    names = (LT_CALLBACK, LT_COMMAND, LT_EFFECT)
    await eventually(lambda: all(marks.highest(name) == 1 for name in names), "the transport has looked")
    await server.lose_power()
    await eventually(lambda: told.behind, "the store is told of the loss")

    assert told.behind == [names]
