"""SGRAF's local alignments with a hand-written backward pass, which keeps one large tensor; autograd keeps six."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import leaky_relu_

from halation.encoders._linear import linear

__all__ = ["local_alignments", "region_attention"]

SLOPE, SHARPNESS, EPS = 0.1, 9.0, 1e-8


def local_alignments(
    regions: Tensor,
    products: Tensor,
    words: Tensor,
    length: int,
    weight: Tensor,
    bias: Tensor,
    scratch: Tensor | None = None,
) -> Tensor:
    """W (context − word)² + b for every image and word; the context is the region the word attends to.

        A = LeakyReLU(V Tᵀ), each region's row divided by its length over the words of one caption;
        context = L2(Σ_regions softmax_regions(9 A) V)

    regions (n, r, D); products (n, r, r) = V Vᵀ, which blocks share; words (1, k·length, D), k captions of that
    length for every image, or (n, k·length, D), other captions for each image; weight (S, D), bias (S,) →
    (n, k·length, S).
    `scratch` (numbers,) is memory for the largest tensor, used if no gradient is needed.
    Diao et al., AAAI 2021.
    """
    if torch.is_grad_enabled() and any(x.requires_grad for x in (regions, words, weight, bias)):
        result: Tensor = _Local.apply(regions, products, words, length, weight, bias)  # type: ignore[no-untyped-call]
        return result
    attention = _towards(regions, products, words, length)[2]
    n, dim, size = len(regions), regions.shape[2], len(regions) * words.shape[1] * regions.shape[2]
    room = None if scratch is None or len(scratch) < size else scratch[:size].view(n, -1, dim)
    contexts = torch.bmm(attention.transpose(1, 2), regions, out=room)
    return linear(contexts.sub_(words).square_(), weight, bias)


def region_attention(regions: Tensor, words: Tensor) -> Tensor:
    """The attention of each word of one caption: regions (n, r, D), words (length, D) → (n, length, r), rows sum to 1.

    `local_alignments` computes its contexts with it.
    """
    return _attend(regions, words[None], len(words))[2].transpose(1, 2)


def _attend(regions: Tensor, words: Tensor, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """9 A (n, r, k·length), the lengths its rows had (n, r, k, 1), and its softmax over the regions."""
    n, r, dim = regions.shape
    if len(words) == 1:
        seen = linear(regions.reshape(n * r, dim), words[0]).view(n, r, -1)  # (n, r, k·length)
    else:
        seen = regions @ words.transpose(1, 2)
    seen = leaky_relu_(seen, SLOPE)
    grouped = seen.view(n, r, -1, length)
    lengths = torch.linalg.vector_norm(grouped, dim=3, keepdim=True)  # (n, r, k, 1)
    grouped.div_((lengths + EPS).div_(SHARPNESS))
    return seen, lengths, seen.softmax(dim=1)


def _towards(
    regions: Tensor, products: Tensor, words: Tensor, length: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """What `_attend` gives, its softmax divided so that contexts have length 1; regions · contexts; and the lengths.

    The lengths of contexts are computed from the regions' products with each other, so only those products are D wide.
    """
    seen, lengths, attention = _attend(regions, words, length)
    along = products @ attention  # (n, r, k·length): regions · contexts
    sizes = (along * attention).sum(dim=1, keepdim=True).clamp_(min=0).sqrt_()  # (n, 1, k·length)
    return seen, lengths, attention.div_(sizes + EPS), along, sizes


class _Local(torch.autograd.Function):
    """Keeps one tensor of the largest size for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any, regions: Tensor, products: Tensor, words: Tensor, length: int, weight: Tensor, bias: Tensor
    ) -> Tensor:
        seen, lengths, attention, along, sizes = _towards(regions, products, words, length)
        all_words = words.expand(len(regions), -1, -1)
        difference = torch.baddbmm(all_words, attention.transpose(1, 2), regions, beta=-1)
        ctx.save_for_backward(regions, words, weight, seen, lengths, attention, along, sizes, difference)
        return linear(difference.square(), weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        regions, words, weight, seen, lengths, attention, along, sizes, difference = ctx.saved_tensors
        n, r, dim = regions.shape
        flat = grad.reshape(-1, grad.shape[2])
        g_weight = linear(flat.T, difference.square().view(-1, dim).T)
        g = linear(flat, (2 * weight).T).view_as(difference).mul_(difference)  # with respect to context − word
        shared = len(words) == 1
        g_words = -(g.sum(dim=0, keepdim=True) if shared else g)
        g_seen = regions @ g.transpose(1, 2)  # (n, r, k·length)
        radial = (g_seen * attention).sum(dim=1, keepdim=True).div_(sizes.clamp(min=EPS))  # context · g, over its size
        softmax_scale = sizes + EPS  # attention times this is the softmax again
        g_regions = attention @ g - ((attention * (radial * softmax_scale)) @ attention.transpose(1, 2)) @ regions
        g_seen.addcmul_(along, radial, value=-1).mul_(attention)  # through the length, then through the softmax:
        g_seen.addcmul_(attention, g_seen.sum(dim=1, keepdim=True).mul_(softmax_scale), value=-1)
        grouped, g_grouped = seen.view(n, r, lengths.shape[2], -1), g_seen.view(n, r, lengths.shape[2], -1)
        radial = (grouped * g_grouped).sum(dim=3, keepdim=True).div_(SHARPNESS * lengths.clamp(min=EPS))
        g_grouped.div_((lengths + EPS).div_(SHARPNESS)).sub_(grouped * radial)
        g_seen = torch.where(seen > 0, g_seen, SLOPE * g_seen)
        if shared:
            g_flat = g_seen.view(n * r, -1)
            g_regions += linear(g_flat, words[0].T).view_as(g_regions)
            g_words += linear(g_flat.T, regions.reshape(n * r, dim).T)
        else:
            g_regions += g_seen @ words
            g_words += g_seen.transpose(1, 2) @ regions
        return g_regions, None, g_words, None, g_weight, flat.sum(dim=0)
