"""What several tests share: where the team's data lies, seeded generators, a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# no deadlines: machines are shared, and the first call of a kernel compiles it; the same examples in every run
settings.register_profile("halation", deadline=None, derandomize=True)
settings.load_profile("halation")

# these start a server; `make test-services` runs them
collect_ignore = [] if {"HALATION_MILVUS_PYTHON", "HALATION_MILVUS_MISSING"} & os.environ.keys() else ["services"]


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache of sentence embeddings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALATION_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    found = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("browser tests need Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield chromium
        chromium.close()
