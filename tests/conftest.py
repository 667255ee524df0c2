"""What several tests share: where the team's data lies, and seeded generators."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# no deadlines: machines are shared, and the first call of a kernel compiles it; the same examples in every run
settings.register_profile("halation", deadline=None, derandomize=True)
settings.load_profile("halation")

# these start a server; `make test-services` runs them
collect_ignore = [] if {"HALATION_MILVUS_PYTHON", "HALATION_MILVUS_MISSING"} & os.environ.keys() else ["services"]

SHARED = Path(__file__).resolve().parents[2] / "shared"


def _shared(folder: str) -> Path:
    path = SHARED / folder
    if not path.is_dir():
        reason = f"needs the team's shared/{folder} beside the project, which is not here"
        if os.environ.get("HALATION_REQUIRE_SHARED"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def shared_golden() -> Path:
    """Outputs of the published implementations on fixed inputs."""
    return _shared("golden")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real captions, annotations and features."""
    return _shared("data")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20221128)
