"""An application with one paid call to an outsider who calls back; tests answer for the outsider by hand."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from longtake import Activity, App, AuthenticCallback, Cancelled, Outcome, Plan

SECRET = b"a provider's secret"


class Outside(Activity):
    """A paid call with a webhook; the test answers by hand."""

    name = "outside@1"
    paid = True

    async def execute(self, call: Any) -> Outcome:
        raise AssertionError("the test works by hand")

    async def poll(self, call: Any) -> Outcome:
        raise AssertionError("the test works by hand")

    async def cancel(self, call: Any) -> Outcome:
        return Cancelled(answer="stopped")


def outside_app() -> App:
    app = App("outside")
    app.add(Outside())

    @app.workflow("outside", version=1)
    def build(input: Any, policy: Any) -> Plan:
        return Plan().step("make", activity="outside@1", price=4, artifacts=["film"])

    @app.callback("acme")
    def verify(headers: Mapping[str, str], raw: bytes) -> AuthenticCallback | None:
        signed = hmac.new(SECRET, raw, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(headers.get("acme-signature", ""), signed):
            return None
        said = msgspec.json.decode(raw)
        return AuthenticCallback(dedupe_key=said["id"], type=said["type"], external_ref=said.get("job"))

    return app


def signed(**said: str) -> tuple[bytes, dict[str, str]]:
    raw = msgspec.json.encode({"type": "done", **said})
    return raw, {"Acme-Signature": hmac.new(SECRET, raw, hashlib.sha256).hexdigest()}
