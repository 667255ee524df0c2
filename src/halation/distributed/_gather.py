"""One batch from the parts of all processes, through which gradients flow back."""

from __future__ import annotations

from typing import Any, overload

import torch
import torch.distributed as dist
from torch import Tensor

from halation.gaussian import Gaussian

__all__ = ["gather"]


@overload
def gather(part: Tensor, group: dist.ProcessGroup | None = None) -> Tensor: ...
@overload
def gather(part: Gaussian, group: dist.ProcessGroup | None = None) -> Gaussian: ...
def gather(part: Tensor | Gaussian, group: dist.ProcessGroup | None = None) -> Tensor | Gaussian:
    """The parts of all processes, one after the other in the order of their ranks: (n_global, …) on every process.

    part (n, …), a tensor or a `Gaussian`; n may differ between processes, the other axes may not. The backward pass
    sums what all processes send to a part, so a mean over processes, as DistributedDataParallel takes, gives the
    gradient of one process with the whole batch. Without torch.distributed it returns the part itself.

    >>> gather(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if not (dist.is_available() and dist.is_initialized()):
        return part
    if isinstance(part, Gaussian):
        return Gaussian(gather(part.mean, group), None if part.log_var is None else gather(part.log_var, group))
    result: Tensor = _Gather.apply(part, group)  # type: ignore[no-untyped-call]
    return result


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        sizes = _sizes(part, group)
        largest = max(sizes)
        # collectives want equal shapes: pad the shorter parts, cut the padding afterwards
        padded = torch.cat([part, part.new_zeros(largest - len(part), *part.shape[1:])]).contiguous()
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded, group=group)
        start = sum(sizes[: dist.get_rank(group)])
        ctx.mine, ctx.group = slice(start, start + len(part)), group
        return torch.cat([whole[:size] for whole, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        total = grad.contiguous().clone()
        dist.all_reduce(total, group=ctx.group)
        return total[ctx.mine], None


def _sizes(part: Tensor, group: dist.ProcessGroup | None) -> list[int]:
    own = torch.tensor([len(part)], device=part.device)
    sizes = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(sizes, own, group=group)
    return [int(size) for size in sizes]
