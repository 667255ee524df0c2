"""Losses for anybody's training loop: each a pure function to a scalar, and a thin Module of the same name.

    daa = halation.losses.DAA(temperature=0.01)
    loss = my_loss + 5.0 * daa(scores, relevance)      # both (q, n)

Ranking losses take scores and relevance, pair losses scores (or Gaussians) and a match matrix, `kl` a Gaussian, the
other regularisers points or samples. Scores are tensors; relevance, matches, labels and masks may be arrays.
docs/losses.md says which to take.
"""

from __future__ import annotations

from halation.losses._csd_contrastive import CSDContrastive, csd_contrastive
from halation.losses._daa import DAA, daa
from halation.losses._diversity import Diversity, diversity
from halation.losses._info_nce import InfoNCE, info_nce
from halation.losses._kl import KL, kl
from halation.losses._matches import match_matrix
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
