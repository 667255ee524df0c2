"""A real Milvus server for the tests of this folder, which `make test-services` runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from standalone import MISSING, PYTHON, Standalone


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A standalone server, stopped and cleaned up at the end."""
    if PYTHON not in os.environ:
        pytest.skip(os.environ.get(MISSING) or "needs a Milvus server: make test-services")
    server = Standalone(tmp_path_factory.mktemp("milvus") / "server")
    try:
        server.start()
        yield server
    finally:
        server.remove()
