"""A small drawn world, two untrained runs and their report; small runs of every kind to explain: each made once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import torch
from PIL import Image

from halation.data import Dataset, draw_scenes, read_scenes
from halation.report import Facts, gather_facts, write_page
from layouts import draw
from runs import write_run

KINDS: dict[str, tuple[str, ...]] = {
    "pcme": (),
    "pcme csd": ("model.similarity=csd",),
    "pcme words": ("text.backbone=pooled_words",),
    "pcme++": ("model.head=pcmepp", "model.source=local", "model.pool=gpo"),
    "pcme++ wasserstein": ("model.head=pcmepp", "model.similarity=wasserstein2"),
    "point": ("model.head=point",),
    "point attended": ("model.head=point", "model.source=attended", "model.heads=2"),
    "transformer": ("text.backbone=small_transformer", "text.heads=2"),
    "pvse": ("model.head=pvse",),
    "sgr": ("model.head=sgr", "model.sim_dim=4"),
    "saf": ("model.head=saf", "model.sim_dim=4"),
    "sgraf": ("model.head=sgraf", "model.sim_dim=4"),
    "soft contrastive": ("loss.soft_contrastive.weight=1.0", "loss.soft_contrastive.scale=2.0"),
}
TEXT = "a red dog, on the grass zzz"


@contextmanager
def principal_maps() -> Iterator[None]:
    """Maps by principal components, whether UMAP is installed or not: it takes many seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "umap", None)
        yield


@pytest.fixture(scope="module", autouse=True)
def maps(request: pytest.FixtureRequest) -> Iterator[None]:
    """By principal components in every file of this folder but the one about UMAP."""
    with nullcontext() if request.module.__name__.endswith("test_umap") else principal_maps():
        yield


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "scenes"
    draw_scenes(folder, train=2, dev=2, test=40, seed=5)
    return folder


@pytest.fixture(scope="session")
def runs(world: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    torch.manual_seed(7)
    folder, captions = tmp_path_factory.mktemp("runs"), read_scenes(world, "test").captions
    history = (
        '{"step": 0, "epoch": 0, "loss": 3.5, "infonce": 3.5}\n{"step": 9, "epoch": 0, "loss": NaN, "infonce": 2.5}\n'
    )
    history += '{"epoch": 0, "train": {"loss": 3.0}, "dev": {"R@1 i2t": 4.0, "rsum": 60.5}, "selected": true}\n'
    runs = [write_run(folder / name, captions=captions) for name in ("newer", "older")]
    (runs[0] / "metrics.jsonl").write_text(history, encoding="utf-8")
    return runs[0], runs[1]


@pytest.fixture(scope="session")
def gathered(world: Path, runs: tuple[Path, Path]) -> tuple[Facts, Dataset]:
    with principal_maps():
        return gather_facts(runs[0], world, against=runs[1], queries=40)


@pytest.fixture(scope="session")
def written(gathered: tuple[Facts, Dataset], tmp_path_factory: pytest.TempPathFactory) -> Path:
    facts, dataset = gathered
    return write_page(facts, dataset.photos, tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`run_of(kind)`: the folder of a run of that kind, written once."""
    folder, made = tmp_path_factory.mktemp("explained"), dict[str, Path]()

    def run(kind: str) -> Path:
        if kind not in made:
            made[kind] = write_run(folder / kind.replace(" ", "_"), *KINDS[kind])
        return made[kind]

    return run


@pytest.fixture(scope="session")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("pictures") / "p5.png", 5)


@pytest.fixture
def opened(picture: Path) -> Image.Image:
    with Image.open(picture) as image:
        return image.convert("RGB")
