"""What a fork of a run would cost, told from the run's plan and history before anything is sent (P9)."""

import uuid

import msgspec

from longtake.cli.output import print_json, print_line, print_table
from longtake.client import Client
from longtake.contracts.upcasters import decode_event
from longtake.errors import Refused
from longtake.workflow.forking import Fork, plan_fork
from longtake.workflow.plan import Plan
from longtake.workflow.state import fold


async def fork_price(client: Client, run_id: str, step: str) -> Fork:
    """The fork as admission would make it now. Raises Refused where it would refuse."""
    run = await client.run(run_id)
    document = await client.plan(run_id)
    events = await client.history(run_id)
    history = [(decode_event(e.type, e.version, bytes(e.data)), e.recorded_at) for e in events]
    # Of whose tenant it is says nothing here: the price does not depend on it.
    state = fold(uuid.UUID(run.run_id), "", msgspec.convert(document["plan"], Plan), history)
    found = plan_fork(state, [event for event, _ in history], step)
    if isinstance(found, Fork):
        return found
    raise Refused(found)


def print_fork(fork: Fork, *, as_json: bool) -> None:
    """What is taken over, what is done anew, and the price."""
    if as_json:
        print_json(
            {
                "run_id": str(fork.source),
                "step": fork.step,
                "extra_credits": fork.extra,
                "taken_over": [{"step": item.step, "free": item.free} for item in fork.reused],
                "done_anew": list(fork.anew),
            }
        )
        return
    rows = [(item.step, "taken over", "free" if item.free else "paid again") for item in fork.reused]
    rows += [(key, "done anew", "") for key in fork.anew]
    print_table(("step", "what becomes of it", "price"), rows)
    print_line(f"\nA fork from {fork.step} costs {fork.extra} extra credits.")
