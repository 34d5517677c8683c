"""A whole longtake with an application whose runs wait for people and producers, and a client that speaks HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kit.probe import eventually
from kit.runtimes import PRINCIPAL, fund, runtime
from longtake import App, Plan, Step, ref
from longtake.bootstrap import Runtime
from longtake.client import Client
from longtake.contracts.summary import Summary

CHOICE = {
    "type": "object",
    "required": ["take"],
    "properties": {"take": {"type": "integer", "minimum": 1, "maximum": 3}},
    "additionalProperties": False,
}


def studio_app() -> App:
    """`pick`: somebody picks a take, an event releases it, and it is cut. `chain`: two steps, the first at a gate that
    the test opens. `costly`: two priced steps under a cap for one. `probe`, `turn` and `copy` declare how they start."""
    app = App("studio")
    app.gate = asyncio.Event()
    app.done = []

    @app.workflow("pick", version=1)
    def pick(input, policy):
        return (
            Plan(delivers="cut")
            .step("draft", activity="note@1", input={"of": input.get("of", "")})
            .input("choose", answer=CHOICE, depends_on=["draft"], label="Choosing a take")
            .wait("release", event="released", depends_on=["choose"])
            .step(
                "cut",
                activity="note@1",
                input={"take": ref("choose", "/result/take"), "by": ref("release", "/result/by")},
            )
        )

    @app.workflow("chain", version=1, policy={"speed": 1})
    def chain(input, policy):
        return (
            Plan(scopes=tuple(input.get("scopes", ())))
            .step("wait", activity="wait@1", input={"n": input.get("n", 0)})
            .step("after", activity="note@1", depends_on=["wait"], input={"speed": policy["speed"]})
        )

    @app.workflow("costly", version=1)
    def costly(input, policy):
        return (
            Plan(billing="pay_as_you_go", cost_cap=10, hold="cap")
            .step("one", activity="note@1", price=5)
            .step("two", activity="note@1", price=5, depends_on=["one"])
        )

    @app.workflow("capped", version=1)
    def capped(input, policy):
        # What the expansion adds does not fit under the cap of the rest.
        return (
            Plan(billing="pay_as_you_go", cost_cap=5, prices={"more": 5})
            .step("one", activity="note@1", price=5)
            .expand("grow", activity="grow@1", fills="added", expands_to=["note@1"], depends_on=["one"])
        )

    @app.activity("grow@1")
    async def grow(call):
        return {"count": 1}

    @app.expander("grow@1")
    def grown(result):
        return [Step("grow:1", activity="note@1", price_key="more")]

    for name, kind in (("probe", "utility"), ("turn", "new_turn"), ("copy", "export")):
        app.workflow(name, version=1, starts=(kind,))(one_step)
    app.workflow("dear", version=1, starts=("utility", "generation"))(one_priced_step)

    @app.activity("note@1")
    async def note(call):
        app.done.append(dict(call.input))
        return {"noted": True}

    @app.activity("wait@1")
    async def wait(call):
        await app.gate.wait()

    return app


def one_step(input, policy):
    """A plan of one free step."""
    return Plan().step("a", activity="note@1")


def one_priced_step(input, policy):
    """A plan of one step with a price."""
    return Plan().step("a", activity="note@1", price=5)


class Studio:
    """A running longtake, its application and a client."""

    def __init__(self, process: Runtime, app: App, client: Client, key: str) -> None:
        self.process = process
        self.app = app
        self.client = client
        self.key = key

    async def start(self, workflow: str, id_: str, **input_: object) -> str:
        """Start a run and return its id."""
        accepted = await self.client.start(workflow, input_, project="p1", command_id=id_)
        assert accepted.run_id is not None
        return accepted.run_id

    async def until(self, run_id: str, what: str, *, seconds: float = 20.0) -> Summary:
        """Wait until a run has a status, an action, or an event of that type."""

        async def there() -> Summary | None:
            summary = await self.client.summary(run_id)
            if what == summary.status or what in summary.available_actions:
                return summary
            events = {event.type for event in await self.client.history(run_id)}
            return summary if what in events else None

        return await eventually(there, f"{what} of {run_id}", seconds)

    async def asked(self, run_id: str, kind: str, step: str) -> Summary:
        """Wait until a step of the run is in a state."""

        async def there() -> Summary | None:
            steps = {item.key: item.status for item in await self.client.steps(run_id)}
            return await self.client.summary(run_id) if steps[step] == kind else None

        return await eventually(there, f"{step} being {kind}", 20.0)


@asynccontextmanager
async def open_studio(database, broker, tmp_path, *, credits: int | None = None) -> AsyncIterator[Studio]:
    app = studio_app()
    async with runtime(database, broker, tmp_path, app) as process:
        if credits is None:
            await fund(process)
        else:
            await fund(process, credits)
        made = await process.keys.create(tenant=PRINCIPAL.tenant, actor=PRINCIPAL.actor, roles=("producer",))
        async with Client(process.api_server.url, made.text) as client:
            yield Studio(process, app, client, made.text)
            app.gate.set()
