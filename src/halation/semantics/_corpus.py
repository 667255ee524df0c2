"""`Corpus`: the relevance of its captions to its images, in blocks, rows, columns or as a whole matrix."""

from __future__ import annotations

import numpy as np

from halation._arrays import Array, as_indices
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.semantics._scorer import Float32, Scorer
from halation.semantics._texts import Indices, Texts
from halation.semantics._tokens import positions_of, starts

__all__ = ["Corpus"]

_CELLS = 1 << 24  # of the matrix between two reports of progress


class Corpus:
    """The relevance of n_captions captions to n_images images; made by `Semantics.corpus`.

    Nothing is computed before you call a method. With `leave_one_out` a caption is not among the references of its
    image. The others count, even with identical text. A caption that is the only reference of its image scores 0.

    own   the relevance of a caption to its own image where it is not left out; None = as the scorer computes it
    """

    def __init__(self, texts: Texts, scorer: Scorer, own: float | None = None) -> None:
        self._texts = texts
        self._scorer = scorer
        self._own = own

    def __repr__(self) -> str:
        return f"Corpus({self.n_images} images, {self.n_captions} captions)"

    @property
    def n_images(self) -> int:
        """Number of images, each with its reference set."""
        return self._texts.n_images

    @property
    def n_captions(self) -> int:
        """Number of captions."""
        return self._texts.n_captions

    @property
    def image_of(self) -> Indices | None:
        """(n_captions,) the image of each caption, if you passed it."""
        return self._texts.image_of

    def block(self, images: Array, captions: Array, leave_one_out: bool = False) -> Float32:
        """Relevance (len(images), len(captions)) of any captions to any images, repeats allowed.

        The cost depends on the block, not on the corpus: you can call it for a (B, B) block in every training step.
        """
        rows = as_indices(images, self.n_images, "images")
        columns = as_indices(captions, self.n_captions, "captions")
        return self._block(rows, columns, leave_one_out)

    def rows(self, start: int, stop: int, leave_one_out: bool = False) -> Float32:
        """Relevance (stop − start, n_captions) of all captions to the images start … stop − 1."""
        _check_range(start, stop, self.n_images, "rows")
        return self._block(np.arange(start, stop), None, leave_one_out)

    def columns(self, start: int, stop: int, leave_one_out: bool = False) -> Float32:
        """Relevance (stop − start, n_images) of the captions start … stop − 1 to all images: columns as rows."""
        _check_range(start, stop, self.n_captions, "columns")
        block = self._block(np.arange(self.n_images), np.arange(start, stop), leave_one_out)
        return np.ascontiguousarray(block.T)

    def matrix(self, leave_one_out: bool = False, progress: Progress = silent) -> Float32:
        """Relevance (n_images, n_captions) of all captions to all images."""
        out = np.empty((self.n_images, self.n_captions), dtype=np.float32)
        step = max(1, _CELLS // self.n_captions)
        for start in range(0, self.n_images, step):
            stop = min(start + step, self.n_images)
            self._fill(np.arange(start, stop), None, leave_one_out, out[start:stop])
            progress("caption relevance", stop, self.n_images)
        return out

    def _block(self, images: Indices, captions: Indices | None, leave_one_out: bool) -> Float32:
        out = np.empty((len(images), self.n_captions if captions is None else len(captions)), dtype=np.float32)
        self._fill(images, captions, leave_one_out, out)
        return out

    def _fill(self, images: Indices, captions: Indices | None, leave_one_out: bool, out: Float32) -> None:
        if leave_one_out and self.image_of is None:
            raise InputError("leave_one_out needs image_of: which image does each caption belong to?")
        self._scorer.block(images, captions, out)
        if leave_one_out:
            row, column = self._own_pairs(images, captions)
            caption = column if captions is None else captions[column]
            distinct, inverse = np.unique(caption, return_inverse=True)
            out[row, column] = self._scorer.to_own_image(distinct)[inverse]
        elif self._own is not None and self.image_of is not None:
            out[self._own_pairs(images, captions)] = self._own

    def _own_pairs(self, images: Indices, captions: Indices | None) -> tuple[Indices, Indices]:
        """(row, column) wherever the caption belongs to the image."""
        assert self.image_of is not None
        wanted = self.image_of if captions is None else self.image_of[captions]  # (columns,)
        by_image = np.argsort(images, kind="stable")
        start = starts(np.bincount(images, minlength=self.n_images))  # where each image begins in by_image
        begin, positions = positions_of(start, wanted)
        return by_image[positions], np.repeat(np.arange(len(wanted)), np.diff(begin))


def _check_range(start: int, stop: int, size: int, what: str) -> None:
    if not 0 <= start <= stop <= size:
        raise InputError(f"{what} {start} to {stop} are not within 0 to {size}")
