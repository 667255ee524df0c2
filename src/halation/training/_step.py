"""What the terms of a training loss look at: the encoded batch of one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from halation._errors import InputError
from halation.encoders import Encoded, MultiEmbedding
from halation.similarity import Gaussian, keyed_noise

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """The global batch of one training step, encoded: what a loss term may look at.

    images, captions   n images and m captions, encoded
    compare            how the model scores them
    matches            (n, m) bool: which captions are annotated to which images
    find_relevance     computes (n, m): how well captions describe images, by meaning
    seed, number       the run's seed and the number of the step, from 0
    find_owners        computes (n,), (m,): the image of the dataset that each image and caption belongs to
    find_probability   computes (n, m): the probability that people accept a caption for an image
    """

    images: Encoded
    captions: Encoded
    compare: Callable[[Encoded, Encoded], Tensor]
    matches: Tensor
    find_relevance: Callable[[], Tensor]
    seed: int
    number: int
    find_owners: Callable[[], tuple[Tensor, Tensor]] | None = None
    find_probability: Callable[[], Tensor] | None = None

    @cached_property
    def scores(self) -> Tensor:
        """(n, m), bigger = closer: what the model ranks by."""
        return self.compare(self.images, self.captions)

    @cached_property
    def relevance(self) -> Tensor:
        """(n, m)."""
        return self.find_relevance()

    @cached_property
    def owners(self) -> tuple[Tensor, Tensor]:
        """The image of the dataset that each image (n,) and each caption (m,) belongs to."""
        if self.find_owners is None:
            problem = "a loss that remembers earlier batches must know which image each item belongs to"
            raise InputError(problem, argument="find_owners")
        return self.find_owners()

    @cached_property
    def probability(self) -> Tensor:
        """(n, m): the probability that people accept a caption for an image."""
        if self.find_probability is None:
            problem = "a loss with soft labels must know the probability that people accept a caption"
            raise InputError(problem, argument="find_probability")
        return self.find_probability()

    def gaussians(self) -> tuple[Gaussian, Gaussian]:
        """Images and captions as Gaussians; an InputError if the model does not encode them so."""
        images, captions = self.images, self.captions
        if not (isinstance(images, Gaussian) and isinstance(captions, Gaussian)):
            raise InputError("this loss needs Gaussians", remedy="take a head that gives them (point, pcme, pcmepp)")
        return images, captions

    def multi_embeddings(self) -> tuple[MultiEmbedding, MultiEmbedding]:
        """Images and captions as several embeddings per item; an InputError if the model does not encode them so."""
        images, captions = self.images, self.captions
        if not (isinstance(images, MultiEmbedding) and isinstance(captions, MultiEmbedding)):
            raise InputError("this loss needs several embeddings per item", remedy="take the head pvse")
        return images, captions

    def samples(self, k: int) -> tuple[Tensor, Tensor]:
        """k draws of every image and caption (n, k, d), (m, k, d); the same on any number of processes."""
        drawn = []
        for side, gaussian in enumerate(self.gaussians()):
            keys = torch.arange(len(gaussian), device=gaussian.mean.device)
            noise = keyed_noise(
                keys, k, gaussian.dim, 2 * self.seed + side, dtype=gaussian.mean.dtype, step=self.number
            )
            drawn.append(gaussian.sample_from(noise))
        return drawn[0], drawn[1]
