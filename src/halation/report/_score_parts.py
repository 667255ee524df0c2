"""The parts that add up to a score, for every similarity, and other facts about the pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from halation import similarity
from halation.encoders import Encoded, LearntScalars, MultiEmbedding, best_cosine
from halation.report._explanation import Part
from halation.similarity import Gaussian, match_probability
from halation.training import Recipe

__all__ = ["score_facts", "score_parts", "similarity_name"]

_DISTANCE = ("distance between the means", "−‖μ_image − μ_text‖²")
_SAMPLES = 64  # of a match probability: enough for two digits


def score_parts(compare: Any, image: Encoded, text: Encoded) -> tuple[Part, ...]:
    """The parts of the score of one image and one text. Their sum, in double precision, is the score.

    >>> a, b = Gaussian.of([[0.0, 3.0]]), Gaussian(torch.tensor([[4.0, 0.0]]), torch.zeros(1, 2))
    >>> [part.value for part in score_parts(similarity.csd, a, b)]
    [-25.0, 0.0, -2.0]
    """
    for known, parts in _PARTS:
        if compare is known:
            return tuple(
                Part(name, float(value) + 0.0, formula) for name, value, formula in parts(image, text)
            )  # no −0
    return (Part("score", float(compare(image, text)) + 0.0, "by a network that looks at both at once"),)


def similarity_name(compare: Any) -> str:
    """The name of a similarity: "csd", "best_cosine", "SGR"."""
    return str(getattr(compare, "__name__", type(compare).__name__))


def score_facts(compare: Any, image: Encoded, text: Encoded, recipe: Recipe, learnt: LearntScalars) -> dict[str, float]:
    """Numbers beside the score: the σ of both sides, PCME's own match probability."""
    if isinstance(image, MultiEmbedding) and isinstance(text, MultiEmbedding):
        best = int(_cosines(image, text).flatten().argmax())
        return {"best embedding of the image": 1 + best // text.points.shape[1],
                "best embedding of the text": 1 + best % text.points.shape[1]}  # fmt: skip
    if not (isinstance(image, Gaussian) and isinstance(text, Gaussian)):
        return {}
    facts = {}
    for side, one in (("image", image), ("text", text)):
        if not one.is_point:
            facts[f"σ of the {side} (geometric mean)"] = float(one.uncertainty()[0])
            facts[f"Σσ² of the {side}"] = float(_spread(one))
    loss, learnt_values = recipe.loss.soft_contrastive, learnt.get("soft_contrastive", {})
    if loss.weight and not (image.is_point or text.is_point):
        draw = torch.Generator().manual_seed(0)
        options = {"scale": loss.scale, "shift": loss.shift, "samples": _SAMPLES, **learnt_values}
        matches = match_probability(image.to("cpu"), text.to("cpu"), generator=draw, **options)  # type: ignore[arg-type]
        source = "its learnt" if learnt_values else "the recipe's initial"
        facts[f"PCME's match probability, at {source} scale and shift"] = float(matches)
    return facts


Named = list[tuple[str, Tensor, str]]


def _csd(image: Gaussian, text: Gaussian) -> Named:
    return [
        (_DISTANCE[0], -_squared_distance(image, text), _DISTANCE[1]),
        ("spread of the image", 0 - _spread(image), "−Σσ²_image"),
        ("spread of the text", 0 - _spread(text), "−Σσ²_text"),
    ]


def _wasserstein2(image: Gaussian, text: Gaussian) -> Named:
    stds = [torch.zeros_like(g.mean).double() if g.is_point else g.std.double() for g in (image, text)]
    difference = (stds[0] - stds[1]).square().sum()
    return [
        (_DISTANCE[0], -_squared_distance(image, text), _DISTANCE[1]),
        ("difference between the spreads", -difference, "−‖σ_image − σ_text‖²"),
    ]


def _l2(image: Gaussian, text: Gaussian) -> Named:
    return [(_DISTANCE[0], -_squared_distance(image, text), _DISTANCE[1])]


def _cosine(image: Gaussian, text: Gaussian) -> Named:
    value = cosine_similarity(image.mean.double(), text.mean.double())[0]
    return [("cosine", value, "μ_image · μ_text / (‖μ_image‖ ‖μ_text‖)")]


def _best(image: MultiEmbedding, text: MultiEmbedding) -> Named:
    return [
        (
            "best cosine",
            _cosines(image, text).max(),
            "the largest between an embedding of the image and one of the text",
        )
    ]


def _cosines(image: MultiEmbedding, text: MultiEmbedding) -> Tensor:
    a, b = image.points[0].double(), text.points[0].double()
    return cosine_similarity(a[:, None], b[None], dim=2)  # (K, K')


def _squared_distance(image: Gaussian, text: Gaussian) -> Tensor:
    return (image.mean.double() - text.mean.double()).square().sum()


def _spread(one: Gaussian) -> Tensor:
    return torch.zeros(()) if one.log_var is None else one.log_var.double().exp().sum()


_PARTS: tuple[tuple[Any, Callable[[Any, Any], Named]], ...] = (
    (similarity.csd, _csd),
    (similarity.l2, _l2),
    (similarity.wasserstein2, _wasserstein2),
    (similarity.cosine, _cosine),
    (best_cosine, _best),
)
