"""Text encoders of words: what a caption's features may and may not depend on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from halation import InputError
from halation.data import Tokens
from halation.encoders import PooledWords, Vocabulary, WordsAndSentence, WordsGRU
from halation.encoders._text_words import drop_words

VOCABULARY = Vocabulary(["two", "dogs", "run", "over", "green", "grass", "while", "cats", "sleep"])
CAPTIONS = ["two dogs run", "cats", "green grass while two dogs run over cats"]


def texts(**options: Any) -> list[Any]:
    return [
        PooledWords(VOCABULARY, 6, **options),
        WordsGRU(VOCABULARY, 6, 8, **options),
        WordsGRU(VOCABULARY, 6, 8, local="states", merge="mean", **options),
    ]


@pytest.mark.parametrize("which", range(3))
def test_a_caption_has_the_same_features_alone_and_in_company(which: int) -> None:
    text = texts()[which].eval()
    together = text(text.tokenize(CAPTIONS))
    assert together.pooled.shape == (3, text.pooled_dim) and together.local.shape == (3, 8, text.local_dim)
    for i, caption in enumerate(CAPTIONS):
        alone = text(text.tokenize([caption]))
        torch.testing.assert_close(together.pooled[i], alone.pooled[0])
        torch.testing.assert_close(together.local[i][together.mask[i]], alone.local[0])


@pytest.mark.parametrize("which", range(3))
def test_every_layer_learns(which: int) -> None:
    text = texts()[which]
    features = text(text.tokenize(CAPTIONS))
    (features.pooled.square().sum() + features.local.square().sum()).backward()
    listed = [parameter for layer in text.layers() for parameter in layer.parameters()]
    assert {id(p) for p in listed} == {id(p) for p in text.parameters()}
    assert all(p.grad is not None and p.grad.any() for p in listed)
    assert not text.table.embedding.weight.grad[0].any()  # padding


def test_pooled_words_are_the_maximum_and_the_mean() -> None:
    text = PooledWords(VOCABULARY, 4).eval()
    pooled, local, _ = text(text.tokenize(["two dogs", "cats"]))
    torch.testing.assert_close(pooled[0], torch.cat([local[0].amax(0), local[0].mean(0)]))
    torch.testing.assert_close(pooled[1], torch.cat([local[1, 0], local[1, 0]]))


def test_words_are_left_out_in_training_only() -> None:
    text = PooledWords(VOCABULARY, 4, dropout=0.5)
    tokens = text.tokenize(CAPTIONS)
    torch.manual_seed(0)
    assert not torch.equal(text(tokens).pooled, text(tokens).pooled)
    text.eval()
    assert torch.equal(text(tokens).pooled, text(tokens).pooled)


def test_a_share_of_the_words_is_left_out_in_order_and_one_always_stays() -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.arange(2, 12).repeat(2000, 1)
    mask = torch.arange(10) < torch.randint(1, 11, (2000, 1), generator=generator)
    kept = drop_words(Tokens(ids, mask), 0.3, generator)
    assert kept.mask.any(1).all()
    assert not (kept.mask[:, 1:] & ~kept.mask[:, :-1]).any()  # real words first
    assert ((kept.ids[:, 1:] > kept.ids[:, :-1]) | ~kept.mask[:, 1:]).all()
    whole = mask.sum(1) == 10
    assert kept.mask[whole].sum(1).double().mean().item() == pytest.approx(7, abs=0.3)
    single = drop_words(Tokens(torch.tensor([[5]]), torch.tensor([[True]])), 0.99, generator)
    assert single.ids.tolist() == [[5]] and single.mask.all()


def test_vectors_of_another_width_are_mapped_and_may_be_kept() -> None:
    vectors = torch.randn(len(VOCABULARY), 3)
    text = PooledWords(VOCABULARY, 5, vectors, trainable=False)
    text(text.tokenize(CAPTIONS)).pooled.sum().backward()
    assert torch.equal(text.table.embedding.weight, vectors) and text.table.embedding.weight.grad is None
    assert text.table.project.weight.grad.any()
    same = PooledWords(VOCABULARY, 3, vectors, dropout=0)
    torch.testing.assert_close(same(same.tokenize(["dogs"])).local[0, 0], vectors[3])


def test_wrong_options_are_named() -> None:
    with pytest.raises(InputError, match="WordVectors"):
        PooledWords(VOCABULARY, 4, torch.zeros(3, 4))
    with pytest.raises(InputError, match=r"\[0, 1\)"):
        PooledWords(VOCABULARY, 4, dropout=1.0)
    with pytest.raises(InputError, match="states"):
        WordsGRU(VOCABULARY, 4, 4, local="state")  # type: ignore[arg-type]


def test_words_and_sentence_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALATION_CACHE", str(tmp_path))
    text = WordsAndSentence(Vocabulary(["dog", "cat"]), dim=8).eval()
    tokens = text.tokenize(["a dog", "a cat and a dog"])
    features = text(tokens)
    assert features.pooled.shape == (2, 16 + 384) and features.local is not None and features.local.shape[2] == 8
    assert tokens.sentence is not None
    assert torch.allclose(tokens.sentence.norm(dim=1), torch.ones(2), atol=1e-3)
    assert torch.equal(features.pooled[:, :16], text.words(tokens).pooled)
    with pytest.raises(InputError, match="make them with this backbone's tokenize"):
        text(Tokens(tokens.ids, tokens.mask))
