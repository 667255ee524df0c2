"""From what people have (image_of, pairs, class codes) to a sparse matrix of gains (n_images, n_captions)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from halation._arrays import Array, IntArray, as_indices, to_numpy
from halation._errors import InputError
from halation.data._truth_checks import Id, as_image_of, positions

__all__ = ["captions_matrix", "classes_matrix", "ones_at", "pairs_matrix"]


def ones_at(rows: Array, columns: Array, shape: tuple[int, int]) -> Any:
    """A csr_array with 1 at each (row, column), however often it is named."""
    matrix = csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def captions_matrix(image_of: IntArray, n_images: int) -> Any:
    """1 where the caption belongs to the image."""
    return ones_at(image_of, np.arange(len(image_of)), (n_images, len(image_of)))


def pairs_matrix(
    pairs: Iterable[tuple[Id, Id]],
    image_ids: Sequence[Id] | None,
    caption_ids: Sequence[Id] | None,
    n_images: int | None,
    n_captions: int | None,
) -> Any:
    """1 for every pair, given by ids where there are ids and by indices where there are none."""
    listed = pairs.tolist() if hasattr(pairs, "tolist") else list(pairs)
    for place, pair in enumerate(listed):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(f"pairs[{place}] is {pair!r}; a pair is (image, caption)")
    rows = _places([pair[0] for pair in listed], image_ids, n_images, "image")
    columns = _places([pair[1] for pair in listed], caption_ids, n_captions, "caption")
    height = len(image_ids) if image_ids is not None else n_images or int(rows.max(initial=-1)) + 1
    width = len(caption_ids) if caption_ids is not None else n_captions or int(columns.max(initial=-1)) + 1
    return ones_at(rows, columns, (height, width))


def _places(named: list[Any], ids: Sequence[Id] | None, count: int | None, what: str) -> IntArray:
    if ids is None:
        return as_indices(named, count, f"{what}s of the pairs")
    place = positions(ids)
    for number, name in enumerate(named):
        if str(name) not in place:
            raise InputError(f"pairs[{number}] names the {what} {name!r}, which is not among the {len(ids)} {what} ids")
    return np.array([place[str(name)] for name in named], dtype=np.int64)


def classes_matrix(images: Array, captions: Array | None, image_of: Array | None, zeta: int) -> Any:
    """1 where image and caption have the same label, or class codes at a Hamming distance of at most `zeta`."""
    image_codes = _as_labels(images, "image_classes")
    if captions is None:
        if image_of is None:
            raise InputError("from_classes needs the captions' classes, or image_of to inherit the images'")
        belongs = to_numpy(image_of)
        caption_codes = image_codes[as_image_of(belongs, len(belongs), range(len(image_codes)))]
    else:
        caption_codes = _as_labels(captions, "caption_classes")
    if image_codes.shape[1:] != caption_codes.shape[1:]:
        raise InputError(f"image classes have shape {image_codes.shape} and caption classes {caption_codes.shape}")
    if zeta < 0 or (zeta and image_codes.ndim == 1):
        raise InputError(f"zeta is {zeta}; labels are equal or not (0), class codes may differ in 0 or more places")
    distinct, group = np.unique(np.concatenate([image_codes, caption_codes]), axis=0, return_inverse=True)
    group = group.reshape(-1)  # some NumPy 2.0 releases return it as a column
    of_image = _indicator(group[: len(image_codes)], len(distinct))  # (n_images, groups)
    of_caption = _indicator(group[len(image_codes) :], len(distinct))  # (n_captions, groups)
    return of_image @ _near(distinct, zeta) @ of_caption.T


def _near(distinct: Any, zeta: int) -> Any:
    if distinct.ndim == 1 or zeta == 0:
        return csr_array(np.eye(len(distinct), dtype=np.float32))
    codes = distinct.astype(np.float32)  # |a ⊕ b| = |a| + |b| − 2·a·b
    size = codes.sum(axis=1)
    distance = size[:, None] + size[None, :] - 2 * codes @ codes.T
    return csr_array((distance <= zeta).astype(np.float32))


def _indicator(group: IntArray, groups: int) -> Any:
    return ones_at(np.arange(len(group)), group, (len(group), groups))


def _as_labels(labels: Array, what: str) -> Any:
    codes = to_numpy(labels)
    if codes.ndim == 1 and len(codes) and codes.dtype.kind in "iuUSb":
        return codes
    if codes.ndim == 2 and codes.size and np.isin(codes, (0, 1)).all():
        return codes.astype(np.bool_)
    raise InputError(
        f"{what} must be a label for each item, or a 0/1 matrix (items, classes), no {codes.dtype} {codes.shape}"
    )
