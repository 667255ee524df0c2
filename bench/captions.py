"""Captions to measure on: the real COCO 5K test split where it is at hand, otherwise made-up ones of the same shape."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

REAL = Path(__file__).resolve().parents[2] / "shared" / "data" / "coco_eval" / "karpathy_test5k.jsonl"


@cache
def coco_like(images: int = 5000) -> tuple[list[str], np.ndarray, str]:
    """(captions, image_of, what they are)."""
    if REAL.is_file():
        rows = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()[:images]]
        captions = [caption for row in rows for caption in row["captions"]]
        return (
            captions,
            np.repeat(np.arange(len(rows)), [len(row["captions"]) for row in rows]),
            "COCO 5K test captions",
        )
    captions = made_up(5 * images)
    return captions, np.repeat(np.arange(images), 5), "made-up captions (the COCO test split is not at hand)"


def made_up(count: int, seed: int = 0, vocabulary: int = 8000, length: float = 10.5) -> list[str]:
    """Words drawn from Zipf's law; five captions in a row share a topic, as an image's captions do."""
    generator = np.random.default_rng(seed)
    weights = 1 / np.arange(1, vocabulary + 1) ** 1.05
    weights /= weights.sum()
    words = np.array([f"w{k}" for k in range(vocabulary)])
    captions = []
    for _ in range(0, count, 5):
        topic = generator.choice(vocabulary, 12, p=weights)
        for _ in range(5):
            size = max(6, int(generator.poisson(length)))
            common = generator.choice(vocabulary, size, p=weights)
            chosen = np.where(generator.random(size) < 0.4, generator.choice(topic, size), common)
            captions.append(" ".join(words[chosen]))
    return captions[:count]
