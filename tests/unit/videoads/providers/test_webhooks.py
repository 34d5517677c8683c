"""The verifier accepts what the reference library signs and calls everything else forged, without raising."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from kit.promises import promise
from videoads.providers.contract import Authentic, Forged
from videoads.providers.synthetic.callbacks import signature_headers
from videoads.providers.webhooks import WebhookVerifier, webhook_key

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
STRANGER = "whsec_" + base64.b64encode(b"s" * 32).decode()
NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
BODY = b'{"type":"render.completed"}'


def signed(secret: str, *, at: datetime = NOW, message: str = "msg_1", body: bytes = BODY) -> dict[str, str]:
    signature = Webhook(secret).sign(msg_id=message, timestamp=at, data=body.decode())
    return {
        "Webhook-Id": message,
        "Webhook-Timestamp": str(int(at.timestamp())),
        "Webhook-Signature": signature,
    }


def test_what_the_reference_library_signs_is_authentic() -> None:
    verified = WebhookVerifier([NEW]).verify(signed(NEW), BODY, now=NOW)

    assert verified == Authentic(dedupe_key="msg_1", sent_at=NOW, body=BODY)


def test_what_our_provider_signs_is_accepted_by_the_reference_library() -> None:
    headers = signature_headers(NEW, "msg_2", BODY)

    assert Webhook(NEW).verify(BODY, headers) == {"type": "render.completed"}
    assert isinstance(WebhookVerifier([NEW]).verify(headers, BODY), Authentic)


def test_both_secrets_count_during_a_rotation_and_a_strangers_never() -> None:
    verifier = WebhookVerifier([OLD, NEW])

    assert isinstance(verifier.verify(signed(OLD), BODY, now=NOW), Authentic)
    assert isinstance(verifier.verify(signed(NEW), BODY, now=NOW), Authentic)
    assert isinstance(verifier.verify(signed(STRANGER), BODY, now=NOW), Forged)
    both = signed(STRANGER)
    both["Webhook-Signature"] += " " + signed(NEW)["Webhook-Signature"]
    assert isinstance(verifier.verify(both, BODY, now=NOW), Authentic)


@pytest.mark.parametrize(
    ("seconds", "outcome"),
    [(-301, Forged), (-300, Authentic), (0, Authentic), (300, Authentic), (301, Forged)],
)
def test_five_minutes_either_way_and_not_a_second_more(seconds: int, outcome: type) -> None:
    headers = signed(NEW, at=NOW + timedelta(seconds=seconds))

    assert isinstance(WebhookVerifier([NEW]).verify(headers, BODY, now=NOW), outcome)


@promise("H78")
@pytest.mark.parametrize(
    "change",
    [
        {"Webhook-Id": ""},
        {"Webhook-Id": "msg.1"},
        {"Webhook-Id": "msg_2"},
        {"Webhook-Timestamp": ""},
        {"Webhook-Timestamp": "1777896000.5"},
        {"Webhook-Timestamp": "1e9"},
        {"Webhook-Timestamp": "-1"},
        {"Webhook-Timestamp": "٣"},
        {"Webhook-Timestamp": str(int(NOW.timestamp()) + 1)},
        {"Webhook-Signature": ""},
        {"Webhook-Signature": "v1"},
        {"Webhook-Signature": "v1,"},
        {"Webhook-Signature": "v1,not base64"},
        {"Webhook-Signature": "v1,ä"},
        {"Webhook-Signature": "v1,AAAA,BBBB"},
        {"Webhook-Signature": " ".join(["v1,AAAA"] * 17)},
    ],
)
def test_a_header_that_is_wrong_in_one_way_is_forged_and_raises_nothing(change: dict[str, str]) -> None:
    assert isinstance(WebhookVerifier([NEW]).verify(signed(NEW) | change, BODY, now=NOW), Forged)


def test_a_right_signature_under_another_version_does_not_count() -> None:
    headers = signed(NEW)
    headers["Webhook-Signature"] = headers["Webhook-Signature"].replace("v1,", "v1a,")

    assert isinstance(WebhookVerifier([NEW]).verify(headers, BODY, now=NOW), Forged)


def test_one_changed_byte_of_the_body_is_forged() -> None:
    assert isinstance(WebhookVerifier([NEW]).verify(signed(NEW), BODY + b" ", now=NOW), Forged)


@pytest.mark.parametrize("body", [b"\xff\xfe", b"", "ä".encode()])
def test_the_signature_is_over_raw_bytes_whatever_they_mean(body: bytes) -> None:
    """The reference library decodes the body as text first and fails on such bytes."""
    timestamp = str(int(NOW.timestamp()))
    digest = hmac.new(webhook_key(NEW), b"msg_1." + timestamp.encode() + b"." + body, hashlib.sha256).digest()
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": "v1," + base64.b64encode(digest).decode(),
    }

    assert isinstance(WebhookVerifier([NEW]).verify(headers, body, now=NOW), Authentic)


@given(
    headers=st.dictionaries(
        st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature"]), st.text(max_size=80)
    ),
    body=st.binary(max_size=80),
)
def test_no_input_raises_and_none_is_authentic_by_chance(headers: dict[str, str], body: bytes) -> None:
    assert isinstance(WebhookVerifier([NEW]).verify(headers, body, now=NOW), Forged)


@pytest.mark.parametrize(
    "secret", ["", "secret", "whsec_", "whsec_!!", "whsec_" + base64.b64encode(b"x" * 23).decode()]
)
def test_a_weak_or_malformed_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ValueError, match="a webhook secret") as refusal:
        WebhookVerifier([secret])
    assert len(secret) < 7 or secret not in str(refusal.value)


def test_a_verifier_without_secrets_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one secret"):
        WebhookVerifier([])
