"""The semantic relevance of captions to images: fit on one corpus, score that one or another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from halation._arrays import Array
from halation._errors import InputError, one_of
from halation._progress import Progress, silent
from halation.semantics._bleu import Bleu
from halation.semantics._cider_d import CiderD
from halation.semantics._corpus import Corpus
from halation.semantics._cosine import Cosine
from halation.semantics._minilm import MiniLM
from halation.semantics._people import PEOPLE, PeopleByWords, PeopleScorer, people_map
from halation.semantics._rouge import Rouge
from halation.semantics._scorer import Float32, Mean, Scorer
from halation.semantics._sentence import Encoder, Sentence
from halation.semantics._sentence_cache import sentence_encoder
from halation.semantics._texts import Texts
from halation.semantics._tokenizers import Tokenizer, as_tokenizer, callable_name, treebank, words
from halation.semantics._weights import Weights

__all__ = ["MEAN_OF", "METRICS", "Semantics", "caption_relevance"]

MakeScorer = Callable[[Texts], Scorer]
"""The result of fitting: makes a scorer for the same texts or for others."""


def _fit_tfidf(texts: Texts, tokenizer: Tokenizer) -> MakeScorer:
    return partial(_tfidf, tokenizer, Weights.by_caption(texts, texts.grams(tokenizer, 1)))


def _tfidf(tokenizer: Tokenizer, weights: Weights, texts: Texts) -> Scorer:
    return Cosine(texts, texts.grams(tokenizer, 1), weights, scale=1.0)


def _fit_cider(texts: Texts, tokenizer: Tokenizer) -> MakeScorer:
    return partial(_cider, tokenizer, Weights.by_image(texts, texts.grams(tokenizer, 4)))


def _cider(tokenizer: Tokenizer, weights: Weights, texts: Texts) -> Scorer:
    return Cosine(texts, texts.grams(tokenizer, 4), weights, scale=10.0)


def _fit_cider_d(texts: Texts, tokenizer: Tokenizer) -> MakeScorer:
    return partial(_cider_d, tokenizer, Weights.by_image(texts, texts.grams(tokenizer, 4)))


def _cider_d(tokenizer: Tokenizer, weights: Weights, texts: Texts) -> Scorer:
    return CiderD(texts, texts.grams(tokenizer, 4), weights)


def _bleu(k: int, tokenizer: Tokenizer, texts: Texts) -> Scorer:
    return Bleu(texts, texts.grams(tokenizer, k))


def _rouge_l(tokenizer: Tokenizer, texts: Texts) -> Scorer:
    return Rouge(texts, texts.tokens(tokenizer))


def _sentence(encoder: Encoder, texts: Texts) -> Scorer:
    return Sentence(texts, encoder)


def _people(name: str, encoder: Encoder, texts: Texts) -> Scorer:
    return PeopleScorer(texts, Sentence(texts, encoder), people_map(name))


def _people_by_words(name: str, make_cider: MakeScorer, texts: Texts) -> Scorer:
    return PeopleByWords(texts, make_cider(texts), people_map(name))


def _mean(parts: Sequence[MakeScorer], texts: Texts) -> Scorer:
    return Mean([part(texts) for part in parts])


class _Metric(NamedTuple):
    tokenizer: Tokenizer
    fit: Callable[[Texts, Tokenizer], MakeScorer]


_ON_TOKENS = {
    "tfidf": _Metric(words, _fit_tfidf),
    "cider": _Metric(treebank, _fit_cider),
    "cider-d": _Metric(treebank, _fit_cider_d),
    "bleu1": _Metric(treebank, lambda _, tokenizer: partial(_bleu, 1, tokenizer)),
    "bleu2": _Metric(treebank, lambda _, tokenizer: partial(_bleu, 2, tokenizer)),
    "bleu3": _Metric(treebank, lambda _, tokenizer: partial(_bleu, 3, tokenizer)),
    "bleu4": _Metric(treebank, lambda _, tokenizer: partial(_bleu, 4, tokenizer)),
    "rouge-l": _Metric(treebank, lambda _, tokenizer: partial(_rouge_l, tokenizer)),
}
MEAN_OF = ("tfidf", "bleu4", "rouge-l")
"""The parts of `mean`."""

METRICS = (*_ON_TOKENS, "mean", "sentence", *PEOPLE)
"""The names `metric` takes."""

_BY_EMBEDDING = ("sentence", *(name for name in PEOPLE if name != "people-words"))


class Semantics:
    """A semantic relevance of captions to images, with document frequencies fitted on one corpus.

    >>> captions = ["a hound runs", "the hound is running", "a red bus", "one bus in town"]
    >>> semantics = Semantics.fit(captions, image_of=[0, 0, 1, 1], metric="tfidf")
    >>> semantics.corpus().matrix().round(2)
    array([[0.63, 0.63, 0.  , 0.  ],
           [0.  , 0.  , 0.63, 0.63]], dtype=float32)
    >>> semantics.corpus(["my hound", "any bus"], image_of=[0, 1]).block([1, 0], [0, 1])
    array([[0., 1.],
           [1., 0.]], dtype=float32)

    A report prints `metric`, `tokenizer` (the name of the encoder for `sentence`) and `description`.
    """

    def __init__(self, metric: str, tokenizer: str, make_scorer: MakeScorer, texts: Texts) -> None:
        self.metric = metric
        self.tokenizer = tokenizer
        self._make_scorer = make_scorer
        self._texts = texts

    def __repr__(self) -> str:
        return f"Semantics({self.metric!r}, tokenizer={self.tokenizer!r})"

    @property
    def description(self) -> str:
        """The metric and its tokenizer or encoder, for a report."""
        meaning = f"{people_map(self.metric).meaning}; " if self.metric in PEOPLE else ""
        return f"{self.metric} ({meaning}{'encoder' if self.metric in _BY_EMBEDDING else 'tokens'}: {self.tokenizer})"

    @classmethod
    def fit(
        cls,
        captions: Sequence[str],
        image_of: Array | None,
        metric: str = "tfidf",
        *,
        tokenizer: str | Tokenizer | None = None,
        references: Sequence[Sequence[str]] | None = None,
        encoder: Encoder | None = None,
        progress: Progress = silent,
    ) -> Semantics:
        """The relevance with document frequencies of these captions (`tfidf`) or reference sets (`cider`, `cider-d`).

        captions     strings
        image_of     (n_captions,) the image of each caption, 0 … n_images − 1
        references   for each image the captions to compare with; None = its own captions. With references, image_of may
                     be None
        tokenizer    a name of `TOKENIZERS` or a function; None = the default of the metric (`words` for tfidf, else
                     `treebank`); `sentence` uses its encoder's
        encoder      sentences → (n, d) for `sentence`; None = `sentence_encoder()` (extra "pretrained")
        """
        one_of(metric, METRICS, "metric")
        texts = Texts(captions, image_of, references)
        if metric in _BY_EMBEDDING:
            encoder = encoder or sentence_encoder(progress=progress)
            name = callable_name(encoder)
            if metric == "sentence":
                return cls(metric, name, partial(_sentence, encoder), texts)
            if name != MiniLM.name:
                raise InputError(f"{metric!r} was fitted on embeddings of {MiniLM.name}, not of {name}")
            return cls(metric, name, partial(_people, metric, encoder), texts)
        if encoder is not None:
            raise InputError(f"an encoder is for the metric 'sentence', not for {metric!r}")
        if metric == "people-words":
            cider = cls.fit(captions, image_of, "cider", tokenizer=tokenizer, references=references)
            return cls(metric, cider.tokenizer, partial(_people_by_words, metric, cider._make_scorer), texts)
        names = MEAN_OF if metric == "mean" else (metric,)
        chosen = [_ON_TOKENS[name].tokenizer if tokenizer is None else as_tokenizer(tokenizer) for name in names]
        parts = [_ON_TOKENS[name].fit(texts, rule) for name, rule in zip(names, chosen, strict=True)]
        recorded = ", ".join(dict.fromkeys(callable_name(rule) for rule in chosen))
        return cls(metric, recorded, partial(_mean, parts) if metric == "mean" else parts[0], texts)

    def corpus(
        self,
        captions: Sequence[str] | None = None,
        image_of: Array | None = None,
        references: Sequence[Sequence[str]] | None = None,
    ) -> Corpus:
        """A corpus to score: the fitted one without arguments, else another one with the fitted frequencies.

        A word that the fitted corpus lacks has no weight in `tfidf`. In `cider` and `cider-d` such an n-gram has
        document frequency 0, and so the greatest weight.
        """
        if captions is None:
            if image_of is not None or references is not None:
                remedy = "pass them too, or no argument at all for the corpus it was fitted on"
                raise InputError("captions are missing", remedy=remedy)
            texts = self._texts
        else:
            texts = Texts(captions, image_of, references)
        return Corpus(texts, self._make_scorer(texts), own=1.0 if self.metric in PEOPLE else None)


def caption_relevance(
    captions: Sequence[str],
    image_of: Array | None,
    metric: str = "tfidf",
    *,
    references: Sequence[Sequence[str]] | None = None,
    leave_one_out: bool = False,
    tokenizer: str | Tokenizer | None = None,
    encoder: Encoder | None = None,
    progress: Progress = silent,
) -> Float32:
    """The relevance of each caption to each image's reference captions: float32 (n_images, n_captions).

    captions        n_captions strings
    image_of        (n_captions,) the image of each, 0 … n_images − 1
    metric          `tfidf`, `cider`, `cider-d`, `bleu1` … `bleu4`, `rouge-l`, `mean` or `sentence`; or `people`, the
                    probability that people accept the caption for the image (`people-loose`, `people-strict`; without
                    the extra "pretrained": `people-words`)
    references      for each image the captions to compare with; None = its own captions
    leave_one_out   a caption is not its own reference
    tokenizer, encoder   see `Semantics.fit`

    >>> caption_relevance(["a hound runs", "a hound sleeps", "the bus"], [0, 0, 1], metric="rouge-l").round(2)
    array([[1., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    semantics = Semantics.fit(
        captions, image_of, metric, tokenizer=tokenizer, references=references, encoder=encoder, progress=progress
    )
    return semantics.corpus().matrix(leave_one_out, progress)
