"""Score every image with every caption in blocks, forwards and backwards, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["Inputs", "Layout", "score_blocks"]

TARGET = 1 << 21  # numbers in a block's largest tensor (images, words, D), which should stay in the cache
WORDS = 64  # per block at least, if there are as many: enough for an efficient matrix product
SPARSE = 0.25  # if fewer pairs than this share have a gradient, only those are computed again


class Inputs(NamedTuple):
    """The inputs of `score_blocks`, or of one block."""

    regions: Tensor  # (n, r, D)
    images: Tensor  # (n, D) the image as a whole
    words: Tensor  # (all words, D); in a block (1 or n, k·length, D)
    captions: Tensor  # (m, D) the caption as a whole; in a block (1 or n, k, D)
    products: Tensor  # (n, r, r) of the regions with each other; no gradient flows through them
    scratch: Tensor | None = None  # memory for a block's largest tensor


class Layout(NamedTuple):
    """Which words belong to which caption, and how blocks are cut."""

    starts: Tensor  # (m,) row of each caption's first word, on the host
    lengths: Tensor  # (m,) on the host
    separable: bool  # a pair's score depends on that pair only: images may be split, and pairs selected
    memory: int  # bytes that may be kept for the backward pass; the rest is computed twice


# inputs of a block, the length of its captions, parameters → scores (n, k) and statistics (k, 2) or None
Core = Callable[[Inputs, int, tuple[Tensor, ...]], tuple[Tensor, Tensor | None]]


def score_blocks(
    core: Core, layout: Layout, inputs: Inputs, parameters: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor | None]:
    """The scores (n, m) of every image and caption, and the statistics (m, 2) per caption if `core` returns them."""
    if not (torch.is_grad_enabled() and any(x.requires_grad for x in (*inputs[:5], *parameters))):
        return _forward(core, layout, inputs, parameters)
    result: tuple[Tensor, Tensor] = _Blocks.apply(core, layout, *inputs[:5], *parameters)  # type: ignore[no-untyped-call]
    scores, statistics = result
    return scores, statistics if statistics.numel() else None


def _forward(
    core: Core,
    layout: Layout,
    inputs: Inputs,
    parameters: tuple[Tensor, ...],
    keep: list[tuple[_Block, tuple[Tensor, ...], Tensor] | _Block] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Score all blocks; append to `keep` each block, with its graph as long as there is memory left."""
    scores = inputs.regions.new_empty(len(inputs.regions), len(layout.lengths))
    statistics = None
    width = sum(p.shape[0] for p in parameters if p.ndim == 2)
    left = 0 if keep is None else layout.memory
    scratch = inputs.regions.new_empty(TARGET)
    for block in _blocks(layout, inputs):
        left -= block.kept_bytes(inputs, width)
        cut = block.cut(inputs)
        leaves = _leaves(cut, parameters) if left > 0 else (*cut[:5], *parameters)
        with torch.set_grad_enabled(left > 0):
            out, block_statistics = core(Inputs(*leaves[:5])._replace(scratch=scratch), block.length, leaves[5:])
        scores[block.images, block.captions] = out.detach()
        if block_statistics is not None:
            statistics = scores.new_empty(len(layout.lengths), 2) if statistics is None else statistics
            statistics[block.captions] = block_statistics.detach()
        if keep is not None:
            keep.append((block, leaves, out) if left > 0 else block)
    return scores, statistics


class _Block(NamedTuple):
    images: slice
    captions: Tensor  # (k,)
    words: Tensor  # (k·length,)
    length: int

    def cut(self, inputs: Inputs) -> Inputs:
        return Inputs(
            inputs.regions[self.images],
            inputs.images[self.images],
            inputs.words[self.words][None],
            inputs.captions[self.captions][None],
            inputs.products[self.images],
        )

    def kept_bytes(self, inputs: Inputs, width: int) -> int:
        """About how many bytes autograd keeps for this block; `width` is the sum of the parameters' rows."""
        _, r, dim = inputs.regions.shape
        images = int(self.images.stop - self.images.start)
        return images * len(self.words) * (dim + 2 * r + 2 * width) * inputs.regions.element_size()


