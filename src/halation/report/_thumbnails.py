"""Small pictures for a page: each once, as text, within a budget."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable

from PIL import Image

from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data import Photos

__all__ = ["Thumbnails", "thumbnails"]

BUDGET = 14_000_000  # characters of all pictures together: a page has 20 MB
_SIDE, _SMALL_SIDE, _MANY = 192, 128, 1500
_QUALITY = 58

Thumbnails = tuple[dict[int, str], list[str]]
"""WebP in base64 by image, and what a reader must know of those that are not there."""


def thumbnails(
    photos: Photos | None, wanted: Iterable[int], *, budget: int = BUDGET, progress: Progress = silent
) -> Thumbnails:
    """The wanted pictures in their order, the first the most needed, until the budget is spent."""
    order = list(dict.fromkeys(wanted))
    if photos is None:
        return {}, ["The data has no pictures (features alone): their names stand in their place."]
    side = _SIDE if len(order) <= _MANY else _SMALL_SIDE
    found: dict[int, str] = {}
    spent = broken = 0
    for done, image in enumerate(order):
        try:
            text = _encoded(photos[image], side)
        except InputError:  # the numbers are whole without it; `halation data check` names it
            broken += 1
            continue
        if spent + len(text) > budget:
            left = len(order) - done
            return found, [*_said(broken), f"{left:,} pictures are left out: the page would be too large."]
        found[image], spent = text, spent + len(text)
        progress("pictures", done + 1, len(order))
    return found, _said(broken)


def _said(broken: int) -> list[str]:
    return [f"{broken:,} pictures could not be read; halation data check names them."] if broken else []


def _encoded(picture: Image.Image, side: int) -> str:
    """WebP; what is no larger than a thumbnail (drawn scenes) is kept as it is, to the pixel."""
    out = io.BytesIO()
    if max(picture.size) <= side // 2:
        picture.save(out, "WEBP", lossless=True, method=4)
    else:
        picture.thumbnail((side, side), Image.Resampling.LANCZOS)
        picture.save(out, "WEBP", quality=_QUALITY, method=4)
    return base64.b64encode(out.getvalue()).decode("ascii")
