"""What every page of halation is made of: markup, numbers as people read them, colours, light and dark."""

from __future__ import annotations

from halation._web._document import SHARED, csp_hash, document, shared
from halation._web._markup import Child, Markup, data_block, tag
from halation._web._text import percent, plain, sentence, signed, significant

__all__ = [
    "SHARED",
    "Child",
    "Markup",
    "csp_hash",
    "data_block",
    "document",
    "percent",
    "plain",
    "sentence",
    "shared",
    "signed",
    "significant",
    "tag",
]
