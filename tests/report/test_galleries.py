"""Which queries are looked at: as a slow reading of the table would choose them."""

from __future__ import annotations

import numpy as np
import pytest

from halation._arrays import FloatArray
from halation.data import Dataset
from halation.report._facts import Gallery, TruthCoverage
from halation.report._galleries import asp_histograms, choose_galleries, mark_words, truth_coverage
from worlds import sample_truth


def table(rng: np.random.Generator, queries: int = 60) -> dict[str, FloatArray]:
    hit = (rng.random(queries) < 0.4).astype(float)
    ranks = np.where(hit > 0, 1, rng.integers(2, 50, queries)).astype(float)
    precision = np.where(rng.random(queries) < 0.3, 0.0, rng.integers(0, 5, queries) / 4)
    pmrp = rng.integers(0, 4, queries) / 3
    pmrp[::7] = np.nan  # images without classes
    return {"R@1": hit, "MedR": ranks, "R-P": precision, "PMRP": pmrp, "ASP(tfidf)": rng.random(queries)}


def by_key(galleries: list[Gallery]) -> dict[str, Gallery]:
    return {one.key: one for one in galleries}


def slow(rows: list[int], keys: list[tuple[FloatArray, int]], count: int) -> list[int]:
    """The row with the biggest keys, then the next, …: one at a time."""
    left, chosen = list(rows), []
    while left and len(chosen) < count:
        best = left[0]
        for row in left[1:]:
            for column, sign in keys:
                if column[row] != column[best]:
                    if sign * column[row] > sign * column[best]:
                        best = row
                    break
        chosen.append(best)
        left.remove(best)
    return chosen


def test_disagreements_are_those_a_person_would_pick_from_the_table(rng: np.random.Generator) -> None:
    columns = table(rng)
    items = rng.permutation(1000)[:60]
    galleries = by_key(choose_galleries("t2i", items, columns, count=5))
    asp, hit, precision, pmrp, rank = (columns[name] for name in ("ASP(tfidf)", "R@1", "R-P", "PMRP", "MedR"))
    every = list(range(60))
    hits, misses = [r for r in every if hit[r]], [r for r in every if not hit[r]]
    expected = {
        "hit_low_asp": (hits, [(asp, -1)]),
        "miss_high_asp": (misses, [(asp, 1)]),
        "miss_high_rp": ([r for r in misses if precision[r] > 0], [(precision, 1), (asp, 1)]),
        "hit_low_pmrp": ([r for r in hits if not np.isnan(pmrp[r])], [(pmrp, -1), (asp, -1)]),
        "miss_high_pmrp": ([r for r in misses if pmrp[r] > 0], [(pmrp, 1), (asp, 1)]),
        "best": (every, [(hit, 1), (precision, 1), (asp, 1)]),
        "worst": (every, [(rank, 1), (asp, -1)]),
    }
    assert list(galleries) == list(expected)
    for key, (rows, keys) in expected.items():
        assert list(galleries[key].queries) == [items[row] for row in slow(rows, keys, 5)], key
        assert galleries[key].candidates == len(rows), key


def test_the_same_words_are_asked_once_in_a_gallery(rng: np.random.Generator) -> None:
    columns, words = table(rng), [f"caption {row % 9}" for row in range(60)]
    asp = columns["ASP(tfidf)"]
    galleries = by_key(choose_galleries("t2i", np.arange(60), columns, columns, texts=words))
    hits = [row for row in range(60) if columns["R@1"][row]]
    ranked, seen = slow(hits, [(asp, -1)], 60), []
    for row in ranked:
        if words[row] not in [words[other] for other in seen]:
            seen.append(row)
    assert list(galleries["hit_low_asp"].queries) == seen[:6] and galleries["hit_low_asp"].candidates == len(hits)
    for one in galleries.values():
        texts = [words[row] for row in one.queries]
        assert len(texts) == len(set(texts))
    assert galleries["won"].queries == ()


