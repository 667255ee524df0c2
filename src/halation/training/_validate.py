"""Measure a model on a split: encode everything, score every pair, evaluate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

from halation._progress import Progress, silent
from halation.data import Loader
from halation.encoders import Encoded, Model, cat
from halation.evaluation import Report, evaluate

__all__ = ["Validation", "encode", "evaluating", "measure", "to_device"]

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


@torch.no_grad()
def encode(
    model: Model, loader: Loader, *, batch_size: int = 256, progress: Progress = silent
) -> tuple[Encoded, Encoded]:
    """All images and all captions of a split, in order, in evaluation mode."""
    device = next(model.parameters()).device
    with evaluating(model):
        images = [
            model.images(to_device(batch, device))
            for batch in _counted(loader.all_images(batch_size), len(loader.dataset), batch_size, "images", progress)
        ]
        captions = [
            model.captions(to_device(batch, device))
            for batch in _counted(
                loader.all_captions(batch_size), loader.dataset.n_captions, batch_size, "captions", progress
            )
        ]
    return cat(images), cat(captions)


def measure(model: Model, loader: Loader) -> Validation:
    """R@1, 5, 10 and ASP(tfidf) of a split, without intervals."""
    images, captions = encode(model, loader)
    with evaluating(model):
        scores = model.all_scores(images, captions)
    return Validation(evaluate(scores.numpy(), loader.dataset.truth, _QUICK, resamples=0), images)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in evaluation mode, and afterwards as it was."""
    was = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was)


def to_device(batch, device: torch.device):  # type: ignore[no-untyped-def]  # a tensor, or a NamedTuple of tensors
    """A batch where the model is."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device, non_blocking=True)
    return type(batch)(*(None if x is None else x.to(device, non_blocking=True) for x in batch))


def _counted(batches: Iterable, total: int, size: int, what: str, progress: Progress):  # type: ignore[no-untyped-def, type-arg]
    for number, batch in enumerate(batches, start=1):
        yield batch
        progress(what, min(number * size, total), total)
