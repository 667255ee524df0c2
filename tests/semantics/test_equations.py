"""Every relevance equals its equation, written out as slow loops over tuples and strings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halation.semantics import METRICS, PEOPLE, caption_relevance

Set = Sequence[Sequence[str]]
Score = Callable[[list[str], Set], float]


def grams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def tfidf(captions: list[list[str]], sets: list[Set]) -> Score:
    df = Counter(word for caption in captions for word in set(caption))

    def vector(tokens: Sequence[str]) -> dict[str, float]:
        raw = {w: c * (math.log((1 + len(captions)) / (1 + df[w])) + 1) for w, c in Counter(tokens).items() if w in df}
        norm = math.sqrt(sum(x * x for x in raw.values()))
        return {w: x / norm for w, x in raw.items()}

    def score(caption: list[str], references: Set) -> float:
        mine = vector(caption)
        return sum(sum(x * mine.get(w, 0) for w, x in vector(r).items()) for r in references) / len(references)

    return score


def cider(captions: list[list[str]], sets: list[Set], clipped: bool = False) -> Score:
    df = Counter(g for s in sets for g in {g for r in s for n in range(1, 5) for g in grams(r, n)})

    def vector(tokens: Sequence[str], n: int) -> dict[tuple[str, ...], float]:
        return {g: c * (math.log(len(sets)) - math.log(max(1, df[g]))) for g, c in grams(tokens, n).items()}

    def one(caption: list[str], reference: Sequence[str], n: int) -> float:
        h, r = vector(caption, n), vector(reference, n)
        norms = math.sqrt(sum(x * x for x in h.values())) * math.sqrt(sum(x * x for x in r.values()))
        if norms == 0:
            return 0.0
        if not clipped:
            return sum(x * r.get(g, 0) for g, x in h.items()) / norms
        delta = max(len(caption) - 1, 0) - max(len(reference) - 1, 0)
        dot = sum(min(x, r.get(g, 0)) * r.get(g, 0) for g, x in h.items())
        return dot / norms * math.exp(-(delta**2) / (2 * 6**2))

    def score(caption: list[str], references: Set) -> float:
        return 10 * sum(one(caption, r, n) for r in references for n in range(1, 5)) / 4 / len(references)

    return score


def bleu(k: int) -> Callable[[list[list[str]], list[Set]], Score]:
    def score(caption: list[str], references: Set) -> float:
        product = 1.0
        for n in range(1, k + 1):
            clipped = sum(min(c, max(grams(r, n)[g] for r in references)) for g, c in grams(caption, n).items())
            product *= (clipped + 1e-15) / (max(0, len(caption) - n + 1) + 1e-9)
        closest = min((abs(len(r) - len(caption)), len(r)) for r in references)[1]
        ratio = (len(caption) + 1e-15) / (closest + 1e-9)
        return float(product ** (1 / k) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1))

    return lambda captions, sets: score


def rouge(captions: list[list[str]], sets: list[Set]) -> Score:
    def lcs(a: Sequence[str], b: Sequence[str]) -> int:
        last = [0] * (len(b) + 1)
        for x in a:
            row = [0]
            for j, y in enumerate(b):
                row.append(last[j] + 1 if x == y else max(last[j + 1], row[j]))
            last = row
        return last[-1]

    def score(caption: list[str], references: Set) -> float:
        caption = caption or [""]
        precision = max(lcs(r or [""], caption) / len(caption) for r in references)
        recall = max(lcs(r or [""], caption) / len(r or [""]) for r in references)
        return 2.44 * precision * recall / (recall + 1.44 * precision) if precision and recall else 0.0

    return score


EQUATIONS: dict[str, Callable[[list[list[str]], list[Set]], Score]] = {
    "tfidf": tfidf,
    "cider": cider,
    "cider-d": lambda captions, sets: cider(captions, sets, clipped=True),
    **{f"bleu{k}": bleu(k) for k in (1, 2, 3, 4)},
    "rouge-l": rouge,
}


def by_equation(metric: str, captions: list[str], sets: list[list[str]]) -> np.ndarray:
    if metric == "mean":
        return np.mean([by_equation(part, captions, sets) for part in ("tfidf", "bleu4", "rouge-l")], axis=0)
    tokens, references = [c.split() for c in captions], [[r.split() for r in s] for s in sets]
    score = EQUATIONS[metric](tokens, references)
    return np.array([[score(c, s) for c in tokens] for s in references])


# Few words, so that n-grams repeat and meet; empty, one-word and long sentences; words beyond ASCII.
WORDS = ["a", "hound", "runs", "red", "bus", "é", "日本"]
SENTENCE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join) | st.sampled_from(
    ["", "hound", "bus bus bus", "a hound runs " * 7 + "home", "red hound a bus " * 18, "a é " * 33 + "hound"]
)
COLLECTION = st.lists(st.tuples(SENTENCE, st.integers(0, 3)), min_size=4, max_size=10).map(
    lambda pairs: ([c for c, _ in pairs], [*range(4), *(i for _, i in pairs[4:])])
)


@pytest.mark.parametrize("metric", [m for m in METRICS if m != "sentence" and m not in PEOPLE])
@settings(max_examples=25, deadline=None)
@given(collection=COLLECTION)
def test_the_relevance_is_what_its_equation_says(metric: str, collection: tuple[list[str], list[int]]) -> None:
    captions, image_of = collection
    sets = [[c for c, i in zip(captions, image_of, strict=True) if i == image] for image in range(4)]
    relevance = caption_relevance(captions, image_of, metric, tokenizer="whitespace")
    assert relevance.dtype == np.float32
    assert relevance.shape == (4, len(captions))
    np.testing.assert_allclose(relevance, by_equation(metric, captions, sets), rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("metric", [m for m in METRICS if m != "sentence" and m not in PEOPLE])
def test_references_of_other_people_replace_the_captions_of_the_image(metric: str) -> None:
    captions = ["a hound runs", "a red bus in town", "", "hound hound hound", "nobody said this"]
    sets = [["the hound is running", "hounds run"], ["a bus"], ["a red red bus", "in town", ""]]
    relevance = caption_relevance(captions, None, metric, references=sets, tokenizer="whitespace")
    np.testing.assert_allclose(relevance, by_equation(metric, captions, sets), rtol=1e-6)


def test_tfidf_is_scikit_learn_s() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text")
    captions = [
        "A hound's T-shirt, size 10",
        "two hounds run in the park",
        "The red bus",
        "a RED bus, a red car",
        "x",
        "the",
    ]
    image_of = np.array([0, 0, 1, 1, 2, 2])
    vectors = text.TfidfVectorizer().fit_transform(captions).toarray()
    expected = np.array([vectors[image_of == i].mean(0) @ vectors.T for i in range(3)])
    np.testing.assert_allclose(caption_relevance(captions, image_of), expected, rtol=1e-6, atol=0)
