"""Named tensors on disk as safetensors: loading executes nothing, saving leaves no half-written file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from halation._errors import InputError
from halation._storage import publish_file

__all__ = ["load_tensors", "read_note", "save_tensors"]


def save_tensors(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], note: str | None = None) -> None:
    """Write `tensors` to a safetensors file, with a note (a text of any form) in its header."""
    # safetensors refuses views that share storage: contiguous copies on the CPU are what a file holds anyway
    plain = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with publish_file(path) as temporary:
        try:
            save_file(plain, temporary, metadata=None if note is None else {"note": note})
        except SafetensorError as error:  # "I/O error: No space left on device (os error 28)"
            raise InputError(f"could not be written ({error}); what was there before is untouched", path=path) from None


def load_tensors(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """All tensors of a safetensors file, on the CPU."""
    source = _existing(path)
    try:
        return dict(load_file(source))
    except (SafetensorError, OSError) as error:
        raise _unreadable(source, error) from None


def read_note(path: str | os.PathLike[str]) -> str | None:
    """The note `save_tensors` wrote, or None."""
    source = _existing(path)
    try:
        with safe_open(source, framework="pt") as file:
            return (file.metadata() or {}).get("note")
    except (SafetensorError, OSError) as error:
        raise _unreadable(source, error) from None


def _existing(path: str | os.PathLike[str]) -> Path:
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{'is a folder; name a file' if source.is_dir() else 'does not exist'}", path=source)
    return source


def _unreadable(source: Path, error: Exception) -> InputError:
    return InputError(f"is not a readable safetensors file ({error}); was it written completely?", path=source)
