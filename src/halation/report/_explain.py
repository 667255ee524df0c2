"""`explain`: explain the score of a picture and a text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from PIL import Image
from torch import Tensor

from halation._arrays import FloatArray
from halation._errors import InputError, MissingExtra
from halation._web import plain
from halation.data import Features, read_picture
from halation.encoders import Encoded, Model, load
from halation.report._attention import SideAttention, TextWords, attention_of, cells_per_row, split_words
from halation.report._explanation import Explanation
from halation.report._influence import (
    MOST_WORDS,
    IsWanted,
    always,
    cell_influence,
    parts_per_row,
    word_influence,
)
from halation.report._score_parts import score_facts, score_parts, similarity_name
from halation.search import Search, UnknownItem, read_calibrators, read_query
from halation.similarity import Gaussian
from halation.training import read_recipe

__all__ = ["Explainer", "explain", "explain_hit"]

_CELLS = 7  # parts per row and column of a picture, if the model has no cells
_TOLERANCE = 0.01  # of the difference between the score now and the score by the index
_NOT_CALIBRATED = "the run is not calibrated; halation calibrate does that"
_RELATIVE = "it depends on the query's best hits, which a pair alone does not have; give an index"
_UNKNOWN_WORDS = "the model knows none of these words"


class EncodedImage(NamedTuple):
    """An encoded image, with the backbone's features and the pixels if the model looked at the picture."""

    encoded: Encoded
    features: Features | None = None
    pixels: Tensor | None = None  # (3, H, W)


class MatchProbability(NamedTuple):
    """A match probability and what it refers to, or None and why there is none."""

    value: float | None
    about: str


def explain(
    run: Model | str | os.PathLike[str],
    image: Image.Image | str | os.PathLike[str],
    text: str,
    *,
    backbone: str | None = None,
    data: str | os.PathLike[str] | None = None,
    search: Search | None = None,
) -> Explanation:
    """Explain why a picture scores as it does for a text.

    run        a run's folder, or a loaded model
    image      a picture, or its file
    backbone   the network that computed the features, for a model trained on features that does not name it
    data       the dataset's folder, for a model that does not store how the cells of its features were reduced
    search     a search with this model: the probability is then that of a hit among its images
    """
    model = run if isinstance(run, Model) else load(run, backbone=backbone, data=data)
    explainer = Explainer(model, search=search)
    picture = image if isinstance(image, Image.Image) else read_picture(Path(image))
    return explainer(picture, text, name="picture" if isinstance(image, Image.Image) else Path(image).name)


def explain_hit(
    search: Any,
    id: str,  # noqa: A002
    text: str,
    *,
    max_pixels: int | None = None,
    is_wanted: IsWanted = always,
) -> Explanation:
    """Explain why a search ranks one of its images as it does for a text, with the probability that the hit has.

    `is_wanted` is called before every batch; if it returns False, `ExplanationCancelled` is raised.
    """
    if not isinstance(search, Search):
        raise InputError("this search has no model, so its hits cannot be explained")
    item = search.item(id)
    if item.side != "images":
        raise InputError(f"{id} is a caption; only pictures are explained")
    content = search.picture_bytes(id)
    if content is None:
        raise UnknownItem(f"the picture of {id} is gone from the disk (or too large)")
    picture = read_picture(content, id) if max_pixels is None else read_picture(content, id, limit=max_pixels)
    model = search.model
    explainer = Explainer(model)
    probability = _hit_probability(search, id, text)
    stored = search.gaussian(id)
    try:
        _ = model.images.network
    except (InputError, MissingExtra) as error:
        reason = error.render(lambda path: path.name)  # without folders: the note may be read on another machine
        return explainer.explain_stored(
            stored, picture, text, reason, name=id, probability=probability, is_wanted=is_wanted
        )
    explained = explainer(picture, text, name=id, probability=probability, is_wanted=is_wanted)
    score = float(model.similarity(stored, model.encode_texts(explained.text)))
    if abs(score - explained.score) <= _TOLERANCE * max(1.0, abs(score)):
        return explained
    note = (
        f"the picture scores {plain(explained.score, 3)} now, but {plain(score, 3)} by the index: the picture, or the "
        "features the index was made from, come from another copy"
    )
    return replace(explained, notes=(*explained.notes, note))


