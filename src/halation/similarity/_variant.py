"""A method as its paper has it, or as its authors' code does."""

from __future__ import annotations

from typing import Literal, cast

from halation._errors import one_of

__all__ = ["Variant", "as_variant"]

Variant = Literal["paper", "released"]


def as_variant(value: str) -> Variant:
    """The variant of that name, or an error that suggests the nearest."""
    return cast(Variant, one_of(value, ("paper", "released"), "variant"))
