"""Which relevance ranks image-caption pairs as people do?

Flickr8k's judgements (Hodosh et al., JAIR 2013): experts rated 5,822 pairs from 1 to 4, and a crowd said yes or no to
tens of thousands. The first table repeats the captioning literature's protocol, so that our metrics stand beside
published figures; the second asks what retrieval needs: the order of an image's candidates, its own captions included.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from halation import _table
from halation._arrays import FloatArray, IntArray
from halation._errors import MissingExtra
from halation._files import write_text
from halation._progress import Progress, silent
from halation.relevance import Judgements, Truth, read_flickr8k, read_flickr8k_judgements
from halation.semantics import Semantics

__all__ = ["Agreement", "HumansStudy", "humans"]

RELEVANCES = ("tfidf", "cider", "cider-d", "bleu1", "bleu4", "rouge-l", "mean", "sentence")
PUBLISHED = {
    "expert": {"bleu1": 32.3, "bleu4": 30.8, "rouge-l": 32.3, "cider-d": 43.9},
    "crowdflower": {"bleu4": 16.9, "cider-d": 24.6},
}
_DRAWS = 1000


@dataclass(frozen=True)
class Agreement:
    """Agreement of one relevance with people, × 100; intervals resample images."""

    relevance: str
    leave_one_out: bool
    expert_tau_c: float  # all pairs together, every annotator's score a point
    expert_within: float  # Kendall τ_b within an image's candidates, mean over images
    expert_low: float
    expert_high: float
    crowd_tau_b: float
    crowd_within: float
    crowd_low: float
    crowd_high: float


@dataclass(frozen=True)
class HumansStudy:
    """Both tables, and the relevance that agrees best."""

    expert_pairs: int
    crowd_pairs: int
    literature: dict[str, dict[str, float]]
    agreements: list[Agreement]
    missing: tuple[str, ...] = ()

    @property
    def best(self) -> Agreement:
        """The relevance whose order within an image's candidates is closest to the experts'."""
        return max(self.agreements, key=lambda row: row.expert_within)

    def __str__(self) -> str:
        tables = [_table.text(*table, title=title) for title, table in self._tables()]
        return "\n\n".join([*tables, *self._remarks()])

    def to_markdown(self) -> str:
        """Both tables with what they mean."""
        head = (
            "# Which relevance agrees with people?\n\n"
            "Kendall rank correlation × 100 between a relevance and human judgements of Flickr8k pairs. "
            "Made by `halation study humans --data flickr8k --out docs/studies`."
        )
        tables = [_table.markdown(*table, title=f"## {title}") for title, table in self._tables()]
        return "\n\n".join([head, *tables, *self._remarks()]) + "\n"

    def _remarks(self) -> list[str]:
        best = self.best
        remarks = [
            f"Closest to the experts within an image's candidates: {best.relevance}"
            f"{' with leave-one-out' if best.leave_one_out else ''} ({best.expert_within:.1f} "
            f"[{best.expert_low:.1f}, {best.expert_high:.1f}])."
        ]
        if self.missing:
            remarks.append(f"Not measured: {', '.join(self.missing)} (extra \"pretrained\" not installed).")
        return remarks

    def _tables(self) -> list[tuple[str, tuple[list[str], list[list[str]]]]]:
        literature = [
            [
                name,
                f"{row['expert']:.1f}",
                _figure(PUBLISHED["expert"].get(name)),
                f"{row['crowdflower']:.1f}",
                _figure(PUBLISHED["crowdflower"].get(name)),
            ]
            for name, row in self.literature.items()
        ]
        rows = [
            [
                row.relevance + (", leave-one-out" if row.leave_one_out else ""),
                f"{row.expert_tau_c:.1f}",
                _table.cell(row.expert_within, row.expert_low, row.expert_high, digits=1),
                f"{row.crowd_tau_b:.1f}",
                _table.cell(row.crowd_within, row.crowd_low, row.crowd_high, digits=1),
            ]
            for row in self.agreements
        ]
        return [
            (
                f"The literature's protocol: own captions removed, {self.expert_pairs:,} expert and {self.crowd_pairs:,} crowd pairs",
                (["relevance", "Expert τ_c", "published", "CrowdFlower τ_b", "published"], literature),
            ),
            (
                "As ASP and DAA use it: all judged pairs, idf of the split, an image's own captions included",
                (["relevance", "Expert τ_c", "within an image τ_b", "Crowd τ_b", "within an image τ_b"], rows),
            ),
        ]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """humans.md and humans.json in `folder`; numbers only, no caption."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = [target / "humans.md", target / "humans.json"]
        write_text(paths[0], self.to_markdown())
        write_text(paths[1], json.dumps(asdict(self), indent=1) + "\n")
        return paths


def humans(
    data: str | os.PathLike[str], *, relevances: Sequence[str] = RELEVANCES, seed: int = 0, progress: Progress = silent
) -> HumansStudy:
    """Rank correlation of every relevance with Flickr8k's Expert and CrowdFlower judgements."""
    split = read_flickr8k(data, split="all")
    judged = {kind: _Judged.of(split, read_flickr8k_judgements(data, kind)) for kind in ("expert", "crowdflower")}
    literature: dict[str, dict[str, float]] = {}
    agreements: list[Agreement] = []
    missing = []
    for done, name in enumerate(relevances):
        try:
            literature[name] = {kind: _literature(split, pairs, name) for kind, pairs in judged.items()}
            for leave_one_out in (False, True):
                agreements.append(_agreement(split, judged, name, leave_one_out, seed))
        except MissingExtra:
            missing.append(name)
        progress("relevances", done + 1, len(relevances))
    sizes = {kind: int((~pairs.own).sum()) for kind, pairs in judged.items()}
    return HumansStudy(sizes["expert"], sizes["crowdflower"], literature, agreements, tuple(missing))


