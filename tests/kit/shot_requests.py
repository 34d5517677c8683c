"""Requests the tests of the shots share: one prompt for each set piece, small media, three palettes."""

from videoads.renderer.shots import Palette, ShotRequest

WARM = Palette("#f6ecdf", "#fffaf2", "#2a1710", "#c2562d", "#ffce8a")
NIGHT = Palette("#0b0f16", "#161d28", "#f2f5f7", "#ffb000", "#ffe9b0")
BRIGHT = Palette("#f3f9ff", "#ffffff", "#0d2b45", "#0a84d6", "#ffd45c")

PROMPTS: dict[str, tuple[str, Palette]] = {
    "abstract": ("Our law firm in three words", WARM),
    "espresso.dawn": ("Dawn over the rooftops, an espresso cup steams on the window sill", WARM),
    "espresso.product": ("The moka brewer turns in while beans fall", WARM),
    "espresso.pour": ("Espresso pours in a thin stream, crema rises in the glass", WARM),
    "espresso.triptych": ("Coffee in three places: kitchen, desk and train", WARM),
    "light.road": ("Night road seen from the handlebar, lane marks in the beam", NIGHT),
    "light.product": ("The bicycle lamp turns into the studio, its lens lights up", NIGHT),
    "light.ride": ("A rider commutes through the city, bokeh of traffic", NIGHT),
    "light.pulse": ("Bike from behind, the red rear light pulses", NIGHT),
    "service.wipe": ("Ein Abzieher wischt die Scheibe glasklar", BRIGHT),
    "service.facade": ("Die Fassade am Haus, Fenster für Fenster leuchtet", BRIGHT),
    "service.card": ("Termin für die Fensterreinigung im Kalender am Handy buchen", BRIGHT),
    "service.street": ("Fensterputzer unterwegs in der sonnigen Straße", BRIGHT),
}


def small_request(
    piece: str = "abstract", *, frames: int = 24, width: int = 90, height: int = 160, seed: int = 7, fps: int = 30
) -> ShotRequest:  # fmt: skip
    """A request for a set piece by its name."""
    prompt, palette = PROMPTS[piece]
    return ShotRequest(
        prompt=prompt, frames=frames, fps=fps, width=width, height=height, seed=seed, palette=palette
    )
