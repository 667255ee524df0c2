"""Weights over cells, drawn over the picture: light where a head looks, colour for what speaks for and against."""

from __future__ import annotations

import numpy as np
from PIL import Image

from halation._arrays import FloatArray

__all__ = ["AGAINST", "FOR", "influenced", "lit", "seen_part", "smooth"]

FOR, AGAINST = (214, 64, 31), (33, 102, 172)  # red-orange and blue: told apart by every eye
_DARK = 0.16  # what is left of the light where nothing is looked at
_STRONG = 0.82  # how much colour the strongest cell gets


def seen_part(picture: Image.Image, view: tuple[float, float, float, float], side: int = 480) -> Image.Image:
    """The part of a picture the model looks at, its longer side `side` pixels."""
    left, top, right, bottom = view
    scale = side / max(right - left, bottom - top)
    size = max(1, round((right - left) * scale)), max(1, round((bottom - top) * scale))
    how = Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.BICUBIC
    return picture.resize(size, how, box=view)


def smooth(cells: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Cells (rows, columns) as a surface (height, width) without edges, within the range of the cells."""
    plane = Image.fromarray(np.asarray(cells, dtype=np.float32)).resize(size, Image.Resampling.BICUBIC)
    surface: FloatArray = np.clip(np.asarray(plane, dtype=np.float64), cells.min(), cells.max())
    return surface


def lit(picture: Image.Image, weights: FloatArray) -> Image.Image:
    """A picture in the light of an attention (rows, columns): as it is where most is looked, dark where nothing is."""
    light = smooth(weights, picture.size) / max(float(weights.max()), 1e-12)
    gain = _DARK + (1 - _DARK) * np.clip(light, 0, 1)[:, :, None]
    return Image.fromarray(np.rint(np.asarray(picture) * gain).astype(np.uint8))


def influenced(picture: Image.Image, influence: FloatArray) -> Image.Image:
    """A grey picture, red-orange over cells that speak for the match, blue over those that speak against it."""
    strength = smooth(influence, picture.size) / max(float(np.abs(influence).max()), 1e-12)
    grey = 70 + 0.66 * np.asarray(picture.convert("L"), dtype=np.float64)[:, :, None]  # pale: colour must show
    colour = np.where(strength[:, :, None] > 0, np.array(FOR), np.array(AGAINST))
    share = _STRONG * np.abs(np.clip(strength, -1, 1))[:, :, None]
    return Image.fromarray(np.rint(grey * (1 - share) + colour * share).astype(np.uint8))
