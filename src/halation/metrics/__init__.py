"""Ranking metrics as pure functions: scores (q, n), bigger = closer, and what is relevant, to one value per query.

Values are fractions in 0…1. Only the order of the scores matters, so any increasing map of them gives the same values.
Equal scores are resolved against the model (relevant items last among equals) in every metric but ASP, which gives
its expected value over random orders of the equals; a scorer that says the same of everything never wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.metrics._asp import adjusted_asp, asp, asp_ceiling, chance_asp
    from halation.metrics._average_precision import average_precision, map_at_r
    from halation.metrics._best_rank import best_rank, hit_at, median_rank
    from halation.metrics._ndcg import ndcg_at
    from halation.metrics._pmrp import plausible_matches, pmrp
    from halation.metrics._precision import precision_at, r_precision, recall_at

__all__ = [
    "adjusted_asp",
    "asp",
    "asp_ceiling",
    "average_precision",
    "best_rank",
    "chance_asp",
    "hit_at",
    "map_at_r",
    "median_rank",
    "ndcg_at",
    "plausible_matches",
    "pmrp",
    "precision_at",
    "r_precision",
    "recall_at",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "adjusted_asp": "halation.metrics._asp",
            "asp": "halation.metrics._asp",
            "asp_ceiling": "halation.metrics._asp",
            "average_precision": "halation.metrics._average_precision",
            "best_rank": "halation.metrics._best_rank",
            "chance_asp": "halation.metrics._asp",
            "hit_at": "halation.metrics._best_rank",
            "map_at_r": "halation.metrics._average_precision",
            "median_rank": "halation.metrics._best_rank",
            "ndcg_at": "halation.metrics._ndcg",
            "plausible_matches": "halation.metrics._pmrp",
            "pmrp": "halation.metrics._pmrp",
            "precision_at": "halation.metrics._precision",
            "r_precision": "halation.metrics._precision",
            "recall_at": "halation.metrics._precision",
        },
    )
