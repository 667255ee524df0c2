"""What training changes: weights, optimiser, averaged weights; and how they are packed into a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from halation._errors import InputError
from halation.training._adamp import AdamP
from halation.training._objective import Objective
from halation.training._settings import Settings

__all__ = ["Learner", "layer_groups"]

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adamw": torch.optim.AdamW, "adamp": AdamP}


class Learner:
    """The optimiser of an objective's weights, and their moving average."""

    def __init__(self, objective: Objective, settings: Settings, steps: int) -> None:
        self.objective, self.settings, self.steps = objective, settings, steps
        self.optimizer = _OPTIMIZERS[settings.optimizer](
            _groups(objective, settings), lr=settings.lr, weight_decay=settings.weight_decay
        )
        self.rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        self.weights = [p for p in objective.parameters() if p.requires_grad]
        self.average = [p.detach().clone() for p in self.weights] if settings.ema else []
        self.updates = 0

    def update(self) -> float:
        """Step the optimiser; the norm of the gradient before clipping."""
        share = self.settings.rate(self.updates, self.steps)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * share
        norm = nn.utils.clip_grad_norm_(self.weights, self.settings.clip or float("inf"))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1
        if self.average:
            decay = min(self.settings.ema, (1 + self.updates) / (10 + self.updates))  # young averages forget faster
            for average, weight in zip(self.average, self.weights, strict=True):
                average.lerp_(weight.detach(), 1 - decay)
        return float(norm)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The averaged weights in place of the current ones, if there are any."""
        current = [p.detach().clone() for p in self.weights] if self.average else []
        self._put(self.average)
        try:
            yield
        finally:
            self._put(current)

    @torch.no_grad()
    def _put(self, values: list[Tensor]) -> None:
        for weight, value in zip(self.weights if values else [], values, strict=True):
            weight.copy_(value)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes, by name; frozen weights are left out."""
        packed = {f"weights.{name}": p for name, p in self._changing().items()}
        packed |= {f"average.{number}": value for number, value in enumerate(self.average)}
        for number, state in self.optimizer.state_dict()["state"].items():
            packed |= {f"optimizer.{number}.{key}": torch.as_tensor(value) for key, value in state.items()}
        return packed

    @torch.no_grad()
    def restore(self, packed: dict[str, Tensor], updates: int) -> None:
        """Put everything back as it was when `tensors` packed it."""
        weights = self._changing()
        named = {name.removeprefix("weights."): value for name, value in packed.items() if name.startswith("weights.")}
        averages = sum(name.startswith("average.") for name in packed)
        shapes = {name: tuple(value.shape) for name, value in named.items()}
        if shapes != {name: tuple(p.shape) for name, p in weights.items()} or averages != len(self.average):
            raise InputError("the checkpoint is of another model or other settings", remedy="train into another folder")
        for name, value in named.items():
            weights[name].copy_(value)
        for number, average in enumerate(self.average):
            average.copy_(packed[f"average.{number}"])
        self._restore_optimizer(packed)
        self.updates = updates

    def _restore_optimizer(self, packed: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Any]] = {}
        for name, value in packed.items():
            if name.startswith("optimizer."):
                _, number, key = name.split(".", 2)
                state.setdefault(int(number), {})[key] = value
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})

    def _changing(self) -> dict[str, Tensor]:
        named = {name: p.detach() for name, p in self.objective.named_parameters() if p.requires_grad}
        return named | dict(self.objective.named_buffers())


def _groups(objective: Objective, settings: Settings) -> list[dict[str, Any]]:
    """Backbones at their own rates, layer by layer; everything else at the full one; no decay of vectors."""
    groups: list[dict[str, Any]] = []
    for side in (objective.model.image, objective.model.text):
        backbone = getattr(side, "backbone", None)
        if backbone is not None and hasattr(backbone, "layers"):
            groups += layer_groups(backbone, settings.lr * settings.backbone_lr, settings.layer_decay)
    taken = {id(p) for group in groups for p in group["params"]}
    rest = [p for p in objective.parameters() if p.requires_grad and id(p) not in taken]
    groups.append({"params": rest, "lr": settings.lr})
    split = []
    for group in groups:
        matrices = [p for p in group["params"] if p.ndim > 1]
        vectors = [p for p in group["params"] if p.ndim <= 1]
        split += [{"params": matrices, "lr": group["lr"]}] if matrices else []
        split += [{"params": vectors, "lr": group["lr"], "weight_decay": 0.0}] if vectors else []
    return split


class _Layered(Protocol):
    def layers(self) -> list[nn.Module]: ...
    def named_parameters(self) -> Any: ...


def layer_groups(backbone: _Layered, lr: float, decay: float = 1.0) -> list[dict[str, Any]]:
    """Groups for an optimiser: the last layer learns at `lr`, each earlier one at `decay` times the next one's rate.

        lr_k = lr · decay^(K − k),   k = 1 … K from the input to the output

    Layer-wise decay as in Howard and Ruder (ACL 2018). What is frozen is left out; a parameter that `layers()` does not
    name learns at `lr`.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    >>> net.layers = lambda: list(net)
    >>> [group["lr"] for group in layer_groups(net, 0.1, decay=0.5)]
    [0.05, 0.1]
    """
    if not lr > 0 or not 0 < decay <= 1:
        raise InputError(f"lr must be above 0 and decay in (0, 1], not {lr} and {decay}")
    layers = backbone.layers()
    rest = {id(p): p for _, p in backbone.named_parameters() if p.requires_grad}
    groups: list[dict[str, Any]] = []
    for depth, layer in enumerate(layers):
        params = [rest.pop(id(p)) for p in layer.parameters() if id(p) in rest]  # a shared one belongs to the earliest
        if params:
            groups.append({"params": params, "lr": lr * decay ** (len(layers) - 1 - depth)})
    if rest:
        groups.append({"params": list(rest.values()), "lr": lr})
    return groups
