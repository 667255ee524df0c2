"""Backbones that may be kept as they are."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

__all__ = ["Freezable"]

Self = TypeVar("Self", bound="Freezable")


class Freezable(nn.Module):
    """A module that with `trainable=False` has no gradients and stays in evaluation mode whatever `train` says."""

    trainable: bool = True

    def freeze(self) -> None:
        """From now on nothing here learns."""
        self.trainable = False
        self.requires_grad_(False)
        self.eval()

    def train(self: Self, mode: bool = True) -> Self:
        """As any module, but a frozen one stays as it is."""
        super().train(mode and self.trainable)
        return self

    def learning(self) -> torch.set_grad_enabled:
        """A context for `forward`: gradients only where something learns."""
        return torch.set_grad_enabled(self.trainable and torch.is_grad_enabled())
