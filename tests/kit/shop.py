"""A whole longtake with a small shop of an application, asked over real HTTP by clients of two tenants."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2

from kit.runtimes import FUNDS, runtime
from longtake import App, AuthenticCallback, Plan, Succeeded
from longtake.bootstrap import Runtime

SECRET = b"provider secret"
CLIP = bytes(range(256)) * 40


def sign(raw: bytes) -> str:
    """How the provider of these tests signs its webhooks."""
    return hmac.new(SECRET, raw, hashlib.sha256).hexdigest()


def shop_app() -> App:
    """`clip`: one priced step that publishes a file. `gate`: a step that waits until the test opens the gate.
    `checked`: a file, and then such a step."""
    app = App("shop")
    app.gate = asyncio.Event()

    @app.workflow("clip", version=1)
    def build_clip(input, policy):
        return Plan(scopes=tuple(input.get("scopes", ()))).step(
            "make",
            activity="make@1",
            price=input.get("price", 5),
            artifacts=["clip"],
            label="Making the clip",
        )

    @app.workflow("gate", version=1)
    def build_gate(input, policy):
        return (
            Plan()
            .step("wait", activity="wait@1", label="Waiting at the gate")
            .step("after", activity="wait@1", depends_on=["wait"])
        )

    @app.workflow("checked", version=1)
    def build_checked(input, policy):
        return (
            Plan(delivers="check")
            .step("make", activity="make@1", price=5, artifacts=["clip"], label="Making the clip")
            .step("check", activity="wait@1", depends_on=["make"], label="Checking the clip")
        )

    @app.activity("make@1")
    async def make(call):
        made = await call.artifacts.put(CLIP, name="clip", kind="clip", content_type="video/mp4")
        return Succeeded(artifacts=(made,))

    @app.activity("wait@1")
    async def wait(call):
        call.progress = 40
        await app.gate.wait()

    @app.callback("studio")
    def verify(headers, raw):
        if not hmac.compare_digest(headers.get("x-signature", ""), sign(raw)):
            return None
        return AuthenticCallback(
            dedupe_key=hashlib.sha256(raw).hexdigest(), type="done", external_ref="job-1"
        )

    return app


class Shop:
    """A running longtake with clients of two tenants."""

    def __init__(
        self, process: Runtime, app: App, acme: httpx2.AsyncClient, rival: httpx2.AsyncClient
    ) -> None:
        self.process = process
        self.app = app
        self.http = acme
        self.rival = rival

    @property
    def url(self) -> str:
        return self.process.api_server.url

    async def start(self, id_: str, workflow: str = "clip@1", **input_: object) -> str:
        """Start a run over HTTP and return its id."""
        response = await self.post(generation(workflow, **input_), key=id_)
        assert response.status_code == 202, response.text
        return response.json()["run_id"]

    async def post(self, body: object, *, key: str | None = None, **headers: str) -> httpx2.Response:
        """Post a command."""
        sent = {
            **({"Idempotency-Key": key} if key else {}),
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        return await self.http.post("/v1/commands", json=body, headers=sent)

    async def finished(self, id_: str, workflow: str = "clip@1", **input_: object) -> str:
        """Start a run and follow its stream to the end."""
        run_id = await self.start(id_, workflow, **input_)
        async with self.http.stream("GET", f"/v1/runs/{run_id}/events/stream") as stream:
            async for _ in stream.aiter_lines():
                pass
        return run_id


def generation(workflow: str = "clip@1", **input_: object) -> dict:
    return {"kind": "generation", "project": "p1", "payload": {"workflow": workflow, "input": input_}}


def control(kind: str, run_id: str, revision: int | None, **payload: object) -> dict:
    body = {"kind": kind, "project": "p1", "targets": [run_id], "payload": payload}
    return body if revision is None else {**body, "expected_revision": revision}


@asynccontextmanager
async def open_shop(database, broker, tmp_path, **options) -> AsyncIterator[Shop]:
    app = shop_app()
    async with runtime(database, broker, tmp_path, app, **options) as process:
        keys = []
        for tenant in ("acme", "rival"):
            await process.keys.fund(tenant=tenant, account="main", credits=FUNDS)
            keys.append((await process.keys.create(tenant=tenant, actor="tester", roles=("producer",))).text)
        clients = [
            httpx2.AsyncClient(
                base_url=process.api_server.url,
                trust_env=False,
                timeout=20,
                headers={"Authorization": f"Bearer {key}"},
            )
            for key in keys
        ]
        async with clients[0], clients[1]:
            yield Shop(process, app, *clients)
            app.gate.set()


def assert_problem(response: httpx2.Response, status: int, slug: str, pointer: str | None = None) -> None:
    """The response is this problem, in the right media type, its first place the one named."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    body = response.json()
    assert (response.status_code, body["status"]) == (status, status), body
    assert body["type"] == f"https://longtake.dev/problems/{slug}", body
    if pointer is not None:
        places = body.get("errors", [])
        assert [place["pointer"] for place in places][:1] == [pointer], body
        assert all(place["message"] and place["remedy"] for place in places)
