"""From a run's folder and data to `Facts`: encode, score, measure, choose what to show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from halation._arrays import FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data import Dataset, Direction
from halation.encoders import Encoded, Gisted, Model, MultiEmbedding, RunFiles, detail_of, load
from halation.evaluation import DIRECTIONS, Report, compare, evaluate
from halation.report._facts import Bars, Facts, Gallery, Items, Line, Map, Missing, Query, RunFacts
from halation.report._figure_data import (
    Blocks,
    beyond_written,
    certainty_extremes,
    class_line,
    positives_to_find,
    precision_line,
    recall_by_sigma,
    sigma_histograms,
    training_of,
)
from halation.report._galleries import asp_histograms, choose_galleries, truth_coverage
from halation.report._map import Clouds, make_map
from halation.report._rankings import Row, query_rankings
from halation.report._reliability import reliabilities
from halation.semantics import Corpus, Semantics
from halation.similarity import Gaussian
from halation.training import Run, read_recipe

__all__ = ["gather_facts"]

Folder = str | os.PathLike[str]

_RESAMPLES = 2000  # of the comparison
_SHOWN = ("R@1", "R-P", "PMRP", "ASP(tfidf)")
_ROWS = 256
MOST_QUERIES = 5_000  # rankings of a query are 2 KB of the page
_NO_SIGMA = Missing(
    "This model has no σ: it embeds items as points, or does not embed them at all. Probabilistic heads have one:",
    'model.head = "pcme"',
)


@dataclass(frozen=True, eq=False)
class Measured:
    """One run on the split: what it made of the items, what it scores, how good that is."""

    title: str
    model: Model
    dataset: Dataset
    images: Encoded
    captions: Encoded
    scores: FloatArray  # (n_images, n_captions)
    report: Report
    sigma: dict[str, FloatArray]  # of images and captions; empty for points


def gather_facts(
    run: Folder,
    data: Folder,
    *,
    split: str = "test",
    against: Folder | None = None,
    queries: int = 300,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Facts, Dataset]:
    """All that a report says of a run on a split, and the split (for its pictures).

    against    another run, measured on the same: differences are run − against
    queries    of so many the rankings are kept, those of the galleries first; at most 5,000
    """
    if not 0 <= queries <= MOST_QUERIES:
        raise InputError(
            f"queries is {queries:,}; it must be 0 to {MOST_QUERIES:,}: all rankings are in the page, and with more it "
            "would not open"
        )
    titles = _titles(run, against)
    ours = _measure(titles[0], run, data, split, progress)
    theirs = None if against is None else _measure(titles[1], against, data, split, progress)
    dataset, truth = ours.dataset, ours.dataset.truth
    corpus = Semantics.fit(dataset.captions, dataset.image_of, "tfidf").corpus()
    chosen = [gallery for direction in DIRECTIONS for gallery in _galleries(ours, theirs, direction)]
    comparison = None
    if theirs is not None:
        comparison = compare(theirs.report, ours.report, resamples=_RESAMPLES, seed=seed, progress=progress)
    precision, precision_note = _precision(ours, theirs, corpus)
    return Facts(
        data=dataset.name,
        runs=tuple(_run_facts(one, number) for number, one in enumerate(_both(ours, theirs))),
        items=Items(tuple(map(str, truth.image_ids)), dataset.captions, tuple(dataset.image_of.tolist())),
        report=ours.report,
        other=None if theirs is None else theirs.report,
        comparison=comparison,
        recall={direction: _recall(ours, theirs, direction) for direction in DIRECTIONS},
        precision=precision,
        precision_note=precision_note,
        reliability=reliabilities(ours.model, dataset, _in_detail(ours), seed=seed, progress=progress),
        recall_by_sigma=_recall_by_sigma(ours, theirs) if ours.sigma else _NO_SIGMA,
        sigma_histograms=sigma_histograms(ours.sigma) if ours.sigma else _NO_SIGMA,
        asp_histograms={direction: asp_histograms(ours.report.per_query[direction]) for direction in DIRECTIONS},
        galleries=tuple(chosen),
        certainty=certainty_extremes(ours.sigma) if ours.sigma else (),
        queries=_queries(ours, theirs, corpus, chosen, queries, seed, progress),
        sigma=ours.sigma,
        right_counts={"images": truth.n_positives("i2t"), "captions": truth.n_positives("t2i")},
        coverage=truth_coverage(dataset),
        map=_map(ours, seed, progress),
        notes=tuple(ours.report.notes()),
    ), dataset  # fmt: skip


def _titles(run: Folder, against: Folder | None) -> list[str]:
    """The folders' names, with those above them where they are the same."""
    folders = [Path(folder).resolve() for folder in (run, against) if folder is not None]
    names = [folder.name for folder in folders]
    return names if len(set(names)) == len(names) else [f"{folder.parent.name}/{folder.name}" for folder in folders]


