"""Datasets: images and captions of one split with their relevance, and the batches of a training step.

    data = open_dataset("flickr8k", "train", features="features")
    loader = Loader(data, tokenize=text.tokenize)
    for batch, items in loader.epoch(Batches(data, batch_size=128, seed=0), epoch=0):
        ...                                    # items.images (Features), items.tokens, batch.matches

`draw_scenes` draws a dataset that needs no download and knows which caption is true of which image. `cache_features`
stores a backbone's features. `check` lists the contents of a folder and its problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.data._batches import Batch, Batches
    from halation.data._cache import cache_features
    from halation.data._check import DatasetCheck, FeatureCheck, SplitCheck, check
    from halation.data._coco import read_coco, read_karpathy
    from halation.data._cub import read_cub
    from halation.data._cxc_ratings import read_cxc_ratings
    from halation.data._dataset import Dataset
    from halation.data._extended import read_cxc, read_eccv
    from halation.data._feature_files import open_features
    from halation.data._features import FeatureArray, FeatureStore
    from halation.data._flickr import read_flickr8k, read_flickr30k
    from halation.data._inputs import Features, Tokens
    from halation.data._jsonl import read_jsonl
    from halation.data._judgements import Judgements, read_flickr8k_judgements
    from halation.data._layouts import Layout, recognise
    from halation.data._loader import BatchInputs, Loader
    from halation.data._open import open_dataset
    from halation.data._origin import FeatureOrigin, check_origin
    from halation.data._pictures import PICTURE_SUFFIXES, Photos, UnreadablePicture, as_rgb, read_picture
    from halation.data._projection import Projection
    from halation.data._scenes_draw import draw_scene, draw_scenes
    from halation.data._scenes_files import Scenes, read_scenes, vagueness
    from halation.data._scenes_world import Object, Scene, true_of
    from halation.data._truth import Direction, Truth

__all__ = [
    "PICTURE_SUFFIXES",
    "Batch",
    "BatchInputs",
    "Batches",
    "Dataset",
    "DatasetCheck",
    "Direction",
    "FeatureArray",
    "FeatureCheck",
    "FeatureOrigin",
    "FeatureStore",
    "Features",
    "Judgements",
    "Layout",
    "Loader",
    "Object",
    "Photos",
    "Projection",
    "Scene",
    "Scenes",
    "SplitCheck",
    "Tokens",
    "Truth",
    "UnreadablePicture",
    "as_rgb",
    "cache_features",
    "check",
    "check_origin",
    "draw_scene",
    "draw_scenes",
    "open_dataset",
    "open_features",
    "read_coco",
    "read_cub",
    "read_cxc",
    "read_cxc_ratings",
    "read_eccv",
    "read_flickr8k",
    "read_flickr8k_judgements",
    "read_flickr30k",
    "read_jsonl",
    "read_karpathy",
    "read_picture",
    "read_scenes",
    "recognise",
    "true_of",
    "vagueness",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "PICTURE_SUFFIXES": "halation.data._pictures",
            "Batch": "halation.data._batches",
            "Batches": "halation.data._batches",
            "Dataset": "halation.data._dataset",
            "Direction": "halation.data._truth",
            "FeatureCheck": "halation.data._check",
            "FeatureOrigin": "halation.data._origin",
            "FeatureStore": "halation.data._features",
            "Features": "halation.data._inputs",
            "DatasetCheck": "halation.data._check",
            "BatchInputs": "halation.data._loader",
            "Judgements": "halation.data._judgements",
            "Layout": "halation.data._layouts",
            "Loader": "halation.data._loader",
            "Object": "halation.data._scenes_world",
            "Photos": "halation.data._pictures",
            "Projection": "halation.data._projection",
            "FeatureArray": "halation.data._features",
            "Scene": "halation.data._scenes_world",
            "Scenes": "halation.data._scenes_files",
            "SplitCheck": "halation.data._check",
            "Tokens": "halation.data._inputs",
            "Truth": "halation.data._truth",
            "UnreadablePicture": "halation.data._pictures",
            "as_rgb": "halation.data._pictures",
            "cache_features": "halation.data._cache",
            "check": "halation.data._check",
            "check_origin": "halation.data._origin",
            "draw_scene": "halation.data._scenes_draw",
            "draw_scenes": "halation.data._scenes_draw",
            "open_dataset": "halation.data._open",
            "open_features": "halation.data._feature_files",
            "read_coco": "halation.data._coco",
            "read_cub": "halation.data._cub",
            "read_cxc": "halation.data._extended",
            "read_cxc_ratings": "halation.data._cxc_ratings",
            "read_eccv": "halation.data._extended",
            "read_flickr30k": "halation.data._flickr",
            "read_flickr8k": "halation.data._flickr",
            "read_flickr8k_judgements": "halation.data._judgements",
            "read_jsonl": "halation.data._jsonl",
            "read_karpathy": "halation.data._coco",
            "read_picture": "halation.data._pictures",
            "read_scenes": "halation.data._scenes_files",
            "recognise": "halation.data._layouts",
            "true_of": "halation.data._scenes_world",
            "vagueness": "halation.data._scenes_files",
        },
    )
