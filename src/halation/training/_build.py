"""From a recipe to a model, its loss and its data: the only file that maps names to classes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from halation import encoders, losses, similarity, training
from halation._errors import InputError, one_of
from halation.data import Batch, Dataset, Loader, open_dataset
from halation.encoders import Encoder, Model, Vocabulary
from halation.semantics import METRICS, Semantics
from halation.similarity import Similarity
from halation.training._recipe import Recipe

__all__ = ["build_loader", "build_model", "build_objective", "frozen_backbone", "open_split"]

_SIMILARITIES: dict[str, Similarity] = {
    "cosine": similarity.cosine,
    "l2": similarity.l2,
    "csd": similarity.csd,
    "wasserstein2": similarity.wasserstein2,
}
_SCORERS: dict[str, Any] = {"sgr": encoders.SGR, "saf": encoders.SAF, "sgraf": encoders.SGRAF}


def open_split(recipe: Recipe, folder: Path, split: str) -> Dataset:
    """A split of the data, with the features the recipe names; a training split with the captions it allows."""
    dataset = open_dataset(folder, split, features=recipe.data.features or None)
    if dataset.features is not None and not recipe.image.local:
        dataset = dataclasses.replace(dataset, features=dataset.features.pooled_only())
    if split == recipe.data.train and recipe.data.captions:
        dataset = dataset.first_captions(recipe.data.captions)
    return dataset


def build_loader(model: Model, dataset: Dataset) -> Loader:
    """The dataset as the model's backbones take it."""
    image: Any = model.image.backbone
    text: Any = model.text.backbone
    return Loader(dataset, getattr(image, "preprocess", None), text.tokenize)


def build_model(
    recipe: Recipe, vocabulary: Vocabulary, dims: tuple[int, int] = (0, 0), vectors: Tensor | None = None
) -> Model:
    """The model, with weights drawn from `train.seed`.

    dims      of the precomputed features, pooled and local
    vectors   to begin with instead of those the recipe names, which are then not read
    """
    with torch.random.fork_rng():
        torch.manual_seed(recipe.train.seed)
        image = _IMAGES[one_of(recipe.image.backbone, _IMAGES, "image.backbone")](recipe, dims)
        text = _TEXTS[one_of(recipe.text.backbone, _TEXTS, "text.backbone")](recipe, vocabulary, vectors)
        build = _HEADS[one_of(recipe.model.head, _HEADS, "model.head")]
        heads, compare = build(recipe, image, text), _compare(recipe)
        if recipe.model.gist:
            return _with_gist(recipe, image, text, heads, compare)
        return Model(Encoder(image, heads[0]), Encoder(text, heads[1]), compare)


def build_objective(recipe: Recipe, model: Model, dataset: Dataset) -> training.Objective:
    """The loss of the recipe, over a training split whose captions give the relevance."""
    members = recipe.model.members
    terms = {
        name: (
            getattr(recipe.loss, name).weight,
            training.ByMember(build(recipe), members) if members > 1 and name in _OF_ANNOTATED else build(recipe),
        )
        for name, build in _TERMS.items()
        if getattr(recipe.loss, name).weight
    }
    if not terms:
        raise InputError(f"the recipe has no loss: give one of {', '.join(_TERMS)} a weight")
    relevance = _relevance(recipe.loss.daa.relevance, dataset) if "daa" in terms else None
    return training.Objective(model, terms, relevance, {"daa": recipe.loss.daa.ramp})


_OF_ANNOTATED = (  # what each member of a committee learns by itself
    "infonce", "sigmoid", "triplet", "soft_contrastive", "csd", "smooth_ap",
)  # fmt: skip


def _relevance(metric: str, dataset: Dataset) -> Callable[[Batch], Tensor]:
    """Blocks of caption relevance, document frequencies from this split."""
    one_of(metric, METRICS, "loss.daa.relevance")
    encoder = encoders.sentence_encoder() if metric == "sentence" else None
    corpus = Semantics.fit(dataset.captions, dataset.image_of, metric, encoder=encoder).corpus()
    return lambda batch: torch.from_numpy(corpus.block(batch.images, batch.captions))


def _precomputed(recipe: Recipe, dims: tuple[int, int]) -> nn.Module:
    if not any(dims):
        raise InputError("image.backbone is precomputed but there are no features; name them in data.features")
    return encoders.Precomputed(*dims, grid=recipe.image.grid)


def _hub_image(recipe: Recipe, dims: tuple[int, int]) -> nn.Module:
    return encoders.HubImage(_named(recipe.image.name, "image.name"), trainable=recipe.image.trainable)