def _measure(title: str, run: Folder, data: Folder, split: str, progress: Progress) -> Measured:
    model = load(run)
    dataset = model.open_dataset(data, split)
    images, captions = model.encode_dataset(dataset, progress=progress)
    scores: FloatArray = model.network.all_scores(images, captions, progress=progress).numpy()
    report = evaluate(scores, dataset.truth, progress=progress)
    return Measured(title, model, dataset, images, captions, scores, report, _sigma(images, captions))


def _both(ours: Measured, theirs: Measured | None) -> list[Measured]:
    return [ours] if theirs is None else [ours, theirs]


def _sigma(images: Encoded, captions: Encoded) -> dict[str, FloatArray]:
    sides = {"images": detail_of(images), "captions": detail_of(captions)}
    clouds = {name: one for name, one in sides.items() if isinstance(one, Gaussian) and not one.is_point}
    return {name: one.uncertainty().numpy() for name, one in clouds.items()} if len(clouds) == 2 else {}


def _in_detail(one: Measured) -> FloatArray:
    """The scores that a calibration is fitted on: without the gist, where there is one."""
    if not isinstance(one.images, Gisted):
        return one.scores
    model = one.model.without_gist()
    scores: FloatArray = model.network.all_scores(detail_of(one.images), detail_of(one.captions)).numpy()
    return scores


def _run_facts(one: Measured, number: int) -> RunFacts:
    recipe, run = read_recipe(one.model.folder / RunFiles.CONFIG), Run(one.model.folder)
    weights = [(name, term.weight) for name, term in vars(recipe.loss).items() if term.weight]
    losses = ", ".join(f"{name} × {weight:g}" for name, weight in weights)
    gist = " with a gist beside it" if isinstance(one.images, Gisted) else ""
    seconds = run.about().get("seconds")
    return RunFacts(
        one.title,
        recipe.name,
        f"{recipe.model}{gist}; losses {losses}",
        float(seconds) if isinstance(seconds, (int, float)) else None,
        training_of(run, number),
    )


def _galleries(ours: Measured, theirs: Measured | None, direction: Direction) -> list[Gallery]:
    other = None if theirs is None else theirs.report.per_query[direction]
    asked, columns = ours.report.queries[direction].items, ours.report.per_query[direction]
    words = [ours.dataset.captions[item] for item in asked] if direction == "t2i" else None
    return choose_galleries(direction, asked, columns, other, coverage=truth_coverage(ours.dataset), texts=words)


def _recall(ours: Measured, theirs: Measured | None, direction: Direction) -> tuple[Line, ...]:
    """R@K over K: from the rank of the first right answer, which is what MedR's column holds."""
    lines = []
    for number, one in enumerate(_both(ours, theirs)):
        ranks = one.report.per_query[direction]["MedR"]
        gallery = max(one.report.about["gallery"][direction])
        ks = np.unique(np.geomspace(1, min(gallery, 1000), 48).round().astype(int))
        shares = 100 * (ranks[:, None] <= ks).mean(axis=0)
        lines.append(Line(one.title, tuple(map(float, ks)), tuple(shares.tolist()), number))
    return tuple(lines)


def _precision(ours: Measured, theirs: Measured | None, corpus: Corpus) -> tuple[tuple[Line, ...], str]:
    pairs, unwritten = positives_to_find(ours.dataset)

    def counted(blocks: Blocks) -> Blocks:
        return partial(beyond_written, blocks, ours.dataset.image_of) if unwritten else blocks

    lines = [
        precision_line(one.title, counted(partial(_blocks, one.scores)), pairs, run=number)
        for number, one in enumerate(_both(ours, theirs))
    ]
    note = f"Right are the {len(pairs):,} pairs that annotators wrote."
    if unwritten:
        note = (
            f"Right are {len(pairs):,} pairs that match although the caption was not written for that image. Pairs "
            "that were written are not counted."
        )
    if unwritten:  # a caption is a reference of its own picture: among those that were written tf-idf finds itself
        meaning = precision_line("caption semantics (tf-idf)", counted(partial(_relevance_blocks, corpus)), pairs)
        lines.append(Line(meaning.name, meaning.x, meaning.y, 2))
    classes = class_line(ours.dataset, pairs)
    if classes is not None:
        lines.append(Line(classes.name, classes.x, classes.y, 3))
    return tuple(lines), note


