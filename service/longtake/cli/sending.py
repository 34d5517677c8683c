"""What all commands of `longtake run` share that send something: their options, the client, and the receipt in words."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from longtake.cli.inputs import Policy, read_policy
from longtake.cli.output import print_json, print_line
from longtake.cli.place import Server
from longtake.cli.process import run as run_async
from longtake.client import Accepted, Client
from longtake.contracts.command_table import OnConflict
from longtake.errors import ConfigurationError

T = TypeVar("T")

CommandId = Annotated[
    str | None, Parameter(help="Your id of this command; the same id again does nothing twice")
]
RunId = Annotated[str, Parameter(help="The id of the run, as its receipt and `run list` tell it")]
WorkflowName = Annotated[str, Parameter(help="What to start, as name@version")]
Revision = Annotated[int | None, Parameter(help="The revision you saw; the present one without it")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """How a new run begins and what it may cost."""

    policy: Policy = None
    account: Annotated[str | None, Parameter(help="Who pays; `main` without it")] = None
    max_credits: Annotated[int | None, Parameter(help="The most that you allow the run to cost")] = None
    start_at: Annotated[datetime | None, Parameter(help="When it may begin, with a time zone")] = None
    on_conflict: Annotated[
        OnConflict | None, Parameter(help="When another run holds a scope; what the plan says without it")
    ] = None
    conversation: Annotated[str | None, Parameter(help="The conversation that it belongs to")] = None
    text: Annotated[str | None, Parameter(help="What the user said")] = None

    def as_arguments(self) -> dict[str, Any]:
        """The options as the client takes them."""
        if self.start_at is not None and self.start_at.tzinfo is None:
            raise ConfigurationError(
                f"--start-at {self.start_at.isoformat()} has no time zone; end it with Z"
            )
        return {
            "policy": read_policy(self.policy or ()),
            "account": self.account,
            "max_credits": self.max_credits,
            "start_at": self.start_at,
            "on_conflict": self.on_conflict,
            "conversation": self.conversation,
            "text": self.text,
        }


def print_accepted(accepted: Accepted, as_json: bool) -> None:
    """A receipt, for people or for programs."""
    if as_json:
        print_json(accepted)
        return
    again = " (as before)" if accepted.replayed else ""
    print_line(f"{accepted.kind} {accepted.command_id}: {accepted.status}{again}")
    if accepted.run_id is not None:
        print_line(f"run {accepted.run_id}")


def with_client(server: Server | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client."""

    async def main() -> T:
        async with (server or Server()).client() as client:
            return await work(client)

    return run_async(main())


def send(server: Server | None, json: bool, work: Callable[[Client], Awaitable[Accepted]]) -> None:
    """Send one command and print its receipt."""
    print_accepted(with_client(server, work), json)