def test_what_two_runs_answer_differently_is_won_and_lost(rng: np.random.Generator) -> None:
    ours, theirs = table(rng), table(rng)
    galleries = by_key(choose_galleries("i2t", np.arange(60), ours, theirs, count=4))
    won = [r for r in range(60) if ours["R@1"][r] and not theirs["R@1"][r]]
    lost = [r for r in range(60) if theirs["R@1"][r] and not ours["R@1"][r]]
    assert list(galleries["won"].queries) == slow(won, [(theirs["MedR"], 1)], 4)
    assert list(galleries["lost"].queries) == slow(lost, [(ours["MedR"], 1)], 4)
    assert (galleries["won"].candidates, galleries["lost"].candidates) == (len(won), len(lost)) and won and lost


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ("written", "a caption written for another image may match too"),
        ("judged", "not every pair was judged"),
        ("classes", "only answers of the same class count as right"),
        ("all", "Every pair of this data is known, so the first answer is wrong"),
    ],
)
def test_a_miss_is_doubted_only_where_the_truth_leaves_room(
    rng: np.random.Generator, known: TruthCoverage, sentence: str
) -> None:
    galleries = by_key(choose_galleries("t2i", np.arange(60), table(rng), coverage=known))
    for key in ("miss_high_asp", "miss_high_rp"):
        assert sentence in galleries[key].why
        assert ("really wrong" in galleries[key].why) == (known != "all")
    for key in ("hit_low_asp", "miss_high_asp", "best"):
        assert "tf-idf" in galleries[key].why and "meaning" not in galleries[key].why


def test_a_pair_that_is_not_marked_may_match_unless_every_pair_is_known() -> None:
    assert mark_words("written")[""][1:] == ("not marked", "No annotator marked this pair, but it may match.")
    assert mark_words("all")[""][1] == "no match" and "may" not in mark_words("all")[""][2]
    assert mark_words("classes")[""][1] == "another class"


def test_how_far_a_truth_knows_the_rest() -> None:
    truth = sample_truth(20)
    wider = truth.replace(kind="pairs")
    assert truth_coverage(Dataset("tiny-test", truth)) == "written"
    assert (
        truth_coverage(Dataset("tiny-test", wider)) == "judged"
    )  # pairs of anybody: others may not have been looked at
    assert truth_coverage(Dataset("scenes-test", wider)) == "all"
    assert truth_coverage(Dataset("cub-test", truth.replace(kind="classes"))) == "classes"


def test_one_right_answer_leaves_no_miss_with_high_precision(rng: np.random.Generator) -> None:
    columns = table(rng)
    columns["R-P"] = columns["R@1"].copy()  # what R-Precision is when there is one right answer
    del columns["PMRP"]
    galleries = by_key(choose_galleries("t2i", np.arange(60), columns))
    assert galleries["miss_high_rp"].queries == () and galleries["miss_high_rp"].candidates == 0
    assert "miss_high_pmrp" not in galleries


def test_every_query_is_either_a_hit_or_a_miss_in_the_histogram_of_asp(rng: np.random.Generator) -> None:
    columns = table(rng)
    hits, misses = asp_histograms(columns)
    assert hits.edges == misses.edges
    assert (sum(hits.counts), sum(misses.counts)) == (int(columns["R@1"].sum()), int((1 - columns["R@1"]).sum()))
    middle = np.digitize(100 * columns["ASP(tfidf)"], hits.edges[1:-1])
    for one, which in ((hits, columns["R@1"] > 0), (misses, columns["R@1"] == 0)):
        assert list(one.counts) == np.bincount(middle[which], minlength=len(one.counts)).tolist()


@pytest.mark.parametrize("value", [0.5, 0.612])
def test_queries_that_are_all_alike_have_a_histogram_too(value: float) -> None:
    columns = {"R@1": np.ones(4), "ASP(tfidf)": np.full(4, value)}
    assert sum(asp_histograms(columns)[0].counts) == 4
