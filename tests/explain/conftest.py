"""Small runs of every kind, and a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

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
    "gist": ("model.gist=4",),
    "soft contrastive": ("loss.soft_contrastive.weight=1.0", "loss.soft_contrastive.scale=2.0"),
}
TEXT = "a red dog, on the grass zzz"


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
