"""What every page of halation is made of: markup, numbers as people read them, colours, light and dark."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from halation._web._markup import Child, Markup, data_block, tag
from halation._web._numbers import figures, percent, plain, signed

__all__ = [
    "SHARED",
    "Child",
    "Markup",
    "data_block",
    "figures",
    "hashed",
    "percent",
    "plain",
    "shared",
    "signed",
    "tag",
]

SHARED = ("palette.css", "theme.js", "icon.svg")


def shared(name: str) -> str:
    """One of the files that pages share."""
    return files("halation._web").joinpath(name).read_text(encoding="utf-8")


def hashed(text: str) -> str:
    """A style or script as a content-security policy names it: this one, and no other.

    >>> hashed("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
