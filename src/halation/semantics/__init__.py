"""The semantic relevance of captions to images, computed from their captions, at scale.

relevance = halation.caption_relevance(captions, image_of, metric="cider-d")        # (n_images, n_captions)

semantics = Semantics.fit(train_captions, image_of, metric="tfidf")                 # once
corpus = semantics.corpus()
relevance = corpus.block(images, captions)                                          # every step, (B, B)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.semantics._corpus import Corpus
    from halation.semantics._minilm import MiniLM
    from halation.semantics._people import PEOPLE, PeopleMap, people_map, people_notes
    from halation.semantics._semantics import MEAN_OF, METRICS, Semantics, caption_relevance
    from halation.semantics._sentence_cache import sentence_encoder
    from halation.semantics._tokenizers import TOKENIZERS, Tokenizer, treebank, whitespace, words

__all__ = [
    "MEAN_OF",
    "METRICS",
    "PEOPLE",
    "TOKENIZERS",
    "Corpus",
    "MiniLM",
    "PeopleMap",
    "Semantics",
    "Tokenizer",
    "caption_relevance",
    "people_map",
    "people_notes",
    "sentence_encoder",
    "treebank",
    "whitespace",
    "words",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "MEAN_OF": "halation.semantics._semantics",
            "METRICS": "halation.semantics._semantics",
            "PEOPLE": "halation.semantics._people",
            "TOKENIZERS": "halation.semantics._tokenizers",
            "Corpus": "halation.semantics._corpus",
            "MiniLM": "halation.semantics._minilm",
            "PeopleMap": "halation.semantics._people",
            "Semantics": "halation.semantics._semantics",
            "Tokenizer": "halation.semantics._tokenizers",
            "caption_relevance": "halation.semantics._semantics",
            "people_map": "halation.semantics._people",
            "people_notes": "halation.semantics._people",
            "sentence_encoder": "halation.semantics._sentence_cache",
            "treebank": "halation.semantics._tokenizers",
            "whitespace": "halation.semantics._tokenizers",
            "words": "halation.semantics._tokenizers",
        },
    )
