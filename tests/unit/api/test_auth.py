"""Keys: believed for a moment, never longer, and never without asking first."""

import pytest

from longtake.api.auth import CACHED_MAX, Authenticator
from longtake.contracts.principal import Principal
from longtake.errors import AuthorityUnavailable, Refused

ACME = Principal(tenant="acme", actor="a")


class Keys:
    """Keys that count how often they are asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.alive = True
        self.away = False

    async def principal(self, text: str) -> Principal | None:
        self.asked += 1
        if self.away:
            raise AuthorityUnavailable("away")
        return ACME if self.alive and text.startswith("lt_good") else None


async def test_a_good_key_is_looked_up_once_in_its_time_and_again_after_it():
    keys, now = Keys(), [0.0]
    authenticator = Authenticator(keys, ttl_seconds=5, clock=lambda: now[0])

    assert [await authenticator.principal("Bearer lt_good") for _ in range(3)] == [ACME] * 3
    assert keys.asked == 1
    now[0] = 5.1
    keys.alive = False
    with pytest.raises(Refused):
        await authenticator.principal("Bearer lt_good")
    keys.alive = True
    assert await authenticator.principal("bearer  lt_good") == ACME


async def test_a_bad_key_is_never_remembered():
    keys = Keys()
    authenticator = Authenticator(keys)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await authenticator.principal("Bearer lt_bad")
    assert keys.asked == 2
    assert refused.value.problem.status == 401


async def test_a_known_key_is_good_while_the_authority_is_away_and_a_new_one_is_not():
    keys = Keys()
    authenticator = Authenticator(keys, clock=lambda: 0.0)
    await authenticator.principal("Bearer lt_good1")
    keys.away = True

    assert await authenticator.principal("Bearer lt_good1") == ACME
    with pytest.raises(AuthorityUnavailable):
        await authenticator.principal("Bearer lt_good2")


async def test_what_is_remembered_has_a_bound():
    keys = Keys()
    authenticator = Authenticator(keys, clock=lambda: 0.0)
    for number in range(CACHED_MAX + 1):
        await authenticator.principal(f"Bearer lt_good{number}")
    asked = keys.asked

    await authenticator.principal("Bearer lt_good0")

    assert keys.asked == asked + 1


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Token lt_good", "Bearer lt_goodü", "Bearer " + "lt_good" * 99]
)
async def test_what_is_no_key_is_not_even_looked_up(header):
    keys = Keys()
    with pytest.raises(Refused):
        await Authenticator(keys).principal(header)
    assert keys.asked == 0
