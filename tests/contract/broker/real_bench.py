"""The bench over a real nats-server, through nats-py without any of our own adapters.

Each settlement is a request, so the server has done it when the clause goes on. A server of its own is needed only by clauses that
restart it.
"""

import asyncio
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from contract.broker.bench import (
    DURABLE,
    LONG,
    SOON,
    STREAM,
    Answer,
    Denied,
    Gone,
    Held,
    Settlement,
    Work,
)
from kit.lone_nats import LoneNats
from kit.probe import eventually
from longtake.memory.broker_stream import StreamState

ANSWER_SECONDS = 5.0
STANDING_SECONDS = 1.0
WORDS = {"ack": b"+ACK", "term": b"+TERM", "progress": b"+WPI"}
ADVISORIES = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>"
Connect = Callable[[], Any]


class RealBench:
    """The bench over nats-server. `lone` is the server when it is this bench's own, `home` where its files are."""

    def __init__(self, connect: Connect, lone: LoneNats | None = None, home: Path | None = None) -> None:
        self._connect = connect
        self.lone = lone
        self._home = home
        self.client: Client
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._told: list[tuple[int, int]] = []

    async def open(self) -> None:
        """Connect, and listen to advisories."""
        self.client = await self._connect()
        await self.client.subscribe(ADVISORIES, cb=self._on_advisory)
        self.js = self.client.jetstream(timeout=ANSWER_SECONDS)

    async def _on_advisory(self, message: Msg) -> None:
        told = json.loads(message.data)
        self._told.append((told["stream_seq"], told["deliveries"]))

    # --- streams and consumers ----------------------------------------------------------------------------------------

    async def stream(self, name: str = STREAM, **rules: Any) -> datetime:
        retention = rules.get("retention", "work_queue")
        info = await self.js.add_stream(
            StreamConfig(
                name=name,
                subjects=[rules.get("subject", f"{name}.*")],
                retention=RetentionPolicy.LIMITS if retention == "limits" else RetentionPolicy.WORK_QUEUE,
                storage=StorageType.FILE,
                discard=DiscardPolicy.NEW,
                max_bytes=rules.get("bytes_max"),
                max_msg_size=rules.get("message_bytes_max"),
                max_age=rules.get("age_seconds_max"),
                duplicate_window=rules.get(
                    "duplicate_window_seconds", min(120.0, rules.get("age_seconds_max", 120.0))
                ),
                deny_purge=rules.get("deny_purge", False),
            )
        )
        assert info.created is not None
        return info.created

    async def consumer(self, durable: str = DURABLE, *, stream: str = STREAM, **rules: Any) -> None:
        backoff = rules.get("backoff_seconds")
        try:
            await self.js.add_consumer(
                stream,
                ConsumerConfig(
                    durable_name=durable,
                    filter_subject=rules.get("subject"),
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=None if backoff else rules.get("ack_wait_seconds", 30.0),
                    max_deliver=rules.get("max_deliver", -1),
                    max_ack_pending=rules.get("ack_pending_max", 256),
                    backoff=list(backoff) if backoff else None,
                ),
            )
        except APIError as error:
            raise Denied(error.description) from error

    async def state(self) -> StreamState:
        info = await self.js.stream_info(STREAM)
        assert info.created is not None
        return StreamState(info.state.messages, info.state.first_seq, info.state.last_seq, info.created)

    async def oldest(self, subject: str) -> str | None:
        try:
            found = await self.js.get_msg(STREAM, 1, subject=subject, next=True)
        except NotFoundError:
            return None
        return (found.data or b"").decode()

    async def purge(self, *, by_force: bool = True) -> None:
        try:
            await self.js.purge_stream(STREAM)
        except APIError as error:
            raise Denied(error.description) from error

    async def delete_message(self, sequence: int) -> None:
        await self.js.delete_msg(STREAM, sequence)

    async def delete_stream(self) -> None:
        await self.js.delete_stream(STREAM)

    async def delete_consumer(self, durable: str = DURABLE) -> None:
        await self.js.delete_consumer(STREAM, durable)

    # --- messages -----------------------------------------------------------------------------------------------------

    async def publish(
        self, body: str = "x", *, subject: str = "S.a", id: str = "", expected: str = ""
    ) -> Answer:
        headers = {"Nats-Msg-Id": id} if id else {}
        if expected:
            headers["Nats-Expected-Stream"] = expected
        try:
            ack = await self.js.publish(subject, body.encode(), headers=headers or None)
        except NoStreamResponseError:
            return Answer(code=503)
        except APIError as error:
            return Answer(code=error.err_code or 0)
        return Answer(ack.seq, bool(ack.duplicate))

    async def publish_unheard(self, body: str) -> None:
        assert self.lone is not None
        self.lone.freeze()
        try:
            with suppress(NatsTimeout):
                await self.js.publish("S.a", body.encode(), timeout=SOON)
                raise AssertionError("a frozen server answered")
        finally:
            self.lone.thaw()
        await self.client.flush()

    async def publish_buffered(self, body: str, between: Work) -> None:
        assert self.lone is not None
        careless = await nats.connect(
            self.lone.url, reconnect_time_wait=0.05, max_reconnect_attempts=-1, error_cb=_hear_nothing
        )
        try:
            await self.client.close()
            await self.lone.stop()
            await eventually(lambda: not careless.is_connected, "the careless client noticed")
            await careless.publish("S.a", body.encode())
            await self.lone.start()
            await self.open()
            await between()
            await eventually(lambda: careless.is_connected, "the careless client is back")
            await careless.flush()
        finally:
            await careless.close()

    async def pull(self, number: int = 1, *, seconds: float = LONG, durable: str = DURABLE) -> list[Held]:
        subscription = await self.js.pull_subscribe_bind(durable, STREAM)
        try:
            found = await subscription.fetch(number, timeout=max(seconds, 0.01))
        except NatsTimeout:
            found = []
        except ServiceUnavailableError as error:
            raise Gone(str(error)) from error
        finally:
            await subscription.unsubscribe()
        return [self._held(message) for message in found]

    def _held(self, message: Msg) -> Held:
        async def settle(how: Settlement, seconds: float) -> None:
            word = WORDS.get(how) or (b'-NAK {"delay": %d}' % int(seconds * 1e9) if seconds else b"-NAK")
            with suppress(NoRespondersError):
                await self.client.request(message.reply, word, timeout=ANSWER_SECONDS)

        metadata = message.metadata
        return Held(message.data.decode(), metadata.sequence.stream, metadata.num_delivered, settle)

    async def standing(self, work: Work) -> list[Held]:
        subscription = await self.js.pull_subscribe_bind(DURABLE, STREAM)
        standing = asyncio.create_task(subscription.fetch(1, timeout=STANDING_SECONDS))
        await eventually(self._somebody_waits, "the pull stands")
        try:
            await work()
            return [self._held(message) for message in await standing]
        except NatsTimeout:
            return []
        finally:
            await subscription.unsubscribe()

    async def _somebody_waits(self) -> bool:
        return bool((await self.js.consumer_info(STREAM, DURABLE)).num_waiting)

    async def advisories(self) -> list[tuple[int, int]]:
        await eventually(lambda: self._told, "an advisory came")
        return self._told

    # --- the server and time ------------------------------------------------------------------------------------------

    async def restart(self) -> None:
        assert self.lone is not None
        await self.client.close()
        await self.lone.stop()
        await self.lone.start()
        await self.open()

    async def kill(self) -> None:
        assert self.lone is not None
        await self.client.close()
        await self.lone.kill()
        await self.lone.start()
        await self.open()

    async def power_loss_after(self, work: Work) -> None:
        """The files as they were before the work, put under the server that is started after it."""
        assert self.lone is not None and self._home is not None
        store = self._home / "jetstream"
        synced = self._home / "synced"
        # A clean stop has everything on the disk; a copy of a running server's files may be torn.
        await self.client.close()
        await self.lone.stop()
        await asyncio.to_thread(shutil.copytree, store, synced)
        await self.lone.start()
        await self.open()
        await work()
        await self.client.close()
        await self.lone.kill()
        await asyncio.to_thread(_swap, store, synced)
        await self.lone.start()
        await self.open()

    async def pass_seconds(self, seconds: float) -> None:
        ends_at = self._loop.time() + seconds
        await eventually(lambda: self._loop.time() >= ends_at, f"{seconds} s passed")

    def elapsed(self) -> float:
        return self._loop.time() - self._began


async def _hear_nothing(_error: Exception) -> None:
    """A careless client."""


def _swap(store: Path, synced: Path) -> None:
    shutil.rmtree(store)
    synced.rename(store)
