"""AdamP: AdamW that does not let weights grow for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from halation._errors import InputError

__all__ = ["AdamP"]


class AdamP(torch.optim.Optimizer):
    """Adam with decoupled weight decay, less the part of each step that only lengthens a scale-invariant weight.

    Heo et al., ICLR 2021. Where gradient and weight are nearly at right angles, |cos(g, w)| < δ/√d for every row of the
    tensor, or for the tensor as a whole, the weight is taken as scale-invariant: the step's component along w is taken
    out, and its decay multiplied by `wd_ratio`. Vectors (biases) are left to AdamW.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        delta: float = 0.1,
        wd_ratio: float = 0.1,
    ) -> None:
        if lr < 0 or weight_decay < 0 or not all(0 <= beta < 1 for beta in betas):
            raise InputError(
                f"AdamP: lr {lr} and weight_decay {weight_decay} must be 0 or more, betas {betas} in [0, 1)"
            )
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "delta": delta, "wd_ratio": wd_ratio,
        }  # fmt: skip
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._update(weight, weight.grad, group)
        return loss

    def _update(self, weight: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        state["step"] += 1
        count, (beta1, beta2) = float(state["step"]), group["betas"]
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = (state["exp_avg_sq"] / (1 - beta2**count)).sqrt_().add_(group["eps"])
        move = (state["exp_avg"] / (1 - beta1**count)) / scale
        ratio = 1.0
        if weight.ndim > 1:
            move, ratio = _projected(weight, grad, move, group["delta"], group["wd_ratio"], group["eps"])
        if group["weight_decay"]:
            weight.mul_(1 - group["lr"] * group["weight_decay"] * ratio)
        weight.sub_(move, alpha=group["lr"])


def _projected(
    weight: Tensor, grad: Tensor, move: Tensor, delta: float, wd_ratio: float, eps: float
) -> tuple[Tensor, float]:
    for rows in (len(weight), 1):  # channel by channel, then the layer as a whole
        w, g, m = (x.reshape(rows, -1) for x in (weight, grad, move))
        if cosine_similarity(g, w, dim=1, eps=eps).abs().max() < delta / math.sqrt(w.shape[1]):
            along = w / w.norm(dim=1, keepdim=True).add(eps)
            return (m - along * (along * m).sum(dim=1, keepdim=True)).view_as(move), wd_ratio
    return move, 1.0
