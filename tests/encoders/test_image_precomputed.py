"""Features from files."""

from __future__ import annotations

import pytest
import torch

from halation import InputError
from halation.data import Features
from halation.encoders import Precomputed


def test_features_come_out_as_they_went_in_but_in_float32() -> None:
    pooled, local = torch.randn(2, 3).half(), torch.randint(-127, 127, (2, 4, 5), dtype=torch.int8)
    out = Precomputed(3, 5)(Features(pooled, local))
    assert out.pooled.dtype == torch.float32 and torch.equal(out.pooled, pooled.float())
    assert out.local is not None and torch.equal(out.local, local.float()) and out.mask is None
    assert Precomputed(3)(Features(pooled, local)).local is None


@pytest.mark.parametrize(
    ("features", "says"),
    [
        (Features(torch.zeros(2, 4), torch.zeros(2, 1, 5)), "expects 3"),
        (Features(torch.zeros(2, 3)), "the data have none"),
        (Features(torch.zeros(2, 3), torch.zeros(2, 1, 4)), "expects 5"),
    ],
)
def test_features_of_another_width_are_refused(features: Features, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Precomputed(3, 5)(features)


def test_cells_are_averaged_into_a_coarser_grid() -> None:
    cells = torch.arange(16.0).view(1, 16, 1).expand(2, 16, 3)
    coarse = Precomputed(4, 3, grid=2)(Features(torch.zeros(2, 4), cells)).local
    assert coarse is not None and coarse[0, :, 0].tolist() == [2.5, 4.5, 10.5, 12.5]
    with pytest.raises(InputError, match="cannot be averaged into 5 × 5"):
        Precomputed(4, 3, grid=5)(Features(torch.zeros(2, 4), cells))
