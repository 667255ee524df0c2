"""How many unannotated matches does a relevance find, and how many pairs must it call positive to find them?

Crisscrossed Captions (CxC) had people rate pairs of COCO images and captions that do not belong together; those rated
as matching are correspondences that the dataset does not annotate. Class vectors (PMRP's plausible matches) and
caption semantics (ASP) both claim to find them. Over all pairs of the test split, loosen each claim and count. This is
figure 1 and appendix B of Li et al., NeurIPS 2022.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halation import InputError, MissingExtra
from halation._arrays import FloatArray, IntArray
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation._storage import publish_file
from halation.data import Truth, open_dataset, read_cxc
from halation.semantics import Corpus, Semantics
from studies.page import Table, join, paragraph

__all__ = ["Curve", "PositivesStudy", "positives"]

RELEVANCES = ("tfidf", "cider", "cider-d", "bleu1", "bleu4", "rouge-l", "mean", "sentence", "people")
ZETAS = (0, 1, 2, 3, 4, 5)
LOW_SCORE = 0.3
_COMPARED = 3  # of ZETAS, at whose recovery the relevances are compared with the classes
_SHIFT = 12  # thresholds at every 2^-11 of a power of two: 20 bits of the float are kept
_ROWS = 250


@dataclass(frozen=True)
class Curve:
    """Pairs called positive, and CxC correspondences among them, as the threshold gets looser."""

    name: str
    called: list[int]
    recovered: list[int]

    def price(self, recovered: int) -> int | None:
        """The fewest pairs to call positive to recover this many correspondences; None if no threshold does."""
        position = int(np.searchsorted(self.recovered, recovered))
        return self.called[position] if position < len(self.called) else None


@dataclass(frozen=True)
class PositivesStudy:
    """One curve per relevance, class vectors at each ζ, and how many annotated captions score low."""

    pairs: int
    correspondences: int
    classes: Curve
    semantics: list[Curve]
    prices: dict[str, list[int | None]]  # pairs each relevance calls to recover what the classes do at the first ζ
    low_share: float  # of annotated captions, by tfidf
    missing: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PositivesStudy:
        """The study as its positives.json has it: enough for the page; its curves are thinned."""
        document = read_json(Path(path))
        document["classes"] = Curve(**document["classes"])
        document["semantics"] = [Curve(**curve) for curve in document["semantics"]]
        return cls(**document | {"missing": tuple(document["missing"])})

    def __str__(self) -> str:
        return "\n\n".join([*(table.text() for table in self._tables()), *self._remarks()])

    def to_markdown(self) -> str:
        """The page docs/studies/positives.md."""
        parts = [
            "# Which relevance finds the unannotated matches?",
            f"COCO annotates five captions per image. For Crisscrossed Captions (CxC), people looked further and "
            f"confirmed {self.correspondences:,} matches that COCO does not have. Which relevance finds them?",
            f"Each relevance calls pairs above a threshold positive, of all {self.pairs:,} pairs of the COCO 5K test "
            "split. The fewer pairs it calls to find the same matches, the better.",
            "![Matches found against pairs called positive, by relevance](positives.png)",
            "Made by `python -m studies positives --data coco_eval --out docs/studies`; the numbers are in "
            "`positives.json`.",
        ]
        tables = [table.markdown() for table in self._tables()]
        return join([*map(paragraph, parts), *tables, *map(paragraph, self._remarks())])

    def _remarks(self) -> list[str]:
        remarks = [
            f"By tfidf, {100 * self.low_share:.1f} % of the annotated captions score under {LOW_SCORE}. The paper (Li "
            "et al., NeurIPS 2022) has 15 %, and finds 7,039 matches among 11.8 M pairs by classes (ζ = 2) or 1.5 M by "
            "semantics.",
        ]
        if self.missing:
            remarks.append(f'Not measured: {", ".join(self.missing)} (install the extra "pretrained").')
        return remarks

    def _tables(self) -> list[Table]:
        points = list(zip(ZETAS, self.classes.called, self.classes.recovered, strict=True))
        class_rows = [[f"ζ = {zeta}", f"{called:,}", f"{recovered:,}"] for zeta, called, recovered in points]
        shown = points[:_COMPARED]
        rows = [["classes", *(f"{called:,}" for _, called, _ in shown)]]
        rows += [
            [name, *(_price(price, called) for price, (_, called, _) in zip(prices, shown, strict=True))]
            for name, prices in self.prices.items()
        ]
        return [
            Table(
                "By object classes",
                ["classes that may differ", "pairs called positive", "CxC matches found"],
                class_rows,
                "Two images match if they differ in at most ζ object classes, as in PMRP. Images without classes are "
                "left out.",
            ),
            Table(
                "By caption semantics",
                ["relevance", *(f"{recovered:,} matches (ζ = {zeta})" for zeta, _, recovered in shown)],
                rows,
                "How many pairs each relevance calls positive to find as many matches as the classes do.",
            ),
        ]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write positives.md, positives.json and positives.png into `folder`."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / f"positives.{suffix}" for suffix in ("md", "json", "png")]
        write_text(paths[0], self.to_markdown())
        write_text(paths[1], json.dumps(_thinned(self), indent=1) + "\n")
        with publish_file(paths[2]) as temporary:
            _plot(self, temporary)
        return paths


def positives(
    data: str | os.PathLike[str] | Truth,
    *,
    relevances: Sequence[str] = RELEVANCES,
    progress: Progress = silent,
) -> PositivesStudy:
    """Count, over all pairs, the CxC correspondences each relevance recovers as its threshold loosens.

    `data`: a folder with the COCO 5K captions, categories and CxC ground truth, or a `Truth` with COCO ids, captions
    and classes (CxC then comes from the extra "coco").
    """
    truth = data if isinstance(data, Truth) else open_dataset(data, pictures=False).truth
    if truth.captions is None or truth.image_of is None or truth.classes is None or truth.annotated is None:
        raise InputError("the study needs captions and the classes of every image (COCO's categories)")
    pairs = correspondences(truth, read_cxc(truth, None if isinstance(data, Truth) else _ground_truth_in(data)))
    curves, missing = [], []
    for done, name in enumerate(relevances):
        try:
            corpus = Semantics.fit(truth.captions, truth.image_of, name, progress=progress).corpus()
        except MissingExtra:
            missing.append(name)
        else:
            curves.append(_count(name, corpus, pairs))
        progress("relevances", done + 1, len(relevances))
    tfidf = Semantics.fit(truth.captions, truth.image_of, "tfidf").corpus()
    low = np.mean(_own_scores(tfidf, truth.image_of) < LOW_SCORE)
    classes = class_curve(truth, pairs)
    prices = {curve.name: [curve.price(count) for count in classes.recovered[:_COMPARED]] for curve in curves}
    return PositivesStudy(
        truth.n_images * truth.n_captions, len(pairs), classes, curves, prices, float(low), tuple(missing)
    )


def _count(name: str, corpus: Corpus, correspondences: IntArray) -> Curve:
    """Histograms of all pairs and of the correspondences over thresholds; thresholds that gain nothing are dropped."""
    pairs = np.zeros(1 << (32 - _SHIFT), dtype=np.int64)
    hits = np.zeros_like(pairs)
    for start in range(0, corpus.n_images, _ROWS):
        bins = _bins(corpus.rows(start, min(start + _ROWS, corpus.n_images)))
        pairs += np.bincount(bins.ravel(), minlength=len(pairs))
        image, caption = correspondences[(correspondences[:, 0] >= start) & (correspondences[:, 0] < start + _ROWS)].T
        hits += np.bincount(bins[image - start, caption], minlength=len(hits))
    called, recovered = np.cumsum(pairs[::-1]), np.cumsum(hits[::-1])
    keep = np.flatnonzero(hits[::-1])
    return Curve(name, called[keep].tolist(), recovered[keep].tolist())


def _own_scores(corpus: Corpus, image_of: IntArray) -> FloatArray:
    """The relevance of each caption to its own image, (n_captions,)."""
    out = np.empty(corpus.n_captions)
    for start in range(0, corpus.n_images, _ROWS):
        stop = min(start + _ROWS, corpus.n_images)
        caption = np.flatnonzero((image_of >= start) & (image_of < stop))
        out[caption] = corpus.rows(start, stop)[image_of[caption] - start, caption]
    return out


def correspondences(truth: Truth, cxc: Truth) -> IntArray:
    """(image, caption) pairs that CxC calls matching in either direction and the dataset does not annotate; (p, 2)."""
    extended = np.concatenate([cxc.pairs("i2t"), cxc.pairs("t2i")[:, ::-1]])
    extended = np.unique(extended, axis=0)
    assert truth.image_of is not None
    return np.asarray(extended[truth.image_of[extended[:, 1]] != extended[:, 0]])


def class_curve(truth: Truth, pairs: IntArray) -> Curve:
    """Pairs whose class vectors differ in at most ζ classes, for each ζ; images without classes are left out."""
    assert truth.classes is not None and truth.annotated is not None and truth.image_of is not None
    codes = truth.classes[truth.annotated].astype(np.float32)
    counts = np.bincount(truth.image_of, minlength=truth.n_images)[truth.annotated]
    size = codes.sum(axis=1)
    distance = np.rint(size[:, None] + size[None, :] - 2 * codes @ codes.T).astype(np.int64)  # (annotated, annotated)
    row = np.cumsum(truth.annotated) - 1
    image, owner = pairs[:, 0], truth.image_of[pairs[:, 1]]
    both = truth.annotated[image] & truth.annotated[owner]
    apart = distance[row[image[both]], row[owner[both]]]
    called = [int(((distance <= zeta).sum(axis=0) * counts).sum()) for zeta in ZETAS]
    return Curve("classes", called, [int((apart <= zeta).sum()) for zeta in ZETAS])


def _bins(scores: FloatArray) -> npt.NDArray[np.int64]:
    """Bin numbers in the order of the scores: the upper 20 bits of a non-negative float32 sort as the float does."""
    return (np.maximum(scores, 0).astype(np.float32).view(np.uint32) >> _SHIFT).astype(np.int64)


def _price(price: int | None, called: int) -> str:
    """How many pairs a relevance must call positive, compared with the classes."""
    if price is None:
        return "–"
    return (
        f"{price:,} ({called / price:.1f} × fewer)" if price <= called else f"{price:,} ({price / called:.1f} × more)"
    )


def _ground_truth_in(data: str | os.PathLike[str]) -> Path | None:
    folder = Path(data) if Path(data).is_dir() else Path(data).parent
    return folder if (folder / "cxc_image_to_caption.json").is_file() else None


def _thinned(study: PositivesStudy, points: int = 60) -> dict[str, object]:
    document = asdict(study)
    for curve in document["semantics"]:
        keep = np.unique(np.geomspace(1, len(curve["called"]), points).astype(int) - 1)
        curve["called"] = [curve["called"][k] for k in keep]
        curve["recovered"] = [curve["recovered"][k] for k in keep]
    return document


def _plot(study: PositivesStudy, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.6), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for curve in study.semantics:
        axes.plot(curve.called, curve.recovered, label=curve.name, linewidth=1.6)
    axes.plot(study.classes.called, study.classes.recovered, "ks--", label="class vectors", markersize=5, linewidth=1)
    for zeta, called, recovered in zip(ZETAS, study.classes.called, study.classes.recovered, strict=True):
        axes.annotate(f"ζ = {zeta}", (called, recovered), textcoords="offset points", xytext=(7, -9), fontsize=8)
    axes.axhline(study.correspondences, color="0.6", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_xlim(1e4, 1.3 * study.pairs)
    axes.set_xlabel(f"pairs called positive (of {study.pairs:,}, log scale)")
    axes.set_ylabel(f"CxC correspondences recovered (of {study.correspondences:,})")
    axes.set_title("Fewer pairs for the same recovery is better: to the left and up")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig(path, format="png")
