"""`Model`: what `halation.load` gives; pictures and texts in, embeddings and scores out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import halation
from halation._errors import InputError
from halation.data import Features
from halation.encoders import Model, MultiEmbedding, PartEmbedding, load
from halation.similarity import Gaussian
from layouts import draw
from runs import write_run

TEXTS = ["a red dog", "two dogs on the grass", "zzz"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("model") / "run")


@pytest.fixture(scope="module")
def model(run: Path) -> Model:
    return halation.load(run)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pictures")
    return [draw(folder / f"p{n}.png", n) for n in range(3)]


def same(a: Gaussian, b: Gaussian) -> None:
    torch.testing.assert_close(a.mean, b.mean, atol=1e-6, rtol=1e-5)
    assert a.log_var is not None and b.log_var is not None
    torch.testing.assert_close(a.log_var, b.log_var, atol=1e-6, rtol=1e-5)


def test_paths_pictures_and_arrays_of_the_same_images_give_the_same_embeddings(model: Model, files: list[Path]) -> None:
    opened = [Image.open(file).convert("RGB") for file in files]
    expected = model.encode_images(files)
    assert isinstance(expected, Gaussian) and len(expected) == 3
    same(expected, model.encode_images([str(files[0]), *opened[1:]]))
    pictures = np.stack([np.asarray(picture) for picture in opened])  # (n, H, W, 3) uint8
    same(expected, model.encode_images(pictures))
    same(expected, model.encode_images(torch.from_numpy(pictures).permute(0, 3, 1, 2)))
    pixels = torch.stack([model.preprocess(picture) for picture in opened])
    same(expected, model.encode_images(pixels))
    same(expected, model.encode_images(pixels.numpy(), batch_size=2))
    same(expected, model.encode_images(files, batch_size=1))


def test_one_picture_or_one_text_is_a_batch_of_one(model: Model, files: list[Path]) -> None:
    assert len(model.encode_images(files[0])) == len(model.encode_images(Image.open(files[0]))) == 1
    assert len(model.encode_texts("a red dog")) == 1


def test_texts_do_not_depend_on_the_batch_they_are_in(model: Model) -> None:
    together = model.encode_texts(TEXTS)
    assert isinstance(together, Gaussian)
    for row, text in enumerate(TEXTS):
        alone = model.encode_texts([text])
        assert isinstance(alone, Gaussian)
        torch.testing.assert_close(alone.mean[0], together.mean[row], atol=1e-6, rtol=1e-5)
    same(together, model.encode_texts(TEXTS, batch_size=1))


def test_similarity_is_what_the_network_scores_images_by_texts(model: Model, files: list[Path]) -> None:
    images, texts = model.encode_images(files[:2]), model.encode_texts(TEXTS)
    scores = model.similarity(images, texts)
    assert scores.shape == (2, 3) and scores.dtype == torch.float32 and not scores.requires_grad
    torch.testing.assert_close(scores, model.network.scores(images, texts).float())


@pytest.mark.parametrize(("head", "kind"), [("pvse", MultiEmbedding), ("sgr", PartEmbedding), ("sgraf", PartEmbedding)])
def test_models_with_several_vectors_per_item_score_too(
    head: str, kind: type, files: list[Path], tmp_path: Path
) -> None:
    loaded = load(write_run(tmp_path / "run", f"model.head={head}", "model.sim_dim=4"))
    images, texts = loaded.encode_images(files), loaded.encode_texts(TEXTS)
    assert isinstance(images, kind)
    scores = loaded.similarity(images, texts)
    assert scores.shape == (3, 3) and scores.isfinite().all()
    with pytest.raises(InputError, match="which no index can store"):
        _ = loaded.indexed_similarity


def test_a_run_of_0_1_opens_if_it_had_no_gist(model: Model, run: Path, tmp_path: Path) -> None:
    old = shutil.copytree(run, tmp_path / "old")
    text = (run / "config.toml").read_text(encoding="utf-8")
    keys = "gist_dropout = 0.5\ngist_temperature = 0.1\ngist_share = 0.05\ngist_floor = 0.5\n"
    (old / "config.toml").write_text(text.replace("[model]\n", f"[model]\ngist = 0\n{keys}"), encoding="utf-8")
    opened = load(old)
    assert opened.config == model.config
    torch.testing.assert_close(opened.encode_texts(TEXTS).mean, model.encode_texts(TEXTS).mean)
    (old / "config.toml").write_text(text.replace("[model]\n", f"[model]\ngist = 8\n{keys}"), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"config\.toml: model\.gist is 8, but gist was removed; set it to 0 and train"
    ):
        load(old)


def test_a_model_on_features_takes_features(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "image.backbone=precomputed", "data.features=mine", dims=(4, 3))
    loaded = load(run)
    pooled, cells = torch.randn(5, 4), torch.randn(5, 6, 3)
    images = loaded.encode_images(Features(pooled, cells), batch_size=2)
    assert len(images) == 5
    with pytest.raises(InputError, match="does not say which network computed them"):
        loaded.encode_images(draw(tmp_path / "p.png", 1))
    run = write_run(
        tmp_path / "points", "image.backbone=precomputed", "data.features=mine", "model.head=point", dims=(4, 0)
    )
    assert len(load(run).encode_images(np.ones((2, 4), np.float32))) == 2


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([], "there are no images"),
        (np.zeros((2, 5, 5), np.uint8), r"images is an array of torch.uint8 and shape \(2, 5, 5\)"),
        (np.zeros((0, 3, 16, 16), np.float32), r"shape \(0, 3, 16, 16\)"),
        (["nowhere.jpg"], "nowhere.jpg does not exist"),
    ],
)
def test_what_is_not_an_image_is_refused_by_name(model: Model, images: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        model.encode_images(images)  # type: ignore[arg-type]


def test_no_texts_are_an_error(model: Model) -> None:
    with pytest.raises(InputError, match="there are no texts"):
        model.encode_texts([])


def test_many_threads_get_the_same_embeddings(model: Model, files: list[Path]) -> None:
    expected, results = model.encode_texts(TEXTS), list[Gaussian]()

    def work() -> None:
        for _ in range(5):
            results.append(model.encode_texts(TEXTS))  # type: ignore[arg-type]

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    for result in results:
        same(expected, result)  # type: ignore[arg-type]


def test_a_packaged_model_is_found_by_its_name(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    from halation.encoders import _model

    shutil.copytree(run, tmp_path / "models" / "tiny")
    monkeypatch.setattr(_model, "_packaged_models", lambda: tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    assert load("tiny").config.name == "tiny"
    with pytest.raises(InputError, match="models that come with the package: tiny"):
        load("tinny")


def test_a_missing_folder_and_a_name_on_a_hub_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing is downloaded"):
        load("somebody/pcme-coco")
    with pytest.raises(InputError, match="does not exist; name a run's folder"):
        load(tmp_path / "nothing")


def test_loading_a_model_imports_no_loss_and_no_training(run: Path) -> None:
    code = (
        f"import sys, halation\nmodel = halation.load({str(run)!r})\nmodel.encode_texts('a red dog')\n"
        "loaded = {name.split('.')[1] for name in sys.modules if name.startswith('halation.')}\n"
        "assert not loaded & {'losses', 'training', 'evaluation', 'report', 'search', 'calibration'}, sorted(loaded)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
