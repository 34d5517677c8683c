"""Who is calling: made in one place (the API's and the intake's authentication), carried everywhere."""

import msgspec

from longtake.contracts.ids import is_name

ANY = "*"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """An authenticated caller. Payload fields that name an actor or tenant are data, not proof (T45)."""

    tenant: str
    actor: str
    roles: frozenset[str] = frozenset({"producer"})


class Producers(msgspec.Struct, frozen=True):
    """Who may send commands over the streams, for now by configuration: tenant and actor, each a name or `*` (T10)."""

    allowed: frozenset[tuple[str, str]] = frozenset({(ANY, ANY)})

    @classmethod
    def read(cls, text: str) -> "Producers":
        """Read `tenant/actor, tenant/*`. Raises ValueError, naming the part that is none."""
        pairs = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            tenant, slash, actor = part.partition("/")
            if not slash or not all(name == ANY or is_name(name) for name in (tenant, actor)):
                raise ValueError(f"{part!r} is no tenant/actor; use names, or * for any")
            pairs.append((tenant, actor))
        return cls(frozenset(pairs))

    def include(self, principal: Principal) -> bool:
        """Whether this one is among them."""
        return any(
            tenant in (ANY, principal.tenant) and actor in (ANY, principal.actor)
            for tenant, actor in self.allowed
        )
