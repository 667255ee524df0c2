"""Caption relevance against pycocoevalcap, pair by pair, and against dense tf-idf arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.captions import coco_like, made_up
from bench.measuring import peak_mb, seconds
from bench.results import Row
from halation import caption_relevance
from halation.semantics import Semantics

SAMPLE = 400  # pairs the oracle scores
METRICS = ("tfidf", "cider", "cider-d", "bleu4", "rouge-l", "mean")


def run() -> Iterator[Row]:
    captions, image_of, what = coco_like()
    images = int(image_of.max()) + 1
    size = f"{images:,} images × {len(captions):,} captions"
    pairs = images * len(captions)
    oracles = {"cider-d": _cider_oracle, "bleu4": _bleu_oracle, "rouge-l": _rouge_oracle}
    caption_relevance(captions[:50], image_of[:50], metric="mean")  # compile outside the timing
    for metric in ("cider", "cider-d"):
        caption_relevance(captions[:50], image_of[:50], metric=metric)
    for metric in METRICS:
        ours = seconds(partial(caption_relevance, captions, image_of, metric=metric), repeats=2)
        memory = peak_mb(_matrix_peak, metric) - 4 * pairs / 2**20
        text = f"{ours:.2f} s, {1e9 * ours / pairs:.1f} ns per pair, {memory:,.0f} MB beyond the result"
        if metric in oracles:
            oracle = oracles[metric](captions, image_of)
            ratio = oracle / (ours / pairs)
            yield Row(
                "caption relevance",
                f"`{metric}`, {size}",
                text,
                f"pycocoevalcap {1e6 * oracle:.0f} µs per pair",
                ratio,
                1000,
            )
        else:
            yield Row("caption relevance", f"`{metric}`, {size}", text)
    yield from _dense(captions, image_of, size)
    yield from _training_blocks()
    yield Row("caption relevance", "captions of this table", what)


def _dense(captions: list[str], image_of: np.ndarray, size: str) -> Iterator[Row]:
    ours = seconds(lambda: caption_relevance(captions, image_of, metric="tfidf"), repeats=2)
    dense = seconds(lambda: _dense_tfidf(lambda: None), repeats=1)
    our_memory = peak_mb(_matrix_peak, "tfidf")
    dense_memory = peak_mb(_dense_tfidf)
    yield Row(
        "caption relevance",
        f"`tfidf`, {size}",
        f"{ours:.2f} s",
        f"dense arrays, one product with the mean vectors: {dense:.1f} s",
        dense / ours,
        20,
    )
    result = 4 * (int(image_of.max()) + 1) * len(captions) / 2**20
    ours_beyond, dense_beyond = our_memory - result, dense_memory - 2 * result  # the dense result is float64
    yield Row(
        "caption relevance",
        "`tfidf`, memory beyond the result",
        f"{ours_beyond:,.0f} MB",
        f"dense arrays: {dense_beyond:,.0f} MB",
        dense_beyond / max(ours_beyond, 1.0),
        10,
    )


def _dense_tfidf(ready: Callable[[], None]) -> None:
    """The released code in a faster variant: dense float64 arrays, each image's vectors averaged before the product."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    captions, image_of, _ = coco_like()
    ready()
    vectors = TfidfVectorizer().fit_transform(captions).toarray()  # (captions, words) float64
    order = np.argsort(image_of, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(image_of[order]) > 0])
    means = np.add.reduceat(vectors[order], starts) / np.diff(np.r_[starts, len(order)])[:, None]
    relevance = means @ vectors.T
    assert relevance.shape[1] == len(captions)


def _matrix_peak(ready: Callable[[], None], metric: str) -> None:
    captions, image_of, _ = coco_like()
    caption_relevance(captions[:50], image_of[:50], metric=metric)
    ready()
    caption_relevance(captions, image_of, metric=metric)


