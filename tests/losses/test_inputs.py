"""What every loss takes and refuses: arrays, empty batches, numbers that are none."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from halation import Gaussian, InputError, losses, similarity


def clouds(n: int) -> Gaussian:
    g = torch.Generator().manual_seed(n)
    return Gaussian(torch.randn(n, 4, generator=g), torch.randn(n, 4, generator=g))


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


PAIRS: dict[str, Callable[[Any], Tensor]] = {
    "triplet": lambda m: losses.Triplet()(torch.arange(6.0).view(2, 3), m),
    "info_nce": lambda m: losses.InfoNCE()(torch.arange(6.0).view(2, 3), m),
    "sigmoid_pairwise": lambda m: losses.SigmoidPairwise()(torch.arange(6.0).view(2, 3), m),
    "smooth_ap": lambda m: losses.SmoothAP()(torch.arange(6.0).view(2, 3), m),
    "soft_contrastive": lambda m: losses.SoftContrastive()(clouds(2), clouds(3), m, seeded()),
    "csd_contrastive": lambda m: losses.CSDContrastive()(clouds(2), clouds(3), m),
    "mil": lambda m: losses.MIL()(clouds(2).mean[:, None], clouds(3).mean[:, None].numpy(), m),
    "match_log_likelihood": lambda m: similarity.match_log_likelihood(
        clouds(2).mean.numpy(), clouds(3).mean, m, scale=1.0, shift=1.0
    ).sum(),
}


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_matches_may_be_an_array_that_nobody_may_write_to(name: str) -> None:
    matches = np.eye(2, 3, dtype=bool)
    expected = PAIRS[name](torch.from_numpy(matches.copy()))
    matches.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(PAIRS[name](matches).detach(), expected.detach(), rtol=0, atol=0)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_a_column_of_matches_is_not_stretched_over_all(name: str) -> None:
    with pytest.raises(InputError, match=r"\(2, 1\)"):
        PAIRS[name](torch.ones(2, 1, dtype=torch.bool))


NOTHING: dict[str, Callable[[], Tensor]] = {
    "daa": lambda: losses.DAA()(torch.ones(0, 3), torch.ones(0, 3)),
    "smooth_ap": lambda: losses.SmoothAP()(torch.ones(3, 0), torch.ones(3, 0)),
    "soft_rank": lambda: losses.soft_rank(torch.ones(0, 0), 0.1),
    "mid_rank": lambda: losses.mid_rank(torch.ones(0, 2)),
    "triplet": lambda: losses.triplet(torch.ones(0, 3), torch.ones(0, 3)),
    "info_nce": lambda: losses.info_nce(torch.ones(0, 3), torch.ones(0, 3)),
    "sigmoid_pairwise": lambda: losses.sigmoid_pairwise(torch.ones(0, 3), torch.ones(0, 3)),
    "soft_contrastive": lambda: losses.soft_contrastive(clouds(0), clouds(3), torch.ones(0, 3), generator=seeded()),
    "soft_contrastive of samples": lambda: losses.soft_contrastive(torch.ones(2, 0, 4), clouds(3), torch.ones(2, 3)),
    "csd_contrastive": lambda: losses.csd_contrastive(clouds(2), clouds(0), torch.ones(2, 0)),
    "mil": lambda: losses.mil(torch.ones(0, 2, 4), torch.ones(3, 2, 4), torch.ones(0, 3)),
    "kl": lambda: losses.kl(clouds(0)),
    "diversity": lambda: losses.diversity(torch.ones(0, 2, 4)),
    "mmd": lambda: losses.mmd(torch.ones(3, 4), torch.ones(0, 4)),
    "uniformity": lambda: losses.uniformity(torch.ones(0, 4)),
    "match_probability": lambda: similarity.match_probability(clouds(3).mean, torch.ones(0, 4), scale=1.0, shift=1.0),
    "sample_min": lambda: similarity.sample_min(torch.ones(0, 7, 4), clouds(3).mean),
    "sample_max": lambda: similarity.sample_max(clouds(0), clouds(3).mean, generator=seeded()),
}


@pytest.mark.parametrize("name", sorted(NOTHING))
def test_an_empty_batch_is_refused_by_name(name: str) -> None:
    with pytest.raises(InputError, match="empty"):
        NOTHING[name]()


BAD: dict[str, Callable[[Any], Tensor]] = {
    "info_nce: temperature": lambda x: losses.info_nce(torch.eye(2), torch.eye(2), x, check=True),
    "sigmoid_pairwise: scale": lambda x: losses.sigmoid_pairwise(torch.eye(2), torch.eye(2), scale=x, check=True),
    "sigmoid_pairwise: shift": lambda x: losses.sigmoid_pairwise(torch.eye(2), torch.eye(2), shift=x, check=True),
    "csd_contrastive: scale": lambda x: losses.csd_contrastive(clouds(2), clouds(2), torch.eye(2), scale=x, check=True),
    "csd_contrastive: shift": lambda x: losses.csd_contrastive(clouds(2), clouds(2), torch.eye(2), shift=x, check=True),
    "soft_contrastive: scale": lambda x: losses.soft_contrastive(
        clouds(2).mean, clouds(2).mean, torch.eye(2), scale=x, check=True
    ),
    "soft_contrastive: shift": lambda x: losses.soft_contrastive(
        clouds(2).mean, clouds(2).mean, torch.eye(2), shift=x, check=True
    ),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_checking_includes_what_is_learnt(name: str) -> None:
    for value in (torch.tensor(math.nan), torch.tensor([math.inf]), math.inf):
        with pytest.raises(InputError, match=f"{name.split()[1]}.* is (nan|inf)"):
            BAD[name](value)
    assert BAD[name](torch.tensor(2.0)).isfinite()
