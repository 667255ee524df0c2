"""From pictures and captions to what can be compared: backbones, heads, scorers, and the models made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.encoders._build import build_network, frozen_backbone
    from halation.encoders._cca import CCA
    from halation.encoders._config import ModelConfig
    from halation.encoders._convert import convert_pcme, convert_pcmepp, convert_sgraf
    from halation.encoders._device import current_device
    from halation.encoders._embeddings import Gisted, MultiEmbedding, PartEmbedding
    from halation.encoders._encode_split import encode_split, evaluating, loader_for, open_split
    from halation.encoders._encoded import Encoded, cat, gather_encoded, on_each
    from halation.encoders._gist import Gist, GistEncoder, SoftMaximum, detail_of, without_gist
    from halation.encoders._gru import BiGRU
    from halation.encoders._head_committee import Committee, members_of
    from halation.encoders._head_parts import PartsHead
    from halation.encoders._head_pcme import PCMEHead
    from halation.encoders._head_pcmepp import PCMEPPHead
    from halation.encoders._head_point import PointHead
    from halation.encoders._head_pvse import PVSEHead
    from halation.encoders._image_efficientnet import EfficientNetLite0
    from halation.encoders._image_hub import HubImage
    from halation.encoders._image_precomputed import Precomputed
    from halation.encoders._image_small import SmallConvNet
    from halation.encoders._layers import layer_groups
    from halation.encoders._model import Model, load
    from halation.encoders._network import Encoder, Network, best_cosine
    from halation.encoders._run_folder import LearntScalars, RunFiles, fingerprint, read_about
    from halation.encoders._sgraf import SAF, SGR, SGRAF
    from halation.encoders._text_gru import WordsGRU
    from halation.encoders._text_hub import HubText, MiniLMText
    from halation.encoders._text_sentence import WordsAndSentence
    from halation.encoders._text_transformer import SmallTransformer
    from halation.encoders._text_words import PooledWords
    from halation.encoders._vocabulary import Vocabulary
    from halation.encoders._words import WordVectors, vectors_for

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
    "Gist",
    "GistEncoder",
    "Gisted",
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
    "RunFiles",
    "SmallConvNet",
    "SmallTransformer",
    "SoftMaximum",
    "Vocabulary",
    "WordVectors",
    "WordsAndSentence",
    "WordsGRU",
    "best_cosine",
    "build_network",
    "cat",
    "convert_pcme",
    "convert_pcmepp",
    "convert_sgraf",
    "current_device",
    "detail_of",
    "encode_split",
    "evaluating",
    "fingerprint",
    "frozen_backbone",
    "gather_encoded",
    "layer_groups",
    "load",
    "loader_for",
    "members_of",
    "on_each",
    "open_split",
    "read_about",
    "vectors_for",
    "without_gist",
]

if not TYPE_CHECKING:  # a type checker knows the names above, and no others
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "CCA": "halation.encoders._cca",
            "SAF": "halation.encoders._sgraf",
            "SGR": "halation.encoders._sgraf",
            "SGRAF": "halation.encoders._sgraf",
            "BiGRU": "halation.encoders._gru",
            "Committee": "halation.encoders._head_committee",
            "EfficientNetLite0": "halation.encoders._image_efficientnet",
            "Encoded": "halation.encoders._encoded",
            "Encoder": "halation.encoders._network",
            "Gist": "halation.encoders._gist",
            "GistEncoder": "halation.encoders._gist",
            "Gisted": "halation.encoders._embeddings",
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
            "PVSEHead": "halation.encoders._head_pvse",
            "PartEmbedding": "halation.encoders._embeddings",
            "PartsHead": "halation.encoders._head_parts",
            "PointHead": "halation.encoders._head_point",
            "PooledWords": "halation.encoders._text_words",
            "Precomputed": "halation.encoders._image_precomputed",
            "RunFiles": "halation.encoders._run_folder",
            "SmallConvNet": "halation.encoders._image_small",
            "SmallTransformer": "halation.encoders._text_transformer",
            "SoftMaximum": "halation.encoders._gist",
            "Vocabulary": "halation.encoders._vocabulary",
            "WordVectors": "halation.encoders._words",
            "WordsAndSentence": "halation.encoders._text_sentence",
            "WordsGRU": "halation.encoders._text_gru",
            "best_cosine": "halation.encoders._network",
            "build_network": "halation.encoders._build",
            "cat": "halation.encoders._encoded",
            "convert_pcme": "halation.encoders._convert",
            "convert_pcmepp": "halation.encoders._convert",
            "convert_sgraf": "halation.encoders._convert",
            "current_device": "halation.encoders._device",
            "detail_of": "halation.encoders._gist",
            "encode_split": "halation.encoders._encode_split",
            "evaluating": "halation.encoders._encode_split",
            "fingerprint": "halation.encoders._run_folder",
            "frozen_backbone": "halation.encoders._build",
            "gather_encoded": "halation.encoders._encoded",
            "layer_groups": "halation.encoders._layers",
            "load": "halation.encoders._model",
            "loader_for": "halation.encoders._encode_split",
            "members_of": "halation.encoders._head_committee",
            "on_each": "halation.encoders._encoded",
            "open_split": "halation.encoders._encode_split",
            "read_about": "halation.encoders._run_folder",
            "vectors_for": "halation.encoders._words",
            "without_gist": "halation.encoders._gist",
        },
    )
