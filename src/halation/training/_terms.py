"""The terms of a training loss: each looks at one step's global batch and gives a scalar."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from halation import losses
from halation._errors import InputError
from halation.encoders import Encoded, MultiEmbedding, SoftMaximum, detail_of, members_of
from halation.similarity import Gaussian, keyed_noise
from halation.training._memory import Memory

__all__ = [
    "CSD",
    "DAA",
    "KL",
    "MMD",
    "ByMember",
    "Diversity",
    "InfoNCE",
    "Learns",
    "Scored",
    "Sigmoid",
    "SoftContrastive",
    "Spread",
    "Step",
    "Triplet",
    "Uniformity",
]


@dataclass(frozen=True)
class Step:
    """What the terms of a loss may look at: the global batch of one step, encoded."""

    images: Encoded
    captions: Encoded
    compare: Callable[[Encoded, Encoded], Tensor]
    matches: Tensor  # (n, m) bool: which captions are annotated to which images
    find_relevance: Callable[[], Tensor]  # (n, m): how well captions describe images, by meaning
    seed: int
    number: int  # of the step, from 0
    find_owners: Callable[[], tuple[Tensor, Tensor]] | None = (
        None  # (n,), (m,): which images of the dataset these are of
    )

    @cached_property
    def owners(self) -> tuple[Tensor, Tensor]:
        """The image, of the whole dataset, of every image and every caption."""
        if self.find_owners is None:
            raise InputError("a loss that remembers earlier batches needs to know which image each item is of")
        return self.find_owners()

    @cached_property
    def scores(self) -> Tensor:
        """(n, m), bigger = closer: what the model ranks by."""
        if isinstance(self.compare, SoftMaximum):
            return self.compare.join(self.detail, self.images.gist, self.captions.gist)  # type: ignore[union-attr]
        return self.compare(self.images, self.captions)

    @cached_property
    def detail(self) -> Tensor:
        """(n, m), the scores without the gist, where the model has one: what annotated matches teach."""
        if isinstance(self.compare, SoftMaximum):
            return self.compare.detail(self.images, self.captions)  # type: ignore[arg-type]
        return self.scores

    @cached_property
    def relevance(self) -> Tensor:
        """(n, m)."""
        return self.find_relevance()

    def gaussians(self) -> tuple[Gaussian, Gaussian]:
        """Images and captions, where the model gives Gaussians with a variance."""
        images, captions = detail_of(self.images), detail_of(self.captions)
        if not (isinstance(images, Gaussian) and isinstance(captions, Gaussian)):
            raise InputError("this loss needs Gaussians; take a head that gives them (point, pcme, pcmepp)")
        return images, captions

    def samples(self, k: int) -> tuple[Tensor, Tensor]:
        """k draws of every image and caption (n, k, d), (m, k, d); the same however the batch is spread."""
        drawn = []
        for side, gaussian in enumerate(self.gaussians()):
            keys = torch.arange(len(gaussian), device=gaussian.mean.device)
            noise = keyed_noise(
                keys, k, gaussian.dim, 2 * self.seed + side, dtype=gaussian.mean.dtype, step=self.number
            )
            drawn.append(gaussian.sample_from(noise))
        return drawn[0], drawn[1]


@runtime_checkable
class Learns(Protocol):
    """A term with scalars of its own that change while training: they say what its scores mean."""

    def learnt(self) -> dict[str, float]:
        """The scalars as they are now, by the names recipes have for their first values."""


class InfoNCE(nn.Module):
    """`losses.info_nce` of the scores with a learnt temperature, kept above 0.01 as in CLIP."""

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        return losses.info_nce(step.detail, step.matches, self._temperature())

    def learnt(self) -> dict[str, float]:
        """Its temperature."""
        return {"temperature": self._temperature().item()}

    def _temperature(self) -> Tensor:
        return self.log_scale.clamp(max=math.log(100)).neg().exp()


class ByMember(nn.Module):
    """Another term, of each member of a committee alone: the mean over the members (`encoders.Committee`).

    Members who learnt by their joint score would be one large model; who learns alone can be outvoted.
    """

    def __init__(self, term: nn.Module, members: int) -> None:
        super().__init__()
        self.term, self.members = term, members

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        compare = step.compare.compare if isinstance(step.compare, SoftMaximum) else step.compare
        sides = (members_of(side, self.members) for side in step.gaussians())
        alone = [replace(step, images=i, captions=c, compare=compare) for i, c in zip(*sides, strict=True)]
        return torch.stack([self.term(own) for own in alone]).mean()

    def learnt(self) -> dict[str, float]:
        """What the term learnt."""
        return self.term.learnt() if isinstance(self.term, Learns) else {}


class Scored(nn.Module):
    """A loss of `halation.losses` on (scores, matches)."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        result: Tensor = self.loss(step.detail, step.matches)
        return result


class Sigmoid(nn.Module):
    """`losses.sigmoid_pairwise` of the scores with learnt scale and shift."""

    def __init__(self, scale: float = 10.0, shift: float = -10.0) -> None:
        super().__init__()
        self.loss = losses.SigmoidPairwise(scale, shift)

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        result: Tensor = self.loss(step.detail, step.matches)
        return result

    def learnt(self) -> dict[str, float]:
        """Its scale and shift."""
        return {"scale": self.loss.log_scale.exp().item(), "shift": self.loss.shift.item()}


