"""A similarity inside an index: its points, its scores, and its description in a file."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch

from halation import similarity as similarities
from halation._arrays import FloatArray
from halation._errors import InputError
from halation.index._backend import Points
from halation.index._items import Id
from halation.similarity import Gaussian, IndexedSimilarity, Similarity, cosine, csd, l2

__all__ = ["PointEncoder", "checked", "describe", "from_description", "name_of", "repeatable"]

_KNOWN = frozenset(similarities.__all__) - {"IndexedSimilarity", "Similarity", "match_log_likelihood"}


class PointEncoder:
    """Gaussians as points whose squared L2 distances give the similarity's scores.

    direct     the similarity has points; otherwise items are fetched by their means and scored again
    penalty    each item has a number b that is subtracted from its scores: one more coordinate √(unit · (b − floor)),
               0 for queries, adds exactly that to every squared distance
    origin     the mean of the first batch, subtracted from all points: distances stay equal, but lose fewer digits
    """

    def __init__(self, similarity: Similarity, *, penalty: bool) -> None:
        self.direct = isinstance(similarity, IndexedSimilarity)
        self._by: IndexedSimilarity = similarity if isinstance(similarity, IndexedSimilarity) else l2
        self._penalty = penalty and self.direct
        self.origin: Points | None = None  # (d',)
        self.floor = 0.0

    def fits(self, penalties: FloatArray) -> bool:
        """Whether a coordinate can hold these penalties: none is below the floor."""
        return not self._penalty or not len(penalties) or float(penalties.min()) >= self.floor

    def fit(self, gaussians: Gaussian, penalties: FloatArray) -> None:
        """Choose the origin and the floor by the first batch."""
        points = self._by.points(gaussians).numpy().astype(np.float32)
        self.origin = points.mean(axis=0, dtype=np.float64).astype(np.float32)
        if self._penalty and len(penalties):
            low, high = float(penalties.min()), float(penalties.max())
            self.floor = low - (high - low)  # room for items that are added later

    def items(self, gaussians: Gaussian, penalties: FloatArray, ids: Sequence[Id]) -> Points:
        """The points to store, (n, d')."""
        assert self.origin is not None
        points = self._by.points(gaussians).numpy().astype(np.float32)
        if self._by is cosine and (zero := np.flatnonzero(~points.any(axis=1))).size:
            raise InputError(
                f"the mean of {ids[zero[0]]!r} is zero, which has no direction for a cosine; leave the item out, or "
                "use another similarity"
            )
        extra = self._by.squared_per_score * np.maximum(0, penalties - self.floor)
        return self._with(points - self.origin, np.sqrt(extra))

    def queries(self, queries: Gaussian) -> tuple[Points, FloatArray]:
        """The points to search for (q, d'), and the part of the scores that distances lack: (q,), or (1,) if equal."""
        points, constant = _csd_queries(queries) if self._by is csd else _queries(self._by, queries)
        moved = points if self.origin is None else points - self.origin
        if not self._penalty:
            return moved, constant
        return self._with(moved, np.zeros(len(points))), constant - np.float32(self.floor)

    def _with(self, points: Points, last: FloatArray) -> Points:
        if not self._penalty:
            return points
        return np.concatenate([points, last.astype(np.float32)[:, None]], axis=1)

    def scores(self, constant: FloatArray, squared: Points) -> FloatArray:
        """Scores (q, k), minus penalties, from squared distances; −inf where there is no item."""
        scores: FloatArray = constant[:, None] - squared / np.float32(self._by.squared_per_score)
        return scores


@torch.inference_mode()
def _queries(similarity: IndexedSimilarity, queries: Gaussian) -> tuple[Points, FloatArray]:
    points, offset = similarity.query_points(queries), similarity.query_offset(queries)
    constant = np.zeros(1, np.float32) if offset is None else offset.numpy().astype(np.float32, copy=False)
    return points.numpy().astype(np.float32, copy=False), constant


def _csd_queries(queries: Gaussian) -> tuple[Points, FloatArray]:
    """`_queries` of CSD in numpy alone: caches are cold after a scan, and torch's first calls cost a tenth of one."""
    mean = queries.mean.numpy()
    points = np.zeros((len(mean), mean.shape[1] + 1), np.float32)
    points[:, :-1] = mean
    if queries.log_var is None:
        return points, np.zeros(1, np.float32)
    with np.errstate(over="ignore"):
        return points, -np.exp(queries.log_var.numpy()).sum(axis=1)


def repeatable(similarity: Similarity) -> Similarity:
    """The similarity with the same scores in every call: its generator, if it has one, starts from its seed again."""
    generator = similarity.keywords.get("generator") if isinstance(similarity, functools.partial) else None
    if generator is None:
        return similarity
    seed = generator.initial_seed()

    def again(a: Any, b: Any, /) -> torch.Tensor:
        return similarity(a, b, generator=torch.Generator().manual_seed(seed))  # type: ignore[call-arg]

    return again


def name_of(similarity: Similarity) -> str:
    """The name of a similarity.

    >>> name_of(functools.partial(similarities.match_probability, scale=5.0, shift=5.0))
    'match_probability'
    """
    function = similarity.func if isinstance(similarity, functools.partial) else similarity
    return str(getattr(function, "__name__", type(function).__name__))


def describe(similarity: Similarity) -> dict[str, Any]:
    """The name and parameters of a similarity of `halation.similarity`, or of a partial of one, for JSON.

    >>> describe(functools.partial(similarities.sample_min, samples=9, generator=torch.Generator().manual_seed(3)))
    {'name': 'sample_min', 'parameters': {'samples': 9, 'seed': 3}}
    """
    name, function, keywords, ordered = name_of(similarity), similarity, dict[str, Any](), ()
    if isinstance(similarity, functools.partial):
        function, keywords, ordered = similarity.func, dict(similarity.keywords), similarity.args
    if name not in _KNOWN or function is not getattr(similarities, name) or ordered:
        raise InputError(
            f"an index with the similarity {name} cannot be saved: it is not one of halation.similarity",
            remedy="use one of those, or functools.partial of one with named parameters",
        )
    parameters: dict[str, Any] = {}
    for key, value in keywords.items():
        if isinstance(value, torch.Generator):
            parameters["seed"] = value.initial_seed()
        else:
            parameters[key] = value.item() if isinstance(value, torch.Tensor) else value
    return {"name": name, "parameters": parameters}


def from_description(description: Mapping[str, Any]) -> Similarity:
    """The similarity that was described."""
    name, parameters = str(description["name"]), dict(description["parameters"])
    if name not in _KNOWN:
        raise InputError(f"the index was made with the similarity {name!r}, which this version of halation lacks")
    seed = parameters.pop("seed", None)
    if seed is not None:
        parameters["generator"] = torch.Generator().manual_seed(int(seed))
    function = cast(Similarity, getattr(similarities, name))
    return functools.partial(function, **parameters) if parameters else function


def checked(gaussians: Gaussian, what: str, ids: Sequence[Id] | None = None) -> Gaussian:
    """The Gaussians in float32 on the CPU, outside any graph; an InputError names one that is not finite."""
    parts = [part for part in (gaussians.mean, gaussians.log_var) if part is not None]
    if any(part.requires_grad or part.dtype != torch.float32 or part.device.type != "cpu" for part in parts):
        gaussians = gaussians.detach().to("cpu", torch.float32)
    if _finite(gaussians):
        return gaussians
    for part, values in (("mean", gaussians.mean), ("log_var", gaussians.log_var)):
        if values is None:
            continue
        wrong = torch.nonzero(~torch.isfinite(values).all(dim=1))
        if len(wrong):
            row = int(wrong[0])
            which = f"{what} {row}" if ids is None else f"{what} {ids[row]!r}"
            raise InputError(f"the {part} of {which} is not finite; did the model diverge?")
    return gaussians


def _finite(gaussians: Gaussian) -> bool:
    """Whether the sum of all numbers is finite: quick for one query, but finite numbers can have an infinite sum."""
    with np.errstate(all="ignore"):
        total = float(gaussians.mean.numpy().sum())
        return math.isfinite(total if gaussians.log_var is None else total + float(gaussians.log_var.numpy().sum()))
