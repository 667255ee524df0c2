"""When would people accept a caption for an image? Fits `people`, the relevance that is a probability.

Flickr8k's judgements teach the map: a crowd answered yes or no to tens of thousands of pairs, and experts rated 5,822
pairs from 1 to 4 (Hodosh et al., JAIR 2013). Figures on Flickr8k are of images that the fit did not see (five folds by
image). CxC's ratings of COCO pairs (Parekh et al., EACL 2021) were never fitted on: they are the test. An image's own
captions are left out everywhere, because nobody needs a judge for these.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from halation._arrays import BoolArray, FloatArray, IntArray, sigmoid
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.calibration import auroc, ece, fit_logistic
from halation.data import Judgements, Truth, open_dataset, read_cxc_ratings, read_flickr8k_judgements
from halation.semantics import MiniLM, Semantics, sentence_encoder
from studies.page import Table, join, paragraph

__all__ = ["PeopleStudy", "people"]

_FOLDS = 5
_MOST = 5  # captions per image in Flickr8k and COCO
_BLOCK = 256  # pairs whose relevance is computed together

Features = dict[str, FloatArray]
"""By name, (pairs,) each: "x", "h", "n" and the relevances that were tried."""


@dataclass(frozen=True)
class Level:
    """One level of the map: what a match is, by whose judgement, and which of CxC's ratings means the same."""

    name: str
    meaning: str
    judge: str  # "crowdflower" or "expert"
    least: float  # the median judgement from which on a pair is a match; more than this for the crowd
    rating: float  # CxC's rating from which on a pair counts as a match
    x: str = "sentence"


LEVELS = (
    Level("people", "a person says yes", "crowdflower", 0.5, 4.0),
    Level("people-loose", "experts: right but for minor errors", "expert", 3.0, 3.0),
    Level("people-strict", "experts: right without any error", "expert", 4.0, 4.5),
    Level("people-words", "a person says yes, judged by words alone", "crowdflower", 0.5, 4.0, "√cider"),
)
TRIALS = (
    ("sentence",),
    ("sentence", "h"),
    ("sentence", "max"),
    ("sentence", "max", "h"),
    ("sentence", "cider"),
    ("sentence", "tfidf"),
    ("sentence", "tfidf", "cider", "rouge-l", "bleu1"),
    ("tfidf",),
    ("cider",),
    ("√cider",),
    ("tfidf", "cider"),
)
"""The sets of features that were compared, with all five captions of an image."""


@dataclass(frozen=True)
class Fitted:
    """The map of one level, and its figures by the number of captions that an image has."""

    level: str
    meaning: str
    encoder: str
    weights: dict[str, float]
    auc: dict[str, float]  # by number of captions, on held-out images
    ece: dict[str, float]
    cxc_rank: dict[str, float]  # Spearman's correlation with CxC's ratings
    cxc_auc: dict[str, float]  # ratings of 3 or more
    cxc_ece: dict[str, float]  # ratings of the level's own threshold or more