def _training_blocks() -> Iterator[Row]:
    memory = peak_mb(_fit_peak)
    what = "`cider`, 566,000 made-up training captions: fit, hold, (512, 512) block"
    yield Row("caption relevance", what, f"{memory:,.0f} MB", "bar: 4,096 MB", 4096 / memory, 1)
    captions, image_of, _ = coco_like()
    generator = np.random.default_rng(0)
    for metric in ("tfidf", "cider", "mean"):
        corpus = Semantics.fit(captions, image_of, metric=metric).corpus()
        times = []
        for batch in (128, 512):
            chosen = generator.choice(len(captions), batch, replace=False)
            taken = seconds(partial(corpus.block, image_of[chosen], chosen), repeats=9)
            times.append(f"B = {batch}: {1000 * taken:.1f} ms")
        yield Row("caption relevance", f"`{metric}`, a (B, B) block of a training step", ", ".join(times))


def _fit_peak(ready: Callable[[], None]) -> None:
    captions = made_up(566_000, vocabulary=25_000)
    image_of = np.arange(len(captions)) // 5
    ready()
    corpus = Semantics.fit(captions, image_of, metric="cider").corpus()
    corpus.block(image_of[:512], np.arange(512))


def _sampled(captions: list[str], image_of: np.ndarray, tokens: list[list[str]]) -> list[tuple[str, list[str]]]:
    generator = np.random.default_rng(1)
    references: dict[int, list[str]] = {}
    for image, words in zip(image_of.tolist(), tokens, strict=True):
        references.setdefault(image, []).append(" ".join(words))
    images = generator.integers(len(references), size=SAMPLE)
    chosen = generator.integers(len(captions), size=SAMPLE)
    return [(" ".join(tokens[c]), references[i]) for c, i in zip(chosen.tolist(), images.tolist(), strict=True)]


def _per_pair(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) / SAMPLE


def _tokens(captions: list[str]) -> list[list[str]]:
    from halation.semantics import treebank

    return [treebank(caption) for caption in captions]


def _cider_oracle(captions: list[str], image_of: np.ndarray) -> float:
    """pycocoevalcap's CIDEr-D; references cooked and df computed once, outside the timing."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer, cook_refs, cook_test

    tokens = _tokens(captions)
    pairs = _sampled(captions, image_of, tokens)
    scorer = CiderScorer(n=4, sigma=6.0)
    by_image: dict[int, list[str]] = {}
    for image, words in zip(image_of.tolist(), tokens, strict=True):
        by_image.setdefault(image, []).append(" ".join(words))
    scorer.crefs = [cook_refs(references) for references in by_image.values()]
    scorer.compute_doc_freq()
    scorer.crefs = [cook_refs(references) for _, references in pairs]

    def work() -> None:  # it takes N from the sample, so the values are wrong, but the work is the same
        scorer.ctest = [cook_test(candidate) for candidate, _ in pairs]
        scorer.compute_cider()

    return _per_pair(work)


def _bleu_oracle(captions: list[str], image_of: np.ndarray) -> float:
    from pycocoevalcap.bleu.bleu_scorer import BleuScorer, cook_refs, cook_test

    pairs = _sampled(captions, image_of, _tokens(captions))
    cooked = [cook_refs(references) for _, references in pairs]

    def work() -> None:
        scorer = BleuScorer(n=4)
        scorer.crefs = cooked
        scorer.ctest = [cook_test(candidate, refs) for (candidate, _), refs in zip(pairs, cooked, strict=True)]
        scorer.compute_score(option="closest", verbose=0)

    return _per_pair(work)


def _rouge_oracle(captions: list[str], image_of: np.ndarray) -> float:
    from pycocoevalcap.rouge.rouge import Rouge

    pairs = _sampled(captions, image_of, _tokens(captions))
    scorer = Rouge()
    return _per_pair(lambda: [scorer.calc_score([candidate], references) for candidate, references in pairs])
