"""Search: embed a collection, index it, ask it by words or by a picture.

    embed(run, "photos", "emb")                     # every picture as a Gaussian, resumable
    make_index("emb", "idx")
    search = open_search("idx")
    search.text("two dogs in the snow", k=10)       # Answer: hits with probabilities, notes

Names load on first use: an `Answer` costs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.search._answers import Answer, Hit, Item, Side, UnknownItem
    from halation.search._calibrate import Calibrated, calibrate_run, calibration_split, image_digests
    from halation.search._embed import embed
    from halation.search._embeddings import EmbeddedSide, Embeddings
    from halation.search._judge import (
        JUDGES,
        choose_judge,
        judge_run,
        judge_scores,
        judged_truth,
        uncalibrated_probability,
    )
    from halation.search._make_index import make_index
    from halation.search._open_search import open_search
    from halation.search._query import read_query
    from halation.search._search import Search
    from halation.search._verdict import read_calibrators

__all__ = [
    "JUDGES",
    "Answer",
    "Calibrated",
    "EmbeddedSide",
    "Embeddings",
    "Hit",
    "Item",
    "Search",
    "Side",
    "UnknownItem",
    "calibrate_run",
    "calibration_split",
    "choose_judge",
    "embed",
    "image_digests",
    "judge_run",
    "judge_scores",
    "judged_truth",
    "make_index",
    "open_search",
    "read_calibrators",
    "read_query",
    "uncalibrated_probability",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "JUDGES": "halation.search._judge",
            "Answer": "halation.search._answers",
            "Calibrated": "halation.search._calibrate",
            "EmbeddedSide": "halation.search._embeddings",
            "Embeddings": "halation.search._embeddings",
            "Hit": "halation.search._answers",
            "Item": "halation.search._answers",
            "Search": "halation.search._search",
            "Side": "halation.search._answers",
            "UnknownItem": "halation.search._answers",
            "calibrate_run": "halation.search._calibrate",
            "calibration_split": "halation.search._calibrate",
            "embed": "halation.search._embed",
            "image_digests": "halation.search._calibrate",
            "choose_judge": "halation.search._judge",
            "judge_run": "halation.search._judge",
            "judge_scores": "halation.search._judge",
            "make_index": "halation.search._make_index",
            "judged_truth": "halation.search._judge",
            "open_search": "halation.search._open_search",
            "read_calibrators": "halation.search._verdict",
            "read_query": "halation.search._query",
            "uncalibrated_probability": "halation.search._judge",
        },
    )
