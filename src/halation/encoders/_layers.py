"""Smaller steps for the layers that were there before."""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn

from halation._errors import InputError

__all__ = ["layer_groups"]


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
