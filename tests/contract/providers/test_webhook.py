"""The render provider's webhooks: signed, early, twice, late, forged; and what the client makes of them."""

import asyncio
import json
from datetime import datetime
from typing import Any

from standardwebhooks import Webhook

from kit.promises import promise
from kit.providers import ProviderBench, WebhookReceiver
from videoads.providers.contract import Accepted, Authentic, Forged

SECRET = "whsec_" + "bG9uZ3Rha2UtdGVzdC1zZWNyZXQtMDAwMDAwMDAwMDE="


def order(receiver: WebhookReceiver) -> dict[str, Any]:
    webhook = {"url": receiver.url, "secret": SECRET, "custom_data": {"attempt": 1}}
    return {"composition": {"title": "an ad"}, "media": {}, "webhook": webhook}


@promise("H05")
async def test_the_end_of_a_render_is_reported_signed_with_our_custom_data(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    outcome = await clients.render.submit(order(receiver), bench.token(), soon)

    headers, body = await receiver.next()

    verified = clients.render.verify(headers, body)
    assert isinstance(verified, Authentic), verified
    Webhook(SECRET).verify(body, headers)
    report = json.loads(verified.body)
    assert report["type"] == "render.completed"
    assert (report["data"]["render_id"], report["data"]["custom_data"]) == (outcome.ref, {"attempt": 1})


@promise("T21")
async def test_an_early_webhook_arrives_before_the_submit_is_answered(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    await bench.order("webhook_early", style="render")
    await bench.order("hold_response", style="render")
    async with asyncio.TaskGroup() as group:
        submit = group.create_task(clients.render.submit(order(receiver), bench.token(), soon))

        headers, body = await receiver.next()

        assert not submit.done()
        assert isinstance(clients.render.verify(headers, body), Authentic)
        await bench.release(bench.token())
    assert isinstance(submit.result(), Accepted)
    assert json.loads(body)["data"]["render_id"] == submit.result().ref


async def test_a_webhook_sent_twice_has_one_dedupe_key(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    await bench.order("webhook_twice", style="render")
    await clients.render.submit(order(receiver), bench.token(), soon)

    verified = [clients.render.verify(*await receiver.next()) for _ in range(2)]

    assert all(isinstance(one, Authentic) for one in verified)
    assert len({one.dedupe_key for one in verified}) == 1
    assert verified[0].body == verified[1].body


async def test_a_forged_webhook_is_refused(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    await bench.order("webhook_forged", style="render")
    await clients.render.submit(order(receiver), bench.token(), soon)

    verified = clients.render.verify(*await receiver.next())

    assert isinstance(verified, Forged) and "active secret" in verified.reason


async def test_a_delayed_webhook_waits_for_its_release(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    await bench.order("webhook_delay", style="render")
    await clients.render.submit(order(receiver), bench.token(), soon)
    await bench.wait(token=bench.token(), state="succeeded")
    assert receiver.received.empty()

    await bench.release(bench.token())

    assert isinstance(clients.render.verify(*await receiver.next()), Authentic)


async def test_a_webhook_that_is_not_taken_comes_again_and_one_that_is_gone_does_not(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    receiver.status = 503
    await clients.render.submit(order(receiver), bench.token(), soon)
    first, again = await receiver.next(), await receiver.next()
    receiver.status = 410
    await receiver.next()

    await bench.wait(token=bench.token(), webhook_attempts=3)

    assert first[1] == again[1]
    (job,) = await bench.control("GET", f"jobs?token={bench.token()}")
    assert job["webhook"]["given_up"] and "secret" not in job["webhook"]


async def test_a_failed_render_is_reported_too(
    bench: ProviderBench, clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    await bench.order("fail", style="render", error="transient")
    await clients.render.submit(order(receiver), bench.token(), soon)

    _, body = await receiver.next()

    assert json.loads(body)["type"] == "render.failed"


async def test_webhooks_owed_at_a_kill_are_delivered_after_the_restart(
    own_bench: ProviderBench, own_clients: Any, receiver: WebhookReceiver, soon: datetime
) -> None:
    await own_bench.order("webhook_delay", style="render")
    await own_clients.render.submit(order(receiver), "t-1", soon)
    await own_bench.wait(token="t-1", state="succeeded")

    await own_bench.kill()
    await own_bench.start()
    await own_bench.release("t-1")

    assert isinstance(own_clients.render.verify(*await receiver.next()), Authentic)
