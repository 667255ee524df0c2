"""From pictures and captions to what can be compared: backbones, heads, scorers, and the models made of them."""

from __future__ import annotations

from halation.encoders._cca import CCA
from halation.encoders._convert import convert_pcme, convert_pcmepp, convert_sgraf
from halation.encoders._encoded import Encoded, cat, gather_encoded, n_items, on_each, rows
from halation.encoders._features import Features, Gisted, Parts, Several, Tokens
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
    "Features",
    "Gist",
    "GistEncoder",
    "Gisted",
    "HubImage",
    "HubText",
    "MiniLMText",
    "Model",
    "PCMEHead",
    "PCMEPPHead",
    "PVSEHead",
    "Parts",
    "PartsHead",
    "PointHead",
    "PooledWords",
    "Precomputed",
    "Several",
    "SmallConvNet",
    "SmallTransformer",
    "SoftMaximum",
    "Tokens",
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
    "n_items",
    "on_each",
    "rows",
    "sentence_encoder",
    "vectors_for",
    "without_gist",
]
