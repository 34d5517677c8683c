"""Commands: what counts as the same intent, and what a body may say."""

import msgspec
import pytest

from kit.promises import promise
from longtake.contracts.commands import Attachment, Command

BASE = Command(
    kind="generation", project="p", conversation="c", text="t", targets=("x",), payload={"a": 1, "b": [2]},
    attachments=(Attachment(object_key="k", sha256="0" * 64),),
)  # fmt: skip


@promise("G17")
@pytest.mark.parametrize(
    "change",
    [
        {"kind": "cancel"}, {"project": "q"}, {"conversation": None}, {"text": ""}, {"targets": ()},
        {"payload": {"a": 1, "b": [3]}}, {"attachments": ()},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_every_part_of_the_intent_is_in_its_hash(change: dict) -> None:
    assert BASE.intent_hash() != msgspec.structs.replace(BASE, **change).intent_hash()


@promise("G17")
@pytest.mark.parametrize(
    "change", [{"client_command_id": "other"}, {"expected_revision": 9}, {"payload": {"b": [2], "a": 1}}]
)
def test_how_the_intent_was_sent_is_not_in_its_hash(change: dict) -> None:
    assert BASE.intent_hash() == msgspec.structs.replace(BASE, **change).intent_hash()


def test_a_command_reads_back_from_its_body() -> None:
    assert BASE == msgspec.json.decode(msgspec.json.encode(BASE), type=Command)


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"steer","project":"p"}',
        b'{"kind":"cancel"}',
        b'{"kind":"cancel","project":"p","x":1}',
        b"[]",
    ],
)
def test_a_body_that_is_no_command_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=Command)
