"""Logistic regression of a few features by Newton's method, for Platt scaling and abstention."""

from __future__ import annotations

import numpy as np

from halation._arrays import FloatArray, sigmoid

__all__ = ["fit_logistic", "log_odds", "smoothed"]

_RIDGE = 1e-9  # per row: enough for a unique answer where two features are equal
_STEPS = 100


def log_odds(p: FloatArray | float) -> FloatArray:
    """ln p / (1 − p)."""
    p = np.asarray(p, dtype=np.float64)
    return np.log(p) - np.log1p(-p)


def smoothed(labels: FloatArray) -> FloatArray:
    """Platt's targets: (P + 1)/(P + 2) for the P positives, 1/(N + 2) for the N others; no fit runs to infinity.

    A label may be a share in 0…1: its target is that share of the way from the lower to the upper of the two.
    """
    positive = labels.sum()
    low, high = 1 / (len(labels) - positive + 2), (positive + 1) / (positive + 2)
    targets: FloatArray = low + labels * (high - low)
    return targets


def fit_logistic(features: FloatArray, targets: FloatArray) -> FloatArray:
    """Weights of σ(w·x + b) that maximise the likelihood of targets in 0…1: (d + 1,), the intercept last.

    features (n, d), targets (n,). A feature that is the same in every row gets the weight 0.

    >>> fit_logistic(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.2, 0.2, 0.8, 0.8])).round(3)
    array([ 2.773, -1.386])
    """
    x = np.asarray(features, dtype=np.float64)
    centre, spread = x.mean(axis=0), x.std(axis=0)
    flat = spread <= 1e-12 * np.maximum(1.0, np.abs(centre))
    spread = np.where(flat, 1.0, spread)
    design = np.column_stack([np.where(flat, 0.0, (x - centre) / spread), np.ones(len(x))])  # (n, d + 1)
    penalty = np.full(design.shape[1], _RIDGE * len(x))
    weights = np.zeros(design.shape[1])
    loss = _loss(design, targets, weights, penalty)
    for _ in range(_STEPS):
        p = sigmoid(design @ weights)
        gradient = design.T @ (p - targets) + penalty * weights
        hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-6 and (new := _loss(design, targets, weights - size * step, penalty)) > loss:
            size /= 2
        if size <= 1e-6:
            break
        weights, done, loss = weights - size * step, loss - new < 1e-13 * max(1.0, loss), new
        if done:
            break
    plain = np.where(flat, 0.0, weights[:-1] / spread)
    return np.append(plain, weights[-1] - plain @ centre)


def _loss(design: FloatArray, targets: FloatArray, weights: FloatArray, penalty: FloatArray) -> float:
    logits = design @ weights
    return float((np.logaddexp(0, logits) - targets * logits).sum() + 0.5 * (penalty * weights**2).sum())
