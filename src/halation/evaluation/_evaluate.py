"""`evaluate`: from scores and a truth to a `Report`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

import halation
from halation._arrays import Array, FloatArray
from halation._errors import InputError
from halation._progress import Progress, silent
from halation.data import Direction, Truth
from halation.evaluation._measure import Fold, measure
from halation.evaluation._protocols import named_protocol
from halation.evaluation._relevances import relevance_sources
from halation.evaluation._report import DIRECTIONS, Report
from halation.evaluation._resample import Queries
from halation.evaluation._sources import EmbeddingScores, Rankings, ScoreMatrix, ScoreSource, Similarity, check_shape
from halation.evaluation._specs import Spec, default_metrics, parse_metrics

__all__ = ["check_draws", "evaluate"]


def evaluate(
    scores: Array | Rankings | None = None,
    truth: Truth | None = None,
    metrics: Iterable[str] | str | None = None,
    folds: int | None = None,
    *,
    images: Any = None,
    captions: Any = None,
    similarity: Similarity | None = None,
    protocol: str | None = None,
    relevance: Mapping[str, Array] | None = None,
    tokenizer: str | None = None,
    resamples: int = 1000,
    seed: int = 0,
    progress: Progress = silent,
) -> Report:
    """Measure scores with every metric of the field, in both directions, with 95 % intervals.

    scores      (n_images, n_captions), bigger = closer: NumPy or torch, float16 to float64; or `Rankings`
    truth       which captions are relevant to which images
    metrics     names as in papers (`"R@1"`, `"PMRP"`, `"ASP(cider)"`); None: everything the truth allows
    folds       average over this many sequential folds of images; None: all images at once
    images, captions, similarity   embeddings instead of scores (arrays, tensors or Gaussians), scored block by block
                with `similarity(images, captions)`; default: cosine for points, `similarity.csd` for Gaussians
    protocol    coco-5k, coco-1k, cxc, eccv, flickr, cub: sets truth, folds and metrics as the papers do
    relevance   graded (n_images, n_captions) matrices of your own, by name: adds `ASP(name)`
    tokenizer   for ASP; None: the default of each relevance

    >>> truth = halation.Truth.from_captions(["a dog", "a puppy", "the red bus"], [0, 0, 1])
    >>> report = evaluate([[0.9, 0.2, 0.4], [0.1, 0.3, 0.8]], truth, ["R@1", "R-P"], resamples=0)
    >>> report.i2t["R@1"], report.t2i["R@1"], report.i2t["R-P"]
    (100.0, 66.66666666666666, 75.0)
    """
    if not isinstance(truth, Truth):
        raise InputError("evaluate needs a truth: Truth.from_captions(captions, image_of), or open_dataset(path).truth")
    check_draws(resamples, seed, least=0)
    metrics = [metrics] if isinstance(metrics, str) else metrics
    source = _source(scores, images, captions, similarity)
    if protocol is not None:
        plan = named_protocol(protocol)
        truth = plan.prepare(truth)
        metrics = metrics if metrics is not None else plan.metrics
        folds = folds if folds is not None else plan.folds
    check_shape(source, truth)
    _check_answers(truth)
    custom = dict(relevance or {})
    specs = parse_metrics(metrics if metrics is not None else default_metrics(truth, custom), truth, custom)
    names = list(dict.fromkeys(spec.relevance for spec in specs if spec.relevance))
    relevances, described = relevance_sources(names, truth, custom, tokenizer)
    folded = _folds(Fold.whole(truth, source, relevances), folds)
    values = {direction: _measure_folds(folded, direction, specs, progress) for direction in DIRECTIONS}
    queries = {str(direction): measured for direction, (measured, _) in values.items()}
    per_query = {str(direction): columns for direction, (_, columns) in values.items()}
    about = _about(truth, protocol, folded, specs, described)
    return Report(about, queries, per_query, int(resamples), int(seed))


def _about(
    truth: Truth, protocol: str | None, folds: list[Fold], specs: list[Spec], described: Mapping[str, str]
) -> dict[str, Any]:
    """A description of the measurement, for readers of the report and for `compare`."""
    return {
        "halation": halation.__version__,
        "truth": truth.name,
        "fingerprint": truth.fingerprint(),
        "protocol": protocol,
        "images": truth.n_images,
        "captions": truth.n_captions,
        "folds": len(folds),
        "gallery": {
            "i2t": [fold.truth.n_captions for fold in folds],
            "t2i": [fold.truth.n_images for fold in folds],
        },
        "relevance": described,
        "resampled": "images" if truth.image_of is not None else "queries",
        "notes": _notes(truth, specs, described),
    }


def _source(scores: Array | Rankings | None, images: Any, captions: Any, similarity: Similarity | None) -> ScoreSource:
    if scores is not None:
        if images is not None or captions is not None or similarity is not None:
            raise InputError("give either scores, or images= and captions= (with similarity=), not both")
        return scores if isinstance(scores, Rankings) else ScoreMatrix(scores)
    if images is None or captions is None:
        raise InputError("give scores, or both images= and captions=")
    if similarity is None:
        from halation import similarity as similarities  # torch: only where embeddings are scored

        clouds = any(getattr(side, "log_var", None) is not None for side in (images, captions))
        similarity = similarities.csd if clouds else similarities.cosine
    return EmbeddingScores(images, captions, similarity)


def _check_answers(truth: Truth, where: str = "") -> None:
    """An InputError if a query has no positive: every metric of it would be undefined."""
    for direction, kind, ids in zip(
        DIRECTIONS, ("image", "caption"), (truth.image_ids, truth.caption_ids), strict=True
    ):
        queries = truth.queries(direction)
        if not len(queries):
            raise InputError(f"the truth has no {kind} queries{where}")
        unanswerable = queries[truth.n_positives(direction)[queries] == 0]
        if len(unanswerable):
            first = unanswerable[0]
            raise InputError(
                f"{len(unanswerable):,} {kind} queries have no positive{where}; the first is {kind} {ids[first]!r} "
                f"(row {first}). Every metric of them would be undefined",
                remedy="leave them out with truth.answerable()",
            )


def check_draws(resamples: Any, seed: Any, least: int) -> None:
    """An InputError unless resamples and seed are whole numbers in range."""
    for name, value, lowest in (("resamples", resamples, least), ("seed", seed, 0)):
        if not isinstance(value, (int, np.integer)) or not lowest <= value <= 2**31:
            raise InputError(f"{name} must be a whole number of {lowest} or more, not {value!r}")


def _folds(whole: Fold, count: int | None) -> list[Fold]:
    """Sequential folds of images with their captions; relevances keep the idf of the whole split."""
    if count is None or count == 1:
        return [whole]
    images = whole.truth.n_images
    if not 1 <= count <= images:
        raise InputError(f"folds must be between 1 and the {images} images, not {count}")
    folds = [whole.subset(part) for part in np.array_split(np.arange(images), count)]
    for number, fold in enumerate(folds, start=1):
        _check_answers(fold.truth, f" within fold {number}")
    return folds


def _measure_folds(
    folds: list[Fold], direction: Direction, specs: list[Spec], progress: Progress
) -> tuple[Queries, dict[str, FloatArray]]:
    """The per-query values of all folds, in the order of the whole truth."""
    items, clusters, numbers, columns = [], [], [], []
    label = {"i2t": "image → text", "t2i": "text → image"}[direction]
    total = sum(len(fold.truth.queries(direction)) for fold in folds)
    done = 0
    for number, fold in enumerate(folds):

        def step(measured: int, before: int = done) -> None:
            progress(label, before + measured, total)

        columns.append(measure(fold, direction, specs, step))
        rows = fold.truth.queries(direction)
        done += len(rows)
        items.append((fold.images if direction == "i2t" else fold.captions)[rows])
        clusters.append(fold.clusters(direction)[rows])
        numbers.append(np.full(len(rows), number))
    order = np.argsort(np.concatenate(items), kind="stable")
    queries = Queries(*(np.concatenate(part)[order] for part in (items, clusters, numbers)))
    return queries, {name: np.concatenate([column[name] for column in columns])[order] for name in columns[0]}


def _notes(truth: Truth, specs: list[Spec], described: Mapping[str, str]) -> list[str]:
    notes = [*truth.notes, *truth.query_notes]
    for direction, kind in zip(DIRECTIONS, ("images", "captions"), strict=True):
        total = truth.n_images if direction == "i2t" else truth.n_captions
        queries = len(truth.queries(direction))
        if queries < total:
            notes.append(f"{total - queries:,} of {total:,} {kind} are not queries (they stay in the gallery)")
    for spec in specs:
        if spec.family == "PMRP":
            assert truth.annotated is not None and truth.image_of is not None
            zetas = ", ".join(map(str, spec.zetas))
            kind, protocol, other = "ζ = ", "eccv-caption's", "the mean over several ζ"
            if len(spec.zetas) > 1:
                kind, protocol, other = "mean over ζ = ", "PCME's", "a single ζ"
            bare = ~truth.annotated
            left = (
                f"; {bare.sum():,} images and {bare[truth.image_of].sum():,} captions without classes left out"
                if bare.any()
                else ""
            )
            notes.append(f"{spec.name}: {kind}{zetas} ({protocol} protocol, not comparable with {other}){left}")
    if described:
        notes.append("relevance by " + "; ".join(described.values()))
    return notes
