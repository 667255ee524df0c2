"""Embeddings of every kind: counted, cut, joined and changed in the same way."""

from __future__ import annotations

import pytest
import torch

from halation.encoders import Encoded, MultiEmbedding, PartEmbedding
from halation.encoders._embeddings import concatenate, count, map_tensors, select
from halation.similarity import Gaussian

KINDS = {
    "points": lambda n: Gaussian.point(torch.randn(n, 4)),
    "Gaussians": lambda n: Gaussian(torch.randn(n, 4), torch.randn(n, 4)),
    "several": lambda n: MultiEmbedding(torch.randn(n, 2, 4), torch.randn(n, 2, 4)),
    "parts": lambda n: PartEmbedding(torch.randn(n, 3, 4), torch.rand(n, 3) > 0.5),
}


def tensors(encoded: Encoded) -> list[torch.Tensor]:
    parts = (encoded.mean, encoded.log_var) if isinstance(encoded, Gaussian) else tuple(encoded)
    return [part for part in parts if part is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_one_again_and_can_be_cut_again(kind: str) -> None:
    batches = [KINDS[kind](n) for n in (2, 3)]
    whole = concatenate(batches)
    assert type(whole) is type(batches[0]) and count(whole) == 5
    for mine, given in zip(tensors(select(whole, slice(2, 5))), tensors(batches[1]), strict=True):
        assert torch.equal(mine, given)
    for mine, given in zip(tensors(map_tensors(whole, torch.logical_not)), tensors(whole), strict=True):
        assert torch.equal(mine, given.logical_not())


def test_captions_of_different_lengths_are_padded_to_the_longest() -> None:
    whole = concatenate([PartEmbedding(torch.ones(1, n, 2), None) for n in (2, 3)])
    assert whole.local.shape == (2, 3, 2) and whole.mask is not None
    assert whole.mask.tolist() == [[True, True, False], [True, True, True]]
