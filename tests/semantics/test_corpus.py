"""A corpus gives the same numbers by block, row, column and matrix, and leaves out the captions it should."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halation
from halation.semantics import METRICS, PEOPLE, Corpus, MiniLM, Semantics, caption_relevance

ON_TOKENS = [metric for metric in METRICS if metric != "sentence" and metric not in PEOPLE]
BY_EMBEDDING = ("sentence", "people", "people-loose", "people-strict")
SUBJECTS = ["a hound", "two hounds", "the red bus", "a man", "my cat's kitten", "some people", "nobody"]
VERBS = ["runs", "sleeps", "is waiting", "sits", "drives", "jumps over a hound"]
PLACES = ["in the park", "on a red bus", "", "under the bridge", "in the red park near the bridge " * 9]


def sentences(rng: np.random.Generator, count: int) -> list[str]:
    return [" ".join(str(rng.choice(part)) for part in (SUBJECTS, VERBS, PLACES)).strip() for _ in range(count)]


class Bag:
    """A stand-in for MiniLM: letter counts."""

    name = MiniLM.name

    def __call__(self, texts: list[str]) -> np.ndarray:
        return np.array([[text.count(letter) for letter in "abcdefghijklmnop"] for text in texts], dtype=np.float32)


bag = Bag()


def fit(captions: list[str], image_of: np.ndarray, metric: str) -> Semantics:
    return Semantics.fit(captions, image_of, metric, encoder=bag if metric in BY_EMBEDDING else None)


def close(metric: str) -> float:
    """The relative error that float32 leaves: a probability multiplies the error of its logit."""
    return 3e-5 if metric in PEOPLE else 1e-6


@pytest.fixture(params=METRICS)
def metric(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def captions() -> list[str]:
    return [*sentences(np.random.default_rng(3), 38), "", "unheard of"]


@pytest.fixture
def image_of() -> np.ndarray:
    return np.concatenate([np.arange(9), np.random.default_rng(4).integers(0, 9, 31)])  # in no order, 1 to n each


@pytest.fixture
def corpus(captions: list[str], image_of: np.ndarray, metric: str) -> Corpus:
    return fit(captions, image_of, metric).corpus()


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_rows_columns_and_blocks_are_parts_of_the_matrix(corpus: Corpus, metric: str, leave_one_out: bool) -> None:
    rtol, whole = close(metric), corpus.matrix(leave_one_out)
    images, columns = np.array([8, 0, 0, 3]), np.array([39, 5, 5, 38, 0, 17])
    np.testing.assert_allclose(corpus.rows(2, 7, leave_one_out), whole[2:7], rtol=rtol)
    np.testing.assert_allclose(corpus.columns(4, 21, leave_one_out), whole[:, 4:21].T, rtol=rtol)
    np.testing.assert_allclose(corpus.block(images, columns, leave_one_out), whole[images][:, columns], rtol=rtol)
    assert corpus.block([], []).shape == (0, 0)
    assert corpus.rows(3, 3).shape == (0, 40)
    assert corpus.columns(9, 9).shape == (0, 9)


def test_one_thread_or_three_give_the_same_numbers(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_THREADS", "1")
    alone = corpus.matrix()
    monkeypatch.setenv("HALATION_THREADS", "3")
    np.testing.assert_array_equal(corpus.matrix(), alone)


def test_a_caption_left_out_is_scored_against_the_others_of_its_image(
    captions: list[str], image_of: np.ndarray, metric: str
) -> None:
    semantics = fit(captions, image_of, metric)
    whole, reduced = semantics.corpus().matrix(), semantics.corpus().matrix(leave_one_out=True)
    own = image_of[None, :] == np.arange(9)[:, None]
    np.testing.assert_array_equal(reduced[~own], whole[~own])
    for k, caption in enumerate(captions):
        others = [c for j, c in enumerate(captions) if image_of[j] == image_of[k] and j != k]
        alone = 0.0
        if others:
            alone = semantics.corpus([caption], None, references=[others]).matrix()[0, 0]
        assert reduced[image_of[k], k] == pytest.approx(alone, rel=1e-5, abs=1e-7)


def test_an_only_reference_left_out_leaves_nothing(metric: str) -> None:
    corpus = fit(["a hound runs", "a red bus", "a red bus"], np.array([0, 1, 1]), metric).corpus()
    assert corpus.block([0], [0], leave_one_out=True)[0, 0] == 0
    # the same words from another annotator still count
    alone, together = corpus.block([1], [1], leave_one_out=True)[0, 0], corpus.block([1], [1])[0, 0]
    if metric in PEOPLE:  # a probability, surer with the caption itself
        assert 0.5 < alone < together == 1
    else:
        assert alone == pytest.approx(together, rel=1e-6)


def test_a_caption_among_given_references_is_left_out_once(metric: str) -> None:
    captions, references = ["a hound runs", "a red bus"], [["a hound runs", "one hound"], ["the bus", "my red bus"]]
    encoder = bag if metric in BY_EMBEDDING else None
    options = {"references": references, "encoder": encoder}
    semantics = Semantics.fit(captions, [0, 1], metric, **options)
    expected = semantics.corpus(captions, None, references=[["one hound"], references[1]]).matrix()
    relevance = caption_relevance(captions, [0, 1], metric, leave_one_out=True, **options)
    np.testing.assert_allclose(np.diag(relevance), np.diag(expected), rtol=1e-6)
    assert relevance[0, 1] == semantics.corpus().matrix()[0, 1]


def test_order_of_captions_and_images_carries_no_meaning(
    captions: list[str], image_of: np.ndarray, metric: str, rng: np.random.Generator
) -> None:
    whole = fit(captions, image_of, metric).corpus().matrix()
    shuffle, rename = rng.permutation(40), rng.permutation(9)
    moved = fit([captions[k] for k in shuffle], rename[image_of[shuffle]], metric).corpus().matrix()
    np.testing.assert_allclose(moved[rename], whole[:, shuffle], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("metric", ON_TOKENS)
@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=7).map(" ".join), min_size=3, max_size=8))
def test_every_relevance_lies_on_its_scale(metric: str, captions: list[str]) -> None:
    relevance = caption_relevance(captions, np.arange(len(captions)), metric, tokenizer="whitespace")
    assert relevance.min() >= 0
    assert relevance.max() <= (10.0001 if metric.startswith("cider") else 1.000001)


@pytest.mark.parametrize("metric", ["rouge-l", "bleu4", "tfidf", "mean"])
def test_a_caption_is_wholly_relevant_to_an_image_described_by_it_alone(metric: str) -> None:
    captions = ["a hound runs in the park", "the red bus is late again", "my cat's kitten sleeps", "two two two two"]
    np.testing.assert_allclose(np.diag(caption_relevance(captions, np.arange(4), metric)), 1, rtol=1e-6)


def test_a_new_corpus_is_weighed_by_the_old(captions: list[str], image_of: np.ndarray, metric: str) -> None:
    semantics = fit(captions, image_of, metric)
    again = semantics.corpus(captions, image_of)
    np.testing.assert_allclose(again.matrix(), semantics.corpus().matrix(), rtol=1e-6)
    part = np.flatnonzero(image_of < 3)
    fewer = semantics.corpus([captions[k] for k in part], image_of[part])
    np.testing.assert_allclose(fewer.matrix(), semantics.corpus().matrix()[:3, part], rtol=1e-5, atol=1e-7)


def test_words_the_fitted_corpus_never_saw() -> None:
    fitted, image_of = ["a hound runs", "a red bus", "the hound"], [0, 1, 2]
    new = ["zebra", "zebra hound", "hound"]
    tfidf = Semantics.fit(fitted, image_of, "tfidf").corpus(new, [0, 1, 2]).matrix()
    np.testing.assert_allclose(tfidf, [[0, 0, 0], [0, 1, 1], [0, 1, 1]], atol=1e-7)  # they do not count
    cider = Semantics.fit(fitted, image_of, "cider").corpus(new, [0, 1, 2]).matrix()
    rare, hound = np.log(3), np.log(3) - np.log(2)  # they count as the rarest
    cosine = rare / np.hypot(rare, hound)
    np.testing.assert_allclose(cider[0, :2], [10 / 4, 10 / 4 * cosine], rtol=1e-6)


def test_a_corpus_can_be_sent_to_another_process(corpus: Corpus, metric: str) -> None:
    corpus.rows(0, 1)
    sent = pickle.loads(pickle.dumps(corpus))
    np.testing.assert_array_equal(sent.block([1, 2], [3, 4]), corpus.block([1, 2], [3, 4]))


def test_progress_ends_where_the_work_ends(captions: list[str], image_of: np.ndarray) -> None:
    seen: list[tuple[str, int, int]] = []
    halation.caption_relevance(captions, image_of, progress=lambda *step: seen.append(step))
    assert seen[-1][1:] == (9, 9)


def test_a_caption_may_be_very_long_but_not_endless() -> None:
    longest = "hound " * 65_535
    for metric in ("bleu1", "rouge-l"):
        relevance = caption_relevance([longest, "a hound"], [0, 1], metric)
        assert relevance[0, 0] == 1
        assert 0 < relevance[1, 0] < 1e-3
    with pytest.raises(halation.InputError, match=r"sentence 1 has 65,536 tokens"):
        caption_relevance(["a hound", longest + "hound"], [0, 1], "bleu1")
