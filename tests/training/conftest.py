"""A small world to train on."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlds import RECIPE, write_world


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small dataset with features."""
    return write_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def recipe_text() -> str:
    """A recipe for the small world: three epochs in a second."""
    return RECIPE