@dataclass(frozen=True)
class PeopleStudy:
    """The fitted maps, the features that were tried, and how the two kinds of judges differ on the same pairs."""

    crowd_pairs: int
    expert_pairs: int
    cxc_pairs: int
    trials: list[dict[str, float | str]]
    levels: list[Fitted]
    both_judged: int
    share_expert: float  # of the pairs that both judged: experts' median ≥ 3
    share_crowd: float
    crowd_by_expert: list[tuple[int, int, float]]  # experts' median, pairs, share of the crowd that says yes

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PeopleStudy:
        """The study as its people.json has it."""
        document = read_json(Path(path))
        levels = [Fitted(**row) for row in document.pop("levels")]
        pairs = [(row[0], row[1], row[2]) for row in document.pop("crowd_by_expert")]
        return cls(**document, levels=levels, crowd_by_expert=pairs)

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self._tables())

    def to_markdown(self) -> str:
        """The page docs/studies/people.md."""
        parts = [
            "# When do people accept a caption?",
            "`people` is a relevance that is a probability: would people accept this caption for this image, given "
            "the captions the image has? It turns the mean cosine of MiniLM embeddings into a probability, with the "
            "agreement and the number of the image's captions. An image's own captions have probability 1.",
            "Read it as an answer about English captions of everyday photographs: that is what people judged. "
            "Made by `python -m studies people --data flickr8k --coco coco_eval --out docs/studies`; the numbers are "
            "in `people.json`, the weights in the package (`--ship`).",
        ]
        return join([*map(paragraph, parts), *(table.markdown() for table in self._tables())])

    def _tables(self) -> list[Table]:
        return [self._level_table(), self._count_table(), self._judge_table(), self._trial_table()]

    def _level_table(self) -> Table:
        ratings = {level.name: level.rating for level in LEVELS}
        rows = [
            [
                f"`{row.level}`",
                row.meaning,
                f"{row.auc['5']:.3f}",
                f"{row.ece['5']:.3f}",
                f"{row.cxc_rank['5']:.3f}",
                f"{row.cxc_auc['5']:.3f}",
                f"{row.cxc_ece['5']:.3f} (≥ {ratings[row.level]:g})",
            ]
            for row in self.levels
        ]
        return Table(
            "Levels",
            ["relevance", "a match is", "AUC", "ECE", "CxC ρ", "CxC AUC", "CxC ECE"],
            rows,
            f"AUC and calibration error (ECE) on Flickr8k images that the fit did not see: {self.crowd_pairs:,} crowd "
            f"and {self.expert_pairs:,} expert pairs. CxC: {self.cxc_pairs:,} rated COCO pairs, never fitted on. ρ is "
            "Spearman's correlation with the rating, AUC separates ratings of 3 or more, ECE counts a rating as a "
            "match from the value in brackets.",
        )

    def _count_table(self) -> Table:
        shown = [row for row in self.levels if row.level in ("people", "people-words")]
        rows = [
            [f"`{row.level}`", n, f"{row.auc[n]:.3f}", f"{row.ece[n]:.3f}", f"{row.cxc_rank[n]:.3f}",
             f"{row.cxc_auc[n]:.3f}", f"{row.cxc_ece[n]:.3f}"]
            for row in shown
            for n in row.auc
        ]  # fmt: skip
        return Table(
            "With fewer captions",
            ["relevance", "captions", "AUC", "ECE", "CxC ρ", "CxC AUC", "CxC ECE"],
            rows,
            "The number of captions per image enters the map. With one caption the probabilities are less sharp.",
        )

    def _judge_table(self) -> Table:
        rows = [[f"{median}", f"{pairs:,}", f"{100 * share:.0f} %"] for median, pairs, share in self.crowd_by_expert]
        return Table(
            "Experts and crowd on the same pairs",
            ["experts' median", "pairs", "crowd says yes"],
            rows,
            f"{self.both_judged:,} pairs were judged by both. Experts rate {100 * self.share_expert:.0f} % of them 3 "
            f"or more; of the crowd {100 * self.share_crowd:.0f} % say yes. The crowd is stricter: a 3 is right "
            "but for minor errors, and the crowd accepts few of these. No single probability can fit both, so each has "
            "its own level.",
        )

    def _trial_table(self) -> Table:
        rows = [
            [
                str(row["features"]),
                *(f"{row[key]:.3f}" for key in ("crowd_auc", "crowd_ece", "expert_auc", "expert_ece")),
            ]
            for row in self.trials
        ]
        return Table(
            "What was tried",
            ["features", "crowd AUC", "crowd ECE", "expert AUC", "expert ECE"],
            rows,
            "Logistic maps on all five captions, held out by image. h: how well an image's captions agree. max: the "
            "closest caption. The rest are relevances. `people` uses sentence and h: max adds little and costs five "
            "times as much.",
        )

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write people.md and people.json into `folder`; numbers only, no captions."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / "people.md", target / "people.json"]
        write_text(paths[0], self.to_markdown())
        write_text(paths[1], json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")
        return paths

    def ship(self, path: str | os.PathLike[str]) -> None:
        """Write the weights as the package reads them, with where they come from."""
        document = {
            "format": "halation people 1",
            "fitted_on": "Flickr8k's CrowdFlower and Expert judgements of its 1,000 test images (Hodosh et al., 2013)",
            "language": "English",
            "made_by": "python -m studies people",
            "levels": {
                row.level: {"meaning": row.meaning, "encoder": row.encoder, "weights": row.weights}
                for row in self.levels
            },
        }
        write_text(Path(path), json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def people(
    data: str | os.PathLike[str], coco: str | os.PathLike[str], *, seed: int = 0, progress: Progress = silent
) -> PeopleStudy:
    """Fit every level on Flickr8k's judgements, and measure it on held-out images and on CxC's ratings."""
    judged = {kind: _not_own(read_flickr8k_judgements(data, kind)) for kind in ("crowdflower", "expert")}
    ratings = _not_own(read_cxc_ratings(open_dataset(coco).truth, Path(coco) / "cxc" / "sits_test.csv"))
    counts = [str(n) for n in range(1, _MOST + 1)]
    features: dict[str, dict[str, Features]] = {}
    for done, (name, pairs) in enumerate({**judged, "cxc": ratings}.items()):
        progress("judgements", done, 3)
        features[name] = {n: _features(pairs, int(n), seed) for n in counts}
    levels = [_fit(level, judged[level.judge], features[level.judge], ratings, features["cxc"]) for level in LEVELS]
    progress("judgements", 3, 3)
    crowd, expert = judged["crowdflower"], judged["expert"]
    same = _same_pairs(expert, crowd)
    median, accepted = np.median(expert.scores[same[0]], axis=1), crowd.scores[same[1], 0]
    by_expert = [(k, int((median == k).sum()), float(accepted[median == k].mean())) for k in (1, 2, 3, 4)]
    return PeopleStudy(
        len(crowd), len(expert), len(ratings), _trials(judged, features), levels, len(median),
        float((median >= 3).mean()), float(accepted.mean()), by_expert,
    )  # fmt: skip


def _not_own(judged: Judgements) -> Judgements:
    kept = ~judged.own_caption
    return Judgements(judged.base, judged.pairs[kept], judged.scores[kept], judged.lowest, judged.highest, judged.name)


def _is_match(level: Level, judged: Judgements) -> BoolArray:
    median = np.median(judged.scores, axis=1)
    return np.asarray(median > level.least if level.judge == "crowdflower" else median >= level.least)


def _target(level: Level, judged: Judgements) -> FloatArray:
    """What the map is fitted to: the share of the crowd that says yes, or whether the experts' median is a match."""
    return judged.scores[:, 0] if level.judge == "crowdflower" else _is_match(level, judged).astype(np.float64)


def _features(judged: Judgements, n: int, seed: int) -> Features:
    """The features of the pairs where every image has n of its captions, drawn at random."""
    drawn = _draw(judged, n, seed)
    words = ("cider", "tfidf", "rouge-l", "bleu1") if n == _MOST else ("cider",)
    return _by_sentence(judged, drawn) | _by_words(judged, drawn, words)


def _by_sentence(judged: Judgements, drawn: IntArray) -> Features:
    """Mean and largest cosine with the image's captions, and how well these agree; drawn (images, n)."""
    units = sentence_encoder()(_texts(judged.base))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    image, caption = judged.pairs.T
    cosines = np.einsum("pd,pnd->pn", units[caption], units[drawn[image]])
    lengths = np.linalg.norm(units[drawn].mean(axis=1), axis=1)
    return {"sentence": cosines.mean(axis=1), "max": cosines.max(axis=1), "h": lengths[image]}


def _by_words(judged: Judgements, drawn: IntArray, names: Sequence[str]) -> Features:
    """Relevances by words, the root of cider, and the number of captions; drawn (images, n)."""
    captions, image_of = _texts(judged.base), judged.base.image_of
    image, caption = judged.pairs.T
    references = [[captions[number] for number in row] for row in drawn]
    parts = np.array_split(np.arange(len(image)), max(1, len(image) // _BLOCK))
    features: Features = {"n": np.full(len(image), float(drawn.shape[1]))}
    for name in names:
        corpus = Semantics.fit(captions, image_of, name).corpus(captions, None, references=references)
        features[name] = np.concatenate([np.diag(corpus.block(image[part], caption[part])) for part in parts])
    return features | {"√cider": np.sqrt(features["cider"])}


def _draw(judged: Judgements, n: int, seed: int) -> IntArray:
    """(images, n): n captions of each image, at random."""
    image_of = judged.base.image_of
    assert image_of is not None
    generator = np.random.default_rng(seed)
    rows = [generator.permutation(np.flatnonzero(image_of == image))[:n] for image in range(judged.base.n_images)]
    return np.array(rows)


def _design(features: Mapping[str, FloatArray], x: str) -> FloatArray:
    """(pairs, 5): x, h and what each adds for one caption in n; the intercept is added by the fit."""
    each = 1 / features["n"]
    h = features["h"] if x == "sentence" else np.zeros_like(each)
    return np.column_stack([features[x], h, features[x] * each, h * each, each])


_WEIGHTS = ("x", "h", "x/n", "h/n", "one/n", "one")


def _fit(
    level: Level, judged: Judgements, features: Mapping[str, Features], ratings: Judgements, cxc: Mapping[str, Features]
) -> Fitted:
    match, target, image = _is_match(level, judged), _target(level, judged), judged.pairs[:, 0]
    designs = {n: _design(each, level.x) for n, each in features.items()}
    together, targets = np.concatenate(list(designs.values())), np.tile(target, len(designs))
    weights = fit_logistic(together, targets)
    predicted = {n: np.empty(len(match)) for n in designs}
    for inside in _folds(image):
        part = fit_logistic(together[np.tile(~inside, len(designs))], targets[np.tile(~inside, len(designs))])
        for n, design in designs.items():
            predicted[n][inside] = _apply(part, design[inside])
    rating = ratings.scores[:, 0]
    on_cxc = {n: _apply(weights, _design(each, level.x)) for n, each in cxc.items()}
    return Fitted(
        level.name,
        level.meaning,
        MiniLM.name if level.x == "sentence" else "",
        dict(zip(_WEIGHTS, weights.round(6).tolist(), strict=True)),
        {n: auroc(p, match) for n, p in predicted.items()},
        {n: ece(p, target) for n, p in predicted.items()},
        {n: _rank_correlation(p, rating) for n, p in on_cxc.items()},
        {n: auroc(p, rating >= 3) for n, p in on_cxc.items()},
        {n: ece(p, rating >= level.rating) for n, p in on_cxc.items()},
    )


def _trials(
    judged: Mapping[str, Judgements], features: Mapping[str, Mapping[str, Features]]
) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = []
    for names in TRIALS:
        row: dict[str, float | str] = {"features": " + ".join(names)}
        for level, kind in ((LEVELS[0], "crowdflower"), (LEVELS[1], "expert")):
            match, target = _is_match(level, judged[kind]), _target(level, judged[kind])
            design = np.column_stack([features[kind][str(_MOST)][name] for name in names])
            predicted = np.empty(len(match))
            for inside in _folds(judged[kind].pairs[:, 0]):
                predicted[inside] = _apply(fit_logistic(design[~inside], target[~inside]), design[inside])
            short = kind.removesuffix("flower")
            row |= {f"{short}_auc": auroc(predicted, match), f"{short}_ece": ece(predicted, target)}
        rows.append(row)
    return rows


def _folds(image: IntArray, seed: int = 0) -> Sequence[BoolArray]:
    fold = np.random.default_rng(seed).permutation(int(image.max()) + 1) % _FOLDS
    return [np.asarray(fold[image] == number) for number in range(_FOLDS)]


def _apply(weights: FloatArray, design: FloatArray) -> FloatArray:
    return sigmoid(design @ weights[:-1] + weights[-1])


def _same_pairs(a: Judgements, b: Judgements) -> tuple[IntArray, IntArray]:
    """(rows of a, rows of b) that are about the same image and caption."""
    size = a.base.n_captions
    _, first, second = np.intersect1d(
        a.pairs[:, 0] * size + a.pairs[:, 1], b.pairs[:, 0] * size + b.pairs[:, 1], return_indices=True
    )
    return first, second


def _rank_correlation(a: FloatArray, b: FloatArray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)


def _texts(truth: Truth) -> tuple[str, ...]:
    assert truth.captions is not None
    return truth.captions
