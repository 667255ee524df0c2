"""Plausible-Match R-Precision against the published numbers, a naive loop and what must be true of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halation import InputError
from halation.metrics import plausible_matches, pmrp, r_precision

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    """Scores and codes of both directions, the two images without annotations left out."""
    arrays = np.load(GOLDEN / "pmrp.npz")
    images = np.setdiff1d(np.arange(60), arrays["no_annotation_images"])
    captions = np.flatnonzero(np.isin(np.arange(300) // 5, images))
    scores = arrays["sims"][np.ix_(images, captions)]
    image_codes, caption_codes = arrays["codes"][images], arrays["codes"][captions // 5]
    return {
        "i2t": (scores, image_codes, caption_codes),
        "t2i": (scores.T, caption_codes, image_codes),
        "rp": {key: arrays[key] for key in arrays if "_rp_" in key},
        "values": json.loads((GOLDEN / "pmrp.json").read_text(encoding="utf-8")),
    }


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_the_published_code_gives_the_same_values(golden: dict[str, Any], direction: str) -> None:
    for zeta in (0, 1, 2):
        expected = golden["rp"][f"{direction}_rp_zeta{zeta}"]
        np.testing.assert_allclose(pmrp(*golden[direction], zeta=zeta), expected, rtol=0, atol=1e-12)
        assert expected.mean() * 100 == pytest.approx(golden["values"][f"{direction}_by_zeta"][zeta])
    assert pmrp(*golden[direction]).mean() * 100 == pytest.approx(golden["values"][f"{direction}_pmrp"], abs=1e-10)


def test_the_value_is_the_mean_r_precision_of_codes_compared_one_by_one(rng: np.random.Generator) -> None:
    queries, items = rng.random((12, 9)) < 0.3, rng.random((40, 9)) < 0.3
    items[:12] = queries  # every query has a match
    scores = rng.integers(0, 15, (12, 40))  # with ties
    zetas = (0, 1, 3)
    expected = []
    for query, row in zip(queries, scores, strict=True):
        values = []
        for zeta in zetas:
            match = [sum(a != b for a, b in zip(query, item, strict=True)) <= zeta for item in items]
            ranked = [right for _, right in sorted(zip(-row, match, strict=True))]  # matches last among equals
            values.append(sum(ranked[: sum(match)]) / sum(match))
        expected.append(sum(values) / len(values))
    np.testing.assert_allclose(pmrp(scores, queries, items, zetas), expected, rtol=0, atol=1e-14)


def test_matches_are_counted_from_the_codes(rng: np.random.Generator) -> None:
    queries, items = rng.random((30, 80)) < 0.05, rng.random((70, 80)) < 0.05
    distances = (queries[:, None] != items).sum(axis=2)
    for zeta in (0, 2, 7):
        np.testing.assert_array_equal(plausible_matches(queries, items, zeta), distances <= zeta)


def test_the_average_over_zeta_is_the_mean_of_the_single_ones(golden: dict[str, Any]) -> None:
    single = [pmrp(*golden["i2t"], zeta=zeta) for zeta in (0, 1, 2)]
    np.testing.assert_allclose(pmrp(*golden["i2t"]), np.mean(single, axis=0), atol=1e-15)
    scores, queries, items = golden["i2t"]
    np.testing.assert_array_equal(single[1], r_precision(scores, plausible_matches(queries, items, 1)))


def test_blocks_of_rows_give_the_same_values(golden: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    value = pmrp(*golden["t2i"])
    monkeypatch.setattr("halation.metrics._blocks._CELLS", 700)
    np.testing.assert_array_equal(pmrp(*golden["t2i"]), value)


def test_a_ranking_cut_off_at_the_top_is_refused(golden: dict[str, Any]) -> None:
    scores, queries, items = golden["i2t"]
    with pytest.raises(InputError, match="cut off at the top would inflate"):
        pmrp(scores[:, :10], queries, items)


@pytest.mark.parametrize("zeta", [-1, (0, -1), (), (1, 1), 0.5, "0", (0, None)])
def test_a_zeta_that_is_not_a_count_is_refused(zeta: Any) -> None:
    with pytest.raises(InputError, match="zeta must be"):
        pmrp([[1.0]], [[1]], [[1]], zeta)


def test_codes_that_are_not_zero_or_one_or_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="query_codes must hold 0 and 1"):
        pmrp([[1.0]], [[2]], [[1]])
    with pytest.raises(InputError, match="item_codes must be a matrix"):
        pmrp([[1.0]], [[1]], [1])
    with pytest.raises(InputError, match="same classes"):
        pmrp([[1.0]], [[1, 0]], [[1]])
    with pytest.raises(InputError, match="query 0 has no relevant item"):
        pmrp([[1.0]], [[1, 1, 1]], [[0, 0, 0]])
