"""Corrections for hubs, items that are near to every query: CSLS and dual softmax, as one penalty per item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from halation._arrays import FloatArray
from halation._errors import InputError, one_of
from halation.similarity import Gaussian, Similarity

__all__ = ["Hubness", "HubnessKind"]

HubnessKind = Literal["csls", "dual_softmax"]
"""How to correct for hubs: by local scaling, or by a softmax over queries."""

_BLOCK = 1 << 24  # entries of the largest matrix of scores


@dataclass(frozen=True, eq=False)
class Hubness:
    """A penalty per item: how far its scores are above those of other items, measured on a bank of queries.

    kind          "csls": half the mean of the item's `neighbours` best scores (Conneau et al., ICLR 2018);
                  "dual_softmax": ½ τ log Σ_bank exp(score / τ), the item's side of a softmax over both (Cheng et al.,
                  2021; Smith et al., ICLR 2017)
    bank          queries such as people will ask, never those you evaluate on
    temperature   τ; None: a quarter of the standard deviation of the scores between the bank and the first items
    centre        subtracted from all penalties, so that scores keep their mean

    The query's part of both corrections is the same for all items and changes no rank, so it is left out.
    """

    kind: HubnessKind
    bank: Gaussian
    neighbours: int = 10
    temperature: float | None = None
    centre: float = 0.0

    def __post_init__(self) -> None:
        one_of(self.kind, ("csls", "dual_softmax"), "hubness correction")
        if len(self.bank) < 1 or self.neighbours < 1:
            raise InputError(
                f"hubness needs at least one query and one neighbour, not {len(self.bank)} and {self.neighbours}"
            )
        if self.temperature is not None and not self.temperature > 0:
            raise InputError(f"the temperature of dual_softmax is {self.temperature}; it must be above 0")

    def fitted(self, similarity: Similarity, items: Gaussian) -> Hubness:
        """A copy with its temperature and centre set by the first items."""
        temperature = self.temperature
        if temperature is None:
            some = items[:: max(1, len(items) * len(self.bank) // _BLOCK)]
            temperature = max(0.25 * float(similarity(self.bank, some).std(correction=0)), 1e-12)
        uncentred = Hubness(self.kind, self.bank, self.neighbours, temperature)
        centre = float(uncentred.penalties(similarity, items).mean())
        return Hubness(self.kind, self.bank, self.neighbours, temperature, centre)

    def penalties(self, similarity: Similarity, items: Gaussian) -> FloatArray:
        """The number to subtract from the scores of each item, (n,) float32."""
        step = max(1, _BLOCK // len(self.bank))
        parts = [self._of(similarity(self.bank, items[i : i + step])) for i in range(0, len(items), step)]
        if not parts:
            return np.empty(0, np.float32)
        return torch.cat(parts).sub(self.centre).float().numpy()

    def _of(self, scores: Tensor) -> Tensor:
        """(bank, n) → (n,)."""
        if self.kind == "csls":
            return 0.5 * scores.topk(min(self.neighbours, len(scores)), dim=0).values.mean(dim=0)
        assert self.temperature is not None
        return 0.5 * self.temperature * torch.logsumexp(scores / self.temperature, dim=0)
