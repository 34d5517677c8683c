"""A dispatcher process that dies of one message: `python -m kit.deadly_process POSTGRES NATS TOKEN DIRECTORY`.

POSTGRES is the JSON of the arguments of a connection. The process ends by itself, with DEATH, as soon as it reads the
body DEADLY; else when its input ends. Its patience is that of a test: who is silent for half a second is dead, and
what nobody settles comes again after a second, so that a death is known by then.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from kit.broker_ruin import declare_by
from kit.runtimes import noop_app, settings_for
from longtake.bootstrap import Addresses, Runtime
from longtake.engine import dispatch_loop
from longtake.jetstream import TopologySettings
from longtake.postgres import sweeps

DEADLY = b"deadly"
DEATH = 7
QUICK = TopologySettings(callback_ack_wait_seconds=1.0)


def patch() -> None:
    """Give the process its weakness and its patience."""
    real = dispatch_loop.decode_callback_pointers

    def read(body: bytes) -> Any:
        if body == DEADLY:
            os._exit(DEATH)
        return real(body)

    dispatch_loop.decode_callback_pointers = read
    sweeps.ALIVE_SECONDS = 0.5
    declare_by(QUICK)


async def main(postgres: str, nats: str, token: str, directory: str) -> None:
    """Run the dispatcher."""
    addresses = Addresses(json.loads(postgres), nats, token)
    process = Runtime(settings_for(Path(directory)), addresses, roles=("dispatcher",), app=noop_app())
    await process.start()
    await asyncio.to_thread(sys.stdin.read)
    await process.stop()


if __name__ == "__main__":
    patch()
    asyncio.run(main(*sys.argv[1:]))
