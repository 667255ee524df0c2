"""From a recipe to its loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from halation import losses, training
from halation._errors import InputError, one_of
from halation.data import Batch, Dataset
from halation.encoders import Network, sentence_encoder
from halation.semantics import METRICS, Semantics
from halation.training._recipe import Recipe

__all__ = ["build_objective", "scorer_memory"]


def build_objective(recipe: Recipe, model: Network, dataset: Dataset) -> training.Objective:
    """The loss of the recipe, over a training split whose captions give the relevance."""
    members = recipe.model.members
    terms = {
        name: (
            getattr(recipe.loss, name).weight,
            training.ByMember(build(recipe), members) if members > 1 and name in _OF_ANNOTATED else build(recipe),
        )
        for name, build in _TERMS.items()
        if getattr(recipe.loss, name).weight
    }
    if not terms:
        raise InputError(f"the recipe has no loss: give one of {', '.join(_TERMS)} a weight")
    relevance = _relevance(recipe.loss.daa.relevance, dataset) if "daa" in terms else None
    return training.Objective(model, terms, relevance, {"daa": recipe.loss.daa.ramp})


_OF_ANNOTATED = (  # what each member of a committee learns by itself
    "infonce", "sigmoid", "triplet", "soft_contrastive", "csd", "smooth_ap",
)  # fmt: skip


def _relevance(metric: str, dataset: Dataset) -> Callable[[Batch], Tensor]:
    """Blocks of caption relevance, document frequencies from this split."""
    one_of(metric, METRICS, "loss.daa.relevance")
    encoder = sentence_encoder() if metric == "sentence" else None
    corpus = Semantics.fit(dataset.captions, dataset.image_of, metric, encoder=encoder).corpus()
    return lambda batch: torch.from_numpy(corpus.block(batch.images, batch.captions))


def _daa(recipe: Recipe) -> nn.Module:
    daa = recipe.loss.daa
    own = None if daa.relevance_temperature < 0 else daa.relevance_temperature
    return training.DAA(daa.temperature, daa.variant, own, t2i=daa.t2i)  # type: ignore[arg-type]


_TERMS: dict[str, Callable[[Recipe], nn.Module]] = {
    "infonce": lambda recipe: training.InfoNCE(recipe.loss.infonce.temperature),
    "sigmoid": lambda recipe: training.Sigmoid(recipe.loss.sigmoid.scale, recipe.loss.sigmoid.shift),
    "triplet": lambda recipe: training.Triplet(
        recipe.loss.triplet.margin, hardest=recipe.loss.triplet.hardest, sum_steps=recipe.loss.triplet.sum_steps
    ),
    "soft_contrastive": lambda recipe: training.SoftContrastive(
        recipe.loss.soft_contrastive.scale, recipe.loss.soft_contrastive.shift, recipe.loss.soft_contrastive.samples
    ),
    "csd": lambda recipe: training.CSD(recipe.loss.csd.scale, recipe.loss.csd.shift, recipe.loss.csd.pseudo_positives),
    "daa": _daa,
    "smooth_ap": lambda recipe: training.Scored(losses.SmoothAP(recipe.loss.smooth_ap.temperature)),
    "kl": lambda recipe: training.KL(),
    "spread": lambda recipe: training.Spread(recipe.loss.spread.scale, recipe.loss.spread.memory, recipe.model.dim),
    "uniformity": lambda recipe: training.Uniformity(),
    "diversity": lambda recipe: training.Diversity(),
    "mmd": lambda recipe: training.MMD(),
}


def scorer_memory(recipe: Recipe) -> int:
    """Bytes that SGR and SAF may keep for the backward pass.

    The hinge on the hardest negatives touches few pairs: those are computed again, and nothing is kept.
    """
    loss = recipe.loss
    few = loss.triplet.weight and loss.triplet.hardest and not (loss.daa.weight or loss.infonce.weight)
    return 0 if few else 1 << 30
