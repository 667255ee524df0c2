"""`Index`: searching, changing, and refused input."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from halation import InputError, similarity
from halation.calibration import Platt, ProbabilityMap
from halation.index import Exact, Index
from halation.index._similarity import PointEncoder, checked
from halation.similarity import Gaussian
from index_contract import some_clouds

INDEXED = ["cosine", "l2", "csd", "wasserstein2"]
OTHERS = ["kl", "reverse_kl", "jeffreys", "bhattacharyya", "expected_likelihood"]


def names(n: int) -> list[str]:
    return [f"item {number}" for number in range(n)]


def check_against(scores: torch.Tensor, ranking: object, k: int) -> None:
    """The ranking is the top k of the scores: the same values in the same order, each the item's own."""
    rows, values = ranking.rows, ranking.scores  # type: ignore[attr-defined]
    scale = float(scores.abs().max()) + 1
    best = scores.topk(k, dim=1).values.numpy()
    np.testing.assert_allclose(values, best, rtol=0, atol=2e-6 * scale)
    np.testing.assert_allclose(values, np.take_along_axis(scores.numpy(), rows, axis=1), rtol=0, atol=2e-6 * scale)
    assert all(len(set(row)) == k for row in rows.tolist())


@pytest.mark.parametrize("points", [False, True])
def test_queries_of_csd_get_the_points_of_csd(points: bool) -> None:
    some = some_clouds(7, seed=3)
    queries = Gaussian.point(some.mean) if points else some
    points, constant = PointEncoder(similarity.csd, penalty=False).queries(queries)
    np.testing.assert_array_equal(points, similarity.csd.query_points(queries).numpy())
    expected = similarity.csd.query_offset(queries)
    assert expected is not None
    np.testing.assert_allclose(np.broadcast_to(constant, 7), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", INDEXED)
@settings(max_examples=20)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 60),
    dim=st.integers(1, 20),
    points=st.sampled_from(["none", "items", "queries", "both"]),
    offset=st.sampled_from([0.0, 100.0]),
)
def test_an_exact_index_ranks_and_scores_as_the_similarity_itself(
    name: str, seed: int, n: int, dim: int, points: str, offset: float
) -> None:
    items, queries = some_clouds(n, seed, dim), some_clouds(5, seed + 1, dim)
    items = Gaussian(items.mean + offset, None if points in ("items", "both") else items.log_var)
    queries = Gaussian(queries.mean + offset, None if points in ("queries", "both") else queries.log_var)
    s = getattr(similarity, name)
    k = min(n, 7)
    ranking = Index(names(n), items, s, "exact").search(queries, k)
    check_against(s(queries.to(torch.float64), items.to(torch.float64)), ranking, k)
    assert ranking.ids == [[f"item {row}" for row in rows] for rows in ranking.rows.tolist()]


@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), dim=st.integers(1, 12))
def test_a_similarity_without_points_is_exact_when_everything_is_fetched(
    name: str, seed: int, n: int, dim: int
) -> None:
    items, queries, s = some_clouds(n, seed, dim), some_clouds(4, seed + 1, dim), getattr(similarity, name)
    k = min(n, 5)
    ranking = Index(names(n), items, s, "exact").search(queries, k, rerank=n)
    check_against(s(queries, items), ranking, k)


@pytest.mark.parametrize("name", ["match_probability", "sample_min", "sample_mean", "sample_max"])
def test_one_that_draws_samples_gives_the_same_scores_every_time(name: str) -> None:
    items, queries = some_clouds(30, 1), some_clouds(3, 2)
    extra = {"scale": 5.0, "shift": 5.0} if name == "match_probability" else {}
    function = functools.partial(getattr(similarity, name), samples=6, **extra)
    s = functools.partial(function, generator=torch.Generator().manual_seed(8))
    index = Index(names(30), items, s, "exact", rerank=30)
    together, again = index.search(queries, 30), index.search(queries, 30)
    np.testing.assert_array_equal(together.scores, again.scores)
    for number in range(3):  # a query's scores depend on no other query, and are the similarity's own
        query = queries[number]
        scores = function(query, items, generator=torch.Generator().manual_seed(8))[0]
        np.testing.assert_allclose(together.scores[number], scores.sort(descending=True).values.numpy(), rtol=1e-5)
        np.testing.assert_array_equal(index.search(query, 30).scores[0], together.scores[number])


def test_reranking_more_candidates_finds_what_the_means_alone_miss() -> None:
    items, queries = some_clouds(400, 1), some_clouds(20, 2)
    truth = similarity.kl(queries, items).topk(5, dim=1).indices.numpy()
    index = Index(names(400), items, similarity.kl, "exact")
    recalls = [
        np.mean([len(set(a) & set(b)) / 5 for a, b in zip(index.search(queries, 5, rerank=r).rows, truth, strict=True)])
        for r in (1, 8, 80)
    ]
    assert recalls[0] < recalls[1] < recalls[2] == 1


