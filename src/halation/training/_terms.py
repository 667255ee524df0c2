"""The terms of a training loss. Each is a section of a recipe, with its bounds, and builds what computes it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from halation import losses
from halation._errors import InputError, one_of
from halation._toml import number
from halation.encoders import Committee
from halation.semantics import METRICS
from halation.training._step import Step

__all__ = [
    "CSD",
    "DAA",
    "KL",
    "MMD",
    "ByMember",
    "Diversity",
    "InfoNCE",
    "Learnt",
    "Sigmoid",
    "SmoothAP",
    "SoftContrastive",
    "Term",
    "Triplet",
    "Uniformity",
]


@dataclass(frozen=True)
class Term:
    """A term of the loss: what a recipe's section `[loss.…]` holds. A weight of 0 leaves it out.

    A term that learns nothing overrides `value`; one that does overrides `build`.
    """

    weight: float = 0.0

    by_member: ClassVar[bool] = False  # whether each member of a committee learns by it alone

    def value(self, step: Step) -> Tensor:
        """The term for one step, without its weight: a scalar."""
        raise NotImplementedError

    def build(self, dim: int = 0) -> nn.Module:
        """The module that computes the term, from a `Step` to a scalar; `dim` is the width of the embeddings."""
        return _Fixed(self)


@runtime_checkable
class Learnt(Protocol):
    """A term's module with scalars of its own that training changes: they give its scores their meaning."""

    def learnt(self) -> dict[str, float]:
        """The scalars as they are now, under the names that recipes have for their first values."""


class _Fixed(nn.Module):
    """A term without anything to learn."""

    def __init__(self, term: Term) -> None:
        super().__init__()
        self.term = term

    def forward(self, step: Step) -> Tensor:
        return self.term.value(step)


@dataclass(frozen=True)
class InfoNCE(Term):
    """`losses.info_nce`: cross-entropy over the batch, with a learnt temperature, kept above 0.01 as in CLIP."""

    temperature: float = number(0.07, positive=True)

    by_member: ClassVar[bool] = True

    def build(self, dim: int = 0) -> nn.Module:
        return _InfoNCE(self.temperature)


class _InfoNCE(nn.Module):
    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def forward(self, step: Step) -> Tensor:
        return losses.info_nce(step.scores, step.matches, self._temperature())

    def learnt(self) -> dict[str, float]:
        return {"temperature": self._temperature().item()}

    def _temperature(self) -> Tensor:
        return self.log_scale.clamp(max=math.log(100)).neg().exp()


@dataclass(frozen=True)
class Sigmoid(Term):
    """`losses.sigmoid_pairwise`, SigLIP's loss, with learnt scale and shift."""

    scale: float = number(10.0, positive=True)
    shift: float = number(-10.0, any_sign=True)

    by_member: ClassVar[bool] = True

    def build(self, dim: int = 0) -> nn.Module:
        return _Sigmoid(self.scale, self.shift)


class _Sigmoid(nn.Module):
    def __init__(self, scale: float, shift: float) -> None:
        super().__init__()
        self.loss = losses.SigmoidPairwise(scale, shift)

    def forward(self, step: Step) -> Tensor:
        result: Tensor = self.loss(step.scores, step.matches)
        return result

    def learnt(self) -> dict[str, float]:
        return {"scale": self.loss.log_scale.exp().item(), "shift": self.loss.shift.item()}


@dataclass(frozen=True)
class Triplet(Term):
    """`losses.triplet` per match, VSE++'s hinge. The hardest negative alone can collapse a young model."""

    margin: float = 0.2
    hardest: bool = True
    sum_steps: int = 0  # steps at the beginning with all negatives

    by_member: ClassVar[bool] = True

    def value(self, step: Step) -> Tensor:
        hardest = self.hardest and step.number >= self.sum_steps
        loss = losses.triplet(step.scores, step.matches, self.margin, hardest=hardest)
        negatives = 1 if hardest else step.matches.numel() / len(step.matches)
        return loss / (step.matches.sum() * negatives)


@dataclass(frozen=True)
class SoftContrastive(Term):
    """`losses.soft_contrastive`, PCME's loss, with learnt scale and shift, summed over each image's pairs.

    The mean over all pairs would be B times smaller, the published sum over them 2 B times bigger. This way the weights
    of other terms mean the same at any batch size.
    """

    scale: float = number(15.0, positive=True)
    shift: float = number(15.0, any_sign=True)
    samples: int = number(7, positive=True)

    by_member: ClassVar[bool] = True

    def build(self, dim: int = 0) -> nn.Module:
        return _SoftContrastive(self)


class _ScaleAndShift(nn.Module):
    def __init__(self, term: SoftContrastive | CSD) -> None:
        super().__init__()
        self.term = term
        self.scale, self.shift = nn.Parameter(torch.tensor(term.scale)), nn.Parameter(torch.tensor(term.shift))

    def learnt(self) -> dict[str, float]:
        return {"scale": self.scale.item(), "shift": self.shift.item()}


