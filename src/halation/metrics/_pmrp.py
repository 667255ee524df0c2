"""Plausible-Match R-Precision: items that show nearly the same classes match (Chun et al., CVPR 2021)."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._arrays import Array, BoolArray, as_scores, to_numpy
from halation._errors import InputError
from halation.metrics._binary import r_precision_of
from halation.metrics._blocks import row_blocks
from halation.metrics._ranking import Ranking, rank
from halation.metrics._relevant_ranks import relevant_ranks

__all__ = ["as_codes", "as_zetas", "hamming", "plausible_matches", "pmrp", "pmrp_of"]

Codes = npt.NDArray[np.float32]


def pmrp(
    scores: Array, query_codes: Array, item_codes: Array, zeta: int | Sequence[int] = (0, 1, 2)
) -> npt.NDArray[np.float64]:
    """Plausible-Match R-Precision: R-Precision where items match if they differ in at most ζ classes.

        match_ζ(q, i) ⇔ Σ_c |code_q[c] − code_i[c]| ≤ ζ,    PMRP_q = mean over ζ of R-Precision_q(match_ζ)

    Every image has a code of the classes it shows; a caption has the code of its image. The default, the mean over
    ζ = 0, 1, 2, is PCME's protocol; a single ζ is eccv-caption's. The two are not comparable. The query's own image
    counts as a match. Leave images without annotations out of queries and gallery first.

    scores (q, n), bigger = closer, of every item (a ranking cut off at the top would inflate PMRP); query_codes (q, d)
    and item_codes (n, d) of 0 and 1. Returns (q,) in 0…1. Matches go last among equal scores. The number of matches per
    query is `plausible_matches(query_codes, item_codes, zeta).sum(axis=1)`.

    >>> pmrp([[0.9, 0.5, 0.1]], [[1, 0]], [[0, 1], [1, 0], [1, 1]], zeta=1)
    array([0.5])
    """
    zetas = as_zetas(zeta)
    scores = as_scores(scores)
    queries, items = as_codes(query_codes, "query_codes"), as_codes(item_codes, "item_codes")
    if scores.shape != (len(queries), len(items)):
        raise InputError(
            f"scores have shape {scores.shape} but there are codes for {len(queries)} queries and {len(items)} items; "
            "PMRP needs the score of every item (a ranking cut off at the top would inflate it)"
        )
    out = np.empty(len(scores))
    for rows in row_blocks(*scores.shape):
        out[rows] = pmrp_of(rank(scores[rows]), queries[rows], items, zetas, rows.start)
    return out


def pmrp_of(
    ranking: Ranking, query_codes: Codes, item_codes: Codes, zetas: Sequence[int], first_row: int = 0
) -> npt.NDArray[np.float64]:
    """`pmrp` of a ranked block; codes from `as_codes`, errors count rows from `first_row`."""
    distances = hamming(query_codes, item_codes)
    by_zeta = [r_precision_of(relevant_ranks(ranking, distances <= zeta, first_row)) for zeta in zetas]
    return np.asarray(np.mean(by_zeta, axis=0))


def plausible_matches(query_codes: Array, item_codes: Array, zeta: int = 0) -> BoolArray:
    """Whether an item matches a query: they differ in at most ζ classes.

    query_codes (q, d) and item_codes (n, d) of 0 and 1. Returns (q, n) bool.

    >>> plausible_matches([[1, 0, 0]], [[1, 0, 0], [1, 1, 0], [0, 1, 1]], zeta=1)
    array([[ True,  True, False]])
    """
    (limit,) = as_zetas(zeta)
    queries, items = as_codes(query_codes, "query_codes"), as_codes(item_codes, "item_codes")
    out = np.empty((len(queries), len(items)), np.bool_)
    for rows in row_blocks(*out.shape):
        np.less_equal(hamming(queries[rows], items), limit, out=out[rows])
    return out


def hamming(query_codes: Codes, item_codes: Codes) -> Codes:
    """The number of classes in which query and item differ, (q, n); codes (q, d) and (n, d) from `as_codes`."""
    if query_codes.shape[1] != item_codes.shape[1]:
        raise InputError(
            f"query codes have {query_codes.shape[1]} classes and item codes {item_codes.shape[1]}; "
            "both need the same classes"
        )
    # whole numbers: float32 is exact, and a matrix product is fast
    distances: Codes = query_codes @ (-2 * item_codes.T)
    distances += query_codes.sum(axis=1)[:, None]
    distances += item_codes.sum(axis=1)
    return distances


def as_codes(codes: Array, name: str = "codes") -> Codes:
    """Class codes (m, d) of 0 and 1 as float32."""
    matrix = to_numpy(codes)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"{name} must be a matrix (items, classes), not an array of shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf" or not ((matrix == 0) | (matrix == 1)).all():
        raise InputError(f"{name} must hold 0 and 1 only: whether each class is present")
    return matrix.astype(np.float32)


def as_zetas(zeta: Any) -> tuple[int, ...]:
    """One ζ, or several, as a tuple of whole numbers."""
    values = tuple(zeta) if isinstance(zeta, Sequence) and not isinstance(zeta, str) else (zeta,)
    try:
        zetas = tuple(operator.index(value) for value in values)
    except TypeError:
        raise InputError(f"zeta must be a whole number or several, not {zeta!r}") from None
    if not zetas or min(zetas) < 0 or len(set(zetas)) < len(zetas):
        raise InputError(f"zeta must be one or more different whole numbers of 0 or more, not {zeta!r}")
    return zetas
