"""Datasets: one split of images and captions with what is relevant to what, and the batches a training step sees.

    data = open_dataset("flickr8k", "train", features="features")
    loader = Loader(data, tokenize=text.tokenize)
    for batch, items in loader.epoch(Batches(data, batch_size=128, seed=0), epoch=0):
        ...                                    # items.images (Features), items.tokens, batch.matches

`draw_scenes` draws a dataset that needs no download and in which it is known what is true of what; `cache_features`
keeps what a backbone sees; `check` says what a folder holds.
"""

from __future__ import annotations

from halation.data._batches import Batch, Batches
from halation.data._cache import cache_features
from halation.data._check import check
from halation.data._dataset import Dataset
from halation.data._feature_files import open_features
from halation.data._features import FeatureStore, Rows
from halation.data._findings import FeatureFindings, Findings, SplitFindings
from halation.data._loader import Items, Loader
from halation.data._open import open_dataset
from halation.data._photos import Photos
from halation.data._projection import Projection
from halation.data._scenes_draw import draw_scenes
from halation.data._scenes_files import Scenes, read_scenes, vagueness
from halation.data._scenes_world import Object, Scene, true_of

__all__ = [
    "Batch",
    "Batches",
    "Dataset",
    "FeatureFindings",
    "FeatureStore",
    "Findings",
    "Items",
    "Loader",
    "Object",
    "Photos",
    "Projection",
    "Rows",
    "Scene",
    "Scenes",
    "SplitFindings",
    "cache_features",
    "check",
    "draw_scenes",
    "open_dataset",
    "open_features",
    "read_scenes",
    "true_of",
    "vagueness",
]
