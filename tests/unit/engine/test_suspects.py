"""Which messages are read, and which are buried unread (F16)."""

from collections.abc import Mapping, Sequence

import pytest

from longtake.engine.suspects import DEATHS_MAX, SUSPECT_FROM, sift
from longtake.errors import AuthorityUnavailable


class Message:
    """A delivery as far as it is looked at; reading its body is for others."""

    def __init__(self, name: str, deliveries: int, subject: str = "s") -> None:
        self.subject = subject
        self.deliveries = deliveries
        self.body = name.encode()
        self.headers: Mapping[str, str] = {"Nats-Msg-Id": name}

    async def ack(self, *, sync: bool = False) -> None:
        raise AssertionError("nothing is settled here")

    async def nak(self, *, delay_seconds: float = 0.0) -> None:
        raise AssertionError("nothing is settled here")

    async def term(self) -> None:
        raise AssertionError("nothing is settled here")


class Deaths:
    """A store in which so many died of each message."""

    def __init__(self, deaths: int) -> None:
        self.deaths = deaths
        self.asked: list[Sequence[bytes]] = []

    async def take_suspects(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        self.asked.append(digests)
        return dict.fromkeys(digests, self.deaths)


async def test_the_store_is_not_asked_about_a_message_that_came_once_or_twice() -> None:
    store = Deaths(99)
    messages = [Message("a", 1), Message("b", SUSPECT_FROM - 1)]
    assert await sift(store, messages) == (messages, [])
    assert store.asked == []


@pytest.mark.parametrize(("deaths", "buried"), [(DEATHS_MAX - 1, 0), (DEATHS_MAX, 1), (DEATHS_MAX + 1, 1)])
async def test_enough_deaths_bury_a_message_and_no_other(deaths: int, buried: int) -> None:
    fresh, again = Message("a", 1), Message("b", SUSPECT_FROM)
    safe, deadly = await sift(Deaths(deaths), [fresh, again])
    assert [message for message, _ in deadly] == [again][:buried]
    assert safe == [fresh, again][: 2 - buried]


async def test_however_often_it_was_given_back_a_message_of_nobodys_death_is_read() -> None:
    (message,) = [Message("a", 1_000)]
    assert await sift(Deaths(0), [message]) == ([message], [])


async def test_messages_are_told_apart_by_subject_id_and_body() -> None:
    store = Deaths(0)
    await sift(store, [Message("a", 9), Message("b", 9), Message("a", 9, subject="t")])
    (digests,) = store.asked
    assert len(set(digests)) == 3
    assert {len(digest) for digest in digests} == {32}


async def test_without_the_authority_nothing_is_read() -> None:
    class Away:
        async def take_suspects(self, digests: Sequence[bytes]) -> dict[bytes, int]:
            raise AuthorityUnavailable("away")

    with pytest.raises(AuthorityUnavailable):
        await sift(Away(), [Message("a", 9)])
