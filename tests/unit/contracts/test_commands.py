"""Commands: what counts as the same intent, and what a body may say."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.promises import promise
from longtake.contracts.codec import canonical
from longtake.contracts.command_table import TABLE
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


INTENT = ("kind", "project", "conversation", "text", "targets", "payload", "attachments")

TEXT = st.text(alphabet="abcXYZ-_ü€ ", max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
COMMANDS = st.builds(
    Command,
    kind=st.sampled_from(sorted(TABLE)),
    project=TEXT,
    conversation=st.none() | TEXT,
    text=st.none() | TEXT,
    targets=st.lists(TEXT, max_size=2).map(tuple),
    payload=st.dictionaries(st.sampled_from("abcd"), JSON, max_size=3),
    attachments=st.lists(
        st.builds(Attachment, object_key=TEXT, sha256=st.sampled_from(["0" * 64, "1" * 64])), max_size=2
    ).map(tuple),
    client_command_id=st.none() | TEXT,
    expected_revision=st.none() | st.integers(0, 9),
)


def _disagreement(one: Command, other: Command, digest) -> list[str]:
    """Members whose exchange says something else about the hash than the list of the intent does."""
    wrong = []
    for name in Command.__struct_fields__:
        changed = msgspec.structs.replace(one, **{name: getattr(other, name)})
        differs = canonical(getattr(one, name)) != canonical(getattr(other, name))
        if (digest(changed) != digest(one)) != (differs and name in INTENT):
            wrong.append(name)
    return wrong


@promise("G17")
@given(COMMANDS, COMMANDS)
def test_the_hashed_body_is_exactly_the_intent(one: Command, other: Command) -> None:
    """Each of the seven members changes the hash, and every other member leaves it alone."""
    assert set(INTENT) < set(Command.__struct_fields__)
    assert [] == _disagreement(one, other, Command.intent_hash)


@pytest.mark.parametrize("name", ["text", "expected_revision"])
def test_a_hash_over_other_members_would_be_noticed(name: str) -> None:
    """The check finds a member that is left out, and one that is taken in."""

    def digest(command: Command) -> str:
        changed = msgspec.structs.replace(command, text=None) if name == "text" else command
        return changed.intent_hash() + (str(command.expected_revision) if name != "text" else "")

    other = msgspec.structs.replace(BASE, text="other", expected_revision=3)

    assert [name] == _disagreement(BASE, other, digest)


def test_a_command_reads_back_from_its_body() -> None:
    assert BASE == msgspec.json.decode(msgspec.json.encode(BASE), type=Command)


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"fly","project":"p"}',
        b'{"kind":"cancel"}',
        b'{"kind":"cancel","project":"p","x":1}',
        b"[]",
    ],
)
def test_a_body_that_is_no_command_is_refused(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=Command)
