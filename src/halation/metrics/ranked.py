"""The same metrics for rankings: sort a block of queries once, then take every metric from it.

    ranking = ranked.rank(scores)                            # the one sort
    positives = ranked.relevant_ranks(ranking, relevant)     # the ranks of the relevant items
    ranked.hit_at(positives, 1), ranked.r_precision(positives), ranked.ndcg_at(ranking, gains, 10)
    ranked.asp(ranking, ranked.rank(relevance))

The names are those of `halation.metrics`. Metrics of yes-or-no relevance take `RelevantRanks`, the others a `Ranking`.
Inputs are not checked: scores must be finite float32 or float64 (q, n), relevant bool (q, n), both NumPy arrays.
`row_blocks(rows, n)` cuts a big matrix into slices of rows that keep memory bounded.
"""

from __future__ import annotations

from halation.metrics._asp import asp_of as asp
from halation.metrics._asp import ceiling_of as asp_ceiling
from halation.metrics._binary import average_precision_of as average_precision
from halation.metrics._binary import best_rank_of as best_rank
from halation.metrics._binary import hit_at_of as hit_at
from halation.metrics._binary import map_at_r_of as map_at_r
from halation.metrics._binary import precision_at_of as precision_at
from halation.metrics._binary import r_precision_of as r_precision
from halation.metrics._binary import recall_at_of as recall_at
from halation.metrics._blocks import row_blocks
from halation.metrics._ndcg import ndcg_at_of as ndcg_at
from halation.metrics._pmrp import pmrp_of as pmrp
from halation.metrics._ranking import Ranking, rank
from halation.metrics._relevant_ranks import RelevantRanks, relevant_ranks

__all__ = [
    "Ranking",
    "RelevantRanks",
    "asp",
    "asp_ceiling",
    "average_precision",
    "best_rank",
    "hit_at",
    "map_at_r",
    "ndcg_at",
    "pmrp",
    "precision_at",
    "r_precision",
    "rank",
    "recall_at",
    "relevant_ranks",
    "row_blocks",
]
