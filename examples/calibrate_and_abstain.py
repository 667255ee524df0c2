"""Calibrate and abstain: from any model's scores to match probabilities, and an honest "nothing here matches".

    python examples/calibrate_and_abstain.py

The scores are made up, and calibration needs no model. It is fitted on one half of the pictures and tried on the other.
"""

from __future__ import annotations

import numpy as np

from halation.calibration import JudgedScores, fit_calibrator


def judged(images: int, seed: int) -> JudgedScores:
    """Two captions per image: its position in ten dimensions plus noise, whose size the model's σ knows."""
    draw = np.random.default_rng(seed)
    positions = draw.normal(size=(images, 10))
    image_of = np.repeat(np.arange(images), 2)
    sigma = 0.42 * np.exp(0.4 * draw.normal(size=len(image_of)))
    captions = positions[image_of] + sigma[:, None] * draw.normal(size=(len(image_of), 10))
    scores = -((captions[:, None] - positions) ** 2).sum(axis=2)
    return JudgedScores(scores, image_of[:, None] == np.arange(images), image_of, np.arange(images), sigma)


def main() -> None:
    calibrator = fit_calibrator(judged(300, seed=0)).calibrator
    test = judged(300, seed=1)

    print("match probability of each query's three best, a few queries:")
    for row in range(4):
        best = np.argsort(-test.scores[row])[:3]
        probabilities = calibrator.probability(np.sort(test.scores[row])[::-1][:3], gallery=300)
        marks = ["*" if test.matches[row, item] else " " for item in best]
        shown = "   ".join(f"{100 * p:3.0f} %{mark}" for p, mark in zip(probabilities, marks, strict=True))
        print(f"  {shown}   (* it matches)")

    print('\nhow often "nothing here matches" is the answer:')
    abstained = {"there": 0, "gone": 0}
    for scores, matches, sigma in zip(test.scores, test.matches, test.uncertainty, strict=True):
        for kind, left in (("there", scores), ("gone", np.where(matches, -np.inf, scores))):
            best = np.sort(left)[::-1][: calibrator.depth]
            abstained[kind] += calibrator.nothing_matches(best, 300, uncertainty=float(sigma))
    n = len(test)
    gone, there = (100 * abstained[kind] / n for kind in ("gone", "there"))
    print(f"  for {gone:.0f} % of the queries whose match is gone, and for {there:.0f} % of the others")

    inside, sizes = 0, []
    for scores, matches, sigma in zip(test.scores, test.matches, test.uncertainty, strict=True):
        rows = calibrator.conformal.prediction_set(scores, float(sigma))
        inside, sizes = inside + bool(matches[rows].any()), [*sizes, len(rows)]
    print(f"\nsets that promise to hold the match nine times in ten: it is inside {100 * inside / n:.0f} % of them,")
    print(f"which have {np.mean(sizes):.1f} of 300 items on average")


if __name__ == "__main__":
    main()
