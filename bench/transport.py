"""What the transport costs: nats-py's own ways beside ours, on one nats-server of our own.

    python bench/transport.py [--messages 20000] [--batch 256]

Prints messages a second and CPU microseconds a message of this process, for publishing (a future a message, against one inbox for
all acknowledgements) and for taking (`fetch`, against a standing request), each with acks. Nothing is asserted: machines differ. The
ways alternate and each runs three times; the best run counts, for the others measure the neighbours.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import nats
from nats.aio.client import Client

from longtake.embedded.locate import nats_program
from longtake.embedded.nats import choose_port
from longtake.jetstream import Connection, ConnectionOptions, JetStreamTransport
from longtake.jetstream.topology import LT_EFFECT, effect_consumer, effect_subject
from longtake.ports import OutgoingMessage

PLAIN = "plain"
OURS = "ours"
# A pool each: a standing request would take messages that the other way is waiting for.
BODY = b"x" * 120
RUNS = 3

Way = Callable[[], Awaitable[int]]


class Bench:
    """One server, one plain client, one transport."""

    def __init__(self, plain: Client, transport: JetStreamTransport, messages: int, batch: int) -> None:
        self._plain = plain
        self._transport = transport
        self._messages = messages
        self._batch = batch
        self._run = 0

    async def publish_with_futures(self) -> int:
        """js.publish, a batch at once: a request, a future and a timer a message."""
        self._run += 1
        js = self._plain.jetstream()
        for start in range(0, self._messages, self._batch):
            await asyncio.gather(
                *(
                    js.publish(
                        effect_subject(PLAIN),
                        BODY,
                        stream=LT_EFFECT,
                        headers={"Nats-Msg-Id": f"{self._run}.{start}.{n}"},
                    )
                    for n in range(self._batch)
                )
            )
        return self._messages

    async def publish_on_one_inbox(self) -> int:
        """Our publisher."""
        self._run += 1
        for start in range(0, self._messages, self._batch):
            await self._transport.publisher.publish(
                [
                    OutgoingMessage(
                        subject=effect_subject(OURS),
                        body=BODY,
                        message_id=f"{self._run}.{start}.{n}",
                        stream=LT_EFFECT,
                    )
                    for n in range(self._batch)
                ]
            )
        return self._messages

    async def take_with_fetch(self) -> int:
        """PullSubscription.fetch of nats-py."""
        consumer = await self._plain.jetstream().pull_subscribe_bind(effect_consumer(PLAIN), LT_EFFECT)
        taken = 0
        while taken < self._messages:
            for message in await consumer.fetch(self._batch, timeout=5):
                await message.ack()
                taken += 1
        await consumer.unsubscribe()
        return taken

    async def take_with_a_standing_request(self) -> int:
        """Our subscription."""
        subscription = await self._transport.effects(OURS)
        taken = 0
        while taken < self._messages:
            for delivery in await subscription.fetch(limit=self._batch, wait_seconds=5):
                await delivery.ack()
                taken += 1
        return taken


async def measure(way: Way) -> tuple[float, float]:
    """Messages a second, and CPU microseconds a message."""
    wall, cpu = time.perf_counter(), time.process_time()
    number = await way()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return number / wall, cpu / number * 1e6


async def run(messages: int, batch: int) -> None:
    """Alternate the ways and print the best run of each."""
    async with _server() as url:
        plain = await nats.connect(url)
        transport = JetStreamTransport(Connection(ConnectionOptions(servers=(url,), role="bench")))
        await transport.start()
        await transport.wait_ready(10)
        for pool in (PLAIN, OURS):
            await transport.effects(pool)
        await transport.declare()
        bench = Bench(plain, transport, messages - messages % batch, batch)
        pairs: list[tuple[Way, Way]] = [
            (bench.publish_with_futures, bench.take_with_fetch),
            (bench.publish_on_one_inbox, bench.take_with_a_standing_request),
        ]
        results: dict[str, list[tuple[float, float]]] = {}
        for _ in range(RUNS):
            for pair in pairs:
                for way in pair:
                    results.setdefault(way.__name__, []).append(await measure(way))
        print(
            f"{messages} messages of {len(BODY)} bytes in batches of {batch}, best of {RUNS}, {os.cpu_count()} CPUs"
        )
        for name, found in results.items():
            rate, cpu = max(found)
            print(f"{name.replace('_', ' '):32} {rate:9.0f} messages/s   {cpu:6.1f} us CPU each")
        await transport.stop()
        await plain.close()


@asynccontextmanager
async def _server() -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="longtake-bench-") as home:
        port = choose_port(())
        config = Path(home) / "nats.conf"
        config.write_text(
            f'host: "127.0.0.1"\nport: {port}\njetstream {{ store_dir: "{home}/js", max_file_store: 4GB }}\n'
        )
        process = await asyncio.create_subprocess_exec(
            str(nats_program()), "--config", str(config), stderr=asyncio.subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            while line := await process.stderr.readline():
                if b"Server is ready" in line:
                    break
            yield f"nats://127.0.0.1:{port}"
        finally:
            process.kill()
            await process.communicate()


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="What the transport costs, beside nats-py's own ways.")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=256)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.messages, arguments.batch))


if __name__ == "__main__":
    main()
