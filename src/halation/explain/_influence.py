"""What a word or a cell does for a score, found by leaving it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

__all__ = ["cell_influence", "fill_cell", "word_influence"]

_BATCH = 16  # texts without a word, pictures without a cell, taken together


def word_influence(score: float, without: Sequence[str], scores: Callable[[Sequence[str]], Tensor]) -> Tensor:
    """score − score of the text without each word: (words,). Above 0 the word speaks for the match.

    `without` has the text without each of its words, `scores` takes texts and gives (texts,). The text is read anew, so
    a sentence encoder, a GRU and word pieces all see a shorter text; a text of one word is read as an empty one.
    """
    starts = range(0, len(without), _BATCH)
    return score - torch.cat([torch.zeros(0), *(scores(without[start : start + _BATCH]) for start in starts)])


def cell_influence(pixels: Tensor, rows: int, columns: int, score: float, scores: Callable[[Tensor], Tensor]) -> Tensor:
    """score − score of the picture with each cell filled with its mean colour: (rows, columns).

    Above 0 the cell speaks for the match. `pixels` (3, H, W) as the model takes them, `scores` (B, 3, H, W) → (B,).
    The whole network looks again at every one of the rows · columns pictures, a batch at a time.
    """
    found = []
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    for start in range(0, len(cells), _BATCH):
        filled = [fill_cell(pixels, row, column, rows, columns) for row, column in cells[start : start + _BATCH]]
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
