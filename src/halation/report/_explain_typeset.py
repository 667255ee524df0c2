"""Words measured before they are drawn, so that none is cut at the edge of a figure."""

from __future__ import annotations

from typing import Any

__all__ = ["Ruler"]


class Ruler:
    """Widths of words as shares of a figure's width, in the font they are drawn in.

    >>> ruler = Ruler(inches=2.0, dpi=100)
    >>> ruler.shortened("a long title that nobody could read to its end", 0.8, size=10).endswith("…")
    True
    >>> ruler.wrapped("a very very long title", 0.3, size=10)[-1]
    'title'
    """

    def __init__(self, inches: float, dpi: int) -> None:
        from matplotlib.backends.backend_agg import RendererAgg

        self.pixels = inches * dpi
        make: Any = RendererAgg  # its arguments have no types
        self._renderer: Any = make(round(self.pixels), 1, dpi)

    def width(self, said: str, size: float, weight: str = "normal", style: str = "normal") -> float:
        """Of one line."""
        from matplotlib.font_manager import FontProperties

        font = FontProperties(size=size, weight=weight, style="italic" if style == "italic" else "normal")
        return float(self._renderer.get_text_width_height_descent(said, font, False)[0]) / self.pixels

    def shortened(self, said: str, room: float, size: float, **how: str) -> str:
        """As it is where there is room for it; otherwise as much as fits, and an ellipsis."""
        if self.width(said, size, **how) <= room:
            return said
        return said[: self._fitting(said, room, size, mark="…", **how)].rstrip() + "…"

    def wrapped(self, said: str, room: float, size: float, most: int = 99, **how: str) -> list[str]:
        """In lines, broken between words, and inside a word that no line has room for; at most so many lines."""
        lines, rest = list[str](), said
        while rest and len(lines) < most - 1 and self.width(rest, size, **how) > room:
            fits = self._fitting(rest, room, size, **how)
            space = rest.rfind(" ", 0, fits + 1)
            end = space if space > 0 else fits
            lines.append(rest[:end].rstrip())
            rest = rest[end:].lstrip()
        return [*lines, self.shortened(rest, room, size, **how)]

    def _fitting(self, said: str, room: float, size: float, mark: str = "", **how: str) -> int:
        """How many characters fit, with the mark behind them; one at least."""
        low, high = 1, len(said)
        while low < high:
            middle = (low + high + 1) // 2
            if self.width(said[:middle] + mark, size, **how) <= room:
                low = middle
            else:
                high = middle - 1
        return low
