"""Arrays in a safetensors file: written row block by row block, read without being copied into memory."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from halation._errors import InputError

__all__ = ["Blocks", "read_mapped", "write_arrays"]

_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_LONGEST_HEADER = 1 << 20

Blocks = tuple[tuple[int, ...], np.dtype[Any], Iterable[npt.NDArray[Any]]]
"""Shape, type and the rows of an array, in order, in pieces of any size."""


def write_arrays(path: Path, arrays: Mapping[str, Blocks]) -> None:
    """Write a safetensors file without ever holding more than one piece in memory."""
    header: dict[str, Any] = {}
    end = 0
    for name, (shape, dtype, _) in arrays.items():
        start, end = end, end + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        header[name] = {"dtype": _NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # what follows lies on a multiple of eight
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape, dtype, pieces in arrays.values():
            rows = 0
            for piece in pieces:
                assert piece.shape[1:] == shape[1:], f"rows of {piece.shape[1:]} for a shape of {shape}"
                file.write(np.ascontiguousarray(piece, dtype=dtype).data)
                rows += len(piece)
            assert rows == shape[0], f"{rows} rows for a shape of {shape}"


def read_mapped(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a safetensors file, mapped into memory: a page is read when touched, no write reaches the file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else _LONGEST_HEADER + 1
        if length > min(_LONGEST_HEADER, size):
            raise _damaged(path)
        text = file.read(length)
    try:
        header = json.loads(text)
        return {name: _array(path, 8 + length, size, entry) for name, entry in header.items() if name[:2] != "__"}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(path) from None


def _array(path: Path, base: int, size: int, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    dtype, shape = _TYPES[entry["dtype"]], tuple(int(n) for n in entry["shape"])
    start, end = (int(place) for place in entry["data_offsets"])
    if min(shape, default=0) < 0 or end - start != int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
        raise ValueError
    if not 0 <= start <= end <= size - base:
        raise ValueError
    if start == end:
        return np.empty(shape, dtype)  # nothing cannot be mapped
    mapped: npt.NDArray[Any] = np.memmap(path, dtype, mode="c", offset=base + start, shape=shape)
    return mapped


def _damaged(path: Path) -> InputError:
    return InputError("is not a readable safetensors file; was it written completely?", path=path)
