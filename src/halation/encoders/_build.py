"""From a model's config to its network: the only file that maps names to backbones, heads and similarities."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from halation import encoders, similarity  # a class is loaded when a config names it
from halation._errors import InputError, one_of
from halation.encoders._config import ModelConfig
from halation.encoders._network import Encoder, Network
from halation.encoders._vocabulary import Vocabulary

__all__ = ["SCORERS", "SIMILARITIES", "build_network", "frozen_backbone"]

SIMILARITIES = ("cosine", "l2", "csd", "wasserstein2")
"""Similarities of one embedding per item, which an index can search by."""
SCORERS = ("sgr", "saf", "sgraf")
"""Heads whose similarity is a network that looks at both items at once."""

_READ_WORD_VECTORS = ("pooled_words", "words_and_sentence", "words_gru", "small_transformer")


def build_network(
    config: ModelConfig,
    vocabulary: Vocabulary,
    dims: tuple[int, int] = (0, 0),
    vectors: Tensor | None = None,
    *,
    seed: int = 0,
    memory: int = 1 << 30,
) -> Network:
    """The network a config describes, with weights drawn from `seed`.

    dims      widths of the precomputed features, pooled and local
    vectors   word vectors to start from, instead of those that `text.vectors` names
    memory    bytes that SGR and SAF may keep between the forward and the backward pass
    """
    if vectors is None and config.text.vectors and config.text.backbone in _READ_WORD_VECTORS:
        known = encoders.WordVectors.read(config.text.vectors, set(vocabulary.words))
        vectors = known.table(vocabulary, torch.Generator().manual_seed(seed))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        image = _IMAGES[one_of(config.image.backbone, _IMAGES, "image.backbone")](config, dims)
        text = _TEXTS[one_of(config.text.backbone, _TEXTS, "text.backbone")](config, vocabulary, vectors)
        heads = _HEADS[one_of(config.model.head, _HEADS, "model.head")](config, image, text)
        return Network(Encoder(image, heads[0]), Encoder(text, heads[1]), _comparison(config, memory))


def _precomputed(config: ModelConfig, dims: tuple[int, int]) -> nn.Module:
    if not any(dims):
        problem = "image.backbone is precomputed but there are no features"
        raise InputError(problem, remedy="name their folder in data.features")
    return encoders.Precomputed(*dims, grid=config.image.grid)


def _hub_image(config: ModelConfig, dims: tuple[int, int]) -> nn.Module:
    return encoders.HubImage(_named(config.image.name, "image.name"), trainable=config.image.trainable)


def _hub_text(config: ModelConfig, vocabulary: Vocabulary, vectors: Tensor | None) -> nn.Module:
    return encoders.HubText(_named(config.text.name, "text.name"), trainable=config.text.trainable)


def _named(name: str, key: str) -> str:
    if not name:
        raise InputError(f"a hub backbone needs {key}: a model's name, or its folder")
    return name


_IMAGES: dict[str, Callable[[ModelConfig, tuple[int, int]], nn.Module]] = {
    "precomputed": _precomputed,
    "efficientnet_lite0": lambda config, dims: encoders.EfficientNetLite0(trainable=config.image.trainable),
    "small_conv": lambda config, dims: encoders.SmallConvNet(
        config.image.dim,
        config.image.size,
        stem=config.image.stem,  # type: ignore[arg-type]  # it is checked there
    ),
    "hub": _hub_image,
}


def frozen_backbone(name: str) -> nn.Module:
    """The frozen image backbone of that name: "efficientnet_lite0", or the name or folder of a transformers model."""
    if name == "efficientnet_lite0":
        return encoders.EfficientNetLite0(trainable=False).eval()
    return encoders.HubImage(name, trainable=False).eval()


def _words_gru(config: ModelConfig, vocabulary: Vocabulary, vectors: Tensor | None) -> nn.Module:
    text, by_parts = config.text, config.model.head in SCORERS
    return encoders.WordsGRU(
        vocabulary,
        text.dim,
        text.hidden,
        vectors,
        text.dropout,
        local="states" if by_parts else "words",
        merge="mean" if by_parts else "concat",
        trainable=text.trainable,
    )


def _words(kind: Any, config: ModelConfig, vocabulary: Vocabulary, vectors: Tensor | None) -> nn.Module:
    text = config.text
    built: nn.Module = kind(vocabulary, text.dim, vectors, text.dropout, trainable=text.trainable)
    return built


_TEXTS: dict[str, Callable[[ModelConfig, Vocabulary, Tensor | None], nn.Module]] = {
    "pooled_words": lambda *given: _words(encoders.PooledWords, *given),
    "words_and_sentence": lambda *given: _words(encoders.WordsAndSentence, *given),
    "words_gru": _words_gru,
    "small_transformer": lambda config, vocabulary, vectors: encoders.SmallTransformer(
        vocabulary,
        config.text.dim,
        config.text.layers,
        config.text.heads,
        vectors,
        word_dropout=config.text.dropout,
        trainable=config.text.trainable,
    ),
    "minilm": lambda config, vocabulary, vectors: encoders.MiniLMText(trainable=config.text.trainable),
    "hub": _hub_text,
}


def _point(config: ModelConfig, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    model = config.model
    widths = {side: {"pooled": side.pooled_dim, "local": side.local_dim} for side in (image, text)}
    for width in widths.values():
        width["both"], width["attended"] = width["pooled"] + width["local"], width["pooled"]
    source: Any = one_of(model.source, ("pooled", "local", "both", "attended"), "model.source")
    given = [width[source] for width in widths.values()]
    if not model.dim and given[0] != given[1]:
        raise InputError(
            f"model.dim 0 keeps the vectors of the backbones, but images have {given[0]} numbers and captions "
            f"{given[1]}",
            remedy="set model.dim to a width",
        )

    def build(side: Any, width: int, dropout: float) -> encoders.PointHead:
        head = encoders.PointHead(
            width, model.dim // model.members or width, dropout, source, local_dim=side.local_dim, heads=model.heads
        )
        if not model.dim:
            nn.init.eye_(head.fc.weight)
        return head

    makers = [
        functools.partial(build, *side) for side in zip(widths, given, (model.dropout, model.text_dropout), strict=True)
    ]
    if model.members == 1:
        return makers[0](), makers[1]()
    return encoders.Committee(makers[0], model.members), encoders.Committee(makers[1], model.members)


def _pcme(config: ModelConfig, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m = config.model
    summary: Any = one_of(m.text_summary, ("pooled", "gru"), "model.text_summary")
    kept: dict[str, Any] = {"hidden": m.hidden or None, "log_sigma": m.log_sigma}
    return (
        encoders.PCMEHead(image.pooled_dim, image.local_dim, m.dim, dropout=m.dropout, **kept),
        encoders.PCMEHead(text.pooled_dim, text.local_dim, m.dim, summary, summary, dropout=m.text_dropout, **kept),
    )


def _pcmepp(config: ModelConfig, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m = config.model
    kept: dict[str, Any] = {"pool": m.pool, "log_var": 2 * m.log_sigma}
    source = one_of(m.source, ("pooled", "local"), "model.source of pcmepp")
    cells = (0, 0) if source == "pooled" else (image.local_dim, text.local_dim)
    return (
        encoders.PCMEPPHead(image.pooled_dim, cells[0], m.dim, dropout=m.dropout, **kept),
        encoders.PCMEPPHead(text.pooled_dim, cells[1], m.dim, dropout=m.text_dropout, **kept),
    )


def _pvse(config: ModelConfig, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m, hidden = config.model, config.model.hidden or None
    summary: Any = one_of(m.text_summary, ("pooled", "gru"), "model.text_summary")
    return (
        encoders.PVSEHead(image.pooled_dim, image.local_dim, m.dim, m.k, dropout=m.dropout, hidden=hidden),
        encoders.PVSEHead(text.pooled_dim, text.local_dim, m.dim, m.k, summary, dropout=m.text_dropout, hidden=hidden),
    )


def _parts(config: ModelConfig, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m = config.model
    if not image.local_dim:
        raise InputError(f"model.head {m.head} compares cells with words, but the image features have no cells")
    same_width = text.local_dim == m.dim
    return (
        encoders.PartsHead(image.local_dim, m.dim, m.dropout),
        encoders.PartsHead(text.local_dim, None if same_width else m.dim, m.text_dropout),
    )


_HEADS: dict[str, Callable[[ModelConfig, Any, Any], tuple[nn.Module, nn.Module]]] = {
    "point": _point,
    "pvse": _pvse,
    "pcme": _pcme,
    "pcmepp": _pcmepp,
    "sgr": _parts,
    "saf": _parts,
    "sgraf": _parts,
}


_DEFAULT_SIMILARITY = {"point": "cosine", "pcme": "l2", "pcmepp": "csd"}


def _comparison(config: ModelConfig, memory: int) -> Any:
    m = config.model
    if m.head in SCORERS:
        steps = {} if m.head == "saf" else {"steps": m.steps}
        scorer: Any = getattr(encoders, m.head.upper())
        return scorer(m.dim, m.sim_dim, regions=m.regions or None, memory=memory, **steps)
    if m.head == "pvse":
        return encoders.best_cosine
    name = one_of(m.similarity or _DEFAULT_SIMILARITY[m.head], SIMILARITIES, "model.similarity")
    return getattr(similarity, name)
