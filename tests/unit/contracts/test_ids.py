"""Identities: derived from what they name, and different for what differs (P2)."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.promises import promise
from longtake.contracts import ids

RUN = uuid.UUID("01890000-0000-7000-8000-000000000001")
SECRET = b"s" * 32
PARTS = st.tuples(
    st.text(max_size=9), st.integers(1, 9), st.sampled_from(["execute", "poll", "cancel"]), st.integers(1, 9)
)


def effect(step: str, attempt: int, kind: str, ordinal: int) -> uuid.UUID:
    return ids.effect_id_for(RUN, step=step, attempt=attempt, kind=kind, ordinal=ordinal)


@promise("H34")
@given(PARTS, PARTS)
def test_effects_are_the_same_exactly_when_all_they_name_is(one: tuple, other: tuple) -> None:
    assert (one == other) == (effect(*one) == effect(*other))
    assert RUN.bytes[:8] == effect(*one).bytes[:8]


def test_parts_of_an_identity_do_not_run_into_each_other() -> None:
    assert effect("a1", 1, "poll", 1) != effect("a", 11, "poll", 1)
    assert ids.inbox_id_for(tenant="ab", provider="c", dedupe_key="d") != ids.inbox_id_for(
        tenant="a", provider="bc", dedupe_key="d"
    )


def test_a_run_is_derived_from_tenant_actor_and_command() -> None:
    one = ids.run_id_for(tenant="t", actor="a", client_command_id="c")

    assert one == ids.run_id_for(tenant="t", actor="a", client_command_id="c")
    assert 8 == one.version
    others = [("u", "a", "c"), ("t", "b", "c"), ("t", "a", "d"), ("ta", "", "c")]
    assert 5 == len({one, *(ids.run_id_for(tenant=t, actor=a, client_command_id=c) for t, a, c in others)})


def test_a_time_ordered_command_id_lends_the_run_its_time() -> None:
    run = ids.run_id_for(tenant="t", actor="a", client_command_id=str(RUN))

    assert (RUN.bytes[:6], 7) == (run.bytes[:6], run.version)
    assert 8 == ids.run_id_for(tenant="t", actor="a", client_command_id=str(uuid.uuid4())).version


def test_events_of_another_store_epoch_are_others() -> None:
    assert ids.event_id_for(RUN, seq=1, store_epoch=1) != ids.event_id_for(RUN, seq=1, store_epoch=2)
    assert ids.event_id_for(RUN, seq=1, store_epoch=1) == ids.event_id_for(RUN, seq=1, store_epoch=1)
    assert '"e2-r12"' == ids.revision_etag(2, 12)
    assert ids.fence_floor(2) > ids.fence_floor(1) + 10**6


def test_provider_tokens_are_of_the_attempt() -> None:
    token = ids.provider_token_for(RUN, step="a", attempt=1)

    assert token == ids.provider_token_for(RUN, step="a", attempt=1)
    assert token != ids.provider_token_for(RUN, step="a", attempt=2)
    assert ids.is_name(token)


@promise("H36")
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), st.integers(1, 99))
def test_a_callback_token_reads_back_and_bends_to_nobody(step: str, attempt: int) -> None:
    token = ids.callback_token_for(SECRET, run_id=RUN, step=step, attempt=attempt)

    assert (RUN, step, attempt) == ids.read_callback_token(SECRET, token)
    assert ids.read_callback_token(b"x" * 32, token) is None
    body, _, mac = token.partition(".")
    other = ids.callback_token_for(SECRET, run_id=RUN, step=step, attempt=attempt + 1).partition(".")[0]
    assert ids.read_callback_token(SECRET, f"{other}.{mac}") is None
    assert ids.read_callback_token(SECRET, body) is None


@given(st.text(max_size=60))
def test_any_text_in_place_of_a_token_is_refused_without_an_error(text: str) -> None:
    assert ids.read_callback_token(SECRET, text) is None


@pytest.mark.parametrize("body", ["no bars", "zz|a|1", f"{RUN.hex}|a|x"])
def test_a_signed_token_that_says_nonsense_is_refused(body: str) -> None:
    import hashlib
    import hmac
    from base64 import urlsafe_b64encode

    encoded = urlsafe_b64encode(body.encode()).rstrip(b"=")
    mac = urlsafe_b64encode(hmac.new(SECRET, encoded, hashlib.sha256).digest()[:16]).rstrip(b"=")

    assert ids.read_callback_token(SECRET, f"{encoded.decode()}.{mac.decode()}") is None


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("a-b_C9", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("", False),
        ("a.b", False),
        ("a b", False),
        ("ä", False),
    ],
)
def test_names_have_the_alphabet_of_subjects(text: str, good: bool) -> None:
    assert good == ids.is_name(text)


def test_a_name_does_not_end_in_a_newline() -> None:
    assert not ids.is_name("abc\n")


def test_dots_are_written_as_underscores_in_subjects() -> None:
    assert "short_generation" == ids.subject_token("short.generation")


def test_a_run_keeps_its_callback_part_and_artifacts_their_address() -> None:
    assert ids.callback_part(RUN, 4) == ids.callback_part(RUN, 4) in range(4)
    assert ids.artifact_id_for(RUN, step="a", name="clip") != ids.artifact_id_for(RUN, step="a", name="clap")
