"""Search among Gaussians: one `Index`, and backends that find the nearest points for it.

    index = Index(ids, gaussians)              # csd, faiss
    ranking = index.search(queries, k=10)      # ids, scores, rows, probabilities
    index.add(more, gaussians); index.remove(["old.jpg"])
    index.save("idx"); index = Index.load("idx")

| backend | where the points are | approximate |
|---|---|---|
| `Exact` | in memory, or mapped from a file | no |
| `Faiss` | in memory, or mapped from a file | from 20,000 points on, tuned to a stated recall |
| `Milvus` | in a local file (milvus-lite) or on a server | the same |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.index._backend import Backend, BackendUnavailable, Keys, Points, Tunable
    from halation.index._exact import Exact
    from halation.index._faiss import Faiss
    from halation.index._hubness import Hubness, HubnessKind
    from halation.index._index import Index
    from halation.index._milvus import Milvus
    from halation.index._ranking import Ranking

__all__ = [
    "Backend",
    "BackendUnavailable",
    "Exact",
    "Faiss",
    "Hubness",
    "HubnessKind",
    "Index",
    "Keys",
    "Milvus",
    "Points",
    "Ranking",
    "Tunable",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "Backend": "halation.index._backend",
            "BackendUnavailable": "halation.index._backend",
            "Exact": "halation.index._exact",
            "Faiss": "halation.index._faiss",
            "Hubness": "halation.index._hubness",
            "HubnessKind": "halation.index._hubness",
            "Index": "halation.index._index",
            "Keys": "halation.index._backend",
            "Milvus": "halation.index._milvus",
            "Points": "halation.index._backend",
            "Ranking": "halation.index._ranking",
            "Tunable": "halation.index._backend",
        },
    )
