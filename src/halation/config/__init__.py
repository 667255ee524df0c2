"""Recipes: strict TOML → frozen dataclasses."""

from __future__ import annotations

from halation.config._recipe import Recipe
from halation.config._toml import parse_recipe, read_recipe, to_toml

__all__ = ["Recipe", "parse_recipe", "read_recipe", "to_toml"]
