"""A bidirectional GRU over sequences of different lengths."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from halation._errors import InputError, one_of

__all__ = ["BiGRU"]

Merge = Literal["concat", "mean"]
Variant = Literal["paper", "released"]


class BiGRU(nn.Module):
    """One layer of a bidirectional GRU (Cho et al., EMNLP 2014): the state at every position, and the final one.

    `merge="concat"` puts the two directions side by side, each out_dim/2 wide (PCME). `merge="mean"` averages them,
    each out_dim wide (SGRAF). The final state is the one each direction has after reading the whole sequence. With
    `variant="released"` both are taken at the last word, as in the published code of PCME; the backward direction has
    then read that word only. The recurrence always runs in the weights' precision, also under autocast.

    forward: local (B, L, in_dim), mask (B, L) bool, real positions first, or None for all → states (B, L, out_dim),
    zero at padding, and final (B, out_dim).

    >>> gru = BiGRU(4, 6)
    >>> states, final = gru(torch.randn(2, 3, 4), torch.tensor([[True, True, True], [True, False, False]]))
    >>> states.shape, final.shape
    (torch.Size([2, 3, 6]), torch.Size([2, 6]))
    """

    def __init__(self, in_dim: int, out_dim: int, merge: Merge = "concat", variant: Variant = "paper") -> None:
        super().__init__()
        one_of(merge, ("concat", "mean"), "merge")
        one_of(variant, ("paper", "released"), "variant")
        if merge == "concat" and out_dim % 2:
            raise InputError(
                f"out_dim is {out_dim}, which the directions cannot share; use an even one or merge='mean'"
            )
        self.in_dim, self.out_dim, self.merge, self.variant = in_dim, out_dim, merge, variant
        hidden = out_dim // 2 if merge == "concat" else out_dim
        self.gru = nn.GRU(in_dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, local: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """local (B, L, in_dim), mask (B, L) → states (B, L, out_dim), final (B, out_dim)."""
        lengths = _lengths(local, mask)  # (B,), on the host
        with torch.autocast(local.device.type, enabled=False):
            local = local.to(next(self.gru.parameters()).dtype)
            packed = pack_padded_sequence(local, lengths, batch_first=True, enforce_sorted=False)
            states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=local.shape[1])
        last = states[torch.arange(len(states), device=states.device), lengths.to(states.device) - 1]  # (B, 2h)
        if self.variant == "paper":
            h = self.gru.hidden_size
            last = torch.cat([last[:, :h], states[:, 0, h:]], dim=1)
        if self.merge == "concat":
            return states, last
        return _mean_of_halves(states), _mean_of_halves(last)

    def extra_repr(self) -> str:
        return f"in_dim={self.in_dim}, out_dim={self.out_dim}, merge={self.merge!r}, variant={self.variant!r}"


def _mean_of_halves(x: Tensor) -> Tensor:
    forwards, backwards = x.chunk(2, dim=-1)
    return (forwards + backwards) / 2


def _lengths(local: Tensor, mask: Tensor | None) -> Tensor:
    """How many positions of each row are real."""
    if mask is None:
        return torch.full((local.shape[0],), local.shape[1])
    if mask.shape != local.shape[:2]:
        raise InputError(f"mask has shape {tuple(mask.shape)}, but the sequences have {tuple(local.shape[:2])}")
    mask = mask.cpu()
    if not bool(mask[:, 0].all()):
        raise InputError("a sequence without a real first position cannot be read by a GRU; every row needs one")
    if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        raise InputError("mask has real positions after padding; a GRU needs the real ones first")
    return mask.sum(1)
