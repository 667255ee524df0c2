"""The measures of the trust study: fitted on the dev split, measured on the test split, judged by people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from halation import InputError
from halation._arrays import BoolArray, FloatArray, IntArray, sigmoid
from halation._files import read_json
from halation.calibration import (
    PAGE,
    AbstentionTrials,
    Calibrator,
    JudgedScores,
    ProbabilityMap,
    Verdict,
    ece,
    fit_logistic,
)
from halation.data import Dataset, Direction, Judgements
from halation.encoders import Model, load
from halation.search import judge_run, read_calibrators
from halation.semantics import sentence_encoder
from halation.similarity import Gaussian

__all__ = ["ANSWERS", "EXPERTS", "cross_fitted", "exact", "galleries", "natural", "reliable", "steps"]

EXPERTS = 3.0
"""Of 4: right but for minor errors. A pair is a match by the experts if their median is this or more."""

ANSWERS: tuple[Verdict, ...] = ("matches", "unsure", "nothing")

_BINS = 10
_FIRST = (1, 5, 10, PAGE)
Row = dict[str, Any]


def reliable(
    calibrator: Calibrator, test: JudgedScores, judged: Judgements, answers: FloatArray, part: str = "all"
) -> Row | None:
    """Predicted probabilities of the candidates that people judged, against their answers; None without any.

    answers   (pairs,) by people, 0…1
    part      "all" judged candidates, those "unannotated", or all at the "natural" share of own captions: people
              judged own captions more often than they are among candidates, so pairs are weighted
    """
    table = _table(calibrator.probability, test)
    natural_share = float((test.query_image[:, None] == test.item_image)[np.isfinite(table)].mean())
    predicted = _of_pairs(table, test, judged)
    own = judged.own_caption
    kept = np.isfinite(predicted) & (~own if part == "unannotated" else True)
    if not kept.any():
        return None
    weights = np.ones(len(predicted))
    if part == "natural" and 0 < own[kept].mean() < 1:
        share = own[kept].mean()
        weights = np.where(own, natural_share / share, (1 - natural_share) / (1 - share))
    return {"part": part, "own": float(own[kept].mean()), "natural": natural_share} | _gap(
        predicted[kept], answers[kept], weights[kept]
    )


def _table(probability: Callable[..., FloatArray], test: JudgedScores) -> FloatArray:
    """(q, n) the probability of each query's candidates; NaN where an item is not among the 24 best."""
    order = np.argsort(-test.scores, axis=1, kind="stable")[:, :PAGE]
    values = probability(np.take_along_axis(test.scores, order, axis=1), test.gallery, uncertainty=test.uncertainty)
    table = np.full(test.scores.shape, np.nan)
    np.put_along_axis(table, order, values, axis=1)
    return table


def _of_pairs(table: FloatArray, test: JudgedScores, judged: Judgements) -> FloatArray:
    image, caption = judged.pairs.T
    return np.asarray(table[caption, image] if test.direction == "t2i" else table[image, caption])


def _gap(predicted: FloatArray, answers: FloatArray, weights: FloatArray) -> Row:
    """Means in ten bins of equal mass, their mean distance, and how many bins have a lower answer than the one before.

    >>> row = _gap(np.linspace(0, 1, 20), np.linspace(0, 0.5, 20), np.ones(20))
    >>> round(row["gap"], 3), row["out_of_order"]
    (0.25, 0)
    """
    order = np.argsort(predicted, kind="stable")
    predicted, answers, weights = predicted[order], answers[order], weights[order]
    mass = np.cumsum(weights)
    bins = np.minimum((mass - weights / 2) / mass[-1] * _BINS, _BINS - 1).astype(np.int64)
    means = [
        [float(np.average(values[bins == k], weights=weights[bins == k])) for k in np.unique(bins)]
        for values in (predicted, answers)
    ]
    distance = np.abs(np.array(means[0]) - means[1])
    return {
        "pairs": len(predicted),
        "gap": float(distance.mean()),
        "predicted": float(np.average(predicted, weights=weights)),
        "answered": float(np.average(answers, weights=weights)),
        "out_of_order": int((np.diff(means[1]) < 0).sum()),
        "bins": np.round(means, 4).tolist(),
    }