def _blocks(layout: Layout, inputs: Inputs) -> Iterator[_Block]:
    n, _, dim = inputs.regions.shape
    for length in sorted(set(layout.lengths.tolist())):
        members = (layout.lengths == length).nonzero()[:, 0]
        together = max(1, WORDS // length)
        images = max(1, min(n, TARGET // (together * length * dim))) if layout.separable else n
        together = max(1, TARGET // (images * length * dim))
        for part in torch.split(members, together):
            words = (layout.starts[part][:, None] + torch.arange(length)).flatten()
            for start in range(0, n, images):
                yield _Block(slice(start, min(n, start + images)), part, words, length)


class _Blocks(torch.autograd.Function):
    """Blocks within the memory keep their graphs; the others are computed again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, core: Core, layout: Layout, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        kept: list[tuple[_Block, tuple[Tensor, ...], Tensor] | _Block] = []
        scores, statistics_or_none = _forward(core, layout, Inputs(*tensors[:5]), tensors[5:], kept)
        ctx.core, ctx.layout, ctx.kept = core, layout, kept
        ctx.save_for_backward(*tensors)
        statistics = scores.new_empty(0, 2) if statistics_or_none is None else statistics_or_none
        ctx.mark_non_differentiable(statistics)
        return scores, statistics

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        inputs, parameters = Inputs(*ctx.saved_tensors[:5]), ctx.saved_tensors[5:]
        sums = tuple(torch.zeros_like(x) for x in inputs[:4])
        totals = [torch.zeros_like(p) for p in parameters]
        if ctx.layout.separable and torch.count_nonzero(grad) < SPARSE * grad.numel():
            ctx.kept = None
            _through_pairs(ctx.core, ctx.layout, inputs, parameters, grad, sums, totals)
            return None, None, *sums, None, *totals
        kept, ctx.kept = ctx.kept, None
        for entry in kept if kept is not None else _blocks(ctx.layout, inputs):
            if isinstance(entry, _Block):
                block, leaves = entry, _leaves(entry.cut(inputs), parameters)
                with torch.enable_grad():
                    out, _ = ctx.core(Inputs(*leaves[:5]), block.length, leaves[5:])
            else:
                block, leaves, out = entry
            gradients = _gradients(out, leaves, grad[block.images, block.captions])
            sums[0][block.images] += gradients[0]
            sums[1][block.images] += gradients[1]
            sums[2][block.words] += gradients[2][0]
            sums[3][block.captions] += gradients[3][0]
            for total, g in zip(totals, gradients[4:], strict=True):
                total += g
        return None, None, *sums, None, *totals


def _leaves(inputs: Inputs, parameters: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    *learn, products, _ = inputs
    free = [x.detach().requires_grad_() for x in (*learn, *parameters)]
    return (*free[:4], products, *free[4:])


def _gradients(out: Tensor, leaves: tuple[Tensor, ...], grad: Tensor) -> tuple[Tensor, ...]:
    """Gradients with respect to all leaves except the products."""
    return torch.autograd.grad(out, (*leaves[:4], *leaves[5:]), grad)


def _through_pairs(
    core: Core,
    layout: Layout,
    inputs: Inputs,
    parameters: tuple[Tensor, ...],
    grad: Tensor,
    sums: tuple[Tensor, ...],
    totals: list[Tensor],
) -> None:
    """Only the pairs that have a gradient: a hinge on the hardest negatives leaves at most three per row."""
    pairs = grad.nonzero().cpu()  # (p, 2) image, caption
    _, r, dim = inputs.regions.shape
    lengths = layout.lengths[pairs[:, 1]]
    for length in sorted(set(lengths.tolist())):
        for part in torch.split(pairs[lengths == length], max(1, TARGET // ((r + length) * dim))):
            i, j = part.unbind(dim=1)
            rows = layout.starts[j][:, None] + torch.arange(length)  # (p, length)
            cut = Inputs(
                inputs.regions[i], inputs.images[i], inputs.words[rows], inputs.captions[j][:, None], inputs.products[i]
            )
            leaves = _leaves(cut, parameters)
            with torch.enable_grad():
                out, _ = core(Inputs(*leaves[:5]), length, leaves[5:])
            gradients = _gradients(out, leaves, grad[i, j][:, None])
            sums[0].index_add_(0, i.to(grad.device), gradients[0])
            sums[1].index_add_(0, i.to(grad.device), gradients[1])
            sums[2].index_add_(0, rows.flatten().to(grad.device), gradients[2].flatten(0, 1))
            sums[3].index_add_(0, j.to(grad.device), gradients[3][:, 0])
            for total, g in zip(totals, gradients[4:], strict=True):
                total += g
