"""The folder in which the pages' blocks run: drawn pictures, a model trained for seconds, an index of what it sees.

Every page gets a copy of its own. The names a page takes for granted ("scores", "truth", …) are in NAMES.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from doc_blocks import ROOT
from doc_commands import SMALL
from halation.data import draw_scenes
from halation.search import calibrate_run, embed, make_index
from halation.training import read_recipe, train
from layouts import (
    draw,
    write_coco_ids,
    write_features,
    write_flickr8k,
    write_judged_coco,
    write_judgements,
    write_karpathy,
)
from worlds import sample_scores, sample_truth

SHARED = ROOT.parent / "shared"


def write_world(root: Path) -> Path:
    """scenes/, path/to/flickr8k (the same with features), photos/, lists, runs/pcme, demo/index, scores."""
    draw_scenes(root / "scenes", train=64, dev=48, test=24)
    _write_flickr8k(root / "scenes", root / "path" / "to" / "flickr8k")
    (root / "flickr8k").symlink_to("path/to/flickr8k")
    (root / "path" / "to" / "data").symlink_to("../../scenes")
    (root / "path" / "to" / "pictures").symlink_to("../../photos")
    for number in range(8):
        draw(root / "photos" / f"p{number:02d}.png", number)
    _write_lists(root)
    recipe = read_recipe("scenes_pcme", [*SMALL, "train.epochs=2", "image.size=32", "data.dev_images=12"])
    train(recipe, root / "scenes", root / "runs" / "pcme")
    calibrate_run(root / "runs" / "pcme", root / "scenes")
    made = embed(root / "runs" / "pcme", root / "scenes", root / "demo" / "embeddings", split="test")
    make_index(made, root / "demo" / "index")
    _write_scores(root)
    return root


def copy_world(world: Path, target: Path) -> Path:
    """The same in another place; pictures are never written to, so they are linked."""
    shutil.copytree(world, target, symlinks=True)
    return target


def _write_flickr8k(scenes: Path, folder: Path) -> None:
    """Not Flickr8k, but as good: every layout opens alike, and the features lie where its recipes look for them."""
    shutil.copytree(scenes, folder)
    write_features(folder)


def _write_lists(root: Path) -> None:
    (root / "list.jsonl").write_text(json.dumps({"image": "p01.png", "captions": ["a dog"]}), encoding="utf-8")
    (root / "captions.txt").write_text("a red circle\na blue star\n", encoding="utf-8")
    (root / "shards").mkdir()
    with tarfile.open(root / "shards" / "0.tar", "w") as tar:
        tar.add(root / "photos" / "p01.png", "1.png")


def _write_scores(root: Path) -> None:
    truth = sample_truth(30)
    assert truth.captions is not None and truth.image_of is not None
    rows = [
        {"image": f"{image}.jpg", "captions": [truth.captions[k] for k in np.flatnonzero(truth.image_of == image)]}
        for image in range(truth.n_images)
    ]
    (root / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, noise in (("a", 0.8), ("b", 0.4)):
        np.save(root / f"scores_{name}.npy", sample_scores(truth, noise, seed=1))


def _measured() -> dict[str, Any]:
    import torch

    import halation

    truth = sample_truth(20)
    scores = sample_scores(truth, 0.5, seed=0)
    captions, image_of = truth.captions, truth.image_of
    assert captions is not None and image_of is not None
    draw_from = torch.Generator().manual_seed(0)
    images, texts = (torch.randn(n, 8, generator=draw_from) for n in (20, 100))
    spread = [torch.full(part.shape, -3.0) for part in (images, texts)]
    return {
        "halation": halation, "np": np, "truth": truth, "scores": scores, "captions": captions, "image_of": image_of,
        "image_vectors": images.numpy(), "caption_vectors": texts.numpy(),
        "g_images": halation.Gaussian(images, spread[0]), "g_captions": halation.Gaussian(texts, spread[1]),
        "relevance": halation.caption_relevance(captions, image_of), "relevant": truth.positives("i2t"),
    }  # fmt: skip


def _measuring() -> dict[str, Any]:
    found = _measured()
    classes = np.arange(20) % 4
    return found | {
        "train_captions": found["captions"], "train_image_of": found["image_of"], "labels": classes,
        "batch_images": np.arange(4), "batch_captions": np.arange(0, 20, 5), "path": "captions.jsonl",
        "matrix": found["relevance"],
    }  # fmt: skip


def _loop() -> dict[str, Any]:
    """What a training loop of one's own has."""
    import torch

    import halation

    drawn = torch.Generator().manual_seed(0)
    images = torch.randn(6, 8, generator=drawn, requires_grad=True)
    captions = torch.randn(6, 8, generator=drawn)

    class MyModel:
        def similarity(self, *_: object) -> torch.Tensor:
            return torch.nn.functional.normalize(images) @ torch.nn.functional.normalize(captions).T

    return {
        "halation": halation, "torch": torch, "my_model": MyModel(), "images": images, "captions": captions,
        "relevance": torch.rand(6, 6, generator=drawn), "my_loss": (images**2).mean(),
    }  # fmt: skip


def _trusted() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    own = np.repeat(np.arange(60), 2)
    places = generator.normal(size=(60, 6))
    asked = places[own] + 0.5 * generator.normal(size=(120, 6))
    scores = -((asked[:, None] - places[None]) ** 2).sum(axis=2)
    return {
        "scores": scores[0], "all_scores": scores,
        "truth": own[:, None] == np.arange(60), "query_image": own, "item_image": np.arange(60),
        "uncertainty": np.full(120, 0.5), "best_scores": np.sort(scores[0])[::-1], "sigma": 0.06,
    }  # fmt: skip


def _second_run(root: Path) -> None:
    shutil.copytree(root / "runs" / "pcme", root / "runs" / "pcme_daa")


def _coco(root: Path) -> None:
    write_karpathy(root / "path" / "to" / "coco", "coco")


def _coco_ids(root: Path) -> None:
    """The real test split where it is, else ids of it."""
    wanted, real = root / "path" / "to" / "coco_test.jsonl", SHARED / "data" / "coco_eval" / "karpathy_test5k.jsonl"
    if real.is_file():
        wanted.symlink_to(real)
    else:
        write_coco_ids(wanted)


def _judged(root: Path) -> None:
    """COCO's and Flickr8k's folders, with what people said of them."""
    write_judged_coco(root / "path" / "to" / "coco")
    shutil.rmtree(root / "path" / "to" / "flickr8k")
    write_features(
        write_judgements(write_flickr8k(root / "path" / "to" / "flickr8k", {"train": 60, "dev": 8, "test": 12}))
    )


def _shared_folder(root: Path) -> None:
    """A folder that all machines see."""
    write_karpathy(root / "shared" / "coco", "coco")


def _pages(root: Path) -> None:
    """This repository's pages, which the last block writes anew."""
    shutil.copy(ROOT / "README.md", root)
    for folder in ("docs", "bench"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("*.png", "__pycache__"))


def _photo(root: Path) -> None:
    draw(root / "photo.jpg", 1)


PREPARED: dict[str, Callable[[Path], None]] = {  # what one page alone needs
    "docs/measuring.md": _coco_ids,
    "docs/papers.md": _coco,
    "docs/report.md": _second_run,
    "docs/studies/index.md": _judged,
    "docs/index_backends.md": _pages,
    "docs/training.md": _shared_folder,
    "docs/serving.md": _photo,
}

NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "README.md": lambda: _measured() | _loop(),
    "docs/measuring.md": _measuring,
    "docs/losses.md": _loop,
    "docs/trust.md": _trusted,
}