def cross_fitted(dev: Dataset, on_dev: JudgedScores, test: JudgedScores, judged: Judgements) -> Row | None:
    """The gap to the crowd where neither the map of people nor the calibration saw the judged images.

    `people` was fitted on these very judgements. So its map is fitted again on one half of the test images, the run is
    calibrated by it on dev, and the other half is measured; both ways.
    """
    texts, image_of = judged.base.captions, judged.base.image_of
    assert texts is not None and image_of is not None
    close, agree = _closeness(texts, image_of)
    image, caption = judged.pairs.T
    design, share = np.column_stack([close[image, caption], agree[image]]), judged.scores[:, 0]
    on_dev_close, on_dev_agree = _closeness(dev.captions, dev.image_of)
    predicted = np.full(len(image), np.nan)
    for fitted_on, measured_on in (halves := test.halves(0), halves[::-1]):
        weights = fit_logistic(*(each[np.isin(image, fitted_on) & ~judged.own_caption] for each in (design, share)))
        truth = sigmoid(weights[0] * on_dev_close + weights[1] * on_dev_agree[:, None] + weights[2])
        truth[dev.truth.positives("i2t")] = 1
        again = JudgedScores(on_dev.scores, truth.T, on_dev.query_image, on_dev.item_image)
        rows = np.isin(image, measured_on)
        predicted[rows] = _of_pairs(_table(ProbabilityMap.fit(again), test), test, judged)[rows]
    kept = np.isfinite(predicted) & ~judged.own_caption
    return _gap(predicted[kept], share[kept], np.ones(kept.sum())) if kept.any() else None


def _closeness(texts: tuple[str, ...], image_of: IntArray) -> tuple[FloatArray, FloatArray]:
    """(images, captions) the mean cosine with an image's captions, and (images,) how well these agree."""
    units = sentence_encoder()(texts).astype(np.float64)
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    mean = np.stack([units[image_of == image].mean(axis=0) for image in range(int(image_of.max()) + 1)])
    return mean @ units.T, np.linalg.norm(mean, axis=1)


def steps(calibrator: Calibrator, test: JudgedScores, crowd: Judgements, expert: Judgements) -> list[Row]:
    """Means on unannotated candidates (text → image): all, those the crowd judged, those that experts judged too."""
    table = _table(calibrator.probability, test)
    table[test.query_image[:, None] == test.item_image] = np.nan
    row_of = {tuple(pair): row for row, pair in enumerate(crowd.pairs.tolist())}
    also = np.array([row_of.get(tuple(pair), -1) for pair in expert.pairs.tolist()])
    accepted = (np.median(expert.scores, axis=1) >= EXPERTS).astype(np.float64)
    everywhere: IntArray = np.argwhere(np.isfinite(table))[:, ::-1]  # images, captions
    parts: tuple[tuple[str, IntArray, dict[str, FloatArray]], ...] = (
        ("all", everywhere, {}),
        ("judged by the crowd", crowd.pairs, {"crowd": crowd.scores[:, 0]}),
        ("by experts too", expert.pairs[also >= 0],
         {"crowd": crowd.scores[also[also >= 0], 0], "experts": accepted[also >= 0]}),
    )  # fmt: skip
    rows = []
    for name, pairs, answers in parts:
        image, caption = pairs.T
        kept = np.isfinite(table[caption, image])
        if kept.any():
            figures = {"predicted": table[caption, image], "people": test.truth[caption, image], **answers}
            means = {key: float(values[kept].mean()) for key, values in figures.items()}
            rows.append({"part": name, "pairs": int(kept.sum()), **means})
    return rows


def galleries(calibrator: Calibrator, test: JudgedScores) -> list[Row]:
    """The three answers and the result sets in the whole gallery and in a half of it."""
    parts = (test, test.of_images(test.halves(0)[0]))
    return [
        {"items": part.gallery, "answers": three_answers(calibrator, part), "sets": result_sets(calibrator, part)}
        for part in parts
    ]


