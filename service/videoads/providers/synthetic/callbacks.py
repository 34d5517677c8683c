"""Signs and delivers the render provider's webhooks, again and again until someone says 2xx.

Signatures follow Standard Webhooks. How often a webhook goes out and when is decided at the desk; how far the
deliveries came is on the job, so a killed provider goes on with them.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import time

import httpx2
import msgspec

from videoads.providers.synthetic.jobs import Job, JobStore

PAUSES_SECONDS = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 60.0, 60.0)
DELIVERY_TIMEOUT_SECONDS = 15.0
GONE = 410


class Courier:
    """Carries webhooks out."""

    def __init__(self, store: JobStore, *, speed: float) -> None:
        self._store = store
        self._speed = speed
        self.sent = 0
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def deliver(self, job: Job) -> None:
        """Deliver every copy that is still owed, each as often as it takes."""
        while (
            job.webhook is not None
            and not job.webhook.given_up
            and job.webhook.delivered < job.webhook.copies
        ):
            job = await self._deliver_copy(job)

    async def _deliver_copy(self, job: Job) -> Job:
        for pause in PAUSES_SECONDS:
            await asyncio.sleep(pause / self._speed)
            status = await self._post(job)
            delivered = status is not None and 200 <= status < 300
            job = await self._note(job, delivered=delivered, given_up=status == GONE)
            if delivered or status == GONE:
                return job
        return await self._note(job, delivered=False, given_up=True)

    async def _note(self, job: Job, *, delivered: bool, given_up: bool) -> Job:
        assert job.webhook is not None
        webhook = msgspec.structs.replace(
            job.webhook,
            attempts=job.webhook.attempts + 1,
            delivered=job.webhook.delivered + delivered,
            given_up=given_up,
        )
        return await self._store.put(msgspec.structs.replace(job, webhook=webhook))

    async def _post(self, job: Job) -> int | None:
        assert job.webhook is not None
        secret = job.webhook.secret
        if job.fault("webhook_forged"):
            secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        body = webhook_body(job)
        headers = {"content-type": "application/json", **signature_headers(secret, f"msg_{job.id}", body)}
        self.sent += 1
        if self._client is None:
            # Made at the first use: loading its certificates would be a good part of the program's start.
            self._client = httpx2.AsyncClient(
                trust_env=False, timeout=DELIVERY_TIMEOUT_SECONDS, follow_redirects=False
            )
        try:
            response = await self._client.post(job.webhook.url, content=body, headers=headers)
        except httpx2.HTTPError:
            return None
        return response.status_code


def webhook_body(job: Job) -> bytes:
    """What the provider reports about a job that ended; equal for every copy."""
    assert job.webhook is not None
    return msgspec.json.encode(
        {
            "type": "render.completed" if job.state == "succeeded" else "render.failed",
            "data": {
                "render_id": job.id,
                "out_name": job.token,
                "custom_data": job.webhook.custom_data,
                "cost": job.cost if job.state == "succeeded" else 0,
                "size_bytes": job.size_bytes,
                "sha256": job.sha256,
            },
        }
    )


def signature_headers(secret: str, message_id: str, body: bytes) -> dict[str, str]:
    """The three headers of Standard Webhooks, for now."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    timestamp = str(int(time.time()))
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
