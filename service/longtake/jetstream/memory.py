"""What JetStream remembers of the store: the epochs it had, the commands it accepted, the pointers it published (F70).

The epoch stands in a stream of its own, LT_STORE, as its one message: it must outlive the store that it is about.
"""

import json
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import msgspec
from nats.errors import Error as NatsError
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
from nats.js.errors import NotFoundError

from longtake.errors import TransportUnavailable
from longtake.jetstream.connection import JETSTREAM_ANSWER_SECONDS, Connection
from longtake.jetstream.topology import LT_CALLBACK, LT_COMMAND, LT_EFFECT, unavailable
from longtake.store import KeptMessage

LT_STORE: Final = "LT_STORE"
STORE_SUBJECT: Final = "longtake.v1.store"
_NOTHING: Final = frozenset({10037, 10059})
"""JetStream's words for: no such message, no such stream."""
_COPIED, _ACTOR = "Longtake-Copied", "Longtake-Actor"


class _Note(msgspec.Struct):
    store_epoch: int
    commands_until: int = 0
    """Sequence in LT_COMMAND up to which a restore has gone through the commands, whatever became of them."""


class _Identified(msgspec.Struct):
    client_command_id: str | None = None


class JetStreamMemory:
    """Implements `TransportMemory`."""

    def __init__(self, connection: Connection, *, replicas: int = 1) -> None:
        self._connection = connection
        self._replicas = replicas

    async def epoch(self) -> int | None:
        """The highest store epoch that was noted."""
        note = await self._note()
        return None if note is None else note.store_epoch

    async def _note(self) -> _Note | None:
        found = await self._get(LT_STORE, {"last_by_subj": STORE_SUBJECT})
        if found is None:
            return None
        try:
            return msgspec.json.decode(found.body, type=_Note)
        except msgspec.DecodeError as error:
            raise TransportUnavailable(
                f"{LT_STORE} holds something that is no note of ours: {error}"
            ) from error

    async def note_epoch(self, epoch: int) -> None:
        """Note an epoch; a lower one than stands there changes nothing."""
        note = await self._note() or _Note(0)
        if epoch > note.store_epoch:
            await self._write(_Note(epoch, note.commands_until))

    async def note_replayed(self, seq: int) -> None:
        """Note that a restore has gone through the commands up to there."""
        note = await self._note() or _Note(0)
        await self._write(_Note(note.store_epoch, seq))

    async def _write(self, note: _Note) -> None:
        js = self._connection.client.jetstream(timeout=JETSTREAM_ANSWER_SECONDS)
        try:
            try:
                await js.stream_info(LT_STORE)
            except NotFoundError:
                await js.add_stream(
                    StreamConfig(
                        name=LT_STORE,
                        subjects=[STORE_SUBJECT],
                        retention=RetentionPolicy.LIMITS,
                        storage=StorageType.FILE,
                        discard=DiscardPolicy.OLD,
                        max_msgs=1,
                        num_replicas=self._replicas,
                    )
                )
            await js.publish(STORE_SUBJECT, msgspec.json.encode(note))
        except (NatsError, OSError) as error:
            raise unavailable(error) from error

    async def last_copied_command(self) -> tuple[str, str, str] | None:
        """The newest command, when it is a copy of one that the store had accepted and no restore has gone through it."""
        found = await self._get(LT_COMMAND, {"last_by_subj": "longtake.v1.command.>"})
        note = await self._note() or _Note(0)
        if found is None or _COPIED not in found.headers or found.seq <= note.commands_until:
            return None
        with suppress(msgspec.DecodeError):
            id_ = msgspec.json.decode(found.body, type=_Identified).client_command_id
            if id_ is not None:
                return found.subject.split(".")[3], found.headers.get(_ACTOR, "nats"), id_
        return None

    async def commands(self, since: datetime | None) -> AsyncIterator[KeptMessage]:
        """Commands in the order of the stream, from a moment on."""
        seq = 1 if since is None else await self._first_since(LT_COMMAND, since)
        async for message in self._from(LT_COMMAND, seq):
            yield message

    async def pointers(self) -> AsyncIterator[KeptMessage]:
        """Every pointer message that still stands."""
        for stream in (LT_EFFECT, LT_CALLBACK):
            async for message in self._from(stream, 1):
                yield message

    async def remove(self, message: KeptMessage) -> None:
        """Take one pointer message out of its stream."""
        stream = LT_EFFECT if message.subject.startswith("longtake.v1.effect.") else LT_CALLBACK
        try:
            await self._connection.client.jetstream(timeout=JETSTREAM_ANSWER_SECONDS).delete_msg(
                stream, message.seq
            )
        except NotFoundError:
            return
        except (NatsError, OSError) as error:
            raise unavailable(error) from error

    async def _from(self, stream: str, seq: int) -> AsyncIterator[KeptMessage]:
        while (message := await self._get(stream, {"seq": seq, "next_by_subj": ">"})) is not None:
            yield message
            seq = message.seq + 1

    async def _first_since(self, stream: str, since: datetime) -> int:
        """The sequence of the first message that was stored at that moment or later, by halving."""
        last = await self._get(stream, {"last_by_subj": ">"})
        low, high = 1, 1 if last is None else last.seq + 1
        while low < high:
            middle = (low + high) // 2
            message = await self._get(stream, {"seq": middle, "next_by_subj": ">"})
            if message is None or message.stored_at >= since:
                high = middle
            else:
                low = message.seq + 1
        return low

    async def _get(self, stream: str, request: dict[str, Any]) -> KeptMessage | None:
        try:
            reply = await self._connection.client.request(
                f"$JS.API.STREAM.MSG.GET.{stream}",
                json.dumps(request).encode(),
                timeout=JETSTREAM_ANSWER_SECONDS,
            )
        except (NatsError, OSError) as error:
            raise unavailable(error) from error
        answer = json.loads(reply.data)
        refusal = answer.get("error")
        if refusal is not None:
            if refusal.get("err_code") in _NOTHING:
                return None
            raise TransportUnavailable(f"{stream}: {refusal.get('description', refusal)}")
        found = answer["message"]
        return KeptMessage(
            seq=found["seq"],
            stored_at=datetime.fromisoformat(found["time"]),
            subject=found["subject"],
            headers=_headers(b64decode(found.get("hdrs", ""))),
            body=b64decode(found.get("data", "")),
        )


def _headers(raw: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in raw.decode(errors="replace").split("\r\n")[1:] if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}
