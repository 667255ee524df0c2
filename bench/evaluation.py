"""The whole report at COCO 5K size, from scores and from embeddings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

import halation
from bench.captions import coco_like
from bench.measuring import peak_mb
from bench.results import Row


def run() -> Iterator[Row]:
    truth, scores, images, captions = _inputs()
    halation.evaluate(*_small())
    start = time.perf_counter()
    report = halation.evaluate(scores, truth)
    str(report)  # intervals are computed when they are printed
    taken = time.perf_counter() - start
    names = ", ".join(name for name in report.i2t if "ceiling" not in name and "adjusted" not in name)
    size = f"{truth.n_images:,} × {truth.n_captions:,}"
    yield Row(
        "evaluation",
        f"every metric of the report, both directions, {size}, intervals included",
        f"{taken:.1f} s",
        "bar: 60 s",
        60 / taken,
        1,
    )
    yield Row("evaluation", "its metrics", names)
    yield Row("evaluation", "peak memory beyond the scores", f"{peak_mb(_peak):,.0f} MB")
    start = time.perf_counter()
    halation.evaluate(images=images, captions=captions, truth=truth, metrics=["R@1", "R@5", "R@10", "R-P"])
    yield Row(
        "evaluation",
        f"R@K and R-P from embeddings of {images.shape[1]} dimensions, in blocks, {size}",
        f"{time.perf_counter() - start:.1f} s",
    )


def _inputs() -> tuple[halation.Truth, np.ndarray, np.ndarray, np.ndarray]:
    texts, image_of, _ = coco_like()
    generator = np.random.default_rng(0)
    classes = generator.random((int(image_of.max()) + 1, 80)) < 0.036
    truth = halation.Truth.from_captions(texts, image_of, classes=classes)
    images = generator.standard_normal((truth.n_images, 256), dtype=np.float32)
    captions = images[image_of] + 2 * generator.standard_normal((truth.n_captions, 256), dtype=np.float32)
    return truth, images @ captions.T, images, captions


def _small() -> tuple[np.ndarray, halation.Truth]:
    texts, image_of, _ = coco_like()
    truth = halation.Truth.from_captions(
        texts[:200], image_of[:200], classes=np.eye(int(image_of[199]) + 1, dtype=bool)
    )
    return np.random.default_rng(0).random((truth.n_images, 200), dtype=np.float32), truth


def _peak(ready: Callable[[], None]) -> None:
    truth, scores, _, _ = _inputs()
    halation.evaluate(*_small())
    ready()
    halation.evaluate(scores, truth)
