"""The map by the real UMAP (extra `map`): what is near stays near, the same seed gives the same map, few items too."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from halation.report import gather_facts
from halation.report._facts import Map
from halation.report._map import Clouds, make_map

pytestmark = pytest.mark.skipif(find_spec("umap") is None, reason="needs umap-learn: the extra map")
_GROUPS, _EACH, _DIM = 4, 15, 8


@pytest.fixture(scope="module")
def grouped() -> tuple[Clouds, np.ndarray]:
    """Four far groups of images, a caption for each beside it; (n,) the group of every item of the map."""
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(_GROUPS), _EACH)
    middle = 20 * np.eye(_DIM)[:_GROUPS]
    images = middle[group] + rng.normal(size=(len(group), _DIM))
    captions = middle[group] + rng.normal(size=(len(group), _DIM))
    clouds = Clouds(images, captions, 0.04 + 0 * images, np.where(group[:, None] == 0, 4.0, 0.04) + 0 * captions)
    return clouds, np.concatenate([group, group])


def test_umap_keeps_together_what_is_together(grouped: tuple[Clouds, np.ndarray]) -> None:
    clouds, group = grouped
    shown = make_map(clouds, np.arange(_GROUPS * _EACH))
    assert shown.method == "UMAP" and any("neighbours" in note for note in shown.notes)
    assert shown.xy.shape == (len(group), 2) and np.isfinite(shown.xy).all()
    apart = np.linalg.norm(shown.xy[:, None] - shown.xy[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    assert (group[apart.argmin(axis=1)] == group).mean() > 0.95
    assert shown.shapes is not None and np.isfinite(shown.shapes).all()
    long = shown.shapes[:, 0]
    wide = (shown.kinds == 1) & (group == 0)  # captions whose clouds are ten times as wide
    assert np.median(long[wide]) == pytest.approx(10 * np.median(long[(shown.kinds == 0) & (group == 0)]), rel=0.5)


def test_the_same_words_many_times_are_one_place_with_a_cloud_like_others(grouped: tuple[Clouds, np.ndarray]) -> None:
    """Twenty captions alike had nobody but each other for neighbours: an island, with clouds without measure."""
    clouds, _ = grouped
    captions = clouds.captions.copy()
    captions[:20] = captions[0]
    spread = 0.04 + 0 * captions
    shown = make_map(Clouds(clouds.images, captions, spread, spread), np.arange(_GROUPS * _EACH))
    places = shown.xy[shown.kinds == 1]
    assert shown.shapes is not None
    long = shown.shapes[shown.kinds == 1, 0]
    assert (places[:20] == places[0]).all() and not (places[20:] == places[0]).all(axis=1).any()
    assert long[:20].max() < 5 * np.median(long[20:])


def test_the_same_seed_gives_the_same_map(grouped: tuple[Clouds, np.ndarray]) -> None:
    clouds, _ = grouped
    one, again, other = (make_map(clouds, np.arange(_GROUPS * _EACH), seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.xy, again.xy)
    assert not np.allclose(one.xy, other.xy)


@pytest.mark.parametrize("images", [1, 2, 3, 4])
def test_a_handful_of_items_has_a_map(images: int, rng: np.random.Generator) -> None:
    shown = make_map(Clouds(rng.normal(size=(images, 5)), rng.normal(size=(images, 5))), np.arange(images))
    assert shown.xy.shape == (2 * images, 2) and np.isfinite(shown.xy).all()


def test_a_report_says_that_umap_drew_its_map(runs: tuple[Path, Path], world: Path) -> None:
    facts, _ = gather_facts(runs[0], world, queries=0)
    assert isinstance(facts.map, Map) and facts.map.method == "UMAP"
    assert facts.map.shapes is not None and np.isfinite(facts.map.shapes).all()