def _hub_text(recipe: Recipe, vocabulary: Vocabulary, vectors: Tensor | None) -> nn.Module:
    return encoders.HubText(_named(recipe.text.name, "text.name"), trainable=recipe.text.trainable)


def _named(name: str, key: str) -> str:
    if not name:
        raise InputError(f"a hub backbone needs {key}: a model's name, or the folder it lies in")
    return name


_IMAGES: dict[str, Callable[[Recipe, tuple[int, int]], nn.Module]] = {
    "precomputed": _precomputed,
    "efficientnet_lite0": lambda recipe, dims: encoders.EfficientNetLite0(trainable=recipe.image.trainable),
    "small_conv": lambda recipe, dims: encoders.SmallConvNet(
        recipe.image.dim,
        recipe.image.size,
        stem=recipe.image.stem,  # type: ignore[arg-type]  # it is checked there
    ),
    "hub": _hub_image,
}


def frozen_backbone(name: str) -> nn.Module:
    """An image backbone to compute features with: "efficientnet_lite0", or a transformers model's name or folder."""
    if name == "efficientnet_lite0":
        return encoders.EfficientNetLite0(trainable=False).eval()
    return encoders.HubImage(name, trainable=False).eval()


def _vectors(recipe: Recipe, vocabulary: Vocabulary, given: Tensor | None) -> Tensor | None:
    if given is not None or not recipe.text.vectors:
        return given
    return encoders.vectors_for(vocabulary, recipe.text.vectors, torch.Generator().manual_seed(recipe.train.seed))


def _words_gru(recipe: Recipe, vocabulary: Vocabulary, vectors: Tensor | None) -> nn.Module:
    text, by_parts = recipe.text, recipe.model.head in _SCORERS
    return encoders.WordsGRU(
        vocabulary,
        text.dim,
        text.hidden,
        _vectors(recipe, vocabulary, vectors),
        text.dropout,
        local="states" if by_parts else "words",
        merge="mean" if by_parts else "concat",
        trainable=text.trainable,
    )


def _words(kind: Any, recipe: Recipe, vocabulary: Vocabulary, vectors: Tensor | None) -> nn.Module:
    text = recipe.text
    built: nn.Module = kind(
        vocabulary, text.dim, _vectors(recipe, vocabulary, vectors), text.dropout, trainable=text.trainable
    )
    return built


_TEXTS: dict[str, Callable[[Recipe, Vocabulary, Tensor | None], nn.Module]] = {
    "pooled_words": lambda *given: _words(encoders.PooledWords, *given),
    "words_and_sentence": lambda *given: _words(encoders.WordsAndSentence, *given),
    "words_gru": _words_gru,
    "small_transformer": lambda recipe, vocabulary, vectors: encoders.SmallTransformer(
        vocabulary,
        recipe.text.dim,
        recipe.text.layers,
        recipe.text.heads,
        _vectors(recipe, vocabulary, vectors),
        word_dropout=recipe.text.dropout,
        trainable=recipe.text.trainable,
    ),
    "minilm": lambda recipe, vocabulary, vectors: encoders.MiniLMText(trainable=recipe.text.trainable),
    "hub": _hub_text,
}


