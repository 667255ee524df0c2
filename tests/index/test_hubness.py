"""Hubness: the corrections are those of their papers, live inside an L2 index, and help where there are hubs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from halation import InputError, similarity
from halation.index import Hubness, Index
from halation.index._items import Table
from halation.similarity import Gaussian
from index_contract import some_clouds

NAMES = [f"i{number}" for number in range(60)]


def csls(scores: torch.Tensor, to_bank: torch.Tensor, k: int) -> torch.Tensor:
    """2 s(q, i) − r(q) − r(i): Conneau et al., ICLR 2018, Eq. 8, r over the k nearest of the other side."""
    of_item = to_bank.topk(k, dim=0).values.mean(dim=0)
    of_query = scores.topk(k, dim=1).values.mean(dim=1)
    return 2 * scores - of_query[:, None] - of_item


def dual_softmax(scores: torch.Tensor, to_bank: torch.Tensor, temperature: float) -> torch.Tensor:
    """Softmax over the items times softmax over the queries (those of the bank and, as all of them share it, not q)."""
    over_items = torch.softmax(scores / temperature, dim=1)
    over_queries = torch.exp(scores / temperature) / torch.exp(to_bank / temperature).sum(dim=0)
    return over_items * over_queries


@pytest.mark.parametrize("name", ["cosine", "l2", "csd", "wasserstein2", "kl"])
@pytest.mark.parametrize("backend", ["exact", "faiss"])
def test_items_rank_as_the_papers_have_it(name: str, backend: str) -> None:
    items, bank, queries = some_clouds(60, 1), some_clouds(80, 2), some_clouds(6, 3)
    s = getattr(similarity, name)
    scores, to_bank = s(queries, items).double(), s(bank, items).double()
    temperature = 0.25 * float(to_bank.std(correction=0))
    for kind, wanted in (
        ("csls", csls(scores, to_bank, 10)),
        ("dual_softmax", dual_softmax(scores, to_bank, temperature)),
    ):
        index = Index(NAMES, items, s, backend, hubness=kind, queries=bank, rerank=60)  # type: ignore[arg-type]
        ranking = index.search(queries, 60)
        np.testing.assert_array_equal(ranking.rows, wanted.argsort(dim=1, descending=True).numpy())
        # what is taken off an item is the same for all queries, and nothing on the whole
        taken = np.take_along_axis(scores.numpy(), ranking.rows, axis=1) - ranking.scores
        by_item = np.take_along_axis(taken, np.argsort(ranking.rows, axis=1), axis=1)
        np.testing.assert_allclose(by_item, by_item[:1].repeat(6, axis=0), atol=1e-3)
        assert abs(by_item.mean()) < 1e-3


def test_probabilities_stay_those_of_the_similaritys_own_scores() -> None:
    items, queries = some_clouds(60, 1), some_clouds(6, 3)
    index = Index(NAMES, items, hubness="csls", queries=some_clouds(80, 2), probability=lambda scores: scores)
    ranking = index.search(queries, 20)
    uncorrected = np.take_along_axis(similarity.csd(queries, items).numpy(), ranking.rows, axis=1)
    assert ranking.probabilities is not None
    np.testing.assert_allclose(ranking.probabilities, uncorrected, atol=1e-4)
    assert not np.allclose(ranking.scores, uncorrected, atol=1e-2)


@pytest.mark.parametrize("kind", ["csls", "dual_softmax"])
def test_items_added_later_are_corrected_alike_however_far_they_lie(kind: str, tmp_path: Path) -> None:
    items, bank, queries = some_clouds(60, 1), some_clouds(80, 2), some_clouds(6, 3)
    far = Gaussian(items.mean[40:] * 30, items.log_var[40:])  # type: ignore[index]  # below the floor of the first
    everything = Gaussian.cat([items[:40], far])
    hubness = Hubness(kind, bank, temperature=2.0)  # type: ignore[arg-type]
    index = Index(NAMES[:40], items[:40], hubness=hubness)
    index.save(tmp_path / "idx")
    for grown in (index, Index.load(tmp_path / "idx")):
        grown.add(NAMES[40:], far)
        whole = Index(NAMES, everything, hubness=hubness)
        a, b = grown.search(queries, 60), whole.search(queries, 60)
        np.testing.assert_array_equal(a.rows, b.rows)
        shift = a.scores - b.scores  # the two were centred on other items
        np.testing.assert_allclose(shift, shift[0, 0], atol=0.02)


def test_a_hub_no_longer_answers_every_query() -> None:
    g = torch.Generator().manual_seed(0)
    truth = torch.nn.functional.normalize(torch.randn(60, 30, generator=g), dim=1)
    hub = torch.zeros(1, 30)  # near to all
    items = torch.cat([2 * truth, hub])
    bank, queries = (truth + 0.25 * torch.randn(60, 30, generator=g) for _ in range(2))
    names = [*NAMES, "hub"]

    def right(hubness: str | None) -> float:
        index = Index(names, items, similarity.l2, hubness=hubness, queries=bank)  # type: ignore[arg-type]
        return float(np.mean(index.search(queries, 1).rows[:, 0] == np.arange(60)))

    assert right(None) < 0.6
    assert right("csls") > 0.8
    assert right("dual_softmax") > 0.8


def test_what_was_taken_off_is_read_without_the_gaussians(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(NAMES, some_clouds(60, 1), hubness="csls")
    take, read = Table.take, []

    def taken(table: Table, positions: np.ndarray, columns: object = None) -> object:
        rows = take(table, positions, columns)  # type: ignore[arg-type]
        read.extend(rows)
        return rows

    monkeypatch.setattr(Table, "take", taken)
    assert np.isfinite(index.search(some_clouds(2, 2), 60).uncorrected).all()
    assert read == ["penalty"]


def test_without_queries_the_items_are_their_own_bank() -> None:
    index = Index(NAMES, some_clouds(60, 1), hubness="csls")
    assert len(index.search(some_clouds(2, 2), 5).ids[0]) == 5


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'csls'"):
        Index(NAMES, some_clouds(60, 1), hubness="clss")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the queries have 3 dimensions, the items 6"):
        Index(NAMES, some_clouds(60, 1), hubness="csls", queries=np.zeros((4, 3)))
    with pytest.raises(InputError, match="must be above 0"):
        Hubness("dual_softmax", some_clouds(4, 1), temperature=0.0)
