"""A small world for evaluation tests: captions of its own, classes, seeded scores."""

from __future__ import annotations

import numpy as np
import pytest

from halation.data import Truth
from worlds import sample_scores, sample_truth


@pytest.fixture(scope="session")
def world() -> tuple[np.ndarray, Truth]:
    truth = sample_truth(images=60, seed=3)
    return sample_scores(truth, noise=0.6, seed=4), truth
