"""A small world of drawn scenes, and a client of an application over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from halation.data import draw_scenes
from halation.serve import ServeSettings, create_app
from serving import Client, WordSearch, scenes
from serving_process import Server, write_index


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "scenes"
    draw_scenes(folder, train=1, dev=1, test=60, seed=3)
    return folder


@pytest.fixture
def search(drawn: Path) -> WordSearch:
    return scenes(drawn)


@pytest.fixture
def client(search: WordSearch) -> Iterator[Client]:
    """`client(rate=3, …)`: a client of an application with these settings, over `search` (or another)."""
    opened: list[TestClient] = []

    def make(over: Any = None, **settings: Any) -> TestClient:
        app = create_app(
            search if over is None else over, settings=ServeSettings(**{"rate": 0.0, "explain_rate": 0.0, **settings})
        )
        opened.append(TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False))
        return opened[-1].__enter__()

    yield make
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture(scope="session")
def server(drawn: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A process that serves the drawn scenes."""
    running = Server(write_index(tmp_path_factory.mktemp("served"), drawn))
    yield running
    running.close()
