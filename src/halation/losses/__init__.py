"""Losses for any training loop. Each is a pure function to a scalar, with a thin Module of the same name.

    daa = halation.losses.DAA(temperature=0.01)
    loss = my_loss + 5.0 * daa(scores, relevance)      # both (q, n)

Ranking losses take scores and relevance. Pair losses take scores (or Gaussians) and a match matrix. `kl` takes a
Gaussian, the other regularisers take points or samples. Scores are tensors; relevance, matches, labels and masks may be
arrays. docs/which_loss.md helps you choose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.losses._checks import match_matrix
    from halation.losses._csd_contrastive import CSDContrastive, csd_contrastive
    from halation.losses._daa import DAA, daa
    from halation.losses._diversity import Diversity, diversity
    from halation.losses._info_nce import InfoNCE, info_nce
    from halation.losses._kl import KL, kl
    from halation.losses._mil import MIL, mil
    from halation.losses._mmd import MMD, mmd
    from halation.losses._sigmoid_pairwise import SigmoidPairwise, sigmoid_pairwise
    from halation.losses._smooth_ap import SmoothAP, smooth_ap
    from halation.losses._soft_contrastive import SoftContrastive, soft_contrastive
    from halation.losses._soft_rank import mid_rank, soft_rank
    from halation.losses._spread import Others, Spread, spread
    from halation.losses._triplet import Triplet, triplet
    from halation.losses._uniformity import Uniformity, uniformity

__all__ = [
    "DAA",
    "KL",
    "MIL",
    "MMD",
    "CSDContrastive",
    "Diversity",
    "InfoNCE",
    "Others",
    "SigmoidPairwise",
    "SmoothAP",
    "SoftContrastive",
    "Spread",
    "Triplet",
    "Uniformity",
    "csd_contrastive",
    "daa",
    "diversity",
    "info_nce",
    "kl",
    "match_matrix",
    "mid_rank",
    "mil",
    "mmd",
    "sigmoid_pairwise",
    "smooth_ap",
    "soft_contrastive",
    "soft_rank",
    "spread",
    "triplet",
    "uniformity",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "DAA": "halation.losses._daa",
            "KL": "halation.losses._kl",
            "MIL": "halation.losses._mil",
            "MMD": "halation.losses._mmd",
            "CSDContrastive": "halation.losses._csd_contrastive",
            "Diversity": "halation.losses._diversity",
            "InfoNCE": "halation.losses._info_nce",
            "Others": "halation.losses._spread",
            "SigmoidPairwise": "halation.losses._sigmoid_pairwise",
            "SmoothAP": "halation.losses._smooth_ap",
            "SoftContrastive": "halation.losses._soft_contrastive",
            "Spread": "halation.losses._spread",
            "Triplet": "halation.losses._triplet",
            "Uniformity": "halation.losses._uniformity",
            "csd_contrastive": "halation.losses._csd_contrastive",
            "daa": "halation.losses._daa",
            "diversity": "halation.losses._diversity",
            "info_nce": "halation.losses._info_nce",
            "kl": "halation.losses._kl",
            "match_matrix": "halation.losses._checks",
            "mid_rank": "halation.losses._soft_rank",
            "mil": "halation.losses._mil",
            "mmd": "halation.losses._mmd",
            "sigmoid_pairwise": "halation.losses._sigmoid_pairwise",
            "smooth_ap": "halation.losses._smooth_ap",
            "soft_contrastive": "halation.losses._soft_contrastive",
            "soft_rank": "halation.losses._soft_rank",
            "spread": "halation.losses._spread",
            "triplet": "halation.losses._triplet",
            "uniformity": "halation.losses._uniformity",
        },
    )
