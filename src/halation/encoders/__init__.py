"""From pictures and captions to embeddings and scores: backbones, heads, scorers, and the model you load.

    model = halation.load("runs/mine")
    images = model.encode_images(["a.jpg"])
    texts = model.encode_texts(["two dogs in the snow"])
    scores = model.similarity(images, texts)    # (n_images, n_texts), bigger = closer

A backbone turns pictures or captions into `Features`, a head turns features into an embedding (a `Gaussian`, several
points, or parts), an `Encoder` is both, and a `Network` is two encoders and a comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.encoders._build import build_network, frozen_backbone
    from halation.encoders._cca import CCA
    from halation.encoders._config import ModelConfig
    from halation.encoders._convert import convert_pcme, convert_pcmepp, convert_sgraf
    from halation.encoders._embeddings import (
        Encoded,
        MultiEmbedding,
        PartEmbedding,
        as_float32,
        gather_encoded,
    )
    from halation.encoders._encode_split import encode_split, loader_for, open_split
    from halation.encoders._gru import BiGRU
    from halation.encoders._head_pcme import PCMEHead, PVSEHead
    from halation.encoders._head_pcmepp import PCMEPPHead
    from halation.encoders._head_point import Committee, PointHead
    from halation.encoders._image_efficientnet import EfficientNetLite0
    from halation.encoders._image_hub import HubImage
    from halation.encoders._image_precomputed import Precomputed
    from halation.encoders._image_small import SmallConvNet
    from halation.encoders._model import Model, load
    from halation.encoders._network import Encoder, Network, best_cosine
    from halation.encoders._pooling import GeneralisedPool
    from halation.encoders._run_folder import LearntScalars, RunFolder
    from halation.encoders._sgraf import SAF, SGR, SGRAF
    from halation.encoders._sgraf_parts import PartsHead
    from halation.encoders._text_hub import HubText, MiniLMText
    from halation.encoders._text_transformer import SmallTransformer
    from halation.encoders._text_words import PooledWords, WordsAndSentence, WordsGRU
    from halation.encoders._vocabulary import Vocabulary
    from halation.encoders._word_vectors import WordVectors

__all__ = [
    "CCA",
    "SAF",
    "SGR",
    "SGRAF",
    "BiGRU",
    "Committee",
    "EfficientNetLite0",
    "Encoded",
    "Encoder",
    "GeneralisedPool",
    "HubImage",
    "HubText",
    "LearntScalars",
    "MiniLMText",
    "Model",
    "ModelConfig",
    "MultiEmbedding",
    "Network",
    "PCMEHead",
    "PCMEPPHead",
    "PVSEHead",
    "PartEmbedding",
    "PartsHead",
    "PointHead",
    "PooledWords",
    "Precomputed",
    "RunFolder",
    "SmallConvNet",
    "SmallTransformer",
    "Vocabulary",
    "WordVectors",
    "WordsAndSentence",
    "WordsGRU",
    "as_float32",
    "best_cosine",
    "build_network",
    "convert_pcme",
    "convert_pcmepp",
    "convert_sgraf",
    "encode_split",
    "frozen_backbone",
    "gather_encoded",
    "load",
    "loader_for",
    "open_split",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "BiGRU": "halation.encoders._gru",
            "CCA": "halation.encoders._cca",
            "Committee": "halation.encoders._head_point",
            "EfficientNetLite0": "halation.encoders._image_efficientnet",
            "Encoded": "halation.encoders._embeddings",
            "Encoder": "halation.encoders._network",
            "GeneralisedPool": "halation.encoders._pooling",
            "HubImage": "halation.encoders._image_hub",
            "HubText": "halation.encoders._text_hub",
            "LearntScalars": "halation.encoders._run_folder",
            "MiniLMText": "halation.encoders._text_hub",
            "Model": "halation.encoders._model",
            "ModelConfig": "halation.encoders._config",
            "MultiEmbedding": "halation.encoders._embeddings",
            "Network": "halation.encoders._network",
            "PCMEHead": "halation.encoders._head_pcme",
            "PCMEPPHead": "halation.encoders._head_pcmepp",
            "PVSEHead": "halation.encoders._head_pcme",
            "PartEmbedding": "halation.encoders._embeddings",
            "PartsHead": "halation.encoders._sgraf_parts",
            "PointHead": "halation.encoders._head_point",
            "PooledWords": "halation.encoders._text_words",
            "Precomputed": "halation.encoders._image_precomputed",
            "RunFolder": "halation.encoders._run_folder",
            "SAF": "halation.encoders._sgraf",
            "SGR": "halation.encoders._sgraf",
            "SGRAF": "halation.encoders._sgraf",
            "SmallConvNet": "halation.encoders._image_small",
            "SmallTransformer": "halation.encoders._text_transformer",
            "Vocabulary": "halation.encoders._vocabulary",
            "WordVectors": "halation.encoders._word_vectors",
            "WordsAndSentence": "halation.encoders._text_words",
            "WordsGRU": "halation.encoders._text_words",
            "as_float32": "halation.encoders._embeddings",
            "best_cosine": "halation.encoders._network",
            "build_network": "halation.encoders._build",
            "convert_pcme": "halation.encoders._convert",
            "convert_pcmepp": "halation.encoders._convert",
            "convert_sgraf": "halation.encoders._convert",
            "encode_split": "halation.encoders._encode_split",
            "frozen_backbone": "halation.encoders._build",
            "gather_encoded": "halation.encoders._embeddings",
            "load": "halation.encoders._model",
            "loader_for": "halation.encoders._encode_split",
            "open_split": "halation.encoders._encode_split",
        },
    )
