"""The map: projections, and ellipses that are what the projection makes of a covariance."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from halation.report._map import Clouds, ellipses, local_maps, make_map, principal


def matrix_of(shape: np.ndarray) -> np.ndarray:
    """The covariance an ellipse stands for."""
    long, short, turn = shape
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    return axes @ np.diag([long**2, short**2]) @ axes.T


def test_an_ellipse_is_the_projected_covariance(rng: np.random.Generator) -> None:
    variances = rng.gamma(2, 1, (9, 5))
    for jacobians in (rng.normal(size=(1, 2, 5)), rng.normal(size=(9, 2, 5))):
        shapes = ellipses(jacobians, variances)
        for k in range(9):
            projection = jacobians[k % len(jacobians)]
            np.testing.assert_allclose(
                matrix_of(shapes[k]), projection @ np.diag(variances[k]) @ projection.T, rtol=1e-9
            )
            assert shapes[k, 0] >= shapes[k, 1] >= 0


def test_an_ellipse_is_the_spread_of_projected_samples(rng: np.random.Generator) -> None:
    projection, variances = rng.normal(size=(2, 4)), rng.gamma(2, 1, 4)
    drawn = rng.normal(size=(200_000, 4)) * np.sqrt(variances) @ projection.T
    np.testing.assert_allclose(matrix_of(ellipses(projection[None], variances[None])[0]), np.cov(drawn.T), rtol=0.02)


def test_principal_axes_are_scikit_learns_up_to_their_sign(rng: np.random.Generator) -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    means = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6))
    axes, xy, share = principal(means)
    theirs = decomposition.PCA(2, svd_solver="full").fit(means)
    np.testing.assert_allclose(np.abs(axes), np.abs(theirs.components_), atol=1e-8)
    np.testing.assert_allclose(np.abs(xy), np.abs(theirs.transform(means)), atol=1e-8)
    assert share == pytest.approx(theirs.explained_variance_ratio_.sum())
    assert all(axis[np.abs(axis).argmax()] > 0 for axis in axes)  # one sign, so that a map does not flip


def test_a_space_of_one_dimension_is_a_line() -> None:
    _, xy, share = principal(np.array([[1.0], [3.0], [2.0]]))
    np.testing.assert_allclose(xy, [[-1, 0], [1, 0], [0, 0]])
    assert share == pytest.approx(1)


def test_a_map_shows_every_item_where_its_mean_is(rng: np.random.Generator) -> None:
    images, captions = rng.normal(size=(6, 4)), rng.normal(size=(12, 4))
    shown = make_map(Clouds(images, captions, 0.1 + 0 * images, 0.2 + 0 * captions), np.repeat(np.arange(6), 2))
    assert shown.method.startswith("PCA")
    assert shown.kinds.tolist() == [0] * 6 + [1] * 12
    assert shown.items.tolist() == [*range(6), *range(12)]
    axes, xy, _ = principal(np.concatenate([images, captions]))
    np.testing.assert_allclose(shown.xy, xy)
    assert shown.shapes is not None
    np.testing.assert_allclose(shown.shapes[:, :2], np.repeat(np.sqrt([0.1, 0.2]), [6, 12])[:, None] * [1, 1])
    assert axes.shape == (2, 4)


def test_a_large_gallery_is_drawn_from_with_all_captions_of_what_is_drawn(rng: np.random.Generator) -> None:
    clouds = Clouds(rng.normal(size=(50, 3)), rng.normal(size=(150, 3)))
    image_of = rng.permutation(np.repeat(np.arange(50), 3))
    shown, again = (make_map(clouds, image_of, largest=10, seed=3) for _ in range(2))
    images, captions = shown.items[shown.kinds == 0], shown.items[shown.kinds == 1]
    assert len(images) == 10 and len(captions) == 30
    assert set(image_of[captions]) == set(images)
    assert shown.shapes is None and any("10 of the 50" in note for note in shown.notes)
    np.testing.assert_array_equal(shown.xy, again.xy)


def test_local_maps_of_a_linear_map_are_that_map_where_the_data_lies(rng: np.random.Generator) -> None:
    projection = rng.normal(size=(2, 5))
    means = rng.normal(size=(60, 5))
    fitted = local_maps(means, means @ projection.T, 16)
    np.testing.assert_allclose(fitted, np.broadcast_to(projection, fitted.shape), atol=0.05)


def test_umap_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    given = {}

    class Umap:
        def __init__(self, **settings: object) -> None:
            given.update(settings)

        def fit_transform(self, means: np.ndarray) -> np.ndarray:
            return 3 * means[:, :2]  # a map whose linear part is known

    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Umap))
    means = rng.normal(size=(40, 3))
    shown = make_map(Clouds(means[:10], means[10:], np.ones((10, 3)), np.ones((30, 3))), np.repeat(np.arange(10), 3))
    assert shown.method == "UMAP" and given["random_state"] == 0
    np.testing.assert_allclose(shown.xy, 3 * means[:, :2])
    assert shown.shapes is not None
    np.testing.assert_allclose(shown.shapes[:, :2], 3, atol=0.15)  # three times a unit cloud
    assert any("neighbours" in note for note in shown.notes)
