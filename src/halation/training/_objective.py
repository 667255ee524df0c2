"""Model and loss as one module: a step's items in, the loss and its parts out. Data parallelism wraps it whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.data import Batch, Dataset
from halation.encoders import LearntScalars, Network, as_float32, gather_encoded
from halation.semantics import Semantics
from halation.training._recipe import Recipe
from halation.training._step import Step
from halation.training._terms import ByMember, Learnt

__all__ = ["Objective", "Relevance", "build_objective"]

Relevance = Callable[[Batch], Tensor]
"""A global batch → how well each of its captions describes each of its images, (n_images, n_captions)."""


class Objective(nn.Module):
    """Σ weight · term over the *global* batch: every process encodes its share, all compare everything.

    terms         name → (weight, module from `Step` to a scalar)
    relevance     of captions, for a term that ranks by meaning
    ramps         name → steps over which the weight of a term rises from 0. DAA from the first step can win by ordering
                  all captions alike for every image, and a young model then does not learn to tell images apart.
    probability   that people accept a caption for an image, for a term with soft labels
    """

    def __init__(
        self,
        model: Network,
        terms: Mapping[str, tuple[float, nn.Module]],
        relevance: Relevance | None = None,
        ramps: Mapping[str, int] | None = None,
        probability: Relevance | None = None,
    ) -> None:
        super().__init__()
        if not terms:
            raise InputError("a training loss needs at least one term")
        self.model = model
        self.weights = {name: float(weight) for name, (weight, _) in terms.items()}
        self.terms = nn.ModuleDict({name: term for name, (_, term) in terms.items()})
        self.relevance, self.ramps, self.probability = relevance, dict(ramps or {}), probability

    def forward(
        self, batch: Batch, images: Any, tokens: Any, seed: int, number: int, precision: torch.dtype | None = None
    ) -> dict[str, Tensor]:
        """This process's images and tokens of the global batch; "loss" and each term without its weight."""
        device = next(self.parameters()).device
        with torch.autocast(device.type, precision, enabled=precision is not None):
            mine = self.model.images(images), self.model.captions(tokens)
        images, captions = (gather_encoded(as_float32(part)) for part in mine)
        step = Step(
            images,
            captions,
            self.model.compare,
            torch.as_tensor(batch.matches).to(device),
            lambda: self._relevance(batch, device),
            seed,
            number,
            lambda: _owners(batch, device),
            self._find_probability(batch, device),
        )
        parts = {name: term(step) for name, term in self.terms.items()}
        loss = torch.stack([self._weight(name, number) * part for name, part in parts.items()]).sum()
        return {"loss": loss, **{name: part.detach() for name, part in parts.items()}}

    def learnt(self) -> LearntScalars:
        """What the terms have learnt beside the model: scale and shift, a temperature; empty if none does."""
        return {name: term.learnt() for name, term in self.terms.items() if isinstance(term, Learnt)}

    def _weight(self, name: str, number: int) -> float:
        ramp = self.ramps.get(name, 0)
        return self.weights[name] * (min(1.0, number / ramp) if ramp else 1.0)

    def _relevance(self, batch: Batch, device: torch.device) -> Tensor:
        if self.relevance is None:
            raise InputError("a term of the loss ranks by meaning, but there is no relevance", argument="relevance")
        return self.relevance(batch).to(device)

    def _find_probability(self, batch: Batch, device: torch.device) -> Callable[[], Tensor] | None:
        find = self.probability
        return None if find is None else lambda: find(batch).to(device)


def _owners(batch: Batch, device: torch.device) -> tuple[Tensor, Tensor]:
    images = torch.as_tensor(batch.images).to(device)
    return images, images[torch.as_tensor(batch.image_of_caption).to(device)]


def build_objective(recipe: Recipe, network: Network, dataset: Dataset) -> Objective:
    """The loss of the recipe, over a training split whose captions give the relevance."""
    terms, members = recipe.loss.terms(), recipe.model.members
    built = {}
    for name, term in terms.items():
        module = term.build(recipe.model.dim)
        built[name] = (term.weight, ByMember(module, members) if members > 1 and term.by_member else module)
    relevance = _relevance(recipe.loss.daa.relevance, dataset) if "daa" in terms else None
    soft = "csd" in terms and recipe.loss.csd.unannotated > 0
    probability = _relevance("people", dataset) if soft else None
    return Objective(network, built, relevance, {"daa": recipe.loss.daa.ramp}, probability)


def _relevance(metric: str, dataset: Dataset) -> Relevance:
    """Blocks of caption relevance, with document frequencies from this split."""
    corpus = Semantics.fit(dataset.captions, dataset.image_of, metric).corpus()
    return lambda batch: torch.from_numpy(corpus.block(batch.images, batch.captions))