def test_an_empty_index_gives_an_empty_ranking_and_can_be_filled() -> None:
    index = Index([], np.empty((0, 3)), backend="exact", probability=lambda scores: scores)
    ranking = index.search([[0.0, 0.0, 0.0]] * 2)
    assert ranking.ids == [[], []]
    assert ranking.scores.shape == ranking.rows.shape == (2, 0)
    assert ranking.probabilities is not None
    assert ranking.probabilities.shape == (2, 0)
    index.add(["a"], some_clouds(1, 1, 3))  # Gaussians, though the empty array could not say so
    assert index.search([[0.0, 0.0, 0.0]]).ids == [["a"]]


@pytest.mark.parametrize("backend", ["exact", "faiss"])
def test_more_than_there_are_gives_all_there_are(backend: str) -> None:
    ranking = Index(names(4), some_clouds(4, 1), backend=backend).search(some_clouds(2, 2), 100)
    assert ranking.k == 4
    assert sorted(ranking.ids[0]) == names(4)


def test_no_queries_give_no_rows() -> None:
    ranking = Index(names(4), some_clouds(4, 1)).search(np.empty((0, 6)), 3)
    assert len(ranking) == 0
    assert ranking.scores.shape == (0, 3)


@pytest.mark.parametrize("backend", ["exact", "faiss"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_any_sequence_of_changes_is_as_if_made_anew(backend: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    index, model = Index([], np.empty((0, 4)), backend=backend), dict[str, Gaussian]()
    for step in range(10):
        chosen = [f"n{number}" for number in draw.choice(20, size=int(draw.integers(0, 9)), replace=False)]
        if draw.random() < 0.35:
            chosen = [name for name in chosen if name in model]
            index.remove(chosen)
            model = {name: value for name, value in model.items() if name not in chosen}
        else:
            new = some_clouds(len(chosen), 1000 * seed + step, 4)
            index.add(chosen, new)
            model |= {name: new[number] for number, name in enumerate(chosen)}
        assert sorted(index.ids) == sorted(model)
        assert len(index) == len(model)
    if not model:
        return
    for row, name in enumerate(index.ids):
        assert torch.equal(index.gaussians([row]).mean, model[name].mean)
        assert index.rows([name]).tolist() == [row]
    queries, items = some_clouds(3, seed + 5, 4), Gaussian.cat([model[name] for name in index.ids])
    k = min(5, len(model))
    check_against(similarity.csd(queries.to(torch.float64), items.to(torch.float64)), index.search(queries, k), k)


def test_probabilities_are_those_of_the_scores() -> None:
    index = Index(names(30), some_clouds(30, 1), probability=lambda scores: 1 / (1 + np.exp(-scores)))
    ranking = index.search(some_clouds(4, 2), 5)
    assert ranking.probabilities is not None
    np.testing.assert_allclose(ranking.probabilities, 1 / (1 + np.exp(-ranking.scores)), rtol=1e-6)


@pytest.mark.parametrize("best", [0.0, -0.6, -1.0])
def test_a_calibration_reads_each_query_by_itself_and_knows_the_gallery(best: float) -> None:
    calibration = ProbabilityMap(Platt(1.5, -1.0), "t2i", gallery=10, positives=0.5, top=5, context={"best": best})
    index = Index(names(40), some_clouds(40, 1), probability=calibration)
    queries = some_clouds(2, 2)
    together = index.search(queries, 5)
    assert together.probabilities is not None
    np.testing.assert_allclose(together.probabilities, calibration(together.scores, 40), rtol=1e-5)
    for row in range(2):
        alone = index.search(queries[row : row + 1], 5).probabilities
        assert alone is not None
        np.testing.assert_allclose(together.probabilities[row], alone[0], rtol=1e-5)


def test_a_function_without_a_signature_gives_probabilities_too() -> None:
    ranking = Index(names(30), some_clouds(30, 1), probability=np.exp).search(some_clouds(4, 2), 5)
    np.testing.assert_allclose(ranking.probabilities, np.exp(ranking.scores), rtol=1e-5)


def test_half_precision_and_gradients_are_taken_as_they_come() -> None:
    items = some_clouds(20, 1)
    half = Gaussian(items.mean.half().requires_grad_(), items.log_var.half())  # type: ignore[union-attr]
    ranking = Index(names(20), half, backend="exact").search(half[:3], 4)
    check_against(similarity.csd(half[:3].detach(), half.detach()).double(), ranking, 4)


def test_what_does_not_fit_is_refused_by_name() -> None:
    items = some_clouds(3, 1)
    with pytest.raises(InputError, match="2 ids but 3 Gaussians"):
        Index(["a", "b"], items)
    with pytest.raises(InputError, match="ids 0 and 2 are both 'a'"):
        Index(["a", "b", "a"], items)
    with pytest.raises(InputError, match="id 1 is ''"):
        Index(["a", "", "c"], items)
    with pytest.raises(InputError, match="a list, not the one id"):
        Index("abc", items)
    with pytest.raises(InputError, match="did you mean 'faiss'"):
        Index(["a", "b", "c"], items, backend="fais")
    with pytest.raises(InputError, match="is not a backend"):
        Index(["a", "b", "c"], items, backend=object())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="recall is 99"):
        Index(["a", "b", "c"], items, recall=99)
    index = Index(["a", "b", "c"], items)
    with pytest.raises(InputError, match="the queries have 5 dimensions, the index 6; are they of one model"):
        index.search(np.zeros((1, 5)))
    with pytest.raises(InputError, match="the items have 5 dimensions, the index 6"):
        index.add(["d"], np.zeros((1, 5)))
    with pytest.raises(InputError, match="the index holds Gaussians, and these are points"):
        index.add(["d"], np.zeros((1, 6)))
    for k in (0, -3, 2.5, True):
        with pytest.raises(InputError, match=r"k is .*whole number"):
            index.search(items, k)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="there is no item 'x' among the 3"):
        index.remove(["a", "x"])
    assert index.ids == ["a", "b", "c"]
    with pytest.raises(InputError, match="kl is undefined at zero variance"):
        Index(["a", "b", "c"], items, similarity.kl).search(np.zeros((1, 6)))


def test_ids_are_strings_or_integers_and_never_both() -> None:
    items = some_clouds(3, 1)
    for ids in ([7, "a", 3], ["a", 7, "b"]):
        with pytest.raises(InputError, match="are of two kinds; use strings or integers, not both"):
            Index(ids, items)  # type: ignore[arg-type]
    for wrong in (1.0, None, True, b"a", 2**63):
        with pytest.raises(InputError, match="an id is a string that is not empty, or an integer"):
            Index(["a", "b", wrong], items)  # type: ignore[list-item]
    with pytest.raises(InputError, match="ids 0 and 2 are both 4"):
        Index([4, 5, 4], items)
    with pytest.raises(InputError, match="a list, not the one id 4"):
        Index(4, items)  # type: ignore[arg-type]
    numbers, texts = Index(range(3), items), Index(["0", "1", "2"], items)
    for change in (lambda: numbers.add(["3"], items[:1]), lambda: numbers.remove(["1"]), lambda: numbers.rows(["1"])):
        with pytest.raises(InputError, match=r"the ids of this index are integers, and '.' is not"):
            change()
    with pytest.raises(InputError, match="the ids of this index are strings, and 1 is not"):
        texts.remove([1])
    assert numbers.ids == [0, 1, 2] and 1 in numbers and "1" not in numbers and 1 not in texts
    numbers.remove(torch.arange(3))
    numbers.add(["a"], items[:1])  # an index that is empty takes either
    assert numbers.ids == ["a"]


def test_numbers_that_are_none_are_refused_with_the_items_name() -> None:
    items = some_clouds(3, 1)
    items.mean[1, 2] = float("nan")
    with pytest.raises(InputError, match="the mean of item 'b' is not finite"):
        Index(["a", "b", "c"], items)
    index = Index(["a"], some_clouds(1, 1))
    with pytest.raises(InputError, match="the mean of query 1 is not finite"):
        index.search(items)
    for wrong in (float("nan"), float("inf"), -float("inf")):
        items = some_clouds(3, 1)
        assert items.log_var is not None
        items.log_var[2, 0] = wrong
        with pytest.raises(InputError, match="the log_var of query 2 is not finite"):
            index.search(items)
    huge = some_clouds(1, 1)
    huge.mean[:] = 3e38  # their sum is not finite; they are
    assert checked(huge, "query") is huge


def test_a_zero_vector_cannot_be_indexed_by_cosine_but_may_be_a_query() -> None:
    with pytest.raises(InputError, match="the mean of 'b' is zero"):
        Index(["a", "b"], [[1.0, 0.0], [0.0, 0.0]], similarity.cosine)
    ranking = Index(["a", "b"], [[1.0, 0.0], [0.0, 1.0]], similarity.cosine).search([[0.0, 0.0]], 2)
    np.testing.assert_allclose(ranking.scores, 0, atol=1e-6)


def test_a_backend_of_ones_own_serves() -> None:
    class Mine(Exact):
        name = "mine"

    index = Index(names(20), some_clouds(20, 1), backend=Mine())
    check_against(similarity.csd(some_clouds(3, 2), some_clouds(20, 1)), index.search(some_clouds(3, 2), 4), 4)
    assert repr(index) == "Index(20 items of 6 dimensions, csd, mine)"
