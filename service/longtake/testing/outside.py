"""The outside of a deployment: how clients reach it, how callbacks come in, and strangers who try (4.6, P4).

It runs in a process of its own that never dies. A request is served by an actor of whatever process answers; when that process
dies, or the answer is lost, the caller knows nothing.
"""

import itertools
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from longtake.contracts.codec import to_json
from longtake.contracts.commands import Command, Receipt
from longtake.contracts.ids import subject_token
from longtake.contracts.pointers import CallbackPointers, EffectPointers, encode_pointers
from longtake.contracts.principal import Principal
from longtake.engine.admission import Answer
from longtake.engine.hints import CALLBACK_STREAM, EFFECT_STREAM
from longtake.engine.relay import ACTOR_HEADER, COMMAND_STREAM
from longtake.errors import AuthorityUnavailable, Refused
from longtake.ports import OutgoingMessage
from longtake.testing.catalogue import PROVIDER, SIGNATURE
from longtake.testing.nodes import Deployment
from longtake.testing.provider import Callback
from longtake.testing.sessions import Lost
from longtake.testing.world import Process

REQUEST_SECONDS = 20.0
RECEIPT_SECONDS = 8.0
CALLBACK_TRIES = 6

_receipts = msgspec.json.Decoder(Receipt)


class Outside:
    """Carries requests to the service and answers back."""

    def __init__(self, deployment: Deployment) -> None:
        self._all = deployment
        self._world = deployment.world
        self._faults = deployment.faults
        self._numbers = itertools.count(1)
        self.process = self._world.process("outside", lambda process: None)
        self.process.start()
        self.process.spawn("postman", self._post())
        if self._faults.live(("unknown_pointer",)):
            self.process.spawn("vandal", self._scatter())
        self.delivered: dict[str, bool] = {}
        """Callbacks by delivery: whether the service said it has them."""

    def watch_lines(self, look: Callable[[], None]) -> None:
        """Call this whenever a starter begins to look at a line of waiting runs."""
        self._all.line_looked_at = look

    # --- commands -----------------------------------------------------------------------------------------------------

    async def admit(self, principal: Principal, command: Command, channel: str) -> Answer:
        """Send one command. Raises Refused, AuthorityUnavailable, Lost."""
        if channel == "nats":
            return await self._publish(principal, command)

        def serve(process: Process) -> Coroutine[Any, Any, Answer]:
            admission = process.memory["admission"]
            work: Coroutine[Any, Any, Answer] = admission.admit(
                principal, command, channel="http", traceparent=None
            )
            return work

        answer: Answer = await self._ask("admit", serve)
        if self._faults.happens("answer_lost", "client"):
            raise Lost
        return answer

    async def _ask(self, what: str, serve: Callable[[Process], Coroutine[Any, Any, Any]]) -> Any:
        """Have some process with the role api do it."""
        servers = [
            process
            for process in self._world.processes.values()
            if process.alive and "admission" in process.memory
        ]
        if not servers:
            await self._world.sleep(0.5)
            raise Lost
        process = self._world.random.choice(servers)
        sound = f"{what}.{next(self._numbers)}"
        reply: list[Any] = []

        async def run() -> None:
            try:
                reply.append(await serve(process))
            except (Refused, AuthorityUnavailable) as error:
                reply.append(error)
            self._world.sound(sound)

        process.spawn(what, run())
        process.on_death.append(lambda: self._world.sound(sound))
        await self._world.listen(sound, seconds=REQUEST_SECONDS)
        if not reply:
            raise Lost
        if isinstance(reply[0], Exception):
            raise reply[0]
        return reply[0]

    async def _publish(self, principal: Principal, command: Command) -> Answer:
        """Fire and forget: the command goes into the stream, the receipt may come."""
        wires = self._all.wires
        message = OutgoingMessage(
            subject=f"longtake.v1.command.{subject_token(principal.tenant)}.{command.kind}",
            body=to_json(command),
            message_id=f"{principal.tenant}-{command.client_command_id}",
            stream=COMMAND_STREAM,
            headers={ACTOR_HEADER: principal.actor},
        )
        await wires.inject(message)
        sound = f"receipt.{principal.tenant}.{command.client_command_id}"
        await self._world.listen(sound, seconds=RECEIPT_SECONDS)
        raw = wires.receipts.get((principal.tenant, str(command.client_command_id)))
        if raw is None:
            raise Lost
        try:
            return Answer(receipt=_receipts.decode(raw))
        except msgspec.ValidationError:
            raise Lost from None  # a refusal; the repeat over HTTP says which

    # --- callbacks ----------------------------------------------------------------------------------------------------

    async def _post(self) -> None:
        provider = self._all.provider
        while True:
            waiting, provider.send = provider.send, []
            for seconds, callback in waiting:
                self.process.spawn("callback", self._deliver(seconds, callback))
            await self._world.listen("provider.callbacks", seconds=3600)

    async def _deliver(self, seconds: float, callback: Callback) -> None:
        await self._world.sleep(seconds)
        raw = to_json({"delivery": callback.delivery, "type": callback.type, "ref": callback.ref})
        if self._faults.happens("forged_callback", "stranger"):
            self.process.spawn("forger", self._forge(callback))
        for attempt in range(CALLBACK_TRIES):
            try:
                await self._receive(callback.url, {"signature": SIGNATURE}, raw)
            except (Lost, AuthorityUnavailable):
                await self._world.sleep(2.0**attempt)
                continue
            except Refused:
                return
            self.delivered[callback.delivery] = True
            return

    async def _scatter(self) -> None:
        """Leave messages in the streams that name nothing, or say nothing at all (P25)."""
        while True:
            await self._world.sleep(self._faults.number("vandal", 5, 60))
            if not self._faults.happens("unknown_pointer", "vandal"):
                continue
            number = next(self._numbers)
            nothing = uuid.UUID(int=number)
            bodies = (
                (
                    CALLBACK_STREAM,
                    "longtake.v1.callback.1",
                    encode_pointers(CallbackPointers(epoch=1, effects=(nothing,))),
                ),
                (
                    CALLBACK_STREAM,
                    "longtake.v1.callback.2",
                    encode_pointers(CallbackPointers(epoch=1, runs=(nothing,))),
                ),
                (
                    EFFECT_STREAM,
                    "longtake.v1.effect.default",
                    encode_pointers(EffectPointers(epoch=1, effects=((nothing, 1, 1),))),
                ),
                (CALLBACK_STREAM, "longtake.v1.callback.0", b'{"nonsense":'),
                (EFFECT_STREAM, "longtake.v1.effect.short", b"\x00\xff"),
                (COMMAND_STREAM, "longtake.v1.command.t1.cancel", b'{"kind":"cancel","surprise":1}'),
            )
            stream, subject, body = self._world.random.choice(bodies)
            await self._all.wires.inject(
                OutgoingMessage(subject=subject, body=body, message_id=f"stray-{number}", stream=stream)
            )

    async def _forge(self, callback: Callback) -> None:
        """A stranger who knows the address but not the secret, and one who knows neither."""
        raw = to_json({"delivery": f"{callback.delivery}-forged", "type": "succeeded", "ref": callback.ref})
        for url, headers in (
            (callback.url, {"signature": "guessed"}),
            (callback.url[:-3] + "xyz", {"signature": SIGNATURE}),
        ):
            try:
                await self._receive(url, headers, raw)
            except (Lost, AuthorityUnavailable, Refused):
                continue

    async def _receive(self, url: str, headers: dict[str, str], raw: bytes) -> None:
        def serve(process: Process) -> Coroutine[Any, Any, Any]:
            work: Coroutine[Any, Any, Any] = process.memory["inbox"].receive(
                PROVIDER, url, headers, raw, traceparent=None
            )
            return work

        await self._ask("callback", serve)
