"""Habits of nats-server and nats-py that have no meaning in memory; each with the control that shows the check can fail.

`reliability.md` 6 asked for them: what the ack subjects look like, what draining, a raising callback, a full disk and a borrowed account
really do, and whether an acknowledgement waits for the disk.
"""

import asyncio
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import DrainTimeoutError
from nats.errors import TimeoutError as NatsTimeout
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

from kit.lone_nats import LoneNats
from kit.probe import eventually
from longtake.embedded.locate import nats_program
from longtake.embedded.nats import choose_port
from longtake.jetstream.delivery import deliveries_of

SOON = 0.3
ACK_FLAG = "js_ack_fc_v2"


@asynccontextmanager
async def server(home: Path, settings: str = "") -> AsyncIterator[LoneNats]:
    """A server with settings of its own."""
    lone = LoneNats(home, settings=settings)
    await lone.start()
    try:
        yield lone
    finally:
        await lone.kill()


async def queue_of(client: Client, **consumer: float) -> JetStreamContext:
    """A work queue `S` with the consumer `c`."""
    js = client.jetstream(timeout=5)
    await js.add_stream(StreamConfig(name="S", subjects=["S.*"], retention=RetentionPolicy.WORK_QUEUE))
    await js.add_consumer(
        "S",
        ConsumerConfig(
            durable_name="c", ack_policy=AckPolicy.EXPLICIT, ack_wait=consumer.get("ack_wait", 30)
        ),
    )
    return js


def asked(url: str) -> tuple[int, dict[str, object]]:
    """Status and answer of the monitoring port."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


# --- 1: the two forms of ack subjects ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "flag", "tokens"),
    [("", False, 9), (f"feature_flags {{ {ACK_FLAG}: true }}", True, 11)],
    ids=["as_shipped", "second_form"],
)
async def test_both_forms_of_ack_subjects_are_understood(
    tmp_path: Path, settings: str, flag: bool, tokens: int
) -> None:
    """The server says which form it speaks; a reader of the first form alone would find the consumer's name for a number."""
    port = choose_port(())
    async with server(tmp_path, f'{settings}\nhttp: "127.0.0.1:{port}"') as lone:
        client = await nats.connect(lone.url)
        js = await queue_of(client, ack_wait=SOON)
        subscription = await js.pull_subscribe_bind("c", "S")
        await js.publish("S.a", b"x")
        await subscription.fetch(1, timeout=5)
        again = (await subscription.fetch(1, timeout=5))[0]
        assert len(again.reply.split(".")) == tokens
        assert deliveries_of(again.reply) == 2
        await client.request(again.reply, b"+ACK", timeout=5)
        assert (await js.stream_info("S")).state.messages == 0
        _, varz = await asyncio.to_thread(asked, f"http://127.0.0.1:{port}/varz")
        flags = varz["feature_flags"]
        assert isinstance(flags, dict)
        assert flags[ACK_FLAG] is flag
        if flag:
            with pytest.raises(ValueError, match="invalid literal"):
                int(again.reply.split(".")[5])  # what an ordered push consumer of nats-py does
        await client.close()


# --- 8: draining ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("abandoned", [True, False], ids=["abandoned_fetch", "finished_fetch"])
async def test_drain_hangs_on_messages_that_nobody_fetched(tmp_path: Path, abandoned: bool) -> None:
    """Finding 9: the messages of a fetch that was given up stay in a queue that `drain` waits for, until its timeout."""
    told: list[Exception] = []

    async def tell(error: Exception) -> None:
        told.append(error)

    async with server(tmp_path) as lone:
        client = await nats.connect(lone.url, drain_timeout=1, error_cb=tell)
        js = await queue_of(client)
        subscription = await js.pull_subscribe_bind("c", "S")
        fetching = asyncio.create_task(subscription.fetch(3, timeout=5))
        await eventually(lambda: _waits(js), "the fetch stands")
        if abandoned:
            fetching.cancel()
        publisher = await nats.connect(lone.url)
        await publisher.jetstream().publish("S.a", b"x")
        if abandoned:
            await eventually(lambda: subscription.pending_msgs > 0, "the message came to nobody")
        with suppress(asyncio.CancelledError):
            await fetching
        began = asyncio.get_running_loop().time()
        with suppress(DrainTimeoutError):
            await client.drain()
        took = asyncio.get_running_loop().time() - began
        await publisher.close()
        await client.close()

    assert (took >= 1) is abandoned
    assert any(isinstance(error, DrainTimeoutError) for error in told) is abandoned


