"""The influence of each word and each part of a picture on a score, measured by leaving it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from halation._errors import HalationError

__all__ = [
    "MOST_WORDS",
    "ExplanationCancelled",
    "IsWanted",
    "always",
    "cell_influence",
    "fill_cell",
    "parts_per_row",
    "word_influence",
]

T = TypeVar("T")
IsWanted = Callable[[], bool]
"""Called before every batch: is the explanation still wanted?"""

MOST_WORDS = 48  # left out one at a time; each one takes another encoding
_MOST_PER_ROW = 8  # parts of a picture: at most 64 more encodings
_BATCH = 16  # texts or pictures at a time


class ExplanationCancelled(HalationError):
    """The explanation was cancelled, because nobody waits for it any more."""


def always() -> bool:
    """Returns True: the explanation is always wanted."""
    return True


def word_influence(
    score: float, without: Sequence[str], scores: Callable[[Sequence[str]], Tensor], is_wanted: IsWanted = always
) -> Tensor:
    """The influence of each word, (words,): score − score of the text without it. Above 0, it speaks for the match.

    without   the text without each of its words
    scores    from texts to their scores, (texts,)

    Every shorter text is encoded again, whatever encoder reads it; a text of one word becomes an empty one. Only the
    first `MOST_WORDS` are left out; the others get NaN.
    """
    measured = [scores(texts) for texts in _batches(without[:MOST_WORDS], is_wanted)]
    rest = torch.full((max(0, len(without) - MOST_WORDS),), torch.nan)
    return score - torch.cat([*measured, rest])


def parts_per_row(side: int) -> int:
    """How many parts to leave out per row of a picture with `side` cells per row: a part is one cell, or several.

    >>> [parts_per_row(side) for side in (2, 7, 8, 9, 14, 24)]
    [2, 7, 8, 5, 7, 8]
    """
    return math.ceil(side / math.ceil(side / _MOST_PER_ROW))


def cell_influence(
    pixels: Tensor,
    rows: int,
    columns: int,
    score: float,
    scores: Callable[[Tensor], Tensor],
    is_wanted: IsWanted = always,
) -> Tensor:
    """The influence of each part of a picture, (rows, columns): score − score with that part in the mean colour.

    Above 0, it speaks for the match. Every one of the rows · columns pictures is encoded again, in batches.

    pixels   (3, H, W) as the model takes them
    scores   from pictures (B, 3, H, W) to their scores, (B,)
    """
    measured = []
    for batch in _batches([(row, column) for row in range(rows) for column in range(columns)], is_wanted):
        filled = [fill_cell(pixels, row, column, rows, columns) for row, column in batch]
        measured.append(scores(torch.stack(filled)))
    return score - torch.cat(measured).view(rows, columns)


def fill_cell(pixels: Tensor, row: int, column: int, rows: int, columns: int) -> Tensor:
    """A picture (3, H, W) of rows × columns cells, with one of them filled with the picture's mean colour.

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


def _batches(items: Sequence[T], is_wanted: IsWanted) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _BATCH):
        if not is_wanted():
            raise ExplanationCancelled("nobody waits for this explanation any more; it was not finished")
        yield items[start : start + _BATCH]