def _blocks(matrix: FloatArray) -> Iterable[tuple[int, FloatArray]]:
    for start in range(0, len(matrix), _ROWS):
        yield start, matrix[start : start + _ROWS]


def _relevance_blocks(corpus: Corpus) -> Iterable[tuple[int, FloatArray]]:
    for start in range(0, corpus.n_images, _ROWS):
        yield start, corpus.rows(start, min(start + _ROWS, corpus.n_images))


def _recall_by_sigma(ours: Measured, theirs: Measured | None) -> dict[Direction, tuple[Bars, ...]]:
    out: dict[Direction, tuple[Bars, ...]] = {}
    for direction in DIRECTIONS:
        kind, bars = ("images" if direction == "i2t" else "captions"), []
        for number, one in enumerate(_both(ours, theirs)):
            if one.sigma:
                asked = one.report.queries[direction]
                hits = one.report.per_query[direction]["R@1"]
                bars.append(recall_by_sigma(one.title, hits, one.sigma[kind][asked.items], asked, run=number))
        out[direction] = tuple(bars)
    return out


def _map(one: Measured, seed: int, progress: Progress) -> Map | Missing:
    progress("map", 0, 1)
    clouds = _clouds(one)
    made = clouds if isinstance(clouds, Missing) else make_map(clouds, one.dataset.image_of, seed=seed)
    progress("map", 1, 1)
    return made


def _clouds(one: Measured) -> Clouds | Missing:
    images, captions = detail_of(one.images), detail_of(one.captions)
    notes = (
        ("shown are the detail embeddings; the gist has a space of its own",) if isinstance(one.images, Gisted) else ()
    )
    if isinstance(images, MultiEmbedding) and isinstance(captions, MultiEmbedding):
        notes = (*notes, "this model has several embeddings per item; each item is shown at their mean")
        return Clouds(images.points.mean(1).numpy(), captions.points.mean(1).numpy(), notes=notes)
    if not isinstance(images, Gaussian) or not isinstance(captions, Gaussian):
        return Missing("This model scores pairs directly, so images and captions have no embeddings to map")
    if images.is_point or captions.is_point:
        return Clouds(images.mean.numpy(), captions.mean.numpy(), notes=notes)
    variances = images.var.numpy(), captions.var.numpy()
    return Clouds(images.mean.numpy(), captions.mean.numpy(), *variances, notes)


def _queries(
    ours: Measured, theirs: Measured | None, corpus: Corpus, chosen: list[Gallery], most: int, seed: int,
    progress: Progress,
) -> tuple[Query, ...]:  # fmt: skip
    """Those of the galleries, then others drawn at random until there are `most`, as many of each direction."""
    generator = np.random.default_rng(seed)
    found: list[Query] = []
    for direction in DIRECTIONS:
        asked = ours.report.queries[direction].items
        first = list(dict.fromkeys(item for one in chosen if one.direction == direction for item in one.queries))
        drawn = [item for item in generator.permutation(asked).tolist() if item not in set(first)]
        items = first + sorted(drawn[: max(0, most // 2 - len(first))])
        place = {int(item): row for row, item in enumerate(asked)}
        for done, item in enumerate(items):
            found.append(_query(ours, theirs, corpus, direction, item, place[item]))
            progress(f"rankings {direction}", done + 1, len(items))
    return tuple(found)


def _query(
    ours: Measured, theirs: Measured | None, corpus: Corpus, direction: Direction, item: int, place: int
) -> Query:
    dataset, columns = ours.dataset, ours.report.per_query[direction]
    one, all_images = np.array([item]), np.arange(len(dataset))
    if direction == "i2t":
        relevance, own = corpus.block(one, np.arange(dataset.n_captions))[0], dataset.image_of == item
    else:
        relevance, own = corpus.block(all_images, one)[:, 0], all_images == dataset.image_of[item]
    row = Row(_row(ours, direction, item), relevance, dataset.truth.positives(direction, one)[0], own)
    values = {name: float(columns[name][place]) for name in _SHOWN if name in columns}
    kind = "images" if direction == "i2t" else "captions"
    return query_rankings(
        direction,
        item,
        row,
        values | {"rank": float(columns["MedR"][place])},
        sigma=float(ours.sigma[kind][item]) if ours.sigma else None,
        other_scores=None if theirs is None else _row(theirs, direction, item),
    )


def _row(one: Measured, direction: Direction, item: int) -> FloatArray:
    return one.scores[item] if direction == "i2t" else np.ascontiguousarray(one.scores[:, item])