def _point(recipe: Recipe, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    model = recipe.model
    widths = {side: {"pooled": side.pooled_dim, "local": side.local_dim} for side in (image, text)}
    for width in widths.values():
        width["both"], width["attended"] = width["pooled"] + width["local"], width["pooled"]
    source: Any = one_of(model.source, ("pooled", "local", "both", "attended"), "model.source")
    given = [width[source] for width in widths.values()]
    if not model.dim and given[0] != given[1]:
        raise InputError(
            f"model.dim 0 keeps the backbones' own vectors, but images have {given[0]} numbers and captions "
            f"{given[1]}; give model.dim a width"
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


def _pcme(recipe: Recipe, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m = recipe.model
    summary: Any = one_of(m.text_summary, ("pooled", "gru"), "model.text_summary")
    kept: dict[str, Any] = {"hidden": m.hidden or None, "log_sigma": m.log_sigma}
    return (
        encoders.PCMEHead(image.pooled_dim, image.local_dim, m.dim, dropout=m.dropout, **kept),
        encoders.PCMEHead(text.pooled_dim, text.local_dim, m.dim, summary, summary, dropout=m.text_dropout, **kept),
    )


def _pcmepp(recipe: Recipe, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m = recipe.model
    kept: dict[str, Any] = {"pool": m.pool, "log_var": 2 * m.log_sigma}
    source = one_of(m.source, ("pooled", "local"), "model.source of pcmepp")
    cells = (0, 0) if source == "pooled" else (image.local_dim, text.local_dim)
    return (
        encoders.PCMEPPHead(image.pooled_dim, cells[0], m.dim, dropout=m.dropout, **kept),
        encoders.PCMEPPHead(text.pooled_dim, cells[1], m.dim, dropout=m.text_dropout, **kept),
    )


def _pvse(recipe: Recipe, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m, hidden = recipe.model, recipe.model.hidden or None
    summary: Any = one_of(m.text_summary, ("pooled", "gru"), "model.text_summary")
    return (
        encoders.PVSEHead(image.pooled_dim, image.local_dim, m.dim, m.k, dropout=m.dropout, hidden=hidden),
        encoders.PVSEHead(text.pooled_dim, text.local_dim, m.dim, m.k, summary, dropout=m.text_dropout, hidden=hidden),
    )


def _parts(recipe: Recipe, image: Any, text: Any) -> tuple[nn.Module, nn.Module]:
    m = recipe.model
    if not image.local_dim:
        raise InputError(f"model.head {m.head} compares cells with words; these image features have no cells")
    alike = text.local_dim == m.dim
    return (
        encoders.PartsHead(image.local_dim, m.dim, m.dropout),
        encoders.PartsHead(text.local_dim, None if alike else m.dim, m.text_dropout),
    )


_HEADS: dict[str, Callable[[Recipe, Any, Any], tuple[nn.Module, nn.Module]]] = {
    "point": _point,
    "pvse": _pvse,
    "pcme": _pcme,
    "pcmepp": _pcmepp,
    "sgr": _parts,
    "saf": _parts,
    "sgraf": _parts,
}


def _with_gist(recipe: Recipe, image: Any, text: Any, heads: tuple[nn.Module, nn.Module], compare: Any) -> Model:
    m, vocabulary = recipe.model, getattr(text, "vocabulary", None)
    gists = (
        encoders.Gist(image.pooled_dim, m.gist, m.gist_dropout, asks=True),
        encoders.Gist(text.pooled_dim, m.gist, m.gist_dropout, asks=False, words=len(vocabulary or ())),
    )
    joined = encoders.SoftMaximum(compare, m.gist_temperature, m.gist_share, m.gist_floor)
    sides = [encoders.GistEncoder(*side) for side in zip((image, text), heads, gists, strict=True)]
    return Model(sides[0], sides[1], joined)


_OWN = {"point": "cosine", "pcme": "l2", "pcmepp": "csd"}


def _compare(recipe: Recipe) -> Any:
    m = recipe.model
    if m.head in _SCORERS:
        steps = {} if m.head == "saf" else {"steps": m.steps}
        loss = recipe.loss  # the hinge on the hardest negatives touches few pairs: recompute those, keep none
        few = loss.triplet.weight and loss.triplet.hardest and not (loss.daa.weight or loss.infonce.weight)
        memory = 0 if few else 1 << 30
        return _SCORERS[m.head](m.dim, m.sim_dim, regions=m.regions or None, memory=memory, **steps)
    if m.head == "pvse":
        return encoders.best_cosine
    return _SIMILARITIES[one_of(m.similarity or _OWN[m.head], _SIMILARITIES, "model.similarity")]


def _daa(recipe: Recipe) -> nn.Module:
    daa = recipe.loss.daa
    own = None if daa.relevance_temperature < 0 else daa.relevance_temperature
    return training.DAA(daa.temperature, daa.variant, own, t2i=daa.t2i)  # type: ignore[arg-type]


_TERMS: dict[str, Callable[[Recipe], nn.Module]] = {
    "infonce": lambda recipe: training.InfoNCE(recipe.loss.infonce.temperature),
    "sigmoid": lambda recipe: training.Sigmoid(recipe.loss.sigmoid.scale, recipe.loss.sigmoid.shift),
    "triplet": lambda recipe: training.Triplet(
        recipe.loss.triplet.margin, hardest=recipe.loss.triplet.hardest, sum_steps=recipe.loss.triplet.sum_steps
    ),
    "soft_contrastive": lambda recipe: training.SoftContrastive(
        recipe.loss.soft_contrastive.scale, recipe.loss.soft_contrastive.shift, recipe.loss.soft_contrastive.samples
    ),
    "csd": lambda recipe: training.CSD(recipe.loss.csd.scale, recipe.loss.csd.shift, recipe.loss.csd.pseudo_positives),
    "daa": _daa,
    "smooth_ap": lambda recipe: training.Scored(losses.SmoothAP(recipe.loss.smooth_ap.temperature)),
    "kl": lambda recipe: training.KL(),
    "spread": lambda recipe: training.Spread(recipe.loss.spread.scale, recipe.loss.spread.memory, recipe.model.dim),
    "uniformity": lambda recipe: training.Uniformity(),
    "diversity": lambda recipe: training.Diversity(),
    "mmd": lambda recipe: training.MMD(),
}
