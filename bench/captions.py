"""Captions to measure on: the COCO 5K test split if its file is there, otherwise made-up ones of the same shape."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "coco_eval" / "karpathy_test5k.jsonl"


@cache
def coco_like(images: int = 5000) -> tuple[list[str], np.ndarray, str]:
    """Captions, the image of each, and a description of them."""
    if REAL.is_file():
        rows = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()[:images]]
        captions = [caption for row in rows for caption in row["captions"]]
        return (
            captions,
            np.repeat(np.arange(len(rows)), [len(row["captions"]) for row in rows]),
            "COCO 5K test captions",
        )
    captions = made_up(5 * images)
    return captions, np.repeat(np.arange(images), 5), "made-up captions (the COCO test split is missing)"


def made_up(count: int, seed: int = 0, vocabulary: int = 8000, length: float = 10.5) -> list[str]:
    """Captions of words drawn by Zipf's law; every five in a row share a topic, like those of one image."""
    generator = np.random.default_rng(seed)
    cumulative = np.cumsum(1 / np.arange(1, vocabulary + 1) ** 1.05)
    sizes = np.maximum(6, generator.poisson(length, count))
    caption = np.repeat(np.arange(count), sizes)
    common = np.searchsorted(cumulative, generator.random(len(caption)) * cumulative[-1])
    topics = np.searchsorted(cumulative, generator.random((count // 5 + 1, 12)) * cumulative[-1])
    topical = topics[caption // 5, generator.integers(12, size=len(caption))]
    words = [f"w{k}" for k in np.where(generator.random(len(caption)) < 0.4, topical, common).tolist()]
    ends = np.cumsum(sizes).tolist()
    return [" ".join(words[end - size : end]) for end, size in zip(ends, sizes.tolist(), strict=True)]
