"""Every relevance equals the published implementations: pycocoevalcap pair by pair, and the golden numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halation.semantics import Semantics, caption_relevance, treebank

pytest.importorskip("pycocoevalcap")

METRICS = ["cider-d", "bleu1", "bleu2", "bleu3", "bleu4", "rouge-l"]


class _Padded(list[Any]):
    """A list that says it is longer than it is: pycocoevalcap takes N from the length of what it scores."""

    size = 0

    def __len__(self) -> int:
        return self.size


def pycocoevalcap(captions: Sequence[str], sets: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """(images, captions) by metric, every pair on its own, document frequencies from the reference sets."""
    from pycocoevalcap.bleu.bleu_scorer import BleuScorer
    from pycocoevalcap.cider.cider_scorer import CiderScorer, cook_refs, cook_test
    from pycocoevalcap.rouge.rouge import Rouge

    cider = CiderScorer()
    cooked = [cook_refs(references) for references in sets]
    cider.crefs = cooked
    cider.compute_doc_freq()
    cider.ctest = [cook_test(caption) for _ in sets for caption in captions]
    cider.crefs = _Padded(references for references in cooked for _ in captions)
    cider.crefs.size = len(sets)
    bleu = BleuScorer(n=4)
    for references in sets:
        for caption in captions:
            bleu += (caption, references)
    shape = (len(sets), len(captions))
    scores = {"cider-d": np.array(cider.compute_cider()).reshape(shape)}
    for k, values in enumerate(bleu.compute_score(option="closest")[1]):
        scores[f"bleu{k + 1}"] = np.array(values).reshape(shape)
    rouge = Rouge()
    scores["rouge-l"] = np.array([[rouge.calc_score([c], references) for c in captions] for references in sets])
    return scores


def assert_same_values_and_order(relevance: np.ndarray, expected: np.ndarray) -> None:
    assert relevance.dtype == np.float32
    np.testing.assert_allclose(relevance, expected, rtol=1e-6, atol=1e-37)
    for ours, theirs in [(relevance, expected), (relevance.T, expected.T)]:  # as each query ranks its candidates
        order = np.argsort(theirs, axis=1, kind="stable")
        assert (np.diff(np.take_along_axis(ours, order, axis=1).astype(np.float64), axis=1) >= 0).all()


@pytest.fixture(scope="module")
def random_sentences() -> tuple[list[str], list[list[str]], dict[str, np.ndarray]]:
    rng = np.random.default_rng(7)
    vocabulary = ["a", "dog", "runs", "red", "bus", "é", "日本", "in", "the"]
    lengths = [0, 1, 1, 2, 3, 4, 5, 8, 10, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 130]

    def sentence() -> str:
        return " ".join(rng.choice(vocabulary, rng.choice(lengths)))

    captions = [" ".join(rng.choice(vocabulary, n)) for n in lengths] + [sentence() for _ in range(12)]
    sets = [[sentence() for _ in range(rng.integers(1, 6))] for _ in range(14)] + [[""], ["", "a"], ["dog"]]
    return captions, sets, pycocoevalcap(captions, sets)


@pytest.mark.parametrize("metric", METRICS)
def test_random_captions_score_as_in_pycocoevalcap(metric: str, random_sentences: Any) -> None:
    captions, sets, expected = random_sentences
    relevance = caption_relevance(captions, None, metric, references=sets, tokenizer="whitespace")
    np.testing.assert_array_equal(relevance, expected[metric].astype(np.float32))


@pytest.fixture(scope="module")
def real_captions(shared_data: Path) -> tuple[list[str], list[list[str]], dict[str, np.ndarray]]:
    lines = (shared_data / "coco_eval" / "karpathy_test5k.jsonl").read_text(encoding="utf-8").splitlines()
    sets = [[" ".join(treebank(caption)) for caption in json.loads(line)["captions"]] for line in lines[:40]]
    captions = [caption for references in sets for caption in references][::3]
    return captions, sets, pycocoevalcap(captions, sets)


@pytest.mark.parametrize("metric", METRICS)
def test_real_captions_score_and_rank_as_in_pycocoevalcap(metric: str, real_captions: Any) -> None:
    captions, sets, expected = real_captions
    relevance = caption_relevance(captions, None, metric, references=sets, tokenizer="whitespace")
    assert_same_values_and_order(relevance, expected[metric])


def test_the_golden_captions_have_the_golden_scores(shared_golden: Path) -> None:
    text = json.loads((shared_golden / "caption_metrics_text.json").read_text(encoding="utf-8"))
    golden = np.load(shared_golden / "caption_metrics.npz")
    expected = {"cider-d": golden["cider_df_from_50_refsets"], "rouge-l": golden["rouge_l"]}
    expected |= {f"bleu{k + 1}": golden["bleu_closest"][k] for k in range(4)}
    for metric, by_candidate in expected.items():
        relevance = caption_relevance(text["cands"], None, metric, references=text["refs"], tokenizer="whitespace")
        assert_same_values_and_order(relevance, by_candidate.T)


def test_the_golden_captions_have_the_golden_tfidf_in_evaluation_and_in_training(shared_golden: Path) -> None:
    captions = json.loads((shared_golden / "tfidf_captions.json").read_text(encoding="utf-8"))["captions"]
    golden = np.load(shared_golden / "tfidf.npz")
    corpus = Semantics.fit(captions, np.arange(200) // 5).corpus()
    np.testing.assert_allclose(corpus.matrix(), golden["eval_map_float64"], rtol=1e-6)
    batch = golden["batch"]
    np.testing.assert_allclose(corpus.block(batch // 5, batch), golden["train_map"], rtol=1e-5, atol=1e-7)
