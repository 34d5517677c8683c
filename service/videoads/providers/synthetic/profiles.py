"""How the providers behave when nobody orders a fault: their pace, their slots, their habits."""

import msgspec

from videoads.providers.synthetic.faults import Style


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of habits. `moody_webhooks`: one in four comes early and one in four twice, by token."""

    name: str
    summary: str
    amnesiac: bool = False
    moody_webhooks: bool = True
    seconds: dict[Style, float] = msgspec.field(
        default_factory=lambda: {"clips": 2.0, "stills": 1.0, "voice": 0.8, "music": 0.8, "render": 0.5}
    )
    limits: dict[Style, int] = msgspec.field(
        default_factory=lambda: {"clips": 32, "stills": 32, "voice": 8, "music": 8, "render": 8}
    )


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            name="normal", summary="the habits of real providers: webhooks sometimes early, sometimes twice"
        ),
        Profile(name="plain", summary="every webhook once and on time", moody_webhooks=False),
        Profile(name="amnesiac", summary="offers no look-up at all", amnesiac=True),
    )
}
