"""Pictures for a page: thumbnails within a size budget, and pictures that show an attention or an influence."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from typing import Any

import numpy as np
from PIL import Image

from halation._arrays import FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data import Photos

__all__ = ["brighten", "colour", "crop", "encode_picture", "thumbnails"]

BUDGET = 14_000_000  # characters of all thumbnails together: the whole page stays below 20 MB
_SIDE, _SMALL_SIDE, _MANY = 192, 128, 1500
_QUALITY = 58
_FOR, _AGAINST = (214, 64, 31), (33, 102, 172)  # red-orange and blue: distinct to colour-blind readers too
_DARKEST = 0.16  # brightness where the attention is 0
_STRONGEST = 0.82  # opacity of the colour where the influence is largest


def encode_picture(picture: Image.Image, form: str = "WEBP", **options: Any) -> str:
    """A picture as base64 text, for a data URL."""
    out = io.BytesIO()
    picture.save(out, form, **options)
    return base64.b64encode(out.getvalue()).decode("ascii")


def thumbnails(
    photos: Photos | None, images: Iterable[int], *, budget: int = BUDGET, progress: Progress = silent
) -> tuple[dict[int, str], list[str]]:
    """WebP thumbnails in base64 by image, until the budget is spent, and notes about images without one."""
    order = list(dict.fromkeys(images))
    if photos is None:
        return {}, ["The data holds features, not pictures, so images are shown by name."]
    side = _SIDE if len(order) <= _MANY else _SMALL_SIDE
    encoded: dict[int, str] = {}
    spent = broken = 0
    for done, image in enumerate(order):
        try:
            text = _thumbnail(photos[image], side)
        except InputError:  # the numbers are complete without it; `halation data check` names it
            broken += 1
            continue
        if spent + len(text) > budget:
            note = f"{len(order) - done:,} images are shown by name only: with them, the page would be too large."
            return encoded, [*_broken_note(broken), note]
        encoded[image], spent = text, spent + len(text)
        progress("pictures", done + 1, len(order))
    return encoded, _broken_note(broken)


def _broken_note(broken: int) -> list[str]:
    return [f"{broken:,} pictures could not be read; halation data check names them."] if broken else []


def _thumbnail(picture: Image.Image, side: int) -> str:
    """A thumbnail as base64; a much smaller picture (a drawn scene) keeps its size, without loss."""
    if max(picture.size) <= side // 2:
        return encode_picture(picture, lossless=True, method=4)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    return encode_picture(picture, quality=_QUALITY, method=4)


def crop(picture: Image.Image, view: tuple[float, float, float, float], side: int = 480) -> Image.Image:
    """The part of a picture that the model sees, with a longer side of `side` pixels."""
    left, top, right, bottom = view
    scale = side / max(right - left, bottom - top)
    size = max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale))
    how = Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.BICUBIC
    return picture.resize(size, how, box=view)


def brighten(picture: Image.Image, weights: FloatArray) -> Image.Image:
    """A picture under an attention (rows, columns): full brightness at its maximum, dark where it is 0."""
    share = _smooth(weights, picture.size) / max(float(weights.max()), 1e-12)
    gain = _DARKEST + (1 - _DARKEST) * np.clip(share, 0, 1)[:, :, None]
    return Image.fromarray(np.rint(np.asarray(picture) * gain).astype(np.uint8))


def colour(picture: Image.Image, influence: FloatArray) -> Image.Image:
    """A grey picture with its influence (rows, columns): red-orange for the match, blue against it."""
    strength = _smooth(influence, picture.size) / max(float(np.abs(influence).max()), 1e-12)
    grey = 70 + 0.66 * np.asarray(picture.convert("L"), dtype=np.float64)[:, :, None]  # pale, so that colour shows
    hue = np.where(strength[:, :, None] > 0, np.array(_FOR), np.array(_AGAINST))
    share = _STRONGEST * np.abs(np.clip(strength, -1, 1))[:, :, None]
    return Image.fromarray(np.rint(grey * (1 - share) + hue * share).astype(np.uint8))


def _smooth(cells: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Cells (rows, columns) as a smooth surface (height, width), within the range of the cells."""
    plane = Image.fromarray(np.asarray(cells, dtype=np.float32)).resize(size, Image.Resampling.BICUBIC)
    surface: FloatArray = np.clip(np.asarray(plane, dtype=np.float64), cells.min(), cells.max())
    return surface
