"""`gather`: one batch from the parts of all processes, with gradients."""

from __future__ import annotations

from typing import Any, overload

import torch
import torch.distributed as dist
from torch import Tensor

from halation._errors import InputError
from halation._torch import first_derivative_only
from halation.similarity._gaussian import Gaussian

__all__ = ["gather"]

_AXES = 8  # the most axes a part may have
_KINDS = ("a tensor", "a Gaussian", "a Gaussian of points")
_TYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip


@overload
def gather(part: Tensor, group: dist.ProcessGroup | None = None) -> Tensor: ...
@overload
def gather(part: Gaussian, group: dist.ProcessGroup | None = None) -> Gaussian: ...
def gather(part: Tensor | Gaussian, group: dist.ProcessGroup | None = None) -> Tensor | Gaussian:
    """The parts of all processes, concatenated in the order of their ranks: (n_global, …) on every process.

    part (n, …), a tensor or a `Gaussian`. n may differ between processes; the other axes and the type may not, or every
    process gets an error that names the part of each. The backward pass sums the gradients that all processes send to a
    part. So the mean over processes, which DistributedDataParallel takes, is the gradient of one process with the whole
    batch. Without torch.distributed, `gather` returns the part itself.

    >>> gather(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    if not (dist.is_available() and dist.is_initialized()):
        return part
    sizes = _sizes(part, group)
    if isinstance(part, Tensor):
        return _gather(part, sizes, group)
    return Gaussian(
        _gather(part.mean, sizes, group), None if part.log_var is None else _gather(part.log_var, sizes, group)
    )


def _gather(part: Tensor, sizes: list[int], group: dist.ProcessGroup | None) -> Tensor:
    result: Tensor = _Gather.apply(part, sizes, group)  # type: ignore[no-untyped-call]
    return result


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, sizes: list[int], group: dist.ProcessGroup | None) -> Tensor:
        # collectives want equal shapes: pad the shorter parts, cut the padding afterwards
        padded = torch.cat([part, part.new_zeros(max(sizes) - len(part), *part.shape[1:])]).contiguous()
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded, group=group)
        start = sum(sizes[: dist.get_rank(group)])
        ctx.mine, ctx.group = slice(start, start + len(part)), group
        return torch.cat([whole[:size] for whole, size in zip(parts, sizes, strict=True)])

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        total = grad.contiguous().clone()
        dist.all_reduce(total, group=ctx.group)
        return total[ctx.mine], None, None


def _sizes(part: Tensor | Gaussian, group: dist.ProcessGroup | None) -> list[int]:
    """The number of items of each process, after a check that all hold parts that fit together."""
    tensor, kind = (part, 0) if isinstance(part, Tensor) else (part.mean, 1 + part.is_point)
    shape = [*tensor.shape[:_AXES], *[-1] * (_AXES - tensor.ndim)]
    code = _TYPES.index(tensor.dtype) if tensor.dtype in _TYPES else -1
    header = torch.tensor([kind, code, tensor.ndim, *shape], device=tensor.device)
    headers = [torch.empty_like(header) for _ in range(dist.get_world_size(group))]
    dist.all_gather(headers, header, group=group)
    every = [tensor.tolist() for tensor in headers]
    if any(head[:3] != every[0][:3] or head[4:] != every[0][4:] or not 0 < head[2] <= _AXES for head in every):
        held = "; ".join(f"process {rank}: {_describe(head)}" for rank, head in enumerate(every))
        raise InputError(
            f"gather puts parts (n, …) one after the other, so all but n must agree ({held}); "
            "a single number is gathered as x[None]"
        )
    return [head[3] for head in every]


def _describe(head: list[int]) -> str:
    kind, code, axes, *shape = head
    return f"{_KINDS[kind]} {'' if code < 0 else _TYPES[code]} of shape {tuple(shape[:axes])}"
