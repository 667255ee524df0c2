"""CCA against scikit-learn's and against what correlation means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA as Sklearn

from halation import similarity
from halation._errors import InputError
from halation.encoders import CCA


def related(n: int = 600, dx: int = 7, dy: int = 5, shared: int = 3, noise: float = 0.5) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n, shared))
    x = hidden @ rng.normal(size=(shared, dx)) + noise * rng.normal(size=(n, dx)) + 3
    y = hidden @ rng.normal(size=(shared, dy)) + noise * rng.normal(size=(n, dy)) - 1
    return x, y


def test_the_correlations_are_those_of_scikit_learn() -> None:
    x, y = related()
    ours = CCA.fit(x, y, 3, regularisation=0.0)
    theirs = Sklearn(3, max_iter=5000, tol=1e-12).fit(x, y)
    a, b = theirs.transform(x, y)
    expected = [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(3)]
    np.testing.assert_allclose(ours.correlations, expected, atol=1e-4)
    for k in range(3):
        mine = ours.images(x).mean[:, k].numpy()
        assert abs(np.corrcoef(mine, a[:, k])[0, 1]) > 0.999


def test_each_dimension_correlates_as_said_and_with_no_other() -> None:
    x, y = related()
    cca = CCA.fit(x, y, 4, regularisation=0.0)
    a, b = cca.images(x).mean.double(), cca.captions(y).mean.double()
    np.testing.assert_allclose(a.T @ a / len(a), np.eye(4), atol=1e-4)
    np.testing.assert_allclose(a.T @ b / len(a), np.diag(cca.correlations), atol=1e-4)


def test_scores_find_the_caption_that_belongs_to_an_image() -> None:
    x, y = related(noise=0.1)
    cca = CCA.fit(x[:500], y[:500], 3)
    scores = similarity.cosine(cca.images(x[500:]), cca.captions(y[500:]))
    assert (scores.argmax(dim=1) == torch.arange(100)).float().mean() > 0.5


def test_shifts_and_invertible_maps_of_the_features_change_nothing() -> None:
    x, y = related()
    mixed = x @ np.random.default_rng(1).normal(size=(7, 7)) + 11
    a, b = CCA.fit(x, y, 3, 0.0), CCA.fit(mixed, y, 3, 0.0)
    torch.testing.assert_close(a.correlations, b.correlations, rtol=1e-5, atol=1e-6)


def test_more_features_than_rows_and_constant_features_are_no_trouble() -> None:
    x, y = related(n=20, dx=40)
    x[:, 3] = 5.0
    cca = CCA.fit(torch.from_numpy(x).float(), torch.from_numpy(y).float(), 4, 1e-2, power=1.0)
    assert bool(cca.images(x).mean.isfinite().all())
    assert (cca.correlations <= 1).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: CCA.fit(x, y[:-1], 2), "600 rows but y has 599"),
        (lambda x, y: CCA.fit(x, y, 6), "between 1 and 5"),
        (lambda x, y: CCA.fit(np.where(x > 6, np.nan, x), y, 2), r"x\[\d+\] holds"),
        (lambda x, y: CCA.fit(x, np.ones_like(y), 2), "y is the same in every row"),
        (lambda x, y: CCA.fit(x, y, 2).images(y), r"x must be \(items, 7\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(*related())
