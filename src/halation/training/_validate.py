"""Measure a model on a split: encode everything, score every pair, evaluate."""

from __future__ import annotations

from halation.data import Loader
from halation.encoders import Encoded, Network, encode_split, evaluating
from halation.evaluation import Report, evaluate

__all__ = ["Validation", "measure"]


_QUICK = ("R@1", "R@5", "R@10", "ASP(tfidf)")


class Validation:
    """What a validation saw: the report, and the encoded images."""

    def __init__(self, report: Report, images: Encoded) -> None:
        self.report, self.images = report, images

    @property
    def asp(self) -> float:
        """ASP(tfidf), both directions added, at most 200."""
        return sum(self.report.results(side)["ASP(tfidf)"] for side in ("i2t", "t2i"))

    def better(self, select: str) -> float:
        """The number a run is selected by."""
        return self.report.rsum + (self.asp if select == "rsum+asp" else 0.0)

    def summary(self) -> dict[str, float]:
        """A few numbers for the log, in percent."""
        values = {
            f"{name} {side}": round(self.report.results(side)[name], 3) for side in ("i2t", "t2i") for name in _QUICK
        }
        return values | {"rsum": round(self.report.rsum, 3)}


def measure(network: Network, loader: Loader) -> Validation:
    """R@1, 5, 10 and ASP(tfidf) of a split, without intervals."""
    images, captions = encode_split(network, loader)
    with evaluating(network):
        scores = network.all_scores(images, captions)
    return Validation(evaluate(scores.numpy(), loader.dataset.truth, _QUICK, resamples=0), images)
