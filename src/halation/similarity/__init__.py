"""`Gaussian`, the embedding of every item, and similarities between Gaussians.

Every similarity is called as `similarity(a, b)` with `Gaussian`s or plain arrays (points) and returns (n_a, n_b)
scores, bigger = closer. Losses, evaluation and search share them. An `IndexedSimilarity` also gives the points that an
ordinary L2 index stores (`points`) and is searched with (`query_points`).

| name | what it is | index points |
|---|---|---|
| Gaussian | n diagonal Gaussians N(μ, diag σ²); `Gaussian.point` has no variance | |
| cosine | cos(μ₁, μ₂) | yes |
| l2 | −‖μ₁ − μ₂‖² | yes |
| csd | −(‖μ₁ − μ₂‖² + Σσ₁² + Σσ₂²) | yes |
| wasserstein2 | −(‖μ₁ − μ₂‖² + ‖σ₁ − σ₂‖²) | yes |
| match_probability | mean over sample pairs of s(b − a·d) | |
| match_log_likelihood | ln p for matches, ln(1 − p) for others, p the match probability | |
| sample_min, sample_mean, sample_max | −min, −mean, −max of the sample distances | |
| expected_likelihood | −½ Σ (d²/(v₁+v₂) + ln(v₁+v₂)) | |
| kl, reverse_kl, jeffreys, bhattacharyya | minus that divergence | |
| keyed_noise | noise for samples that does not depend on how a batch is spread over processes | |
| gather | one batch from the parts of all processes, with gradients | |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.similarity._distributed import gather
    from halation.similarity._divergences import bhattacharyya, expected_likelihood, jeffreys, kl, reverse_kl
    from halation.similarity._gaussian import Gaussian
    from halation.similarity._indexed import IndexedSimilarity, Similarity, cosine, csd, l2, wasserstein2
    from halation.similarity._noise import keyed_noise
    from halation.similarity._samples import (
        match_log_likelihood,
        match_probability,
        sample_max,
        sample_mean,
        sample_min,
    )

__all__ = [
    "Gaussian",
    "IndexedSimilarity",
    "Similarity",
    "bhattacharyya",
    "cosine",
    "csd",
    "expected_likelihood",
    "gather",
    "jeffreys",
    "keyed_noise",
    "kl",
    "l2",
    "match_log_likelihood",
    "match_probability",
    "reverse_kl",
    "sample_max",
    "sample_mean",
    "sample_min",
    "wasserstein2",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "Gaussian": "halation.similarity._gaussian",
            "IndexedSimilarity": "halation.similarity._indexed",
            "Similarity": "halation.similarity._indexed",
            "bhattacharyya": "halation.similarity._divergences",
            "cosine": "halation.similarity._indexed",
            "csd": "halation.similarity._indexed",
            "expected_likelihood": "halation.similarity._divergences",
            "gather": "halation.similarity._distributed",
            "jeffreys": "halation.similarity._divergences",
            "keyed_noise": "halation.similarity._noise",
            "kl": "halation.similarity._divergences",
            "l2": "halation.similarity._indexed",
            "match_log_likelihood": "halation.similarity._samples",
            "match_probability": "halation.similarity._samples",
            "reverse_kl": "halation.similarity._divergences",
            "sample_max": "halation.similarity._samples",
            "sample_mean": "halation.similarity._samples",
            "sample_min": "halation.similarity._samples",
            "wasserstein2": "halation.similarity._indexed",
        },
    )