async def _waits(js: JetStreamContext) -> bool:
    return bool((await js.consumer_info("S", "c")).num_waiting)


# --- 9: a callback that raises ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("raises", [True, False], ids=["raising", "silent"])
async def test_an_error_callback_that_raises_kills_the_read_loop_of_a_connected_client(
    tmp_path: Path, raises: bool
) -> None:
    """Finding 8: the client says it is connected and even flushes, but nothing is ever read again."""
    overflowed = asyncio.Event()

    async def on_error(_error: Exception) -> None:
        overflowed.set()
        if raises:
            raise RuntimeError("a bug in somebody's callback")

    async with server(tmp_path) as lone:
        client = await nats.connect(lone.url, error_cb=on_error)
        publisher = await nats.connect(lone.url)
        gate = asyncio.Event()

        async def slow(_message: Msg) -> None:
            await gate.wait()

        await client.subscribe("a", cb=slow, pending_msgs_limit=1)
        await client.flush()
        for _ in range(8):
            await publisher.publish("a", b"x")
        await publisher.flush()
        async with asyncio.timeout(5):
            await overflowed.wait()
        gate.set()
        assert client.is_connected
        alive = True
        try:
            await client.rtt(SOON)  # type: ignore[arg-type] # annotated int, used as a float
        except (NatsTimeout, TimeoutError):
            alive = False
        await client.flush()
        await client.close()
        await publisher.close()

    assert alive is not raises


# --- 11: what an acknowledgement waits for ----------------------------------------------------------------------------

PUBLICATIONS = 20


@pytest.mark.needs("strace")
@pytest.mark.parametrize(("sync", "syncs_min"), [("2m", 0), ("always", PUBLICATIONS)])
async def test_an_acknowledgement_does_not_wait_for_the_disk_unless_it_is_told_to(
    tmp_path: Path, sync: str, syncs_min: int
) -> None:
    """Finding 1: with the default not one sync is made between twenty acknowledgements. The other setting is the control."""
    port, trace, config = choose_port(()), tmp_path / "trace", tmp_path / "nats.conf"
    config.write_text(
        f'host: "127.0.0.1"\nport: {port}\n'
        f'jetstream {{ store_dir: "{tmp_path}/jetstream", sync_interval: {json.dumps(sync)} }}\n'
    )
    process = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-e", "trace=fsync,fdatasync,openat", "-o", str(trace)),
        *(str(nats_program()), "--config", str(config)),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(20):
            while b"Server is ready" not in await process.stderr.readline():
                pass
        client = await nats.connect(f"nats://127.0.0.1:{port}")
        js = client.jetstream()
        await js.add_stream(StreamConfig(name="S", subjects=["S.*"]))
        before = trace.read_text().count("sync(")
        for _ in range(PUBLICATIONS):
            await js.publish("S.a", b"x")
        syncs = trace.read_text().count("sync(") - before
        await client.close()
    finally:
        # The traced server is the child of strace and ends with a word of its own.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        await process.communicate()

    assert syncs >= syncs_min
    assert (syncs == 0) is (sync == "2m")


# --- 12: a full disk --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def small_disk(place: Path) -> AsyncIterator[Callable[[str], None]]:
    """A file system of eight megabytes; what it yields gives it another size."""
    place.mkdir()

    def mount(*options: str) -> None:
        subprocess.run(["mount", *options, str(place)], check=True, capture_output=True)

    mount("-t", "tmpfs", "-o", "size=8m", "tmpfs")
    try:
        yield lambda size: mount("-o", f"remount,size={size}")
    finally:
        command = ["umount", "-l", str(place)]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)


