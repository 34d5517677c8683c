"""Crash points: named places where a test kills, stops or cuts off this very process (reliability.md 4.3; floor 2).

    reach("claimed.before_ack")                                    # passed in no time while nothing is armed
    await reach_unanswered("commit.reply_lost", transaction.commit())

Bootstrap arms at most one point of a process, from LONGTAKE_CRASH_POINT, and only where the environment's name says that
it is for tests. At each pass up to the armed one the process tells its harness over a unix socket; at the armed one it
waits for the harness's word and acts. So a test knows that the place was really passed, how often, and by whom.
docs/crash-points.md says which place stands for which of the specification. Leaves to others: what is right afterwards.
"""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Awaitable
from typing import Final, Literal, TypeVar, get_args

import msgspec

from longtake.errors import ConfigurationError

T = TypeVar("T")

Action = Literal["kill", "stop", "cut"]
"""kill: SIGKILL to itself. stop: SIGSTOP to itself; the harness continues it. cut: the harness has reset its connections."""

ENVIRONMENT_PREFIX: Final = "test"
"""How the name of an environment begins whose processes may be armed."""
HIT_MAX: Final = 1_000
TURNS: Final = 5
"""Turns of the loop in which what was begun leaves: asyncpg writes in the first, nats-py's flusher in the third."""

POINTS: Final = {
    "auth_ok.before_tx": "api: the caller is known, nothing is kept",
    "tx.after_command_insert": "admission: the command's row is written, nothing is decided",
    "tx.after_append.before_commit": "admission: all is written, nothing stands",
    "commit.reply_lost": "admission: COMMIT was sent, its answer was not read",
    "after_commit.before_response": "api: the command stands, the client does not know",
    "pulled.before_decode": "intake: a producer's message is in hand",
    "committed.before_ack": "intake: its command stands, the message is not settled",
    "acked": "intake: its message is settled",
    "batch.before_facts": "dispatcher: pointers are in hand, nothing is read",
    "decided.before_commit": "dispatcher: a batch is decided in memory alone",
    "committed.before_hint": "dispatcher: the decisions stand, nobody was told",
    "settled.before_ack": "dispatcher: the decisions stand, the doorbells are not settled",
    "claimed.before_publish": "relay: pointers are marked as published, none has left",
    "publish_sent.before_puback": "hints: messages have left, none is confirmed",
    "puback.before_mark": "relay: copies of commands are in the stream, their rows do not say so",
    "mid_batch": "relay: the pointers of a pass are out, its copies of commands are not",
    "pulled.before_claim": "worker: pointers are in hand, nothing is leased",
    "claimed.before_ack": "worker: leases stand, the messages are not settled",
    "acked.before_provider": "worker: the lease is ours, the call is not opened",
    "provider_in_flight": "worker: the provider has the request and has not answered",
    "provider_ok.before_receipt": "worker: the provider has answered, the outcome is not made",
    "receipt.before_report": "worker: outcomes are ready, no receipt is kept",
    "reported.before_hint": "worker: receipts are kept, the dispatcher was not rung",
    "heartbeat.mid_tx": "worker: a renewal was sent, its answer was not read",
    "put_back.before_bell": "worker: an effect waits for its next look, the relay was not rung",
    "verified.before_inbox": "callbacks: the signature is right, nothing is kept",
    "inbox.before_hint": "callbacks: a callback is kept, the dispatcher was not rung",
    "inbox.before_2xx": "callbacks: a callback is kept, the provider does not know",
    "scan.before_fire": "sweeper: lost doorbells and due timers are found, nobody was told",
    "expired.before_requeue": "sweeper: a lease has been ended, nobody was told",
    "child_admitted.before_settle": "starter: a child run stands, its errand is open",
    "scopes_granted.before_commit": "line: a run in line has its scopes in an open transaction",
    "occurrence.before_settle": "scheduler: an occurrence's run stands, the occurrence does not say so",
    "migration.mid": "migrator: files are applied, their checksums are not kept",
    "plan_checked.before_mark": "plan check: a plan was compared, the verdict is not kept",
    "sigterm.mid_effect": "worker: told to stop while work is under way",
}
"""Every point: who passes it, and what is true just then."""


class CrashPoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is armed with."""

    name: str
    action: Action
    hit: int
    """At which pass it acts, from 1."""
    harness: str
    """The harness's unix socket."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """One line to the harness."""

    point: str
    hit: int
    pid: int
    acts: bool
    """The process waits for a line and acts then."""


def read_crash_point(said: str) -> CrashPoint:
    """Read `name:action:hit:socket`. Raises ConfigurationError that says what is right."""
    parts = said.split(":", 3)
    if len(parts) != 4 or not parts[3]:
        raise _wrong(said, "it is name:action:hit:socket, such as claimed.before_ack:kill:1:/tmp/harness")
    name, action, hit, harness = parts
    if name not in POINTS:
        raise _wrong(said, f"there is no point {name!r}; there are {', '.join(POINTS)}")
    if action not in get_args(Action):
        raise _wrong(said, f"the action {action!r} is none of {', '.join(get_args(Action))}")
    if not (hit.isascii() and hit.isdigit() and 1 <= int(hit) <= HIT_MAX):
        raise _wrong(said, f"the pass {hit!r} is not a number from 1 to {HIT_MAX}")
    return CrashPoint(name=name, action=action, hit=int(hit), harness=harness)  # type: ignore[arg-type]


def arm(said: str, *, environment: str) -> None:
    """Arm this process, once for its life. Raises ConfigurationError; a store whose name is not for tests is refused."""
    point = read_crash_point(said)
    if not environment.startswith(ENVIRONMENT_PREFIX):
        raise _wrong(
            said,
            f"the environment {environment!r} is not for tests: only processes of one whose name begins with "
            f"{ENVIRONMENT_PREFIX!r} may be armed",
        )
    wire = socket.socket(socket.AF_UNIX)
    try:
        wire.connect(point.harness)
    except OSError as error:
        wire.close()
        raise _wrong(said, f"nobody listens at {point.harness}: {error}") from error
    _process.armed = _Armed(point, wire)


def reach(name: str) -> None:
    """Say that this process is at a point."""
    if _process.armed is not None:
        _process.armed.reach(name)


async def reach_unanswered(name: str, work: Awaitable[T], *, patient: bool = False) -> T:
    """Await the work; when the point is armed, reach it after the work's bytes have left and before its answer is read.

    `patient`: the bytes leave some time later, so the loop goes on until the harness says that they have arrived.
    """
    if _process.armed is None:
        return await work
    return await _process.armed.reach_unanswered(name, work, patient=patient)


class _Armed:
    """The armed point of this process; threads may pass it at once."""

    def __init__(self, point: CrashPoint, wire: socket.socket) -> None:
        self._point = point
        self._wire = wire
        self._passes = 0
        self._lock = threading.Lock()

    def reach(self, name: str) -> None:
        if name != self._point.name:
            return
        with self._lock:
            if self._passes >= self._point.hit:
                return
            self._passes += 1
            acts = self._passes == self._point.hit
            said = Passed(point=name, hit=self._passes, pid=os.getpid(), acts=acts)
            try:
                self._wire.sendall(msgspec.json.encode(said) + b"\n")
                # Without its harness a process is left alone: there would be nobody to start it again.
                if acts and self._wire.recv(1):
                    self._act()
            except OSError:
                return

    async def reach_unanswered(self, name: str, work: Awaitable[T], *, patient: bool) -> T:
        if name != self._point.name:
            return await work
        task = asyncio.ensure_future(work)
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if patient:
                await asyncio.to_thread(self.reach, name)
            else:
                self.reach(name)
        except BaseException:
            task.cancel()
            raise
        return await task

    def _act(self) -> None:
        match self._point.action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "cut":
                """The harness has reset every connection before it gave its word."""


class _Process:
    """What this process was armed with by bootstrap: how it dies in a test, never what it does."""

    __slots__ = ("armed",)

    def __init__(self) -> None:
        self.armed: _Armed | None = None


_process = _Process()


def _wrong(said: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"LONGTAKE_CRASH_POINT is {said[:120]!r}: {why}")
