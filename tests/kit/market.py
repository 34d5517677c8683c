"""A provider on a socket of its own: it takes orders by token, writes each down, and may lose its answers or be full.

    async with Market() as market:       # whoever is to order finds it by MARKET in its environment

A line is a request, a line the answer: `order TOKEN` is answered `taken` or `full SECONDS`, `find TOKEN` is answered
`taken` or `unknown`. What it has written down judges the service: the service has no part in it.
"""

import asyncio
import os
from collections import Counter
from types import TracebackType
from typing import Any, Self

from longtake import Activity, App, NotFound, Outcome, Plan, Succeeded, Throttled

MARKET = "LONGTAKE_TEST_MARKET"


class Market:
    """While the block runs."""

    def __init__(self) -> None:
        self.orders: list[str] = []
        """Tokens in the order in which they were taken; one that was taken twice is here twice."""
        self.asked: Counter[str] = Counter()
        self.turned_away = 0
        self.loses_answers = 0
        """So many orders to come are taken and not answered: the connection is reset."""
        self.full = False
        self.remembers = True

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        os.environ[MARKET] = str(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self._server.close()
        os.environ.pop(MARKET, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        what, token = (await reader.readline()).decode().split()
        self.asked[what] += 1
        if what == "find":
            answer = "taken" if self.remembers and token in self.orders else "unknown"
        elif self.full:
            self.turned_away += 1
            answer = "full 1"
        else:
            self.orders.append(token)
            answer = "taken"
            if self.loses_answers:
                self.loses_answers -= 1
                writer.transport.abort()
                return
        writer.write(f"{answer}\n".encode())
        writer.close()


async def ask(what: str, token: str) -> str:
    """One request. Raises ConnectionError when no answer came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ[MARKET]))
    try:
        writer.write(f"{what} {token}\n".encode())
        answer = (await reader.readline()).decode().strip()
    finally:
        writer.close()
    if not answer:
        raise ConnectionResetError("the market hung up without an answer")
    return answer


class Order(Activity):
    """An order at the market."""

    name = "order@1"
    paid = True

    async def execute(self, call: Any) -> Outcome:
        match (await ask("order", call.token)).split():
            case ["full", seconds]:
                return Throttled(retry_after_seconds=int(seconds))
        return Succeeded(external_ref=call.token)

    async def reconcile(self, call: Any) -> Outcome:
        if await ask("find", call.token) == "taken":
            return Succeeded(external_ref=call.token, adopted=True)
        return NotFound(evidence="the market has no such order")


class Careless(Order):
    """One that says of every open order that it was never placed: what the tests must find out."""

    async def reconcile(self, call: Any) -> Outcome:
        return NotFound(evidence="never looked")


def market_app(order: Activity) -> App:
    """One free step at hand, one order, at a price of 7."""
    app = App("market")
    app.add(order)

    @app.workflow("shopping", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("buy", activity="order@1", price=7)

    return app


app = market_app(Order())
careless = market_app(Careless())
