"""Human judgements: the scores of image–caption pairs by each annotator, and the graded truth they make."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from halation._arrays import BoolArray, FloatArray, IntArray
from halation._errors import InputError, one_of
from halation._files import Location, read_lines
from halation.data._flickr import read_flickr8k
from halation.data._truth import Truth
from halation.data._truth_input import positions

__all__ = ["Judgements", "read_flickr8k_judgements"]

_COLUMNS = 5  # image, caption, and three numbers: three scores, or share, yes, no


@dataclass(frozen=True, eq=False)
class Judgements:
    """Scored pairs of an image and a caption.

    base      the truth the pairs are about: its captions, and the image each was written for
    pairs     (n, 2) image and caption index into `base`
    scores    (n, annotators) as given: 1…4 by three experts, or one column with a crowd's share of yes
    lowest, highest   ends of the scale
    """

    base: Truth
    pairs: IntArray
    scores: FloatArray
    lowest: float
    highest: float
    name: str = "judgements"

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        scale = f"{self.scores.shape[1]} scores each, {self.lowest:g} to {self.highest:g}"
        return f"Judgements({self.name!r}: {len(self):,} pairs, {scale})"

    @cached_property
    def gains(self) -> FloatArray:
        """Mean score on a scale from 0 to 1, (n,)."""
        gains: FloatArray = (self.scores.mean(axis=1) - self.lowest) / (self.highest - self.lowest)
        return gains

    @cached_property
    def own_caption(self) -> BoolArray:
        """Whether the caption was written for the image, (n,): the literature leaves these pairs out."""
        assert self.base.image_of is not None
        return np.asarray(self.base.image_of[self.pairs[:, 1]] == self.pairs[:, 0])

    def truth(self, threshold: float = 0.5, *, own_captions: bool = True) -> Truth:
        """Graded relevance over the whole gallery; a mean score in the upper half of the scale counts as positive.

        Not every pair was judged. The captions written for an image have gain 1 unless they were judged (0 with
        `own_captions=False`); every other pair that was not judged has gain 0. Queries without a positive are left
        out.
        """
        gains = csr_array((self.gains, tuple(self.pairs.T)), shape=self.base.i2t.shape, dtype=np.float32)
        if own_captions:
            judged = csr_array((np.ones(len(self)), tuple(self.pairs.T)), shape=gains.shape)
            gains = gains + (self.base.i2t - self.base.i2t.multiply(judged))
        exception = ", except an image's own captions" if own_captions else ""
        note = f"{len(self):,} judged pairs; others count as not relevant{exception}"
        return self.base.replace(
            i2t=gains, threshold=threshold, name=self.name, kind="graded", notes=(*self.base.notes, note)
        ).answerable()


def read_flickr8k_judgements(folder: str | os.PathLike[str], kind: Literal["expert", "crowdflower"]) -> Judgements:
    """Human judgements on Flickr8k's test images (Hodosh et al., JAIR 2013).

    "expert": `ExpertAnnotations.txt`, three scores from 1 (unrelated) to 4 (describes it without any error).
    "crowdflower": `CrowdFlowerAnnotations.txt`, the share of people who answered yes.
    """
    one_of(kind, _KINDS, "kind of judgement")
    file, parse, lowest, highest = _KINDS[kind]
    path = Path(folder) / file
    base = read_flickr8k(folder, "test")
    image_at, caption_at = positions(base.image_ids), positions(base.caption_ids)
    pairs: dict[tuple[int, int], list[float]] = {}
    for number, line in read_lines(path):
        location = Location(path, f"line {number}")
        fields = line.split("\t") if "\t" in line else line.split()
        if len(fields) != _COLUMNS:
            raise location.error(f"{len(fields)} columns instead of {_COLUMNS}", "drop the damaged line")
        image, caption = fields[:2]
        for name, known, what in ((image, image_at, "image"), (caption, caption_at, "caption")):
            if name not in known:
                raise location.error(f"{what} {name!r} is not in the test split", "drop the line")
        pair = (image_at[image], caption_at[caption])
        if pair in pairs:
            raise location.error(f"{image} with {caption} was judged already", "drop one of the lines")
        pairs[pair] = parse(fields[2:], location)
    if not pairs:
        raise InputError("holds no judgement", path=path, remedy="was it written completely?")
    return Judgements(
        base=base,
        pairs=np.array(list(pairs), dtype=np.int64),
        scores=np.array(list(pairs.values()), dtype=np.float64),
        lowest=lowest,
        highest=highest,
        name=f"flickr8k-{kind}",
    )


def _expert(fields: list[str], location: Location) -> list[float]:
    if any(field not in ("1", "2", "3", "4") for field in fields):
        raise location.error(f"the scores are {', '.join(fields)}", "experts gave 1, 2, 3 or 4")
    return [float(field) for field in fields]


def _crowd(fields: list[str], location: Location) -> list[float]:
    try:
        share, yes, no = float(fields[0]), int(fields[1]), int(fields[2])
    except ValueError:
        share, yes, no = -1.0, 0, 0
    if yes < 0 or no < 0 or yes + no == 0 or not abs(share - yes / (yes + no)) <= 1e-6:
        problem = f"{' '.join(fields)} is not share, yes, no with share = yes/(yes + no)"
        raise location.error(problem, "drop the damaged line")
    return [yes / (yes + no)]


_KINDS: dict[str, tuple[str, Callable[[list[str], Location], list[float]], float, float]] = {
    "expert": ("ExpertAnnotations.txt", _expert, 1.0, 4.0),
    "crowdflower": ("CrowdFlowerAnnotations.txt", _crowd, 0.0, 1.0),
}