class DAA(nn.Module):
    """`losses.daa` of images asking for captions plus `t2i` times that of captions asking for images.

    Ranking captions by meaning is learnt sooner than ranking images; t2i weighs the second against the first.
    """

    def __init__(
        self,
        temperature: float = 0.02,
        variant: Literal["paper", "released"] = "paper",
        relevance_temperature: float | None = None,
        *,
        t2i: float = 1.0,
    ) -> None:
        super().__init__()
        self.rows = losses.DAA(temperature, variant, relevance_temperature, symmetric=False)
        self.t2i = t2i

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        i2t: Tensor = self.rows(step.scores, step.relevance)
        t2i: Tensor = self.rows(step.scores.T, step.relevance.T)
        return i2t + self.t2i * t2i


class Triplet(nn.Module):
    """`losses.triplet` per match. The first `sum_steps` steps take all negatives: the hardest alone can collapse."""

    def __init__(self, margin: float = 0.2, *, hardest: bool = True, sum_steps: int = 0) -> None:
        super().__init__()
        self.margin, self.hardest, self.sum_steps = margin, hardest, sum_steps

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        hardest = self.hardest and step.number >= self.sum_steps
        loss = losses.triplet(step.detail, step.matches, self.margin, hardest=hardest)
        others = 1 if hardest else step.matches.numel() / len(step.matches)
        return loss / (step.matches.sum() * others)


class SoftContrastive(nn.Module):
    """`losses.soft_contrastive` with learnt scale and shift, summed over each image's pairs.

    Between the mean over all pairs, B times smaller, and the published sum over them, 2 B times bigger: so that the
    weights of other terms mean the same at any batch size.
    """

    def __init__(self, scale: float = 15.0, shift: float = 15.0, samples: int = 7) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(scale)), nn.Parameter(torch.tensor(shift))
        self.samples = samples

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        a, b = step.samples(self.samples)
        mean = losses.soft_contrastive(a, b, step.matches, scale=self.scale, shift=self.shift)
        return mean * len(a)

    def learnt(self) -> dict[str, float]:
        """Its scale and shift."""
        return {"scale": self.scale.item(), "shift": self.shift.item()}


class CSD(nn.Module):
    """`losses.csd_contrastive` with learnt scale and shift, summed over each image's pairs."""

    def __init__(self, scale: float = 5.0, shift: float = 5.0, pseudo_positives: float = 0.1) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(scale)), nn.Parameter(torch.tensor(shift))
        self.pseudo_positives = pseudo_positives

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        a, b = step.gaussians()
        mean = losses.csd_contrastive(
            a, b, step.matches, scale=self.scale, shift=self.shift, pseudo_positives=self.pseudo_positives
        )
        return mean * len(a)

    def learnt(self) -> dict[str, float]:
        """Its scale and shift."""
        return {"scale": self.scale.item(), "shift": self.shift.item()}


class KL(nn.Module):
    """`losses.kl` of images and captions."""

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        images, captions = step.gaussians()
        return losses.kl(images) + losses.kl(captions)


class Spread(nn.Module):
    """`losses.spread` with a learnt scale, among the batch and the last `memory` items of earlier ones."""

    def __init__(self, scale: float = 50.0, memory: int = 0, dim: int = 0) -> None:
        super().__init__()
        self.loss = losses.Spread(scale)
        self.images, self.captions = (Memory(memory, dim) if memory else None for _ in range(2))

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        images, captions = step.gaussians()
        if self.images is None or self.captions is None:
            alone: Tensor = self.loss(images, captions, step.matches)
            return alone
        owner, of_caption = step.owners
        value: Tensor = self.loss(
            images, captions, step.matches, self.images.others(of_caption), self.captions.others(owner)
        )
        if self.training:
            self.images.add(images.mean, owner)
            self.captions.add(captions.mean, of_caption)
        return value

    def learnt(self) -> dict[str, float]:
        """Its scale."""
        return {"scale": self.loss.log_scale.exp().item()}


class Uniformity(nn.Module):
    """`losses.uniformity` of all means together."""

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        images, captions = step.gaussians()
        return losses.uniformity(torch.cat([images.mean, captions.mean]))


class Diversity(nn.Module):
    """`losses.diversity` of what attention adds, images and captions."""

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        images, captions = _several(step)
        return losses.diversity(images.residuals) + losses.diversity(captions.residuals)


class MMD(nn.Module):
    """`losses.mmd` between the embeddings of images and captions."""

    def forward(self, step: Step) -> Tensor:
        """A scalar."""
        images, captions = _several(step)
        return losses.mmd(images.points, captions.points)


def _several(step: Step) -> tuple[MultiEmbedding, MultiEmbedding]:
    images, captions = detail_of(step.images), detail_of(step.captions)
    if not (isinstance(images, MultiEmbedding) and isinstance(captions, MultiEmbedding)):
        raise InputError("this loss needs several embeddings an item; take the head pvse")
    return images, captions
