"""The small transformer."""

from __future__ import annotations

import pytest
import torch

from halation import InputError
from halation.encoders import SmallTransformer, Vocabulary

VOCABULARY = Vocabulary(["two", "dogs", "run", "over", "green", "grass"])
CAPTIONS = ["two dogs run", "grass", "green grass over two dogs run over grass"]


def test_a_caption_has_the_same_features_alone_and_in_company() -> None:
    text = SmallTransformer(VOCABULARY, 8, layers=2, heads=2).eval()
    together = text(text.tokenize(CAPTIONS))
    for i, caption in enumerate(CAPTIONS):
        alone = text(text.tokenize([caption]))
        torch.testing.assert_close(together.pooled[i], alone.pooled[0], rtol=1e-4, atol=1e-5)
    assert torch.isfinite(together.local).all()


def test_the_order_of_the_words_matters_up_to_the_last_position_and_longer_captions_are_read() -> None:
    text = SmallTransformer(VOCABULARY, 8, heads=2, positions=2).eval()
    one, two, long, longer = text(
        text.tokenize(["two dogs", "dogs two", "two" + " dogs" * 9, "two run" + " dogs" * 8])
    ).pooled
    assert not torch.allclose(one, two) and not torch.allclose(long, longer)


def test_every_layer_learns() -> None:
    text = SmallTransformer(VOCABULARY, 8, layers=2, heads=2, dropout=0.1, word_dropout=0.1)
    out = text(text.tokenize(CAPTIONS))
    (out.pooled**3).sum().backward()
    listed = [p for layer in text.layers() for p in layer.parameters()]
    assert {id(p) for p in listed} == {id(p) for p in text.parameters()}
    assert all(p.grad is not None and p.grad.any() for p in listed)


def test_heads_must_share_the_dimensions() -> None:
    with pytest.raises(InputError, match="3 heads"):
        SmallTransformer(VOCABULARY, 8, heads=3)
