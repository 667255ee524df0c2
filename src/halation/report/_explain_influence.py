"""What a word or a part of the picture does for a score, found by leaving it out; bounded, and ended when unwanted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from halation._errors import HalationError

__all__ = ["MOST_WORDS", "IsWanted", "Unwanted", "always", "cell_influence", "fill_cell", "tiles", "word_influence"]

T = TypeVar("T")
IsWanted = Callable[[], bool]
"""Asked before every batch: does anybody still wait for the answer?"""

MOST_WORDS = 48  # left out one at a time: each is a text that is read anew
_MOST_ACROSS = 8  # parts of a picture in a row, and rows: 64 pictures that are looked at anew
_BATCH = 16  # texts without a word, pictures without a part, taken together


class Unwanted(HalationError):
    """Nobody waits for this explanation any more, so it was not finished."""


def always() -> bool:
    """Somebody waits: the answer of callers who never leave."""
    return True


def word_influence(
    score: float, without: Sequence[str], scores: Callable[[Sequence[str]], Tensor], is_wanted: IsWanted = always
) -> Tensor:
    """score − score of the text without each word: (words,). Above 0 the word speaks for the match.

    `without` has the text without each of its words, `scores` takes texts and gives (texts,). The text is read anew, so
    a sentence encoder, a GRU and word pieces all see a shorter text; a text of one word is read as an empty one. Only
    the first `MOST_WORDS` are looked at; the others have NaN.
    """
    looked = [scores(texts) for texts in _batches(without[:MOST_WORDS], is_wanted)]
    rest = torch.full((max(0, len(without) - MOST_WORDS),), torch.nan)
    return score - torch.cat([*looked, rest])


def tiles(side: int) -> int:
    """How many parts in a row are left out, of a picture with `side` cells in a row: a part is one cell, or several.

    >>> [tiles(side) for side in (2, 7, 8, 9, 14, 24)]
    [2, 7, 8, 5, 7, 8]
    """
    return math.ceil(side / math.ceil(side / _MOST_ACROSS))


def cell_influence(
    pixels: Tensor,
    rows: int,
    columns: int,
    score: float,
    scores: Callable[[Tensor], Tensor],
    is_wanted: IsWanted = always,
) -> Tensor:
    """score − score of the picture with each part filled with its mean colour: (rows, columns).

    Above 0 the part speaks for the match. `pixels` (3, H, W) as the model takes them, `scores` (B, 3, H, W) → (B,).
    The whole network looks again at every one of the rows · columns pictures, a batch at a time.
    """
    found = []
    for batch in _batches([(row, column) for row in range(rows) for column in range(columns)], is_wanted):
        filled = [fill_cell(pixels, row, column, rows, columns) for row, column in batch]
        found.append(scores(torch.stack(filled)))
    return score - torch.cat(found).view(rows, columns)


def fill_cell(pixels: Tensor, row: int, column: int, rows: int, columns: int) -> Tensor:
    """A picture (3, H, W) of rows × columns cells with one of them in the picture's mean colour.

    >>> fill_cell(torch.tensor([[[0.0, 4.0], [0.0, 0.0]]]), 0, 1, 2, 2)
    tensor([[[0., 1.],
             [0., 0.]]])
    """
    _, height, width = pixels.shape
    down = slice(row * height // rows, (row + 1) * height // rows)
    across = slice(column * width // columns, (column + 1) * width // columns)
    filled = pixels.clone()
    filled[:, down, across] = pixels.mean(dim=(1, 2))[:, None, None]
    return filled


def _batches(things: Sequence[T], is_wanted: IsWanted) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), _BATCH):
        if not is_wanted():
            raise Unwanted("nobody waits for this explanation any more; it was not finished")
        yield things[start : start + _BATCH]
