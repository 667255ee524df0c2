"""SGR, SAF and SGRAF: scorers that compare each word of a caption with each region of an image."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.encoders._embeddings import PartEmbedding
from halation.encoders._linear import linear
from halation.encoders._pooling import unit
from halation.encoders._sgraf_blocks import Inputs, Layout, score_blocks
from halation.encoders._sgraf_local import local_alignments, region_attention
from halation.encoders._sgraf_parts import GuidedPool

__all__ = ["SAF", "SGR", "SGRAF"]


class _Scorer(nn.Module):
    """The base of SGR and SAF: whole vectors, alignments (the whole first, then one per word), score = σ(w · x + b)."""

    def __init__(self, dim: int, sim_dim: int, regions: int | None, dropout: float, memory: int) -> None:
        super().__init__()
        self.dim, self.regions, self.memory = dim, regions, memory
        self.image_pool, self.caption_pool = GuidedPool(dim, regions, dropout), GuidedPool(dim, None, dropout)
        self.local_fc, self.whole_fc, self.score_fc = (
            nn.Linear(dim, sim_dim),
            nn.Linear(dim, sim_dim),
            nn.Linear(sim_dim, 1),
        )

    def forward(self, images: PartEmbedding, captions: PartEmbedding) -> Tensor:
        """images (n, regions, dim), captions (m, words, dim), each part of length 1 → scores (n, m) in (0, 1)."""
        self._check(images, captions)
        with torch.autocast(images.local.device.type, enabled=False):
            dtype = self.score_fc.weight.dtype
            regions, words = images.local.to(dtype), captions.local.to(dtype)
            mask = words.new_ones(words.shape[:2], dtype=torch.bool) if captions.mask is None else captions.mask
            lengths = mask.sum(dim=1).cpu()
            detached = regions.detach()
            whole_images, whole_captions = self.image_pool(regions), self.caption_pool(words, mask)
            inputs = Inputs(regions, whole_images, words[mask], whole_captions, detached @ detached.transpose(1, 2))
            layout = Layout(lengths.cumsum(0) - lengths, lengths, self._separable(), self.memory)
            scores, statistics = score_blocks(self._core, layout, inputs, self._parameters_of_pairs())
            if statistics is not None:
                self._update_statistics(statistics)
        return scores

    @torch.no_grad()
    def attentions(self, image: PartEmbedding, caption: PartEmbedding) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The weights of the regions and of the words, for one image and one caption.

        Regions: "each word" (1, words, regions), the attention of every word, and "whole" (1, 1, regions). Words:
        "whole" (1, 1, words); for SAF also "filter", the gate of every word's alignment.
        """
        self._check(image, caption)
        words = caption.local if caption.mask is None else caption.local[caption.mask][None]
        regions = {
            "each word": region_attention(image.local, words[0]),
            "whole": self.image_pool.weights(image.local)[None],
        }
        return regions, {"whole": self.caption_pool.weights(words)[None], **self._filtered(image, words)}

    def _filtered(self, image: PartEmbedding, words: Tensor) -> dict[str, Tensor]:
        return {}

    def _pairs(self, inputs: Inputs, length: int, parameters: tuple[Tensor, ...]) -> Tensor:
        """The alignments of every image and caption, the whole first: (n, k, 1 + length, S)."""
        w_local, b_local, w_whole, b_whole = parameters[:4]
        n, k = len(inputs.regions), inputs.captions.shape[1]
        regions, _, words, _, products, scratch = inputs
        local = unit(local_alignments(regions, products, words, length, w_local, b_local, scratch))
        whole = unit(linear((inputs.images[:, None] - inputs.captions).square(), w_whole, b_whole))
        return torch.cat([whole[:, :, None], local.view(n, k, length, -1)], dim=2)

    def _core(self, inputs: Inputs, length: int, parameters: tuple[Tensor, ...]) -> tuple[Tensor, Tensor | None]:
        w_score, b_score, *reasoning = parameters[4:]
        vector, statistics = self._reason(self._pairs(inputs, length, parameters), reasoning)  # (n, k, S)
        return torch.sigmoid(linear(vector, w_score, b_score)).squeeze(2), statistics

    def _parameters_of_pairs(self) -> tuple[Tensor, ...]:
        linears = (self.local_fc, self.whole_fc, self.score_fc)
        return (*(p for fc in linears for p in (fc.weight, fc.bias)), *self._reasoning_parameters())

    def _separable(self) -> bool:
        return True

    def _reasoning_parameters(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _reason(self, pairs: Tensor, reasoning: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        raise NotImplementedError

    def _update_statistics(self, statistics: Tensor) -> None:
        raise NotImplementedError

    def _check(self, images: PartEmbedding, captions: PartEmbedding) -> None:
        for name, parts in (("images", images), ("captions", captions)):
            if parts.local.ndim != 3 or parts.local.shape[2] != self.dim:
                raise InputError(f"{name} must be (items, cells, {self.dim}), not {tuple(parts.local.shape)}")
            if 0 in parts.local.shape:
                raise InputError(f"{name} are empty: shape {tuple(parts.local.shape)}")
        if images.mask is not None and not bool(images.mask.all()):
            raise InputError(
                "images must all have the same number of regions: SGRAF normalises by the index of the region"
            )
        if self.regions is not None and images.local.shape[1] != self.regions:
            raise InputError(
                f"images have {images.local.shape[1]} regions but the scorer was built for {self.regions}; "
                "pass regions= to it"
            )
        if captions.mask is not None and not bool(captions.mask.any(dim=1).all()):
            row = int((~captions.mask.any(dim=1)).nonzero()[0])
            raise InputError(f"caption {row} has no words; give it at least one (an unknown word will do)")

    def _init_weights(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)


class _Step(nn.Module):
    """The linear maps of one reasoning step."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.query, self.key, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)


class SGR(_Scorer):
    """Similarity graph reasoning: the alignments E of a pair, whole and local, exchange messages.

        steps × [E ← ReLU(W softmax(Q Kᵀ) E + b)],  Q and K linear in E;  score = σ(w · E₀ + b)

    Diao et al., "Similarity Reasoning and Filtration for Image-Text Matching", AAAI 2021. images (n, regions, dim),
    captions (m, words, dim), both `PartEmbedding` → scores (n, m) in (0, 1). `regions` is the number of regions per
    image (None leaves out the batch norms). Padding has no effect.

    Captions of equal length are scored together, in blocks that stay in the cache. Up to `memory` bytes are kept for
    the backward pass; the rest is computed again. If only few pairs have a gradient (a hinge on the hardest negatives),
    only those are computed again, and `memory=0` is fastest.

    >>> parts = PartEmbedding(unit(torch.randn(3, 5, 8)))
    >>> SGR(8, sim_dim=4, regions=5)(parts, parts).shape
    torch.Size([3, 3])
    """

    def __init__(
        self,
        dim: int,
        sim_dim: int = 256,
        steps: int = 3,
        regions: int | None = 36,
        dropout: float = 0.4,
        memory: int = 1 << 30,
    ) -> None:
        super().__init__(dim, sim_dim, regions, dropout, memory)
        if steps < 1:
            raise InputError(f"steps must be at least 1, not {steps}")
        self.steps = nn.ModuleList(_Step(sim_dim) for _ in range(steps))
        self._init_weights()

    def _reasoning_parameters(self) -> tuple[Tensor, ...]:
        # softmax drops terms that are equal for all keys: Q Kᵀ → (E Wqᵀ Wk + bq Wk) Eᵀ, one map instead of two
        reasoning: list[Tensor] = []
        for step in self.steps:
            assert isinstance(step, _Step)
            key = step.key.weight
            reasoning += [key.T @ step.query.weight, step.query.bias @ key + 0 * step.key.bias.sum()]
            reasoning += [step.out.weight, step.out.bias]
        return tuple(reasoning)

    def _reason(self, pairs: Tensor, reasoning: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        n, k = pairs.shape[:2]
        nodes = pairs.flatten(0, 1)  # (n·k, 1 + length, S)
        for i in range(0, len(reasoning), 4):
            w_query, b_query, w_out, b_out = reasoning[i : i + 4]
            queries = nodes if i + 4 < len(reasoning) else nodes[:, :1]  # of the last step only the whole is read
            edges = torch.bmm(linear(queries, w_query, b_query), nodes.transpose(1, 2)).softmax(dim=2)
            nodes = linear(torch.bmm(edges, nodes), w_out, b_out).relu_()
        return nodes[:, 0].view(n, k, -1), None


class SAF(_Scorer):
    """Similarity attention filtration: gates weight the alignments of a pair.

        x = L2(Σ a E),  a = sigmoid(BN(w · E)) divided by its sum;  score = σ(w' · x + b')

    Diao et al., AAAI 2021; arguments and shapes as in `SGR`. In training, the batch norm takes its statistics per
    caption, over all images and alignments, and its running means are updated once per caption, as published.

    >>> parts = PartEmbedding(unit(torch.randn(3, 5, 8)))
    >>> SAF(8, sim_dim=4, regions=5)(parts, parts).shape
    torch.Size([3, 3])
    """

    def __init__(
        self,
        dim: int,
        sim_dim: int = 256,
        regions: int | None = 36,
        dropout: float = 0.4,
        memory: int = 1 << 30,
    ) -> None:
        super().__init__(dim, sim_dim, regions, dropout, memory)
        self.filter_fc = nn.Linear(sim_dim, 1)
        self.filter_norm = None if regions is None else nn.BatchNorm1d(1)
        self._init_weights()

    def _separable(self) -> bool:
        return self.filter_norm is None or not self.training

    def _reasoning_parameters(self) -> tuple[Tensor, ...]:
        norm = () if self.filter_norm is None else (self.filter_norm.weight, self.filter_norm.bias)
        return (self.filter_fc.weight, self.filter_fc.bias, *norm)

    def _filtered(self, image: PartEmbedding, words: Tensor) -> dict[str, Tensor]:
        regions, parameters = image.local, self._parameters_of_pairs()
        inputs = Inputs(
            regions, self.image_pool(regions), words, self.caption_pool(words)[None], regions @ regions.transpose(1, 2)
        )
        gates, _ = self._gates(self._pairs(inputs, words.shape[1], parameters), list(parameters[6:]))
        return {"filter": gates[:, :, 1:]}

    def _reason(self, pairs: Tensor, reasoning: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        gates, statistics = self._gates(pairs, reasoning)
        return unit((gates.unsqueeze(2) @ pairs).squeeze(2)), statistics

    def _gates(self, pairs: Tensor, reasoning: list[Tensor]) -> tuple[Tensor, Tensor | None]:
        weight, bias, *affine = reasoning
        logits, statistics = linear(pairs, weight, bias).squeeze(3), None  # (n, k, 1 + length)
        if self.filter_norm is not None:
            if self.training:
                var, mean = torch.var_mean(logits, dim=(0, 2), correction=0, keepdim=True)
                count = logits.shape[0] * logits.shape[2]
                statistics = torch.cat([mean, var * (count / (count - 1))], dim=2)[0]  # (k, 2)
            else:
                mean, var = self.filter_norm.get_buffer("running_mean"), self.filter_norm.get_buffer("running_var")
            scale = affine[0] * torch.rsqrt(var + self.filter_norm.eps)
            logits = (logits - mean) * scale + affine[1]
        gates = torch.sigmoid(logits)
        return gates / (gates.sum(dim=2, keepdim=True) + 1e-8), statistics

    @torch.no_grad()
    def _update_statistics(self, statistics: Tensor) -> None:
        """Update the running means as if caption after caption had been seen."""
        norm, m = self.filter_norm, len(statistics)
        assert norm is not None and norm.running_mean is not None and norm.running_var is not None
        momentum = 0.1 if norm.momentum is None else norm.momentum
        weights = momentum * (1 - momentum) ** torch.arange(m - 1, -1, -1).to(statistics)
        mean, var = weights @ statistics
        norm.running_mean.mul_((1 - momentum) ** m).add_(mean)
        norm.running_var.mul_((1 - momentum) ** m).add_(var)
        if norm.num_batches_tracked is not None:
            norm.num_batches_tracked += m


class SGRAF(nn.Module):
    """The mean of the scores of an SGR and a SAF, each with its own weights; arguments as in `SGR`.

    >>> parts = PartEmbedding(unit(torch.randn(3, 5, 8)))
    >>> SGRAF(8, sim_dim=4, regions=5)(parts, parts).shape
    torch.Size([3, 3])
    """

    def __init__(
        self,
        dim: int,
        sim_dim: int = 256,
        steps: int = 3,
        regions: int | None = 36,
        dropout: float = 0.4,
        memory: int = 1 << 30,
    ) -> None:
        super().__init__()
        self.sgr = SGR(dim, sim_dim, steps, regions, dropout, memory // 2)
        self.saf = SAF(dim, sim_dim, regions, dropout, memory // 2)

    def forward(self, images: PartEmbedding, captions: PartEmbedding) -> Tensor:
        """images (n, regions, dim), captions (m, words, dim) → scores (n, m) in (0, 1)."""
        scores: Tensor = (self.sgr(images, captions) + self.saf(images, captions)) / 2
        return scores

    def attentions(self, image: PartEmbedding, caption: PartEmbedding) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The weights as in `SGR.attentions`, of both scorers; "each word" is the same for both."""
        pairs = zip(self.sgr.attentions(image, caption), self.saf.attentions(image, caption), strict=True)
        regions, words = (
            {f"{name} (SGR)": w for name, w in a.items()} | {f"{name} (SAF)": w for name, w in b.items()}
            for a, b in pairs
        )
        shared = regions.pop("each word (SGR)")
        regions.pop("each word (SAF)")
        return {"each word": shared, **regions}, words