class _SoftContrastive(_ScaleAndShift):
    term: SoftContrastive

    def forward(self, step: Step) -> Tensor:
        a, b = step.samples(self.term.samples)
        return losses.soft_contrastive(a, b, step.matches, scale=self.scale, shift=self.shift) * len(a)


@dataclass(frozen=True)
class CSD(Term):
    """`losses.csd_contrastive`, PCME++'s loss, with learnt scale and shift, summed over each image's pairs.

    Annotations miss many matches, and each becomes a negative. With `unannotated` above 0 the label of such a pair is
    `unannotated` times the probability that people accept it (the relevance `people`) in place of 0.
    """

    scale: float = number(5.0, positive=True)
    shift: float = number(5.0, any_sign=True)
    pseudo_positives: float = 0.1
    unannotated: float = 0.0  # share of its probability that labels a pair without annotation; at most 1

    by_member: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.unannotated > 1:
            raise InputError(f"loss.csd.unannotated is {self.unannotated}; it must be at most 1")

    def build(self, dim: int = 0) -> nn.Module:
        return _CSD(self)


class _CSD(_ScaleAndShift):
    term: CSD

    def forward(self, step: Step) -> Tensor:
        a, b = step.gaussians()
        mean = losses.csd_contrastive(
            a, b, self._labels(step), scale=self.scale, shift=self.shift, pseudo_positives=self.term.pseudo_positives
        )
        return mean * len(a)

    def _labels(self, step: Step) -> Tensor:
        if not self.term.unannotated:
            return step.matches
        return torch.where(step.matches, 1.0, self.term.unannotated * step.probability)


@dataclass(frozen=True)
class DAA(Term):
    """`losses.daa`, the semantic ranking: of images asking for captions, plus `t2i` times the other direction.

    Ranking captions by meaning is learnt sooner than ranking images; t2i balances the two.
    """

    temperature: float = number(0.02, positive=True)
    relevance: str = "tfidf"  # tfidf, cider, cider-d, bleu1 … bleu4, rouge-l, mean, sentence, people
    variant: str = "paper"
    relevance_temperature: float = number(-1.0, any_sign=True)  # below 0: as temperature
    t2i: float = 1.0  # weight of captions asking for images; images asking for captions have 1
    ramp: int = 0  # steps over which the weight rises from 0

    def __post_init__(self) -> None:
        one_of(self.relevance, METRICS, "loss.daa.relevance")
        one_of(self.variant, ("paper", "released"), "loss.daa.variant")

    def value(self, step: Step) -> Tensor:
        i2t, t2i = self._rows(step.scores, step.relevance), self._rows(step.scores.T, step.relevance.T)
        return i2t + self.t2i * t2i

    def _rows(self, scores: Tensor, relevance: Tensor) -> Tensor:
        tau = None if self.relevance_temperature < 0 else self.relevance_temperature
        return losses.daa(scores, relevance, self.temperature, self.variant, tau)  # type: ignore[arg-type]


@dataclass(frozen=True)
class SmoothAP(Term):
    """`losses.smooth_ap`: average precision of the annotated matches, both directions."""

    temperature: float = number(0.01, positive=True)

    by_member: ClassVar[bool] = True

    def value(self, step: Step) -> Tensor:
        result: Tensor = losses.SmoothAP(self.temperature)(step.scores, step.matches)
        return result


@dataclass(frozen=True)
class KL(Term):
    """`losses.kl` of images and captions."""

    def value(self, step: Step) -> Tensor:
        images, captions = step.gaussians()
        return losses.kl(images) + losses.kl(captions)


@dataclass(frozen=True)
class Uniformity(Term):
    """`losses.uniformity` of all means together."""

    def value(self, step: Step) -> Tensor:
        images, captions = step.gaussians()
        return losses.uniformity(torch.cat([images.mean, captions.mean]))


@dataclass(frozen=True)
class Diversity(Term):
    """`losses.diversity` of what attention adds, images and captions (the head pvse)."""

    def value(self, step: Step) -> Tensor:
        images, captions = step.multi_embeddings()
        return losses.diversity(images.residuals) + losses.diversity(captions.residuals)


@dataclass(frozen=True)
class MMD(Term):
    """`losses.mmd` between the embeddings of images and captions (the head pvse)."""

    def value(self, step: Step) -> Tensor:
        images, captions = step.multi_embeddings()
        return losses.mmd(images.points, captions.points)


class ByMember(nn.Module):
    """Another term, for each member of a committee alone: the mean over the members (`encoders.Committee`).

    Members that learnt by their joint score would be one large model. Members that learn alone can outvote each other.
    """

    def __init__(self, term: nn.Module, members: int) -> None:
        super().__init__()
        self.term, self.members = term, members

    def forward(self, step: Step) -> Tensor:
        sides = (Committee.split(side, self.members) for side in step.gaussians())
        steps = [replace(step, images=i, captions=c) for i, c in zip(*sides, strict=True)]
        return torch.stack([self.term(alone) for alone in steps]).mean()

    def learnt(self) -> dict[str, float]:
        return self.term.learnt() if isinstance(self.term, Learnt) else {}
