"""Shared by all pages of halation: markup, formatted numbers, and the light and dark theme."""

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
