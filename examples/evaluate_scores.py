"""Evaluate a CLIP-like model: every metric of its scores, and whether another model is really better.

    python examples/evaluate_scores.py

Two made-up models embed 200 pictures and their captions; put your own embeddings (or score matrix) in their place. You
only need to know which caption belongs to which picture.
"""

from __future__ import annotations

import numpy as np

import halation

THINGS = ("dog", "cat", "bus", "boat", "horse", "kite")
PLACES = ("in the snow", "on the grass", "by the sea", "at night")
COLOURS = ("red", "black", "white", "brown", "old")


def world() -> tuple[list[str], list[int], np.ndarray]:
    """Captions, the picture each belongs to, and what is in each picture as numbers (200, 15)."""
    draw = np.random.default_rng(0)
    captions, image_of, content = [], [], []
    for picture in range(200):
        t, c, p = (int(draw.integers(len(words))) for words in (THINGS, COLOURS, PLACES))
        captions += [
            f"A {COLOURS[c]} {THINGS[t]} {PLACES[p]}.",
            f"There is a {THINGS[t]} {PLACES[p]}.",
            f"Somebody saw a {COLOURS[c]} {THINGS[t]}.",
        ]
        image_of += [picture] * 3
        content.append(np.concatenate([np.eye(len(words))[k] for words, k in ((THINGS, t), (COLOURS, c), (PLACES, p))]))
    return captions, image_of, np.array(content)


def clip_like(content: np.ndarray, image_of: list[int], blur: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of length 1 of pictures and captions; a better model sees through less noise."""
    draw = np.random.default_rng(seed)
    own = 0.4 * draw.normal(size=content.shape)  # what tells a picture from others of the same content
    images = content + own + blur * draw.normal(size=content.shape)
    texts = (content + own)[image_of] + blur * draw.normal(size=(len(image_of), content.shape[1]))
    return images / np.linalg.norm(images, axis=1, keepdims=True), texts / np.linalg.norm(texts, axis=1, keepdims=True)


def main() -> None:
    captions, image_of, content = world()
    truth = halation.Truth.from_captions(captions, image_of)
    metrics = ["R@1", "R@5", "R@10", "MedR", "ASP(tfidf)", "ASP(cider)"]
    reports = []
    for blur, seed in ((0.5, 1), (0.4, 2)):
        images, texts = clip_like(content, image_of, blur, seed)
        reports.append(halation.evaluate(images=images, captions=texts, truth=truth, metrics=metrics))
    print(reports[0], end="\n\n")
    print(halation.compare(*reports, resamples=2000))
    from_scores = halation.evaluate(images @ texts.T, truth, ["R@1"], resamples=0)  # a matrix will do as well
    assert from_scores.i2t["R@1"] == reports[1].i2t["R@1"]


if __name__ == "__main__":
    main()