@dataclass(frozen=True)
class _Judged:
    """Judged pairs as indices into the split, and one point per annotator."""

    image: IntArray  # (p,)
    caption: IntArray  # (p,)
    scores: FloatArray  # (p, annotators)
    own: npt.NDArray[np.bool_]  # the caption is one of the image's own

    @classmethod
    def of(cls, split: Truth, judgements: Judgements) -> _Judged:
        images = {name: k for k, name in enumerate(split.image_ids)}
        captions = {name: k for k, name in enumerate(split.caption_ids)}
        image = np.array([images[name] for name in judgements.image_ids])
        caption = np.array([captions[name] for name in judgements.caption_ids])
        assert split.image_of is not None
        return cls(image, caption, judgements.scores, split.image_of[caption] == image)


def _literature(split: Truth, judged: _Judged, name: str) -> float:
    """Own captions removed, df over the pairs' reference sets (a set counts once per pair), τ_c (Expert) or τ_b (crowd)."""
    assert split.captions is not None and split.image_of is not None
    kept = ~judged.own
    references = _references(split)
    per_pair = [references[image] for image in judged.image[kept]]
    flat = [text for texts in per_pair for text in texts]
    set_of = np.repeat(np.arange(len(per_pair)), [len(texts) for texts in per_pair])
    fitted = Semantics.fit(flat, set_of, metric=name, tokenizer="treebank" if name != "sentence" else None)
    images, image = np.unique(judged.image[kept], return_inverse=True)
    captions, caption = np.unique(judged.caption[kept], return_inverse=True)
    corpus = fitted.corpus([split.captions[k] for k in captions], None, references=[references[k] for k in images])
    relevance = _pairs(corpus, image, caption)
    annotators = judged.scores.shape[1]
    return _kendall(np.repeat(relevance, annotators), judged.scores[kept].ravel(), "c" if annotators > 1 else "b")


def _agreement(split: Truth, judged: dict[str, _Judged], name: str, leave_one_out: bool, seed: int) -> Agreement:
    assert split.captions is not None and split.image_of is not None
    involved = np.unique(np.concatenate([*(j.image for j in judged.values()), *(split.image_of[j.caption] for j in judged.values())]))
    part = split.subset(involved)
    assert part.captions is not None and part.image_of is not None
    place = np.full(split.n_images, -1)
    place[involved] = np.arange(len(involved))
    caption_place = np.full(split.n_captions, -1)
    caption_place[split.captions_of(involved)] = np.arange(part.n_captions)
    corpus = Semantics.fit(part.captions, part.image_of, metric=name).corpus(part.captions, part.image_of)
    figures: list[float] = []
    for kind, pairs in judged.items():
        relevance = _pairs(corpus, place[pairs.image], caption_place[pairs.caption], leave_one_out)
        annotators = pairs.scores.shape[1]
        together = _kendall(np.repeat(relevance, annotators), pairs.scores.ravel(), "c" if kind == "expert" else "b")
        within = _within(relevance, pairs)
        generator = np.random.default_rng(seed)
        means = 100 * generator.choice(within, (_DRAWS, len(within))).mean(axis=1)
        low, high = np.percentile(means, (2.5, 97.5))
        figures += [together, float(100 * within.mean()), float(low), float(high)]
    return Agreement(name, leave_one_out, *figures)


def _within(relevance: FloatArray, judged: _Judged) -> FloatArray:
    """Kendall τ_b between relevance and mean judgement within each image's candidates, where both vary."""
    people = judged.scores.mean(axis=1)
    order = np.argsort(judged.image, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(judged.image[order])) + 1)
    taus = [_kendall(relevance[group], people[group], "b") / 100 for group in groups if np.ptp(people[group]) > 0]
    return np.nan_to_num(np.array(taus))  # a relevance that ties all candidates of an image agrees with nobody


def _pairs(corpus, image: IntArray, caption: IntArray, leave_one_out: bool = False) -> FloatArray:  # type: ignore[no-untyped-def]
    """Relevance of given pairs, image block by image block."""
    out = np.empty(len(image))
    columns, column = np.unique(caption, return_inverse=True)
    for start in range(0, corpus.n_images, 256):
        rows = np.arange(start, min(start + 256, corpus.n_images))
        here = np.flatnonzero((image >= start) & (image < start + 256))
        if len(here):
            block = corpus.block(rows, columns, leave_one_out=leave_one_out)
            out[here] = block[image[here] - start, column[here]]
    return out


def _references(split: Truth) -> list[list[str]]:
    assert split.captions is not None and split.image_of is not None
    references: list[list[str]] = [[] for _ in range(split.n_images)]
    for text, image in zip(split.captions, split.image_of, strict=True):
        references[image].append(text)
    return references


def _kendall(a: FloatArray, b: FloatArray, variant: str) -> float:
    from scipy.stats import kendalltau

    return float(100 * kendalltau(a, b, variant=variant).statistic)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
