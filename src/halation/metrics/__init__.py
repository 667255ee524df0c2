"""Ranking metrics as pure functions: from scores (q, n), bigger = closer, and relevance to one value per query.

Values are fractions in 0…1. Only the order of the scores matters, so any increasing map of them gives the same values.
Among equal scores relevant items come last, so a constant scorer never wins. ASP is the exception: it is the expected
value over random orders of equal items.

`halation.metrics.ranked` has the same metrics for rankings: sort the scores once and take every metric from that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.metrics import ranked
    from halation.metrics._asp import adjusted_asp, asp, asp_ceiling, chance_asp
    from halation.metrics._binary import (
        average_precision,
        best_rank,
        hit_at,
        map_at_r,
        median_rank,
        precision_at,
        r_precision,
        recall_at,
    )
    from halation.metrics._ndcg import ndcg_at
    from halation.metrics._pmrp import plausible_matches, pmrp
    from halation.metrics._rank_ratio import rank_ratio

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
    "rank_ratio",
    "ranked",
    "recall_at",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "adjusted_asp": "halation.metrics._asp",
            "asp": "halation.metrics._asp",
            "asp_ceiling": "halation.metrics._asp",
            "average_precision": "halation.metrics._binary",
            "best_rank": "halation.metrics._binary",
            "chance_asp": "halation.metrics._asp",
            "hit_at": "halation.metrics._binary",
            "map_at_r": "halation.metrics._binary",
            "median_rank": "halation.metrics._binary",
            "ndcg_at": "halation.metrics._ndcg",
            "plausible_matches": "halation.metrics._pmrp",
            "pmrp": "halation.metrics._pmrp",
            "precision_at": "halation.metrics._binary",
            "r_precision": "halation.metrics._binary",
            "rank_ratio": "halation.metrics._rank_ratio",
            "ranked": "halation.metrics.ranked",
            "recall_at": "halation.metrics._binary",
        },
    )