def three_answers(calibrator: Calibrator, test: JudgedScores) -> Row:
    """How often each answer is given, by the galleries of `AbstentionTrials`, and how often it is right.

    shares      as it is, with a single match, without what may match (almost), without what comes near (far)
    precision   where half of the queries have a match, in galleries as they are; None for an answer never given
    """
    abstention = calibrator.abstention
    trials = AbstentionTrials.of(test, abstention.depth)
    verdicts = abstention.verdicts(abstention.evidence(trials.scores, trials.gallery, trials.uncertainty))
    given = np.array(verdicts).reshape(4, -1)
    shares: dict[str, FloatArray] = {name: (given == name).mean(axis=1) for name in ANSWERS}
    precision: dict[str, float | None] = {}
    for name, right in (("matches", 0), ("nothing", 1)):
        halves = [shares[name][0], shares[name][2:].mean()]  # with a match and without
        precision[name] = float(halves[right] / sum(halves)) if sum(halves) else None
    shown = {name: values.tolist() for name, values in shares.items()}
    return {"queries": given.shape[1], "shares": shown, "precision": precision}


def result_sets(calibrator: Calibrator, test: JudgedScores) -> Row:
    """Expected matches among the first k against the judge's, and how often a set holds a match."""
    scores, truth = test.top(PAGE)
    predicted = calibrator.probability(scores, test.gallery, test.uncertainty)
    first = [
        {
            "k": k,
            "expected": float(predicted[:, :k].sum(axis=1).mean()),
            "judged": float(truth[:, :k].sum(axis=1).mean()),
        }
        for k in _FIRST
    ]
    coverage, sizes = calibrator.conformal.coverage(test), calibrator.conformal.sizes(test)
    inside = {
        "coverage": float(coverage.mean()),
        "any": float((coverage > 0).mean()),
        "median": float(np.median(sizes)),
    }
    return {"first": first, "conformal": inside}


def exact(model: Model, dataset: Dataset, calibrators: Mapping[Direction, Calibrator]) -> list[Row]:
    """Both directions of a run on data whose truth is complete."""
    rows = []
    for direction, test in judge_run(model, dataset, dataset.truth.positives("i2t")).items():
        calibrator = calibrators[direction]
        scores, truth = test.candidates(PAGE)
        predicted = calibrator.probability(scores, test.gallery, test.candidate_uncertainty)
        present: BoolArray = np.isfinite(scores)
        row = {"direction": direction, "ece": ece(predicted[present], truth[present])}
        row |= _gap(predicted[present], truth[present], np.ones(present.sum()))
        rows.append(row | {"items": test.gallery, "answers": three_answers(calibrator, test)})
    return rows


def natural(run: Path, photos: Path, queries: Path) -> Row:
    """The answers of a calibrated run to queries that people would type, by whether a photograph fits them."""
    model, (calibrators, notes) = load(run), read_calibrators(run)
    if calibrators is None:
        raise InputError(
            notes[0] if notes else "has no calibration", path=run, remedy=f"run halation calibrate {run} --data DATA"
        )
    files = sorted(path for path in photos.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if not files:
        raise InputError("has no photographs (.jpg, .png)", path=photos)
    images, document = model.encode_images(files), read_json(queries)
    shown: dict[str, dict[str, int]] = {}
    for kind in ("yes", "no"):
        texts = model.encode_texts(document[kind])
        scores = -np.sort(-model.similarity(images, texts).numpy().T, axis=1)[:, : calibrators.t2i.depth]
        has_sigma = isinstance(texts, Gaussian) and not texts.is_point
        sigmas = texts.uncertainty().tolist() if isinstance(texts, Gaussian) and has_sigma else [None] * len(scores)
        verdicts = [
            calibrators.t2i.verdict(*row) for row in zip(scores, [len(files)] * len(scores), sigmas, strict=True)
        ]
        shown[kind] = {name: verdicts.count(name) for name in ANSWERS}
    about = {"run": run.name, "recipe": model.config.name, "judge": calibrators.judge, "data": calibrators.data}
    return {**about, "photos": len(files), **shown}
