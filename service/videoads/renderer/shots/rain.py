"""Rain: seeded streaks that fall for ever. A formula of time; brighter where light reaches them."""

from collections.abc import Callable

from videoads.renderer.shots.canvas import Canvas
from videoads.renderer.shots.sprite import Sprite
from videoads.renderer.shots.stage import Stage

FALL, SLANT = 1500.0, -0.19


class Rain:
    """`count` streaks over the visible frame."""

    def __init__(self, stage: Stage, count: int, salt: int) -> None:
        self.streak: Sprite = stage.svg("streak")
        self.drops = stage.random(salt).random((count, 4))
        self.span = stage.span()

    def paint(
        self, canvas: Canvas, seconds: float, *, opacity: float, lit: Callable[[float, float], float] | None = None
    ) -> None:  # fmt: skip
        """Paint the rain; `lit` gives the light at a point, 0 to 1."""
        left, top, right, bottom = self.span
        high, wide = bottom - top + 320, right - left + 300
        for x, y, near, pace in self.drops:
            fallen = (y * high + seconds * FALL * (0.65 + 0.5 * near)) % high
            down = top - 160 + fallen
            across = left + (x * wide + fallen * SLANT + 150 * pace) % wide - 150
            bright = opacity * (0.25 + 0.5 * near)
            if lit is not None:
                bright *= 0.35 + 1.3 * lit(across, down)
            size = 0.5 + 0.75 * near
            canvas.draw(
                self.streak,
                across,
                down,
                size=(0.8 + 0.5 * near, size),
                depth=0.6 + near * 0.9,
                opacity=min(1.0, bright),
            )
