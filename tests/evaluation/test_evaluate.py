"""`evaluate` and its report: every number against the metric functions, whatever the scores come from."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from halation import InputError, caption_relevance, metrics
from halation.data import Truth
from halation.evaluation import Rankings, Report, evaluate

World = tuple[np.ndarray, Truth]
KEYS = ["R@1", "R@5", "R@10", "MedR", "R-P", "mAP@R", "nDCG@10", "PMRP"]
KEYS += ["ASP(tfidf)", "ASP(cider)", "ASP(bleu4)", "ASP(rouge-l)", "ASP(mean)"]


@pytest.fixture(scope="module")
def report(world: World) -> Report:
    return evaluate(*world, resamples=200)


def results_of(report: Report) -> dict[str, float]:
    return {f"{d} {name}": value for d in ("i2t", "t2i") for name, value in report.results(d).items()}


def test_a_report_has_every_metric_of_the_field_in_both_directions(report: Report) -> None:
    for direction in ("i2t", "t2i"):
        shown = [name for name in report.results(direction) if "ceiling" not in name and "adjusted" not in name]
        assert shown == KEYS


@pytest.mark.parametrize("direction", ["i2t", "t2i"])
def test_every_number_is_the_mean_of_its_metric_function(world: World, report: Report, direction: str) -> None:
    scores, truth = world
    relevant = truth.positives("i2t")
    codes = [truth.classes, truth.caption_classes]
    if direction == "t2i":
        scores, relevant, codes = scores.T, relevant.T, codes[::-1]
    expected = {f"R@{k}": metrics.hit_at(scores, relevant, k) for k in (1, 5, 10)}
    expected |= {
        "R-P": metrics.r_precision(scores, relevant),
        "mAP@R": metrics.map_at_r(scores, relevant),
        "nDCG@10": metrics.ndcg_at(scores, relevant.astype(float), 10),
        "PMRP": metrics.pmrp(scores, *codes),
    }
    for name in ("tfidf", "cider", "bleu4", "rouge-l", "mean"):
        relevance = caption_relevance(truth.captions, truth.image_of, metric=name)
        relevance = relevance.T if direction == "t2i" else relevance
        expected[f"ASP({name})"] = metrics.asp(scores, relevance)
        expected[f"ASP({name}) ceiling"] = metrics.asp_ceiling(relevance)
    for name, values in expected.items():
        np.testing.assert_allclose(report.per_query[direction][name], values, rtol=1e-12, err_msg=name)
        assert report.results(direction)[name] == pytest.approx(100 * values.mean())
    assert report.results(direction)["MedR"] == metrics.median_rank(scores, relevant)
    chance = metrics.chance_asp(scores.shape[1])
    adjusted = (expected["ASP(tfidf)"].mean() - chance) / (expected["ASP(tfidf) ceiling"].mean() - chance)
    assert report.results(direction)["ASP(tfidf) adjusted"] == pytest.approx(100 * adjusted)


def test_bare_asp_is_the_released_protocol_tfidf(report: Report) -> None:
    assert report.t2i["ASP"] == report.t2i["ASP(tfidf)"]
    assert "ASP" in report.i2t
    assert report.i2t.interval("ASP") == report.i2t.interval("ASP(tfidf)")


def test_rsum_is_the_sum_of_six_recalls_with_an_interval(report: Report) -> None:
    six = [report.results(d)[f"R@{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10)]
    assert report.rsum == pytest.approx(sum(six))
    low, high = report.rsum_interval
    assert low < report.rsum < high


def test_intervals_contain_their_value(report: Report) -> None:
    for direction in ("i2t", "t2i"):
        for name in KEYS:
            low, high = report.results(direction).interval(name)
            assert low <= report.results(direction)[name] <= high, name


def test_no_resamples_means_no_intervals(world: World) -> None:
    bare = evaluate(*world, ["R@1"], resamples=0)
    assert math.isnan(bare.i2t.interval("R@1")[0])
    assert "[" not in str(bare)


def test_folds_are_separate_galleries_averaged(world: World) -> None:
    scores, truth = world
    folded = evaluate(scores, truth, ["R@1", "MedR", "ASP", "PMRP"], folds=3, resamples=0)
    parts = []
    relevance = caption_relevance(truth.captions, truth.image_of)
    for start in range(0, 60, 20):
        images, captions = slice(start, start + 20), slice(5 * start, 5 * start + 100)
        relevant = truth.positives("i2t")[images, captions]
        parts.append(
            [
                metrics.hit_at(scores[images, captions], relevant, 1).mean(),
                metrics.median_rank(scores[images, captions], relevant) / 100,
                metrics.asp(scores[images, captions], relevance[images, captions]).mean(),  # idf of the whole split
                metrics.pmrp(scores[images, captions], truth.classes[images], truth.caption_classes[captions]).mean(),
            ]
        )
    expected = 100 * np.mean(parts, axis=0)
    got = [folded.i2t[name] for name in ("R@1", "MedR", "ASP", "PMRP")]
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert folded.about["gallery"] == {"i2t": [100] * 3, "t2i": [20] * 3}


@pytest.mark.parametrize(
    "convert", [torch.from_numpy, lambda x: x.astype(np.float64), lambda x: x.tolist(), np.asfortranarray]
)
def test_scores_may_come_as_tensors_lists_or_any_layout(world: World, report: Report, convert) -> None:
    again = evaluate(convert(world[0]), world[1], resamples=0)
    assert results_of(again) == pytest.approx(results_of(report))


def test_half_precision_scores_rank_as_their_values(world: World) -> None:
    scores, truth = world
    half = scores.astype(np.float16)
    assert results_of(evaluate(half, truth, resamples=0)) == results_of(
        evaluate(half.astype(np.float64), truth, resamples=0)
    )


def test_shifted_and_scaled_scores_give_the_same_report(world: World, report: Report) -> None:
    assert results_of(evaluate(1e6 * world[0].astype(np.float64) - 3e7, world[1], resamples=0)) == pytest.approx(
        results_of(report)
    )


def test_embeddings_in_blocks_give_the_report_of_their_score_matrix(world: World, rng: np.random.Generator) -> None:
    truth = world[1]
    images, captions = rng.standard_normal((60, 6)), rng.standard_normal((300, 6))
    from_points = evaluate(images=images, captions=captions, truth=truth, similarity=lambda a, b: a @ b.T, resamples=0)
    assert results_of(from_points) == pytest.approx(results_of(evaluate(images @ captions.T, truth, resamples=0)))


def test_points_are_compared_by_cosine_and_gaussians_by_csd_by_default(world: World, rng: np.random.Generator) -> None:
    from halation import Gaussian, similarity

    truth = world[1]
    images, captions = rng.standard_normal((60, 6)), rng.standard_normal((300, 6))
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, captions)]
    by_default = evaluate(images=images, captions=captions, truth=truth, metrics=["R@5", "R-P"], resamples=0)
    assert results_of(by_default) == results_of(evaluate(unit[0] @ unit[1].T, truth, ["R@5", "R-P"], resamples=0))
    clouds = [Gaussian(torch.from_numpy(x), torch.from_numpy(rng.standard_normal(x.shape))) for x in (images, captions)]
    by_default = evaluate(images=clouds[0], captions=clouds[1], truth=truth, metrics=["R@5", "R-P"], resamples=0)
    scores = similarity.csd(*clouds)
    assert results_of(by_default) == results_of(evaluate(scores, truth, ["R@5", "R-P"], resamples=0))
    report = evaluate(
        images=clouds[0],
        captions=clouds[1],
        truth=truth,
        similarity=similarity.wasserstein2,
        metrics=["R@5"],
        resamples=0,
    )
    assert results_of(report) == results_of(evaluate(similarity.wasserstein2(*clouds), truth, ["R@5"], resamples=0))


def test_a_relevance_of_ones_own_gets_its_asp(world: World, rng: np.random.Generator) -> None:
    scores, truth = world
    mine = rng.random(scores.shape)
    report = evaluate(scores, truth, relevance={"mine": mine}, metrics=["ASP(mine)"], resamples=0)
    assert report.t2i["ASP(mine)"] == pytest.approx(100 * metrics.asp(scores.T, mine.T).mean())
    assert "ASP(mine)" in evaluate(scores, truth, relevance={"mine": mine}, resamples=0).i2t


def test_graded_truth_is_measured_by_its_gains(rng: np.random.Generator) -> None:
    gains = rng.integers(0, 4, (12, 20)).astype(float)
    gains[:, 0] = gains[0] = 3.0
    scores = rng.random((12, 20))
    graded = evaluate(scores, Truth.from_graded(gains, threshold=2), ["nDCG@5", "R-P"], resamples=0)
    assert graded.i2t["nDCG@5"] == pytest.approx(100 * metrics.ndcg_at(scores, gains, 5).mean())
    assert graded.i2t["R-P"] == pytest.approx(100 * metrics.r_precision(scores, gains >= 2).mean())


def test_images_without_classes_leave_pmrp_and_the_report_says_so(world: World) -> None:
    scores, truth = world
    classes = truth.classes.copy()
    classes[[4, 9]] = False
    partly = truth.replace(classes=classes, annotated=None)
    got = evaluate(scores, partly, ["PMRP", "R@1"], resamples=50)
    images = np.flatnonzero(classes.any(axis=1))
    captions = np.flatnonzero(np.isin(truth.image_of, images))
    expected = metrics.pmrp(scores[np.ix_(images, captions)], classes[images], classes[truth.image_of[captions]])
    assert got.i2t["PMRP"] == pytest.approx(100 * expected.mean())
    assert np.isnan(got.per_query["i2t"]["PMRP"][[4, 9]]).all()
    assert not np.isnan(got.per_query["i2t"]["R@1"]).any()
    assert "2 images and 10 captions without classes left out" in str(got)


def test_a_single_zeta_is_named_apart_from_the_mean_of_three(world: World) -> None:
    scores, truth = world
    got = evaluate(scores, truth, ["PMRP", "PMRP(2)"], resamples=0)
    assert got.i2t["PMRP(2)"] == pytest.approx(
        100 * metrics.pmrp(scores, truth.classes, truth.caption_classes, zeta=2).mean()
    )
    assert "not comparable" in str(got)


def test_a_report_survives_its_file(report: Report, tmp_path: Path) -> None:
    report.to_json(tmp_path / "r.json")
    again = Report.from_json(tmp_path / "r.json")
    assert results_of(again) == results_of(report)
    assert again.rsum == report.rsum
    assert str(again) == str(report)
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_report_survives_its_text(report: Report) -> None:
    again = Report.from_json(report.to_json())
    assert results_of(again) == results_of(report)
    assert str(again) == str(report)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no/such/report.json", r"no/such/report\.json does not exist"),
        ("x" * 5000, "does not exist"),
        ('{"format": "other"}', "the JSON text is not a halation report"),
        ('{"format": ', "the JSON text line 1 column 12: not valid JSON"),
        ('{"format": "halation-report/1"}', "the JSON text is a damaged halation report"),
    ],
)
def test_what_is_not_a_report_is_refused_by_name(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Report.from_json(source)


def test_the_file_is_plain_json_with_percentages_and_intervals(report: Report) -> None:
    document = json.loads(report.to_json())
    row = document["results"]["i2t"]["R@5"]
    assert row["low"] <= row["value"] <= row["high"] <= 100
    assert row["value"] == report.i2t["R@5"]
    assert document["about"]["relevance"]["tfidf"]


def test_tables_in_three_forms_hold_the_same_numbers(report: Report) -> None:
    number = f"{report.i2t['R@5']:.2f}"
    assert all(number in text for text in (str(report), report.to_markdown(), report.to_latex()))
    widths = {line.count("|") for line in report.to_markdown().splitlines() if line.startswith("|")}
    assert len(widths) == 1
    assert "%" not in report.to_latex().split(r"\begin{tabular}")[1].replace(r"\%", "")


def test_an_unknown_key_of_a_report_names_the_nearest(report: Report) -> None:
    with pytest.raises(KeyError, match="did you mean 'R@10'"):
        report.i2t["R@100"]


BAD = {
    "nan": (lambda s, t: evaluate(np.where(np.eye(60, 300) > 0, np.nan, s), t), r"scores\[0, 0\] is nan"),
    "infinite": (lambda s, t: evaluate(np.where(np.eye(60, 300) > 0, np.inf, s), t), r"scores\[0, 0\] is inf"),
    "flipped": (lambda s, t: evaluate(s.T, t), "transposed"),
    "short": (lambda s, t: evaluate(s[:-1], t), r"\(59, 300\).*\(60, 300\)"),
    "one row": (lambda s, t: evaluate(s[0], t), "matrix"),
    "words": (lambda s, t: evaluate(s.astype(str), t), "numbers"),
    "no truth": (lambda s, t: evaluate(s), "needs a truth"),
    "both": (lambda s, t: evaluate(s, t, images=s), "either scores"),
    "neither": (lambda s, t: evaluate(None, t, images=s), "both images= and captions="),
    "metric": (lambda s, t: evaluate(s, t, ["NDCG@10"]), "unknown metric 'NDCG@10'; did you mean 'nDCG@10'"),
    "relevance": (lambda s, t: evaluate(s, t, ["ASP(rouge)"]), "did you mean 'rouge-l'"),
    "no metrics": (lambda s, t: evaluate(s, t, []), "list of metrics is empty"),
    "folds": (lambda s, t: evaluate(s, t, folds=0), "folds"),
    "resamples": (lambda s, t: evaluate(s, t, resamples=-1), "resamples"),
    "half a draw": (lambda s, t: evaluate(s, t, resamples=10.5), "resamples must be a whole number"),
    "seed": (lambda s, t: evaluate(s, t, seed=-1), "seed must be a whole number"),
    "a list for a truth": (lambda s, t: evaluate(s, list(t.captions)), "needs a truth"),
    "nan in relevance": (lambda s, t: evaluate(s, t, relevance={"x": s * np.nan}), r"relevance 'x'\[0, 0\] is nan"),
    "own relevance": (lambda s, t: evaluate(s, t, relevance={"x": s.T}), "relevance 'x': its scores are"),
    "similarity": (lambda s, t: evaluate(images=s, captions=s.T, truth=t, similarity=lambda _, b: b), "one row per"),
    "no texts": (lambda s, t: evaluate(s, t.replace(captions=None), ["ASP"]), "no caption texts"),
    "no classes": (lambda s, t: evaluate(s, t.replace(classes=None, annotated=None), ["PMRP"]), "needs the classes"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_clear_error(case: str, world: World) -> None:
    call, message = BAD[case]
    with pytest.raises(InputError, match=message):
        call(*world)


def test_a_query_without_an_answer_is_an_error_unless_declared(rng: np.random.Generator) -> None:
    truth = Truth.from_pairs([(0, 0), (1, 1)], n_images=3, n_captions=2)
    scores = rng.random((3, 2))
    with pytest.raises(
        InputError, match=r"1 image queries have no positive; the first is image 2 \(row 2\).*answerable"
    ):
        evaluate(scores, truth)
    declared = evaluate(scores, truth.answerable(), ["R@1"], resamples=0)
    assert len(declared.queries["i2t"]) == 2
    assert "without a positive are left out" in str(declared)


def test_whole_rankings_measure_as_the_scores_they_came_from(world: World, report: Report) -> None:
    scores, truth = world
    i2t = {image: np.argsort(-row, kind="stable").tolist() for image, row in zip(truth.image_ids, scores, strict=True)}
    t2i = {
        caption: np.argsort(-row, kind="stable").tolist()
        for caption, row in zip(truth.caption_ids, scores.T, strict=True)
    }
    again = evaluate(Rankings.from_ids(i2t, t2i, truth), truth, resamples=0)
    assert results_of(again) == pytest.approx(results_of(report))


def test_truncated_rankings_are_refused(world: World) -> None:
    truth = world[1]
    whole = {image: list(truth.caption_ids) for image in truth.image_ids}
    back = {caption: list(truth.image_ids) for caption in truth.caption_ids}
    assert evaluate(Rankings.from_ids(whole, back, truth), truth, ["PMRP"], resamples=0).i2t["PMRP"] > 0
    with pytest.raises(InputError, match="truncated rankings inflate R-Precision and PMRP"):
        Rankings.from_ids({**whole, 7: whole[7][:100]}, back, truth)
    with pytest.raises(InputError, match="twice"):
        Rankings.from_ids({**whole, 7: [*whole[7][:-1], whole[7][0]]}, back, truth)
    with pytest.raises(InputError, match="not in the gallery"):
        Rankings.from_ids({**whole, 7: [*whole[7][:-1], "elsewhere"]}, back, truth)


def test_rankings_of_the_truths_queries_suffice(world: World) -> None:
    truth = world[1]
    whole = {str(image): list(truth.caption_ids) for image in truth.image_ids}  # ids as text, as JSON gives them
    back = {caption: list(truth.image_ids) for caption in truth.caption_ids}
    some = Rankings.from_ids({key: whole[key] for key in list(whole)[:59]}, back, truth)
    assert len(evaluate(some, truth.replace(image_queries=np.arange(59)), ["R@1"], resamples=0).queries["i2t"]) == 59
    with pytest.raises(InputError, match="no list for image number 59"):
        evaluate(some, truth, ["R@1"], resamples=0)


def test_one_metric_may_be_named_as_a_string(world: World) -> None:
    assert list(evaluate(*world, "R@5", resamples=0).i2t) == ["R@5"]


def test_clouds_on_either_side_are_compared_as_clouds(world: World, rng: np.random.Generator) -> None:
    from halation import Gaussian, similarity

    truth = world[1]
    images = torch.from_numpy(rng.standard_normal((60, 6)))
    captions = Gaussian(
        torch.from_numpy(rng.standard_normal((300, 6))), torch.from_numpy(rng.standard_normal((300, 6)))
    )
    mixed = evaluate(images=Gaussian.point(images), captions=captions, truth=truth, metrics=["R@5"], resamples=0)
    scores = similarity.csd(images, captions)
    assert results_of(mixed) == results_of(evaluate(scores, truth, ["R@5"], resamples=0))


def test_a_given_relevance_of_a_known_name_is_described_as_given(world: World, rng: np.random.Generator) -> None:
    report = evaluate(*world, ["ASP(tfidf)", "ASP(mean)"], relevance={"tfidf": rng.random((60, 300))}, resamples=0)
    assert "your own" in report.about["relevance"]["tfidf"]
    assert "tfidf (tokens: words)" in report.about["relevance"]["mean"]


def test_a_fold_that_cuts_off_every_positive_is_named() -> None:
    truth = Truth.from_pairs([(0, 2), (1, 1), (2, 0), (1, 3)], n_images=3, n_captions=4, image_of=[0, 1, 2, 1])
    with pytest.raises(InputError, match="no positive within fold 1; the first is image 0"):
        evaluate(np.eye(3, 4), truth, ["R@1"], folds=3)


def test_truths_without_images_of_captions_draw_queries(rng: np.random.Generator) -> None:
    truth = Truth.from_pairs([(0, 0), (1, 1), (1, 2)], n_images=2, n_captions=3)
    report = evaluate(rng.random((2, 3)), truth, ["R@1"], resamples=20)
    assert "bootstrap draws of queries" in str(report)


def test_asp_against_one_item_is_chance_and_counts_as_nothing() -> None:
    truth = Truth.from_captions(["one caption"], [0])
    assert evaluate([[0.5]], truth, ["ASP"], resamples=0).i2t["ASP(tfidf) adjusted"] == 0.0


def test_progress_reaches_its_total(world: World) -> None:
    seen: dict[str, tuple[int, int]] = {}
    evaluate(
        *world, ["R@1"], folds=2, resamples=0, progress=lambda what, done, total: seen.__setitem__(what, (done, total))
    )
    assert seen == {"image → text": (60, 60), "text → image": (300, 300)}
