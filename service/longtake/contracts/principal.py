"""Who is calling: made in one place (the API's and the intake's authentication), carried everywhere."""

import msgspec


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller. Payload fields that name an actor or tenant are data, not proof (T45)."""

    tenant: str
    actor: str
    roles: frozenset[str] = frozenset({"producer"})
