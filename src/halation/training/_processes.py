"""One process, or several started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

__all__ = ["Processes", "processes"]


@dataclass(frozen=True)
class Processes:
    """Which process this is, of how many, and the device of its tensors."""

    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this is the process that writes."""
        return self.rank == 0

    def wrap(self, objective: nn.Module) -> nn.Module:
        """The objective, with gradients averaged over the processes if there are several."""
        if self.world == 1:
            return objective
        on_accelerator = self.device.type != "cpu"
        return nn.parallel.DistributedDataParallel(
            objective,
            device_ids=[self.device.index] if on_accelerator else None,
            broadcast_buffers=True,
            # every step reaches the same parameters, but not always all: a head that pools local features does not
            # use the backbone's pooled one
            static_graph=True,
        )

    def same(self, value: Any) -> Any:
        """The first process's value, on all of them."""
        if self.world == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]


@contextmanager
def processes() -> Iterator[Processes]:
    """Join the processes that torchrun started, if it did, and leave them at the end."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    local = int(os.environ.get("LOCAL_RANK", "0"))
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    device = torch.device("cpu") if accelerator is None else torch.device(accelerator.type, local)
    if world == 1:
        yield Processes(0, 1, device)
        return
    if accelerator is not None:
        torch.accelerator.set_device_index(local)
    dist.init_process_group("gloo" if accelerator is None else None)
    try:
        yield Processes(dist.get_rank(), world, device)
    finally:
        dist.destroy_process_group()
