"""Named tensors on disk as safetensors: loading executes nothing, saving leaves no half-written file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from halation._errors import InputError
from halation._files import atomic_path

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor]) -> None:
    """Write `tensors` to a safetensors file."""
    # safetensors refuses views that share storage: contiguous copies on the CPU are what a file holds anyway
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with atomic_path(path) as temporary:
        save_file(plain, temporary)


def load_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """All tensors of a safetensors file, on the CPU."""
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source} {'is a folder; name a file' if source.is_dir() else 'does not exist'}")
    try:
        return dict(load_file(source))
    except (SafetensorError, OSError) as error:
        raise InputError(f"{source} is not a readable safetensors file ({error}); was it written completely?") from None
