"""Commands from streams: who may send them is asked when one is taken, and what is refused keeps all it came with."""

import json

import msgspec
import pytest

from kit.probe import eventually
from kit.promises import promise
from kit.runtimes import noop_app, runtime
from longtake.contracts.commands import Command
from longtake.contracts.principal import Principal, Producers
from longtake.engine.relay import ACTOR_HEADER
from longtake.errors import ConfigurationError
from longtake.ports import OutgoingMessage
from longtake.settings import Settings

COMMAND = Command(
    kind="generation",
    project="p1",
    payload={"workflow": "noop@1", "input": {"steps": 1}},
    client_command_id="by-stream",
)
SUBJECT = "longtake.v1.command.acme.generation"
LETTERS = (
    "select tenant_id, source, subject, reason, body, headers::text as headers from longtake.dead_letters"
)


@promise("T10", "T26")
@pytest.mark.parametrize("allowed", ["*/*", "acme/*", "acme/robot, other/*"])
async def test_a_producer_that_is_no_longer_allowed_is_refused_when_its_command_is_taken(
    database, broker, tmp_path, allowed
):
    """Published while everybody was allowed, taken by a process that allows another. The control lets it in.

    The letter keeps the command's own id, tenant, project and the very bytes whose hash the command had.
    """
    connection = await database.connect()
    async with runtime(database, broker, tmp_path / "relay", None, roles=("relay",)) as process:
        await process.transport.started()
        message = OutgoingMessage(
            subject=SUBJECT,
            body=msgspec.json.encode(COMMAND),
            stream="LT_COMMAND",
            message_id="robot-by-stream",
            headers={ACTOR_HEADER: "robot"},
        )
        assert [result.state for result in await process.transport.publisher.publish([message])] == ["stored"]
    async with runtime(
        database, broker, tmp_path / "api", noop_app(), roles=("api",), stream_producers="acme/other"
    ):
        letter = await eventually(lambda: connection.fetchrow(LETTERS), "the dead letter")
    assert await connection.fetchval("select count(*) from longtake.commands") == 0

    assert (letter["tenant_id"], letter["source"], letter["subject"]) == ("acme", "intake", SUBJECT)
    assert letter["reason"] == "forbidden: 'robot' of 'acme' may not send commands over the streams."
    kept = msgspec.json.decode(letter["body"], type=Command)
    assert (kept.client_command_id, kept.project) == ("by-stream", "p1")
    assert kept.intent_hash() == COMMAND.intent_hash()
    assert json.loads(letter["headers"])[ACTOR_HEADER] == "robot"

    async with runtime(
        database, broker, tmp_path / "again", noop_app(), roles=("api",), stream_producers=allowed
    ) as process:
        again = OutgoingMessage(
            subject=SUBJECT,
            body=bytes(letter["body"]),
            stream="LT_COMMAND",
            message_id="robot-by-stream-again",
            headers={ACTOR_HEADER: "robot"},
        )
        await process.transport.publisher.publish([again])
        count = "select count(*) from longtake.commands where status <> 'rejected'"
        assert await eventually(lambda: connection.fetchval(count), "the command") == 1


@pytest.mark.parametrize(
    ("text", "tenant", "actor", "included"),
    [
        ("*/*", "a", "b", True),
        ("a/*", "a", "b", True),
        ("a/*", "x", "b", False),
        ("*/b", "x", "b", True),
        ("*/b", "x", "c", False),
        ("a/b , c/d", "c", "d", True),
        ("a/b,c/d", "a", "d", False),
        ("", "a", "b", False),
    ],
)
def test_producers_are_pairs_of_tenant_and_actor(text, tenant, actor, included):
    assert Producers.read(text).include(Principal(tenant=tenant, actor=actor)) is included


@pytest.mark.parametrize("text", ["acme", "acme/", "/robot", "a b/c", "a/b/c"])
def test_what_is_no_pair_is_refused_at_the_start(text, tmp_path):
    with pytest.raises(ConfigurationError, match="LONGTAKE_STREAM_PRODUCERS: .* is no tenant/actor"):
        Settings(data_dir=tmp_path, stream_producers=text)
