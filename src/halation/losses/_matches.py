"""Which pairs of a batch match."""

from __future__ import annotations

from torch import Tensor

from halation._arrays import Array
from halation._errors import InputError
from halation._torch import as_tensor

__all__ = ["match_matrix"]


def match_matrix(images: Array, images_of_captions: Array) -> Tensor:
    """True where a caption belongs to an image: (n_images, n_captions) bool, what every pair loss takes.

    images (n,) the batch's image numbers, images_of_captions (m,) the number of the image of each caption; numbers may
    repeat on either side, so two captions of one image are both its matches.

    >>> match_matrix([7, 3], [3, 7, 7])
    tensor([[False,  True,  True],
            [ True, False, False]])
    """
    rows, columns = as_tensor(images, "images"), as_tensor(images_of_captions, "images_of_captions")
    if rows.ndim != 1 or columns.ndim != 1:
        raise InputError(
            f"match_matrix takes numbers (n,) and (m,), not {tuple(rows.shape)} and {tuple(columns.shape)}"
        )
    return rows[:, None] == columns
