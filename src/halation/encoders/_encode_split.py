"""Open a split as a model reads it, and encode all its images and captions."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch

from halation._progress import Progress, silent
from halation._torch import evaluation_mode
from halation.data import Dataset, Loader, open_dataset
from halation.encoders._config import ModelConfig
from halation.encoders._embeddings import Encoded, concatenate
from halation.encoders._network import Network

__all__ = ["encode_split", "loader_for", "open_split"]

T = TypeVar("T")


def open_split(config: ModelConfig, folder: str | os.PathLike[str], split: str) -> Dataset:
    """The split of the data, with the features that the config names; of a training split, the captions it allows."""
    dataset = open_dataset(Path(folder), split, features=config.data.features or None)
    if dataset.features is not None and not config.image.local:
        dataset = dataclasses.replace(dataset, features=dataset.features.pooled_only())
    if split == config.data.train and config.data.captions:
        dataset = dataset.first_captions(config.data.captions)
    return dataset


def loader_for(network: Network, dataset: Dataset) -> Loader:
    """A loader that prepares the dataset for the network's backbones."""
    image: Any = network.image.backbone
    text: Any = network.text.backbone
    return Loader(dataset, getattr(image, "preprocess", None), text.tokenize)


@torch.no_grad()
def encode_split(
    network: Network, loader: Loader, *, batch_size: int = 256, progress: Progress = silent
) -> tuple[Encoded, Encoded]:
    """The embeddings of all images and of all captions of a split, in order, computed in evaluation mode."""
    device = next(network.parameters()).device
    image_blocks, caption_blocks = loader.all_images(batch_size), loader.all_captions(batch_size)
    n_images, n_captions = len(loader.dataset), loader.dataset.n_captions
    with evaluation_mode(network):
        images = [
            network.images(block.to(device))
            for block in _counted(image_blocks, n_images, batch_size, "images", progress)
        ]
        captions = [
            network.captions(block.to(device))
            for block in _counted(caption_blocks, n_captions, batch_size, "captions", progress)
        ]
    return concatenate(images), concatenate(captions)


def _counted(blocks: Iterable[T], total: int, size: int, what: str, progress: Progress) -> Iterator[T]:
    for number, block in enumerate(blocks, start=1):
        yield block
        progress(what, min(number * size, total), total)
