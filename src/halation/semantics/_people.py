"""`people`: the probability that people accept a caption for an image, given the image's captions."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from halation._arrays import FloatArray
from halation.semantics._minilm import MiniLM
from halation.semantics._scorer import Float32, Scorer
from halation.semantics._sentence import Sentence
from halation.semantics._texts import Indices, Texts

__all__ = ["PEOPLE", "PeopleByWords", "PeopleMap", "PeopleScorer", "people_map", "people_notes", "unfamiliar_words"]

PEOPLE = ("people", "people-loose", "people-strict", "people-words")
"""The relevances that are probabilities of people's judgement."""

_MOST_UNFAMILIAR = 0.2  # share of words; English captions have about 0.03, other languages 0.35 and more
_SAMPLE = 20_000  # words that are looked up


@dataclass(frozen=True)
class PeopleMap:
    """The fitted map of one level: logit = (a + a'/n)·x + (b + b'/n)·h + c + c'/n, with n captions of the image.

    x   how close the caption comes to the image's captions: the mean cosine of MiniLM embeddings, or √cider
    h   how well these agree with each other: the length of the mean of their unit embeddings (absent for √cider)

    weights    by name: "x", "h", "one" and "x/n", "h/n", "one/n"
    meaning    what a match is at this level
    encoder    whose embeddings are compared; empty for the form that uses words alone
    """

    name: str
    meaning: str
    encoder: str
    weights: Mapping[str, float]

    def line(self, n: FloatArray, h: FloatArray) -> tuple[Float32, Float32]:
        """(slope, offset) of each image, so that the logit is slope · x + offset."""
        weight, each = self.weights, 1 / np.maximum(n, 1)
        slope = weight["x"] + weight["x/n"] * each
        offset = (weight["h"] + weight["h/n"] * each) * h + weight["one"] + weight["one/n"] * each
        return slope.astype(np.float32), offset.astype(np.float32)


@cache
def people_map(name: str) -> PeopleMap:
    """The map of this level, as fitted by `python -m studies people`."""
    document = json.loads(files("halation.semantics").joinpath("people.json").read_text(encoding="utf-8"))
    level = document["levels"][name]
    return PeopleMap(name, level["meaning"], level["encoder"], level["weights"])


class PeopleScorer:
    """The probability by sentence embeddings. It costs as much as `sentence`: the logit is linear in its value."""

    def __init__(self, texts: Texts, sentence: Sentence, level: PeopleMap) -> None:
        self.texts, self.sentence, self.level = texts, sentence, level
        lengths = np.linalg.norm(sentence.mean.astype(np.float64), axis=1)
        self.slope, self.offset = level.line(np.diff(texts.set_start), lengths)  # (images,)

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        self.sentence.block(images, captions, out)
        _to_probability(out, self.slope[images, None], self.offset[images, None])

    def to_own_image(self, captions: Indices) -> Float32:
        out = self.sentence.to_own_image(captions)
        sets = self.texts.reduced_sets(captions)
        n = np.diff(sets.start)
        rows = np.vstack([self.sentence.unit[sets.item], np.zeros_like(self.sentence.unit[:1])])  # none: its own end
        lengths = np.linalg.norm(np.add.reduceat(rows, sets.start[:-1], dtype=np.float64), axis=1) / np.maximum(n, 1)
        _to_probability(out, *self.level.line(n, lengths))
        return np.where(n > 0, out, np.float32(0))


class PeopleByWords:
    """The probability by words alone: coarser, but it needs no encoder. cider is that of the corpus."""

    def __init__(self, texts: Texts, cider: Scorer, level: PeopleMap) -> None:
        self.texts, self.cider, self.level = texts, cider, level
        n = np.diff(texts.set_start)
        self.slope, self.offset = level.line(n, np.zeros(len(n)))  # (images,)

    def block(self, images: Indices, captions: Indices | None, out: Float32) -> None:
        self.cider.block(images, captions, out)
        np.sqrt(out, out=out)
        _to_probability(out, self.slope[images, None], self.offset[images, None])

    def to_own_image(self, captions: Indices) -> Float32:
        out = np.sqrt(self.cider.to_own_image(captions))
        n = np.diff(self.texts.reduced_sets(captions).start)
        _to_probability(out, *self.level.line(n, np.zeros(len(n))))
        return np.where(n > 0, out, np.float32(0))


def _to_probability(values: Float32, slope: Float32, offset: Float32) -> None:
    """values ← 1/(1 + exp(−(slope · values + offset))), in place; small probabilities keep their digits and order."""
    values *= -slope
    values -= offset
    np.exp(values, out=values)
    values += 1
    np.reciprocal(values, out=values)


def people_notes(captions: Iterable[str]) -> list[str]:
    """What a reader must know where `people` meets these captions: a warning if they seem not to be English."""
    share = unfamiliar_words(captions)
    if share <= _MOST_UNFAMILIAR:
        return []
    return [
        f"{100 * share:.0f} % of the captions' words are unknown to {MiniLM.name}: `people` was fitted on English "
        "captions, so its probabilities mean little here"
    ]


def unfamiliar_words(captions: Iterable[str]) -> float:
    """The share of words that MiniLM's vocabulary lacks, among the first 20,000; 0 where there are none."""
    known = _vocabulary()
    total = missing = 0
    for caption in captions:
        for word in re.findall(r"[^\W\d_]+", _without_accents(caption.lower())):
            total += 1
            missing += word not in known
        if total >= _SAMPLE:
            break
    return missing / total if total else 0.0


def _without_accents(text: str) -> str:
    """As MiniLM's tokenizer reads it."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if unicodedata.category(letter) != "Mn")


@cache
def _vocabulary() -> frozenset[str]:
    path = MiniLM.weights_folder() / "vocab.txt"
    return frozenset(path.read_text(encoding="utf-8").splitlines())
