"""A similarity as a name and parameters, and back: what a saved index knows of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

import torch

from halation import similarity as room
from halation._errors import InputError
from halation.similarity import Similarity

__all__ = ["describe", "from_description", "name_of", "repeatable"]

_KNOWN = frozenset(room.__all__) - {"IndexedSimilarity", "Similarity", "match_log_likelihood"}


def name_of(similarity: Similarity) -> str:
    """What to call it.

    >>> name_of(functools.partial(room.match_probability, scale=5.0, shift=5.0))
    'match_probability'
    """
    function = similarity.func if isinstance(similarity, functools.partial) else similarity
    return str(getattr(function, "__name__", type(function).__name__))


def describe(similarity: Similarity) -> dict[str, Any]:
    """Name and parameters as JSON; only a similarity of `halation.similarity`, or a partial of one, has them.

    >>> describe(functools.partial(room.sample_min, samples=9, generator=torch.Generator().manual_seed(3)))
    {'name': 'sample_min', 'parameters': {'samples': 9, 'seed': 3}}
    """
    name, function, keywords, ordered = name_of(similarity), similarity, dict[str, Any](), ()
    if isinstance(similarity, functools.partial):
        function, keywords, ordered = similarity.func, dict(similarity.keywords), similarity.args
    if name not in _KNOWN or function is not getattr(room, name) or ordered:
        raise InputError(
            f"an index with the similarity {name} cannot be saved: it is none of halation.similarity, so nobody could "
            "load it; use one of those, or functools.partial of one with named parameters"
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
        raise InputError(f"the index was made with a similarity {name!r}, which this version of halation does not have")
    seed = parameters.pop("seed", None)
    if seed is not None:
        parameters["generator"] = torch.Generator().manual_seed(int(seed))
    function = cast(Similarity, getattr(room, name))
    return functools.partial(function, **parameters) if parameters else function


def repeatable(similarity: Similarity) -> Similarity:
    """The same for the same two sides, every time: one that draws samples starts from its generator's seed again."""
    generator = similarity.keywords.get("generator") if isinstance(similarity, functools.partial) else None
    if generator is None:
        return similarity
    seed = generator.initial_seed()

    def again(a: Any, b: Any, /) -> torch.Tensor:
        return similarity(a, b, generator=torch.Generator().manual_seed(seed))  # type: ignore[call-arg]

    return again
