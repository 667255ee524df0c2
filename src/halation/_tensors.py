"""Named tensors and arrays in safetensors files: loading executes nothing, arrays may be larger than memory."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from halation._errors import InputError
from halation._storage import publish_file

__all__ = ["Blocks", "load_tensors", "map_arrays", "read_note", "save_tensors", "write_arrays"]

_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_LONGEST_HEADER = 1 << 20

Blocks = tuple[tuple[int, ...], np.dtype[Any], Iterable[npt.NDArray[Any]]]
"""Shape, type and the rows of an array, in order, in pieces of any size."""


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


def write_arrays(path: Path, arrays: Mapping[str, Blocks]) -> None:
    """Write a safetensors file, holding at most one piece in memory."""
    header: dict[str, Any] = {}
    end = 0
    for name, (shape, dtype, _) in arrays.items():
        start, end = end, end + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the data begins at a multiple of eight
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape, dtype, pieces in arrays.values():
            rows = 0
            for piece in pieces:
                assert piece.shape[1:] == shape[1:], f"rows of {piece.shape[1:]} for a shape of {shape}"
                file.write(np.ascontiguousarray(piece, dtype=dtype).data)
                rows += len(piece)
            assert rows == shape[0], f"{rows} rows for a shape of {shape}"


def map_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a safetensors file, mapped into memory: pages are read on use, and writes never reach the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _LONGEST_HEADER + 1
        if length > min(_LONGEST_HEADER, size):
            raise _unreadable(path, "damaged header")
        text = file.read(length)
    try:
        header = json.loads(text)
        return {name: _array(path, 8 + length, size, entry) for name, entry in header.items() if name[:2] != "__"}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unreadable(path, "damaged header") from None


def _array(path: Path, base: int, size: int, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    dtype, shape = _TYPES[entry["dtype"]], tuple(int(n) for n in entry["shape"])
    start, end = (int(offset) for offset in entry["data_offsets"])
    if min(shape, default=0) < 0 or end - start != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
        raise ValueError
    if not 0 <= start <= end <= size - base:
        raise ValueError
    if start == end:
        return np.empty(shape, dtype)  # zero bytes cannot be mapped
    mapped: npt.NDArray[Any] = np.memmap(path, dtype, mode="c", offset=base + start, shape=shape)
    return mapped


def _existing(path: str | os.PathLike[str]) -> Path:
    source = Path(path)
    if not source.is_file():
        if source.is_dir():
            raise InputError("is a folder", path=source, remedy="name a file")
        raise InputError("does not exist", path=source)
    return source


def _unreadable(source: Path, error: object) -> InputError:
    return InputError(f"is not a readable safetensors file ({error}); was it written completely?", path=source)
