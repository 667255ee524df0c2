"""The parts of a truth, checked: ids, captions, gains and classes, and sparse matrices (n_images, n_captions)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse

from halation._arrays import Array, BoolArray, IntArray, as_indices, to_numpy
from halation._errors import InputError

__all__ = [
    "Id",
    "as_codes",
    "as_gains",
    "as_ids",
    "as_image_of",
    "as_lost",
    "as_names",
    "as_queries",
    "as_texts",
    "captions_matrix",
    "classes_matrix",
    "ones_at",
    "pairs_matrix",
    "positions",
]

Id = str | int
"""The id of an image or a caption: a file name, or a number of the dataset."""


def as_ids(ids: Iterable[Any], count: int | None, what: str) -> tuple[Id, ...]:
    """Ids as plain str and int, each naming one thing (1 and "1" are the same name); `count`: how many."""
    named: tuple[Id, ...] = tuple(_as_id(value, what) for value in ids)
    if count is not None and len(named) != count:
        raise InputError(f"{len(named)} {what} ids for {count} {what}s; give one id for each {what}")
    seen: dict[str, int] = {}
    for position, name in enumerate(named):
        first = seen.setdefault(str(name), position)
        if first != position:
            raise InputError(
                f"{what} id {name!r} occurs twice, at {first} and at {position}; every {what} needs its own id"
            )
    return named


def as_names(ids: Iterable[Any] | None, count: int, what: str) -> tuple[Id, ...]:
    """The given ids, or 0, 1, 2, …"""
    return tuple(range(count)) if ids is None else as_ids(ids, count, what)


def _as_id(value: Any, what: str) -> Id:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"{what} id {value!r} is a {type(value).__name__}; ids are text or whole numbers")
    if value == "":
        raise InputError(f"an empty text is not a valid {what} id")
    return value


def positions(ids: Iterable[Id]) -> dict[str, int]:
    """The position of each id, by its text, because JSON writes the keys 42 and "42" the same way."""
    return {str(name): position for position, name in enumerate(ids)}


def as_queries(rows: Array | None, below: int, what: str) -> IntArray | None:
    """Indices of the queries, each once."""
    if rows is None:
        return None
    indices = as_indices(rows, below, what)
    if len(np.unique(indices)) != len(indices):
        raise InputError(f"{what} names a query twice", remedy="list each once")
    return indices


def as_lost(counts: Array | None, count: int, what: str) -> IntArray | None:
    """How many positives each query has outside the gallery; None where none has any."""
    if counts is None:
        return None
    numbers = as_indices(counts, None, what)
    if len(numbers) != count:
        raise InputError(f"{what} has {len(numbers)} entries for {count} queries")
    return numbers if numbers.any() else None


def as_texts(captions: Iterable[Any], count: int) -> tuple[str, ...]:
    """One text for each caption."""
    texts = tuple(captions)
    if isinstance(captions, str) or not all(isinstance(text, str) for text in texts):
        raise InputError("captions must be a list of texts, one for each caption")
    if len(texts) != count:
        raise InputError(f"{len(texts)} captions for {count} caption ids")
    return texts


def as_image_of(image_of: Array, n_captions: int, image_ids: Sequence[Id] | None) -> IntArray:
    """The image index of every caption, (n_captions,); every image must have a caption."""
    indices = as_indices(image_of, None if image_ids is None else len(image_ids), "image_of")
    if len(indices) != n_captions:
        raise InputError(f"image_of has {len(indices)} entries for {n_captions} captions; give each caption one image")
    if indices.max(initial=-1) >= n_captions and image_ids is None:  # before anything as long as the largest is made
        caption = int(np.argmax(indices))
        raise InputError(
            f"image_of[{caption}] is {indices[caption]} but there are {n_captions} captions: image_of holds indices "
            "0 … n_images − 1, and every image has a caption",
            remedy="number ids with numpy.unique(ids, return_inverse=True)[1]",
        )
    n_images = len(image_ids) if image_ids is not None else int(indices.max(initial=-1)) + 1
    bare = np.flatnonzero(np.bincount(indices, minlength=n_images) == 0)
    if len(bare):
        which = bare[0] if image_ids is None else f"{bare[0]} ({image_ids[bare[0]]!r})"
        raise InputError(
            f"image {which} has no caption ({len(bare)} such); every image needs at least one (number the images "
            "without gaps, leave such images out, or declare distractors with Truth.from_pairs)"
        )
    return indices


def as_gains(matrix: Any, shape: tuple[int, int] | None, what: str) -> Any:
    """Finite gains ≥ 0 as a canonical float32 csr_array: sorted, no stored zeros, so equal truths have equal bytes."""
    if not issparse(matrix):
        matrix = to_numpy(matrix)
        if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
            raise InputError(
                f"{what} must be a matrix of numbers (images, captions), not {matrix.dtype} {matrix.shape}"
            )
    gains = csr_array(matrix, dtype=np.float32, copy=issparse(matrix))  # a copy: canonical form is made in place
    if shape is not None and gains.shape != shape:
        raise InputError(f"{what} has shape {gains.shape}; it must be {shape}")
    gains.sum_duplicates()
    gains.eliminate_zeros()
    wrong = ~np.isfinite(gains.data) | (gains.data < 0)
    if wrong.any():
        entry = int(np.argmax(wrong))
        row = int(np.searchsorted(gains.indptr, entry, side="right")) - 1
        problem = f"{what}[{row}, {gains.indices[entry]}] is {gains.data[entry]}"
        raise InputError(problem, remedy="gains are finite and 0 or more")
    return gains


def as_codes(classes: Array, n_images: int, class_names: Sequence[str] | None) -> tuple[BoolArray, tuple[str, ...]]:
    """Class codes (n_images, n_classes) and the classes' names, from a 0/1 matrix or each image's list of names."""
    if _are_names(classes):
        codes, names = _codes_of_names(classes, class_names)
    else:
        codes = _codes_of_numbers(classes)
        names = tuple(class_names) if class_names is not None else tuple(str(k) for k in range(codes.shape[1]))
    if len(codes) != n_images:
        raise InputError(f"classes has {len(codes)} rows for {n_images} images")
    if len(names) != codes.shape[1]:
        raise InputError(f"{len(names)} class names for {codes.shape[1]} classes")
    return codes, names


def _are_names(classes: Array) -> bool:
    if hasattr(classes, "shape"):
        return False
    return all(isinstance(row, list | tuple | set | frozenset) for row in classes) and any(
        isinstance(name, str) for row in classes for name in row
    )


def _codes_of_numbers(classes: Array) -> BoolArray:
    try:
        matrix = to_numpy(classes)
    except ValueError:  # rows of unequal length
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub" or not np.isin(matrix, (0, 1)).all():
        raise InputError(
            "classes must be a 0/1 matrix (images, classes), or for each image a list of its classes' names"
        )
    return matrix.astype(np.bool_)


def _codes_of_names(
    classes: Iterable[Iterable[str]], class_names: Sequence[str] | None
) -> tuple[BoolArray, tuple[str, ...]]:
    rows = [list(row) for row in classes]
    names = tuple(class_names) if class_names is not None else tuple(sorted({name for row in rows for name in row}))
    column = {name: position for position, name in enumerate(names)}
    codes: npt.NDArray[np.bool_] = np.zeros((len(rows), len(names)), dtype=np.bool_)
    for image, row in enumerate(rows):
        for name in row:
            if name not in column:
                raise InputError(f"classes[{image}] holds {name!r}, which is not among the {len(names)} class names")
            codes[image, column[name]] = True
    return codes, names


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
    """1 for every pair, given by ids, or by indices if there are no ids."""
    listed = pairs.tolist() if hasattr(pairs, "tolist") else list(pairs)
    for number, pair in enumerate(listed):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(f"pairs[{number}] is {pair!r}; a pair is (image, caption)")
    rows = _indices_of([pair[0] for pair in listed], image_ids, n_images, "image")
    columns = _indices_of([pair[1] for pair in listed], caption_ids, n_captions, "caption")
    height = len(image_ids) if image_ids is not None else n_images or int(rows.max(initial=-1)) + 1
    width = len(caption_ids) if caption_ids is not None else n_captions or int(columns.max(initial=-1)) + 1
    return ones_at(rows, columns, (height, width))


def _indices_of(named: list[Any], ids: Sequence[Id] | None, count: int | None, what: str) -> IntArray:
    if ids is None:
        return as_indices(named, count, f"{what}s of the pairs")
    position_of = positions(ids)
    for number, name in enumerate(named):
        if str(name) not in position_of:
            raise InputError(f"pairs[{number}] names the {what} {name!r}, which is not among the {len(ids)} {what} ids")
    return np.array([position_of[str(name)] for name in named], dtype=np.int64)


def classes_matrix(images: Array, captions: Array | None, image_of: Array | None, zeta: int) -> Any:
    """1 where image and caption have the same label, or class codes at a Hamming distance of at most `zeta`."""
    image_codes = _as_labels(images, "image_classes")
    if captions is None:
        if image_of is None:
            raise InputError("from_classes needs the captions' classes, or image_of to inherit the images'")
        owners = to_numpy(image_of)
        caption_codes = image_codes[as_image_of(owners, len(owners), range(len(image_codes)))]
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
        f"{what} must be a label for each item, or a 0/1 matrix (items, classes), not {codes.dtype} {codes.shape}"
    )
