"""Weights that ship inside a Python package: found without running the package's code, and checked."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from halation._errors import InputError, MissingExtra

__all__ = ["packaged_file"]


def packaged_file(package: str, name: str, sha256: str, what: str) -> Path:
    """The file `name` inside `package`, whose content is the published one; `what` needs it, for the message."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(what, "pretrained")
    path = Path(next(iter(spec.submodule_search_locations))) / name
    if not path.is_file():
        raise InputError(f"does not exist; reinstall the package {package}", path=path)
    with path.open("rb") as file:
        found = hashlib.new("sha256")
        while block := file.read(1 << 20):
            found.update(block)
    if found.hexdigest() != sha256:
        raise InputError(f"is not the published file (its sha256 differs); reinstall the package {package}", path=path)
    return path
