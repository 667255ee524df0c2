"""Search: embed a collection, index it, ask it by words or by a picture.

embed(run, "photos", "emb")                     # every picture as a Gaussian, resumable
make_index("emb", "idx")
search = open_search("idx")
search.text("two dogs in the snow", k=10)       # Answer: hits with probabilities, notes
"""

from __future__ import annotations

from halation.search._answers import Answer, Hit, Item, Side, UnknownItem
from halation.search._embed import embed
from halation.search._embeddings import Embedded, Embeddings
from halation.search._fingerprint import fingerprint

__all__ = ["Answer", "Embedded", "Embeddings", "Hit", "Item", "Side", "UnknownItem", "embed", "fingerprint"]
