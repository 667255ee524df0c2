"""A folder that appears whole, or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from halation._errors import InputError

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(out: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder beside `out` that takes its place when the block ends well, and is removed when it does not."""
    target = Path(out)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is there already; name a new or empty folder")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}"
    partial.mkdir()
    try:
        yield partial
        if target.exists():
            target.rmdir()
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