class Explainer:
    """Explains many pairs with one loaded model. Safe to use from several threads."""

    def __init__(self, model: Model, *, search: Search | None = None) -> None:
        self.search = search  # probabilities are those of its hits
        self.model, self.network = model, model.network
        self.recipe = read_recipe(model.folder)
        self.compare: Any = model.network.compare

    def __call__(
        self,
        picture: Image.Image,
        text: str,
        *,
        name: str = "picture",
        probability: MatchProbability | None = None,
        is_wanted: IsWanted = always,
    ) -> Explanation:
        """Explain one picture and one text; `probability` is given if a search already knows it.

        `is_wanted` is called before every batch; if it returns False, `ExplanationCancelled` is raised.
        """
        picture = picture.convert("RGB")
        with torch.no_grad():
            pixels = self.model.preprocess(picture)
            inputs, side = self.model.images.read(pixels[None]), cast(Any, self.network.image)
            image = EncodedImage(self.network.images(inputs), side.backbone(inputs), pixels)
        return self._explain(image, picture, text, name, probability, is_wanted)

    def explain_stored(
        self,
        image: Encoded,
        picture: Image.Image,
        text: str,
        reason: str,
        *,
        name: str,
        probability: MatchProbability,
        is_wanted: IsWanted = always,
    ) -> Explanation:
        """Explain an image by its stored embedding, if the model cannot look at the picture for this `reason`."""
        explained = self._explain(EncodedImage(image), picture.convert("RGB"), text, name, probability, is_wanted)
        note = f"the influence of the picture's parts is not known: {reason}"
        return replace(explained, notes=(*explained.notes, note))

    @torch.no_grad()  # not inference_mode: SGRAF's products do not take its tensors
    def _explain(
        self,
        image: EncodedImage,
        picture: Image.Image,
        text: str,
        name: str,
        probability: MatchProbability | None,
        is_wanted: IsWanted,
    ) -> Explanation:
        query = read_query(text, self.model)
        words, encoded_text = split_words(query.text, self.model), self._encode_texts([query.text])
        parts = score_parts(self.compare, image.encoded, encoded_text)
        score = math.fsum(part.value for part in parts)
        over_cells, over_words = self._attention(image, query.text, encoded_text, words)

        if not query.understood:
            probability = MatchProbability(None, _UNKNOWN_WORDS)
        probability = probability or self._probability(score, query.text, encoded_text)
        return Explanation(
            name=name,
            text=query.text,
            similarity=similarity_name(self.compare),
            score=score,
            parts=parts,
            facts=score_facts(self.compare, image.encoded, encoded_text, self.recipe, self.model.learnt),
            probability=probability.value,
            about_probability=probability.about,
            words=words.words,
            known=self._known_words(words),
            image_attention=over_cells.attentions,
            text_attention=over_words.attentions,
            about_image_attention=over_cells.why_none,
            about_text_attention=over_words.why_none,
            image_influence=self._image_influence(image, encoded_text, score, is_wanted),
            text_influence=self._text_influence(image, words, score, is_wanted),
            picture=picture,
            view=self._view(picture, image.pixels is not None),
            notes=(*query.notes, *_limits(words, image)),
        )

    def _image_influence(
        self, image: EncodedImage, text: Encoded, score: float, is_wanted: IsWanted
    ) -> FloatArray | None:
        if image.pixels is None or image.features is None:
            return None
        parts = parts_per_row(cells_per_row(image.features.local) or _CELLS)

        def scores(pixels: Tensor) -> Tensor:
            return self._scores(self.network.images(self.model.images.read(pixels)), text)[:, 0]

        return _array(cell_influence(image.pixels, parts, parts, score, scores, is_wanted))

    def _text_influence(self, image: EncodedImage, words: TextWords, score: float, is_wanted: IsWanted) -> FloatArray:
        def scores(texts: Sequence[str]) -> Tensor:
            return self._scores(image.encoded, self._encode_texts(texts))[0]

        return _array(word_influence(score, words.without, scores, is_wanted))

    def _encode_texts(self, texts: Sequence[str]) -> Encoded:
        return self.network.captions(self.model.texts.tokens(texts))

    def _scores(self, images: Encoded, texts: Encoded) -> Tensor:
        scores: Tensor = self.compare(images, texts)
        return scores.float().cpu()

    def _attention(
        self, image: EncodedImage, text: str, encoded_text: Encoded, words: TextWords
    ) -> tuple[SideAttention, SideAttention]:
        """The attention over the cells of the picture and over the words."""
        text_features = cast(Any, self.network.text).backbone(self.model.texts.tokens([text]))
        encoded, features = (image.encoded, encoded_text), (image.features, text_features)
        return attention_of(self.network, self.compare, encoded, features, words, self.model.texts.words(text))

    def _known_words(self, words: TextWords) -> tuple[bool, ...]:
        unknown = set(self.model.texts.unknown_words(" ".join(words.words)))
        return tuple(not unknown.intersection(self.model.texts.words(word) or ()) for word in words.words)

    def _probability(self, score: float, text: str, encoded_text: Encoded) -> MatchProbability:
        """The probability that a search would show. A pair alone has none if it depends on the query's best hits."""
        calibrators, notes = read_calibrators(self.model.folder)
        if calibrators is None:
            return MatchProbability(None, notes[0] if notes else _NOT_CALIBRATED)
        calibrator, search = calibrators.t2i, self.search
        if search is not None:
            gallery, best = len(search.indexes["images"]), search.text(text, calibrator.depth, "images")
            scores = [*(hit.score for hit in best.hits), score]
            probability = calibrator.probability(scores, gallery, best.uncertainty)[-1]
            return MatchProbability(float(probability), f"as a hit among {gallery:,} pictures")
        if calibrator.probability_map.context.keys() & {"best", "mean"}:
            return MatchProbability(None, _RELATIVE)
        sigma = None
        if isinstance(encoded_text, Gaussian) and not encoded_text.is_point:
            sigma = float(encoded_text.uncertainty()[0])
        probability = float(calibrator.probability([score], uncertainty=sigma)[0])
        return MatchProbability(probability, f"as a hit among {calibrator.probability_map.gallery:,} pictures")

    def _view(self, picture: Image.Image, looked: bool) -> tuple[float, float, float, float]:
        width, height = map(float, picture.size)
        view = getattr(self.model.images.network, "view", None) if looked else None  # your own network need not have it
        box: tuple[float, float, float, float] = view(*picture.size) if view else (0.0, 0.0, width, height)
        return box


