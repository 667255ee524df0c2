"""Where tensors live in this process."""

from __future__ import annotations

import os

import torch

__all__ = ["current_device"]


def current_device() -> torch.device:
    """This process's accelerator, of those torchrun shares out, or the CPU where there is none."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    if accelerator is None:
        return torch.device("cpu")
    return torch.device(accelerator.type, int(os.environ.get("LOCAL_RANK", "0")))
