"""Calibrate and abstain: from any model's scores to match probabilities, "not sure" and "nothing here matches".

    python examples/calibrate_and_abstain.py

The scores are made up, and calibration needs no model. It is fitted on one half of the pictures and tried on the other.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from halation.calibration import JudgedScores, fit_calibrator

VERDICTS = ("matches", "unsure", "nothing")


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
        best = np.argsort(-test.scores[row])[: calibrator.depth]  # the others of the best tell what the first are worth
        sigma = float(test.uncertainty[row])
        probabilities = calibrator.probability(test.scores[row, best], gallery=300, uncertainty=sigma)
        marks = ["*" if test.matches[row, item] else " " for item in best]
        shown = "   ".join(f"{100 * p:3.0f} %{mark}" for p, mark in list(zip(probabilities, marks, strict=True))[:3])
        print(f"  {shown}   (* it matches)")

    print("\ndoes anything here match? Each answer, in percent of the queries:")
    answers = {"the match is there": Counter[str](), "the match is gone": Counter[str]()}
    for scores, matches, sigma in zip(test.scores, test.matches, test.uncertainty, strict=True):
        for counts, left in zip(answers.values(), (scores, np.where(matches, -np.inf, scores)), strict=True):
            best = np.sort(left)[::-1][: calibrator.depth]
            counts[calibrator.verdict(best, 300, uncertainty=float(sigma))] += 1
    n = len(test)
    for kind, counts in answers.items():
        print(f"  {kind}:  " + "   ".join(f"{name} {100 * counts[name] / n:.0f}" for name in VERDICTS))

    inside, sizes = 0, []
    for scores, matches, sigma in zip(test.scores, test.matches, test.uncertainty, strict=True):
        rows = calibrator.conformal.prediction_set(scores, float(sigma))
        inside, sizes = inside + bool(matches[rows].any()), [*sizes, len(rows)]
    print(f"\nsets that promise to hold the match nine times in ten: it is inside {100 * inside / n:.0f} % of them,")
    print(f"which have {np.mean(sizes):.1f} of 300 items on average")


if __name__ == "__main__":
    main()