@pytest.mark.needs("small_disk")
async def test_a_full_disk_freezes_the_stream_until_a_restart_even_when_there_is_space_again(
    tmp_path: Path,
) -> None:
    """The publisher hears nothing at all; only plain `/healthz` tells. The publications before it are the control."""
    port = choose_port(())
    async with (
        small_disk(tmp_path / "disk") as resize,
        server(tmp_path / "disk", f'http: "127.0.0.1:{port}"') as lone,
    ):
        client = await nats.connect(lone.url)
        js = client.jetstream(timeout=0.5)
        await js.add_stream(StreamConfig(name="S", subjects=["S.*"]))
        healthz = f"http://127.0.0.1:{port}/healthz"
        assert (await asyncio.to_thread(asked, healthz))[0] == 200
        stored = 0
        with pytest.raises(NatsTimeout):
            for _ in range(400):
                await js.publish("S.a", b"z" * 50_000)
                stored += 1
        assert stored > 100

        status, health = await asyncio.to_thread(asked, healthz)
        assert (status, "no space left" in str(health["error"])) == (503, True)
        assert (await asyncio.to_thread(asked, f"{healthz}?js-enabled-only=true"))[0] == 200

        resize("64m")
        with pytest.raises(NatsTimeout):
            await js.publish("S.a", b"small")
        await client.close()
        await lone.stop()
        await lone.start()
        client = await nats.connect(lone.url)
        js = client.jetstream(timeout=5)
        assert (await js.stream_info("S")).state.messages == stored
        assert (await js.publish("S.a", b"small")).seq == stored + 1
        await client.close()


# --- 13: accounts -----------------------------------------------------------------------------------------------------

NEXT = "$JS.API.CONSUMER.MSG.NEXT.S.c"
ACCOUNTS = f"""accounts {{
  AUTH {{ jetstream: enabled, users: [ {{ user: auth, password: auth }} ]
    exports: [ {{ service: "{NEXT}", response_type: stream }}, {{ service: "$JS.ACK.S.c.>" }} ] }}
  WORKER {{ users: [ {{ user: worker, password: worker }} ]
    imports: [ {{ service: {{ account: AUTH, subject: "{NEXT}" }} }},
               {{ service: {{ account: AUTH, subject: "$JS.ACK.S.c.>" }} }} ] }}
}}"""


async def test_a_worker_in_an_account_of_its_own_pulls_and_acks_but_writes_nowhere(tmp_path: Path) -> None:
    """Finding 11: inside one account a pull request may name a stream's subject as its reply and write into it."""
    request = b'{"batch":1,"expires":1000000000}'
    async with server(tmp_path, ACCOUNTS) as lone:
        auth = await nats.connect(lone.url, user="auth", password="auth")
        worker = await nats.connect(lone.url, user="worker", password="worker")
        js = await queue_of(auth, ack_wait=SOON)
        await js.add_stream(StreamConfig(name="VICTIM", subjects=["victim"]))

        inbox = worker.new_inbox()
        answers = await worker.subscribe(inbox)
        await js.publish("S.a", b"work")
        await worker.publish(NEXT, request, reply=inbox)
        message = await answers.next_msg(timeout=5)
        assert message.data == b"work"
        await worker.request(message.reply, b"+ACK", timeout=5)
        assert (await js.stream_info("S")).state.messages == 0

        async def written() -> int:
            return (await js.stream_info("VICTIM")).state.messages

        own = await worker.subscribe("victim")
        await js.publish("S.a", b"poison")
        await worker.publish(NEXT, request, reply="victim")
        # The answer comes, and to the worker's own account alone.
        assert (await own.next_msg(timeout=5)).data == b"poison"
        assert await written() == 0

        await auth.publish(NEXT, request, reply="victim")
        await eventually(written, "the same request from inside writes into the stream")
        await worker.close()
        await auth.close()
