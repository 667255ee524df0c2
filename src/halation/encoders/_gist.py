"""Detail and gist: an item compared twice, so that the first places and the long order behind them need not agree.

Recall looks at the first ten places of a ranking, ASP at all of it. One score for both makes a model pay for the one
with the other; the soft maximum of two scores does not: where a pair matches in detail that decides, and all others are
ordered by what they have in common.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from halation._errors import InputError
from halation._torch import product
from halation.data import Features, Tokens
from halation.encoders._embeddings import Encoded, GistEmbedding, MultiEmbedding, PartEmbedding
from halation.encoders._network import Compare, Encoder, Network
from halation.similarity import Gaussian

__all__ = ["Gist", "GistEncoder", "SoftMaximum", "detail_of", "without_gist"]

_PAIRS = 4096  # looked at for the median and the quantile of a batch
_MEMORY = 0.99  # of the running median and quantile, per step


def detail_of(encoded: Encoded) -> Gaussian | MultiEmbedding | PartEmbedding:
    """What a model without a gist would have given."""
    return encoded.detail if isinstance(encoded, GistEmbedding) else encoded


class Gist(nn.Module):
    """What an item is about, beside what its model sees of it: a direction of length 1 and a bias.

        x = W dropout(pooled) (+ the mean of the words' own vectors, `words` of them),    x / ‖x‖,    tanh(w·x + b)

    The pooled vector comes from the model's backbone and gives no gradient back, and what dropout draws is drawn again
    by the next draw: the detail of a model with a gist is the same model as one without. Features and the batch
    they were made of → points (B, dim + 2) whose product, images by captions, is (cos + (bias + bias) / 2) / 2, from −1
    to 1. The bias is how likely an item resembles any other: captions of common words and pictures of common things do.
    """

    def __init__(self, in_dim: int, dim: int, dropout: float = 0.0, *, is_image: bool, words: int = 0) -> None:
        super().__init__()
        self.is_image = is_image  # it decides in which of the two biases' columns the side's own bias is
        self.dropout = nn.Dropout(dropout)
        self.fc, self.bias = nn.Linear(in_dim, dim), nn.Linear(dim, 1)
        nn.init.xavier_uniform_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)
        self.words = nn.Embedding(words, dim) if words else None
        if self.words is not None:
            nn.init.normal_(self.words.weight)

    def forward(self, batch: Tensor | Tokens | Features, features: Features) -> Gaussian:
        x = self.fc(self._dropped(features.pooled.detach()))
        if self.words is not None and isinstance(batch, Tokens):
            shares = batch.mask.to(x.dtype) / batch.mask.sum(1, keepdim=True)  # (B, L)
            x = x + torch.bmm(shares[:, None], self.words(batch.ids))[:, 0]
        own, one = torch.tanh(self.bias(x)), torch.ones_like(x[:, :1])
        biases = [own / 2, one / 2] if self.is_image else [one / 2, own / 2]
        return Gaussian.point(torch.cat([normalize(x, dim=1) / 2**0.5, *biases], dim=1))

    def _dropped(self, pooled: Tensor) -> Tensor:
        if not (self.training and self.dropout.p):
            return pooled
        with torch.random.fork_rng(devices=[pooled.device] if pooled.is_cuda else []):
            dropped: Tensor = self.dropout(pooled)
        return dropped


class GistEncoder(Encoder):
    """An encoder with a gist beside its head: pictures or tokens → `GistEmbedding`."""

    def __init__(self, backbone: nn.Module, head: nn.Module, gist: Gist) -> None:
        super().__init__(backbone, head)
        self.gist = gist

    def forward(self, batch: Any) -> GistEmbedding:
        features = self.backbone(batch)
        return GistEmbedding(self.head(features), self.gist(batch, features))


def without_gist(model: Network) -> Network:
    """The same model, weights shared, without its gist: what a vector index can search, and what decides first places.

    A model that has no gist is returned as it is.
    """
    sides = [
        Encoder(side.backbone, side.head) if isinstance(side, GistEncoder) else side
        for side in (model.image, model.text)
    ]
    if not isinstance(model.compare, SoftMaximum):
        return model
    return Network(sides[0], sides[1], model.compare.compare).train(model.training)


class SoftMaximum(nn.Module):
    """The soft maximum of the score in detail and the likeness of the gists:

        τ log(exp(z / τ) + exp(g / τ)),    z = (s − median) / (quantile − median),    g = f + (1 − f) (1 + gist) / 2

    s is what `compare` says of the detail. Its running median and its 1 − `share` quantile (over the pairs of training
    batches) bring it to one scale: for about that share of the pairs z exceeds 1, the most a gist can reach, so that
    the detail decides the first places whatever the gists say; below the floor f the gist decides whatever the detail
    says. Median and quantile are buffers, saved with the model.

    What is learnt through these scores is learnt by the gist: the detail hears of annotated matches alone. (Let into
    the detail, DAA's gradient costs it its sight: R-sum 320 → 193 on Flickr8k's dev split.)

    >>> from halation.similarity import cosine
    >>> join = SoftMaximum(cosine, temperature=0.1).eval()
    >>> join.join(torch.tensor([[2.0, -1.0]]), Gaussian.of([[1.0]]), Gaussian.of([[1.0], [1.0]]))
    tensor([[2.0000, 1.0000]])
    """

    median: Tensor
    reach: Tensor
    seen: Tensor

    def __init__(self, compare: Compare, temperature: float = 0.1, share: float = 0.05, floor: float = 0.5) -> None:
        super().__init__()
        if not temperature > 0 or not 0 < share < 0.5 or not 0 <= floor < 1:
            raise InputError(
                "a soft maximum needs temperature > 0, 0 < share < ½ and 0 ≤ floor < 1, "
                f"not {temperature}, {share} and {floor}"
            )
        self.compare, self.temperature, self.share, self.floor = compare, temperature, share, floor
        self.register_buffer("median", torch.tensor(0.0))
        self.register_buffer("reach", torch.tensor(1.0))  # quantile − median
        self.register_buffer("seen", torch.tensor(False))

    def detail(self, images: GistEmbedding, captions: GistEmbedding) -> Tensor:
        """`compare` of the details: (n_images, n_captions)."""
        return self.compare(images.detail, captions.detail)

    def join(self, detail: Tensor, images: Gaussian, captions: Gaussian) -> Tensor:
        """The scores in detail and the gists together: (n_images, n_captions)."""
        detail = detail.detach()
        if self.training:
            self._look(detail)
        z = (detail - self.median) / self.reach
        gist = self.floor + (1 - self.floor) * (1 + product(images.mean, captions.mean)) / 2
        return self.temperature * torch.logaddexp(z / self.temperature, gist / self.temperature)

    def forward(self, images: GistEmbedding, captions: GistEmbedding) -> Tensor:
        """(n_images, n_captions), bigger = closer."""
        return self.join(self.detail(images, captions), images.gist, captions.gist)

    @torch.no_grad()
    def _look(self, scores: Tensor) -> None:
        every = scores.flatten()[:: max(1, scores.numel() // _PAIRS)].float()
        middle, high = every.quantile(torch.tensor([0.5, 1 - self.share], device=every.device))
        reach = (high - middle).clamp(min=1e-6)
        if not self.seen:
            self.median.copy_(middle)
            self.reach.copy_(reach)
            self.seen.fill_(True)
        self.median.lerp_(middle, 1 - _MEMORY)
        self.reach.lerp_(reach, 1 - _MEMORY)
