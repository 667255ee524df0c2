"""The modules that become ONNX graphs: tensors in, mean and log σ² out.

Training skips padding: it packs sequences and picks out the real words, which a graph of fixed operations cannot do.
Each dense class here is the twin of a class of `halation.encoders`: it computes padding too, with the same result.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from halation.data import Features, Projection, Tokens
from halation.encoders import BiGRU, Encoded, GeneralisedPool, Precomputed, SmallTransformer
from halation.similarity import Gaussian

__all__ = ["CELLS", "Backbone", "ImageSide", "TextSide", "dense", "mean_and_log_var"]

CELLS = 49  # of a picture, for graphs that average them into fewer


def dense(module: nn.Module) -> nn.Module:
    """A copy in evaluation mode, with dense twins for all modules that have one."""
    return _with_twins(copy.deepcopy(module)).eval()


def _with_twins(module: nn.Module) -> nn.Module:
    if isinstance(module, Precomputed) and not module.grid:
        return module  # it does not average its cells
    for kind, twin in _TWINS.items():
        if isinstance(module, kind):
            replaced: nn.Module = twin(module)
            return replaced
    for name, child in module.named_children():
        setattr(module, name, _with_twins(child))
    return module


class _PaddedBiGRU(nn.Module):
    """A bidirectional GRU over padded sequences: its backward direction reads each sequence reversed within its length.

    x (B, L, in), mask (B, L) bool, real positions first → states (B, L, h) of each direction, zero at padding.
    """

    def __init__(self, gru: nn.GRU) -> None:
        super().__init__()
        self.forwards, self.backwards = (nn.GRU(gru.input_size, gru.hidden_size, batch_first=True) for _ in range(2))
        weights = gru.state_dict()
        self.forwards.load_state_dict({name: w for name, w in weights.items() if not name.endswith("_reverse")})
        self.backwards.load_state_dict(
            {n.removesuffix("_reverse"): w for n, w in weights.items() if n.endswith("_reverse")}
        )

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        positions = torch.arange(x.shape[1]).unsqueeze(0)
        reversed_order = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - positions, positions).unsqueeze(
            2
        )  # (B, L, 1)
        real = mask.unsqueeze(2)
        forwards: Tensor = self.forwards(x)[0]
        backwards: Tensor = self.backwards(x.gather(1, reversed_order.expand(-1, -1, x.shape[2])))[0]
        backwards = backwards.gather(1, reversed_order.expand(-1, -1, backwards.shape[2]))
        return forwards * real, backwards * real


class _BiGRU(nn.Module):
    """`BiGRU`."""

    def __init__(self, module: BiGRU) -> None:
        super().__init__()
        self.merge, self.variant, self.gru = module.merge, module.variant, _PaddedBiGRU(module.gru)

    def forward(self, local: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if mask is None:
            mask = torch.ones_like(local[:, :, 0], dtype=torch.bool)
        forwards, backwards = self.gru(local, mask)
        at = (mask.sum(dim=1) - 1).view(-1, 1, 1).expand(-1, 1, forwards.shape[2])
        ends = (
            forwards.gather(1, at)[:, 0],
            backwards[:, 0] if self.variant == "paper" else backwards.gather(1, at)[:, 0],
        )
        if self.merge == "mean":
            return (forwards + backwards) / 2, (ends[0] + ends[1]) / 2
        return torch.cat([forwards, backwards], dim=2), torch.cat(ends, dim=1)


class _GeneralisedPool(nn.Module):
    """`GeneralisedPool`, with the weights of the ranks computed for every item instead of once per length."""

    def __init__(self, module: GeneralisedPool) -> None:
        super().__init__()
        self.position_dim, self.gru, self.linear = module.position_dim, _PaddedBiGRU(module.gru), module.linear

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            mask = torch.ones_like(x[:, :, 0], dtype=torch.bool)
        forwards, backwards = self.gru(self._position_codes(mask), mask)
        logits = self.linear((forwards + backwards) / 2).squeeze(2) / 0.1
        weights = logits.masked_fill(~mask, -torch.inf).softmax(dim=1)  # (B, cells)
        descending = x.masked_fill(~mask.unsqueeze(2), -torch.inf).sort(dim=1, descending=True).values
        descending = torch.where(
            mask.unsqueeze(2), descending, torch.zeros_like(descending)
        )  # real cells come first again
        pooled: Tensor = (weights.unsqueeze(1) @ descending).squeeze(1)
        return pooled

    def _position_codes(self, mask: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(0, self.position_dim, 2) * (-math.log(10000.0) / self.position_dim))
        angles = torch.arange(mask.shape[1]).unsqueeze(1) * rates
        positions = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)  # (cells, dim)
        return positions.unsqueeze(0).expand(mask.shape[0], -1, -1)


class _Precomputed(nn.Module):
    """`Precomputed` with a coarser grid, for pictures of `CELLS` cells: the averaging is one matrix product."""

    means: Tensor

    def __init__(self, module: Precomputed) -> None:
        super().__init__()
        one_hot = torch.eye(CELLS).view(1, CELLS, CELLS)
        self.register_buffer("means", module.average_cells(one_hot)[0])  # (grid², cells)

    def forward(self, features: Features) -> Features:
        assert features.local is not None
        return Features(features.pooled, self.means @ features.local)


class _SmallTransformer(nn.Module):
    """`SmallTransformer`, which computes padding too, but never attends to it."""

    def __init__(self, module: SmallTransformer) -> None:
        super().__init__()
        self.table, self.positions, self.blocks, self.norm = module.table, module.positions, module.blocks, module.norm

    def forward(self, tokens: Tokens) -> Features:
        x, mask = self.table(tokens)
        positions = torch.arange(x.shape[1]).clamp(max=self.positions.num_embeddings - 1)
        x = x + self.positions(positions)
        for block in self.blocks:
            x = _block(block, x, mask)
        local = self.norm(x) * mask.unsqueeze(2)
        return Features(local.sum(1) / mask.sum(1, keepdim=True), local, mask)


def _block(block: Any, x: Tensor, mask: Tensor) -> Tensor:
    """One transformer layer: x (B, L, dim), mask (B, L) → (B, L, dim)."""
    batch, length, dim = x.shape
    qkv = block.qkv(block.norm1(x)).view(batch, length, 3, block.heads, dim // block.heads)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # (B, heads, L, dim/heads)
    logits = (q @ k.transpose(2, 3)) / math.sqrt(dim // block.heads)
    weights = logits.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(dim=3)
    x = x + block.out((weights @ v).transpose(1, 2).reshape(batch, length, dim))
    result: Tensor = x + block.mlp(block.norm2(x))
    return result


_TWINS: dict[type[nn.Module], Any] = {
    BiGRU: _BiGRU,
    GeneralisedPool: _GeneralisedPool,
    Precomputed: _Precomputed,
    SmallTransformer: _SmallTransformer,
}


class ImageSide(nn.Module):
    """pixels (B, 3, H, W), or pooled (B, d) and perhaps cells (B, cells, d') → mean, log_var (B, D)."""

    def __init__(self, encoder: nn.Module, on_features: bool) -> None:
        super().__init__()
        self.encoder, self.on_features = dense(encoder), on_features
        self.eval()  # the whole module: the exporter restores its mode afterwards

    def forward(self, pixels: Tensor, cells: Tensor | None = None) -> tuple[Tensor, Tensor]:
        inputs = Features(pixels, cells) if self.on_features else pixels
        return mean_and_log_var(self.encoder(inputs))


class TextSide(nn.Module):
    """ids (B, L) int64, mask (B, L) bool, perhaps sentence (B, 384) → mean, log_var (B, D)."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = dense(encoder)
        self.eval()

    def forward(self, ids: Tensor, mask: Tensor, sentence: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return mean_and_log_var(self.encoder(Tokens(ids, mask, sentence)))


class Backbone(nn.Module):
    """pixels (B, 3, H, W) → features for an image side that takes them: pooled (B, d), and with `cells` (B, cells, d').

    Stored features are rounded to half precision or int8. These are not, because a graph and torch would not always
    round to the same side.
    """

    def __init__(self, network: nn.Module, projection: Projection | None, cells: bool) -> None:
        super().__init__()
        self.network, self.cells = dense(network), cells
        self.projection = None if projection is None else replace(projection, scale=None)
        self.eval()

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        return self.outputs(self.network(pixels))

    def outputs(self, features: Features) -> tuple[Tensor, ...]:
        """The features of the network as the tensors that the image side takes."""
        if not self.cells or features.local is None:
            return (features.pooled,)
        return features.pooled, features.local if self.projection is None else self.projection(features.local)


def mean_and_log_var(gaussian: Encoded) -> tuple[Tensor, Tensor]:
    """Mean and log σ². The variance of a point is 0, so its log σ² is −∞."""
    assert isinstance(gaussian, Gaussian)  # export_onnx refuses other embeddings
    log_var = gaussian.log_var
    return gaussian.mean, torch.full_like(gaussian.mean, -torch.inf) if log_var is None else log_var
