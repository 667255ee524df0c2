"""A bidirectional GRU over ragged sequences, with a backward pass made for a CPU."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from halation._errors import InputError, one_of

__all__ = ["BiGRU"]

Merge = Literal["concat", "mean"]
Variant = Literal["paper", "released"]


class BiGRU(nn.Module):
    """One layer of a bidirectional GRU (Cho et al., EMNLP 2014): the state at every position, and the final one.

    `merge="concat"`: each direction has out_dim/2 and they stand side by side (PCME); `"mean"`: each has out_dim and
    they are averaged (SGRAF). The final state is that of each direction after its whole reading;
    `variant="released"` reads both at the last word, where the backward direction has seen that word alone, as the
    published code of PCME does.

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
            raise InputError(f"out_dim is {out_dim}, which two directions cannot share; take an even one or merge=mean")
        self.in_dim, self.out_dim, self.merge, self.variant = in_dim, out_dim, merge, variant
        hidden = out_dim // 2 if merge == "concat" else out_dim
        self.gru = nn.GRU(in_dim, hidden, batch_first=True, bidirectional=True)  # keeps the usual names of the weights

    def forward(self, local: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """local (B, L, in_dim), mask (B, L) → states (B, L, out_dim), final (B, out_dim)."""
        lengths = _lengths(local, mask)  # (B,), on the host
        packed = pack_padded_sequence(local, lengths, batch_first=True, enforce_sorted=False)
        fused = torch.backends.cudnn.is_acceptable(local)  # type: ignore[no-untyped-call]
        ran = self.gru(packed)[0] if fused else _run(self.gru, packed)
        states, _ = pad_packed_sequence(ran, batch_first=True, total_length=local.shape[1])  # (B, L, 2h)
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


def _run(gru: nn.GRU, packed: PackedSequence) -> PackedSequence:
    """Both directions over packed sequences, (positions, in) → (positions, 2h)."""
    counts = packed.batch_sizes.tolist()  # sequences that reach step t, falling
    starts = [0]
    for count in counts:
        starts.append(starts[-1] + count)
    spans = list(zip(starts, counts, strict=False))
    ran = [
        _one_direction(packed.data, spans[::step], *(getattr(gru, f"{name}_l0{suffix}") for name in _WEIGHTS))
        for step, suffix in ((1, ""), (-1, "_reverse"))
    ]
    return PackedSequence(torch.cat(ran, 1), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _one_direction(
    x: Tensor, spans: list[tuple[int, int]], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> Tensor:
    """What the input says to the gates at all steps at once, then the recurrence in the weights' precision."""
    gates = nn.functional.linear(x, w_ih, b_ih).to(w_hh.dtype)  # (positions, 3h)
    states: Tensor = _Recurrence.apply(gates, w_hh, b_hh, spans)  # type: ignore[no-untyped-call]
    return states


class _Recurrence(torch.autograd.Function):
    """h ← n + z (h − n), with r, z = σ(·) and n = tanh(gates_n + r · (W h + b)_n), over spans of packed rows.

    The gradient of the weights is one product over all steps, where autograd would add up one per step.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, spans: list[tuple[int, int]]) -> Tensor:
        h = weight.shape[1]
        before = gates.new_zeros(len(gates), h)  # the state each step starts from
        states = torch.empty_like(before)
        inner = torch.empty_like(gates)  # W h + b
        acts = torch.empty_like(gates)  # r, z, n
        last = gates.new_zeros(max(count for _, count in spans), h)
        with torch.autocast(gates.device.type, enabled=False):
            for start, count in spans:
                rows = slice(start, start + count)
                held = before[rows].copy_(last[:count])
                inside = torch.addmm(bias, held, weight.t(), out=inner[rows])
                rz = torch.add(gates[rows, : 2 * h], inside[:, : 2 * h], out=acts[rows, : 2 * h]).sigmoid_()
                new = torch.addcmul(gates[rows, 2 * h :], rz[:, :h], inside[:, 2 * h :], out=acts[rows, 2 * h :])
                torch.lerp(new.tanh_(), held, rz[:, h:], out=states[rows])
                last[:count] = states[rows]  # a sequence that begins later (reading backwards) still has zeros there
        ctx.spans = spans
        ctx.save_for_backward(before, inner[:, 2 * h :], acts, weight)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        before, inner_n, acts, weight = ctx.saved_tensors
        r, z, n = acts.unflatten(1, (3, -1)).unbind(1)  # (positions, h)
        slopes = acts.new_empty(len(acts), 3, acts.shape[1] // 3)  # of W h + b's three parts in the new state
        to_n = (1 - z) * (1 - n * n)
        torch.mul(to_n, r, out=slopes[:, 2])
        torch.mul(slopes[:, 2], inner_n * (1 - r), out=slopes[:, 0])
        torch.mul(z * (1 - z), before - n, out=slopes[:, 1])
        total = grad.contiguous().clone()  # by and by, the gradient of each state, later steps included
        with torch.autocast(grad.device.type, enabled=False):
            for i in range(len(ctx.spans) - 1, -1, -1):
                start, count = ctx.spans[i]
                rows = slice(start, start + count)
                here = total[rows]
                slopes[rows] *= here[:, None, :]
                if i:
                    earlier, among = ctx.spans[i - 1]
                    carried = torch.addmm(here * z[rows], slopes[rows].flatten(1), weight)
                    both = min(count, among)
                    total[earlier : earlier + both] += carried[:both]
            inside = slopes.flatten(1)
            to_weight = inside.t() @ before
        to_bias = inside.sum(0)
        return torch.cat([inside[:, : 2 * z.shape[1]], total * to_n], 1), to_weight, to_bias, None
