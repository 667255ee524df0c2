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

from halation import _table
from halation._arrays import FloatArray
from halation._errors import MissingExtra
from halation._files import write_text
from halation._progress import Progress, silent
from halation.data import Judgements, Truth, read_flickr8k_judgements
from halation.semantics import Corpus, Semantics
from studies.agreement import mean_with_interval, together, within
from studies.encoder import RememberingEncoder

__all__ = ["Agreement", "HumansStudy", "humans"]

RELEVANCES = ("tfidf", "cider", "cider-d", "bleu1", "bleu4", "rouge-l", "mean", "sentence")
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
        """The relevance whose order within an image's candidates is closest to the experts'."""
        return max(self.agreements, key=lambda row: (row.expert_within, not row.leave_one_out))

    def __str__(self) -> str:
        tables = [_table.text(*table, title=title) for title, table in self._tables()]
        return "\n\n".join([*tables, *self._remarks()])

    def to_markdown(self) -> str:
        """The page docs/studies/humans.md."""
        head = (
            "# Which relevance agrees with people?\n\n"
            "Kendall rank correlation × 100 between a relevance and human judgements of Flickr8k pairs. "
            "Made by `python -m studies humans --data flickr8k --out docs/studies`."
        )
        tables = [_table.markdown(*table, title=f"## {title}") for title, table in self._tables()]
        return "\n\n".join([head, *tables, *self._remarks()]) + "\n"

    def _remarks(self) -> list[str]:
        remarks = []
        if self.agreements:
            words = [row for row in self.agreements if row.relevance != "sentence"]
            remark = f"**Recommended for ASP and DAA: {_named(self.best)}**, the closest to the experts within images"
            if words and self.best not in words:
                remark += f"; without a neural network {_named(max(words, key=lambda row: row.expert_within))}"
            remarks.append(remark + ". (`ASP` alone stays tfidf, the published protocol.)")
        remarks.append(
            "Published figures: PTB tokens. CrowdFlower's were made on the undamaged file and do not say which pairs "
            "were kept; the leave-one-out rows above, own captions kept but not their own reference, come nearest."
        )
        if self.missing:
            remarks.append(f'Not measured: {", ".join(self.missing)} (extra "pretrained" not installed).')
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
                f"{row.expert_gain:+.1f} [{row.gain_low:+.1f}, {row.gain_high:+.1f}]",
                f"{row.crowd_tau_b:.1f}",
                _table.cell(row.crowd_within, row.crowd_low, row.crowd_high, digits=1),
            ]
            for row in self.agreements
        ]
        return [
            (
                "The literature's protocol: an image's own captions removed, "
                f"{self.expert_pairs:,} expert and {self.crowd_pairs:,} crowd pairs",
                (["relevance", "Expert τ_c", "published", "CrowdFlower τ_b", "published"], literature),
            ),
            (
                "As ASP and DAA use it: all judged pairs, idf of the split, an image's own captions included",
                (
                    [
                        "relevance",
                        "Expert τ_c",
                        "within images τ_b",
                        "gain over tfidf",
                        "Crowd τ_b",
                        "within images τ_b",
                    ],
                    rows,
                ),
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
    encoder = RememberingEncoder(progress)
    baseline = within(_relevance_of(_fit(split, "tfidf", encoder).corpus(), judged["expert"]), judged["expert"])
    for done, name in enumerate(relevances):
        try:
            literature[name] = {kind: _literature(pairs, name, encoder) for kind, pairs in judged.items()}
            corpus = _fit(split, name, encoder).corpus()
            agreements += [_agreement(corpus, judged, name, way, baseline, seed) for way in (False, True)]
        except MissingExtra:
            missing.append(name)
        progress("relevances", done + 1, len(relevances))
    sizes = [int((~judged[kind].own_caption).sum()) for kind in KINDS]
    return HumansStudy(sizes[0], sizes[1], literature, agreements, tuple(missing))


def _fit(split: Truth, name: str, encoder: RememberingEncoder, **options: Any) -> Semantics:
    return Semantics.fit(
        _texts(split), split.image_of, name, encoder=encoder if name == "sentence" else None, **options
    )


def _literature(judged: Judgements, name: str, encoder: RememberingEncoder) -> float:
    """Agreement without own captions, df over the pairs' reference sets (one per pair); τ_c for experts, else τ_b."""
    split, kept = judged.base, ~judged.own_caption
    assert split.image_of is not None
    references: list[list[str]] = [[] for _ in range(split.n_images)]
    for text, image in zip(_texts(split), split.image_of.tolist(), strict=True):
        references[image].append(text)
    sets = [references[image] for image in judged.pairs[kept, 0]]
    fitted = _fit(split.replace(image_of=None), name, encoder, tokenizer="treebank", references=sets)
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