def _limits(words: TextWords, image: EncodedImage) -> Iterator[str]:
    """Notes about words and cells that were not left out one by one, because that would take too long."""
    if len(words.words) > MOST_WORDS:
        yield (
            f"influence was measured for the first {MOST_WORDS} of the {len(words.words)} words; the score is that of "
            "the whole text"
        )
    side = 0 if image.features is None else cells_per_row(image.features.local) or _CELLS
    if side and (parts := parts_per_row(side)) < side:
        yield f"the influence of the picture's {side} × {side} cells was measured in {parts} × {parts} larger parts"


def _array(values: Tensor) -> FloatArray:
    array: FloatArray = values.double().cpu().numpy() + 0.0  # no negative zero
    return array


def _hit_probability(search: Search, id: str, text: str) -> MatchProbability:  # noqa: A002
    if search.calibrators is None:
        return MatchProbability(None, _NOT_CALIBRATED)
    top = search.calibrators.t2i.top
    answer = search.text(text, top, "images")
    probability = next((hit.probability for hit in answer.hits if hit.id == id), None)
    if probability is None:
        return MatchProbability(None, f"probabilities are known for the {top} best hits, and this is not one of them")
    return MatchProbability(probability, f"as a hit of this search, among {len(search.indexes['images']):,} pictures")
