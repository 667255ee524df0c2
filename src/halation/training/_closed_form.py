"""Runs without gradients: heads fitted by CCA, and a run of the weights as they are."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from halation._errors import InputError
from halation._progress import Log, Progress, no_log, silent
from halation._torch import evaluation_mode
from halation.data import Loader
from halation.encoders import CCA, Network, PointHead
from halation.training._processes import Processes
from halation.training._recipe import CCAFit
from halation.training._run import Run, TrainState
from halation.training._validate import measure

__all__ = ["fit_cca", "keep_untrained"]

_BATCH = 256


@torch.no_grad()
def fit_cca(network: Network, loader: Loader, settings: CCAFit, *, progress: Progress = silent) -> None:
    """Set the linear maps of the two point heads to those of CCA on the pairs of a training split.

    Every caption and its image are a pair; the features are what the backbones give, which stay as they are. The
    heads divide each point by its length, so that dot products of the run are CCA's cosines.
    """
    sides: tuple[Any, Any] = network.image, network.text
    heads = [getattr(side, "head", None) for side in sides]
    if not all(isinstance(head, PointHead) and head.source != "attended" for head in heads):
        raise InputError(
            'cca.fit sets the linear maps of single point heads: take model.head "point", model.members 1 and a '
            'model.source other than "attended"'
        )
    dataset = loader.dataset
    with evaluation_mode(network):
        images = _inputs(sides[0], loader.all_images(_BATCH), "images", len(dataset), progress)
        captions = _inputs(sides[1], loader.all_captions(_BATCH), "captions", dataset.n_captions, progress)
    pairs = images[torch.from_numpy(dataset.image_of)]
    dim = heads[0].fc.out_features  # type: ignore[union-attr]
    cca = CCA.fit(pairs, captions, dim, settings.ridge, settings.power)
    heads[0].set_map(cca.image_mean, cca.image_map)  # type: ignore[union-attr]
    heads[1].set_map(cca.caption_mean, cca.caption_map)  # type: ignore[union-attr]


def _inputs(side: Any, blocks: Iterable[Any], what: str, total: int, progress: Progress) -> Tensor:
    """What the head of one side reads for every item of a split, (n, width)."""
    device = side.head.fc.weight.device
    parts, done = [], 0
    for block in blocks:
        parts.append(side.head.inputs(side.backbone(block.to(device))).cpu())
        done += len(parts[-1])
        progress(what, done, total)
    return torch.cat(parts)


def keep_untrained(
    network: Network, dev_loader: Loader, run: Run, processes: Processes, *, started: float, log: Log = no_log
) -> TrainState:
    """Measure the network as it is, and write its weights and one line of metrics into the run.

    started   when the work on the weights began, by `time.perf_counter`
    """
    if processes.first:
        run.keep(network, {})
        validation = measure(network.to(processes.device), dev_loader).summary()
        run.log(epoch=-1, train={}, dev=validation, selected=True)
        recall = f"{validation['R@1 i2t']:.1f}/{validation['R@1 t2i']:.1f}"
        log(f"no epochs  dev R@1 {recall}  rsum {validation['rsum']:.1f}")
    return TrainState(seconds=time.perf_counter() - started)
