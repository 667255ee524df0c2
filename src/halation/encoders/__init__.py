"""From pictures and captions to what can be compared: backbones, heads, scorers, and the models made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halation._lazy import lazy

if TYPE_CHECKING:
    from halation.encoders._cca import CCA
    from halation.encoders._convert import convert_pcme, convert_pcmepp, convert_sgraf
    from halation.encoders._embeddings import Gisted, MultiEmbedding, PartEmbedding
    from halation.encoders._encoded import Encoded, cat, gather_encoded
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
    from halation.encoders._model import Encoder, Model, best_cosine
    from halation.encoders._sgraf import SAF, SGR, SGRAF
    from halation.encoders._text_gru import WordsGRU
    from halation.encoders._text_hub import HubText, MiniLMText
    from halation.encoders._text_sentence import WordsAndSentence, sentence_encoder
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
    "MiniLMText",
    "Model",
    "MultiEmbedding",
    "PCMEHead",
    "PCMEPPHead",
    "PVSEHead",
    "PartEmbedding",
    "PartsHead",
    "PointHead",
    "PooledWords",
    "Precomputed",
    "SmallConvNet",
    "SmallTransformer",
    "SoftMaximum",
    "Vocabulary",
    "WordVectors",
    "WordsAndSentence",
    "WordsGRU",
    "best_cosine",
    "cat",
    "convert_pcme",
    "convert_pcmepp",
    "convert_sgraf",
    "detail_of",
    "gather_encoded",
    "layer_groups",
    "members_of",
    "sentence_encoder",
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
            "Encoder": "halation.encoders._model",
            "Gist": "halation.encoders._gist",
            "GistEncoder": "halation.encoders._gist",
            "Gisted": "halation.encoders._embeddings",
            "HubImage": "halation.encoders._image_hub",
            "HubText": "halation.encoders._text_hub",
            "MiniLMText": "halation.encoders._text_hub",
            "Model": "halation.encoders._model",
            "PCMEHead": "halation.encoders._head_pcme",
            "PCMEPPHead": "halation.encoders._head_pcmepp",
            "PVSEHead": "halation.encoders._head_pvse",
            "PartEmbedding": "halation.encoders._embeddings",
            "PartsHead": "halation.encoders._head_parts",
            "PointHead": "halation.encoders._head_point",
            "PooledWords": "halation.encoders._text_words",
            "Precomputed": "halation.encoders._image_precomputed",
            "MultiEmbedding": "halation.encoders._embeddings",
            "SmallConvNet": "halation.encoders._image_small",
            "SmallTransformer": "halation.encoders._text_transformer",
            "SoftMaximum": "halation.encoders._gist",
            "Vocabulary": "halation.encoders._vocabulary",
            "WordVectors": "halation.encoders._words",
            "WordsAndSentence": "halation.encoders._text_sentence",
            "WordsGRU": "halation.encoders._text_gru",
            "best_cosine": "halation.encoders._model",
            "cat": "halation.encoders._encoded",
            "convert_pcme": "halation.encoders._convert",
            "convert_pcmepp": "halation.encoders._convert",
            "convert_sgraf": "halation.encoders._convert",
            "detail_of": "halation.encoders._gist",
            "gather_encoded": "halation.encoders._encoded",
            "layer_groups": "halation.encoders._layers",
            "members_of": "halation.encoders._head_committee",
            "sentence_encoder": "halation.encoders._text_sentence",
            "vectors_for": "halation.encoders._words",
            "without_gist": "halation.encoders._gist",
        },
    )
