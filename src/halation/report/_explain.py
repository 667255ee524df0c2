"""`explain`: a run, a picture and a text in, an `Explanation` out."""

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
from halation.encoders import Encoded, Gisted, Model, RunFiles, SoftMaximum, detail_of, load
from halation.report._attention import SideAttention, attention_of, cells_per_row
from halation.report._explain_parts import facts_of, name_of, parts_of
from halation.report._explain_reading import Reading, read_words
from halation.report._explanation import Explanation, JoinedScore
from halation.report._influence import (
    MOST_WORDS,
    IsWanted,
    always,
    cell_influence,
    parts_per_row,
    word_influence,
)
from halation.search import Search, UnknownItem
from halation.search._calibrators import read_calibrators
from halation.search._query import read_query
from halation.training import read_recipe

__all__ = ["Explainer", "explain", "explain_hit"]

_CELLS = 7  # rows and columns of the influence where a model has no cells of its own
_SAME = 0.01  # how far a score may be from the index's, which keeps what was seen when it was made
_NOT_CALIBRATED = "the run was not calibrated; `halation calibrate` does it"
_RELATIVE = "it depends on the query's best hit, which a pair alone does not have; give an index, or search"
_NOT_UNDERSTOOD = "the model knows none of these words"


class EncodedImage(NamedTuple):
    """An image as it is compared; what its backbone saw, and the pixels, where it was looked at."""

    image: Encoded
    features: Features | None = None
    pixels: Tensor | None = None  # (3, H, W)


class Chance(NamedTuple):
    """A match probability and what it refers to, or None and why."""

    probability: float | None
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
    """Why a picture scores as it does for a text.

    run        a trained run, or its folder
    image      a picture, or its file
    backbone   what computed the features, for a run trained on features whose name does not tell
    data       the data's folder, for a run on features that were made smaller and that does not keep how
    search     an index of this run's: the probability is then that of a hit among its pictures
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
    """Why a search ranks one of its pictures as it does for these words, with the probability its answer has.

    `is_wanted` is asked before every batch; if it returns False, `ExplanationCancelled` is raised.
    """
    if not isinstance(search, Search):
        raise InputError("this search has no model that could explain what it finds")
    item = search.item(id)
    if item.side != "images":
        raise InputError(f"{id} is a caption; only pictures are explained")
    content = search.picture_bytes(id)
    if content is None:
        raise UnknownItem(f"the picture of {id} is gone from the disk (or too large)")
    picture = read_picture(content, id) if max_pixels is None else read_picture(content, id, limit=max_pixels)
    model = search.model
    explainer = Explainer(model)
    chance = _chance_of_hit(search, id, text)
    index = search.indexes["images"]
    kept = index.gaussians(index.rows([id]))
    try:
        _ = model.images.network
    except (InputError, MissingExtra) as error:
        why = error.render(lambda path: path.name)  # a note may be read on another machine
        return explainer.stored(kept, picture, text, why, name=id, chance=chance, is_wanted=is_wanted)
    explained = explainer(picture, text, name=id, chance=chance, is_wanted=is_wanted)
    score = float(model.similarity(kept, model.encode_texts(explained.text)))
    if abs(score - explained.score) <= _SAME * max(1.0, abs(score)):
        return explained
    scores = f"looked at again the picture scores {plain(explained.score, 3)}, in the index {plain(score, 3)}"
    why = "it, or the features the index was made of, come from another copy"
    return replace(explained, notes=(*explained.notes, f"{scores}: {why}"))


class Explainer:
    """A run that explains, for many pairs: what it needs is loaded once. Safe to use from several threads."""

    def __init__(self, model: Model, *, search: Search | None = None) -> None:
        self.search = search  # for what a probability is relative to
        self.model, self.network = model, model.network
        self.recipe = read_recipe(model.folder / RunFiles.CONFIG)
        compare = self.network.compare
        self.compare: Any = compare.compare if isinstance(compare, SoftMaximum) else compare

    def __call__(
        self,
        picture: Image.Image,
        text: str,
        *,
        name: str = "picture",
        chance: Chance | None = None,
        is_wanted: IsWanted = always,
    ) -> Explanation:
        """Of one picture and one text; `chance` where a search knows better what it may claim.

        `is_wanted` is asked before every batch; if it returns False, `ExplanationCancelled` is raised.
        """
        picture = picture.convert("RGB")
        with torch.no_grad():
            pixels = self.model.preprocess(picture)
            taken, side = self.model.images.read(pixels[None]), cast(Any, self.network.image)
            seen = EncodedImage(self.network.images(taken), side.backbone(taken), pixels)
        return self._explained(seen, picture, text, name, chance, is_wanted)

    def stored(
        self,
        image: Encoded,
        picture: Image.Image,
        text: str,
        why: str,
        *,
        name: str,
        chance: Chance,
        is_wanted: IsWanted = always,
    ) -> Explanation:
        """The same of an image as an index keeps it, where the run cannot look at the picture, and `why` not."""
        explained = self._explained(EncodedImage(image), picture.convert("RGB"), text, name, chance, is_wanted)
        return replace(explained, notes=(*explained.notes, f"nothing is known of the parts of the picture: {why}"))

    @torch.no_grad()  # not inference mode, whose tensors SGRAF's products refuse
    def _explained(
        self, seen: EncodedImage, picture: Image.Image, text: str, name: str, chance: Chance | None, is_wanted: IsWanted
    ) -> Explanation:
        query = read_query(text, self.model)
        reading, said = read_words(query.text, self.model), self._read([query.text])
        detail, asked = detail_of(seen.image), detail_of(said)
        parts = parts_of(self.compare, detail, asked)
        score = math.fsum(part.value for part in parts)
        on_cells, on_words = self._attended(seen, query.text, asked, reading)
        words = word_influence(
            score, reading.without, lambda texts: self._scores(detail, detail_of(self._read(texts)))[0], is_wanted
        )
        given = (chance or self._chance(score, query.text)) if query.understood else Chance(None, _NOT_UNDERSTOOD)
        return Explanation(
            name=name,
            text=query.text,
            similarity=name_of(self.compare),
            score=score,
            parts=parts,
            facts=facts_of(self.compare, detail, asked, self.recipe, self.model.learnt),
            probability=given.probability,
            about_probability=given.about,
            words=reading.words,
            known=self._known(reading),
            image_attention=on_cells.attentions,
            text_attention=on_words.attentions,
            about_image_attention=on_cells.why_none,
            about_text_attention=on_words.why_none,
            image_influence=self._cells(seen, asked, score, is_wanted),
            text_influence=_array(words),
            picture=picture,
            view=self._view(picture, seen.pixels is not None),
            joined=self._joined(seen.image, said),
            notes=(*query.notes, *_bounds(reading, seen)),
        )

    def _cells(self, seen: EncodedImage, asked: Encoded, score: float, is_wanted: IsWanted) -> FloatArray | None:
        if seen.pixels is None or seen.features is None:
            return None
        across = parts_per_row(cells_per_row(seen.features.local) or _CELLS)

        def scores(filled: Tensor) -> Tensor:
            return self._scores(detail_of(self._looked(filled)), asked)[:, 0]

        return _array(cell_influence(seen.pixels, across, across, score, scores, is_wanted))

    def _looked(self, pixels: Tensor) -> Encoded:
        return self.network.images(self.model.images.read(pixels))

    def _read(self, texts: Sequence[str]) -> Encoded:
        return self.network.captions(self.model.texts.tokens(texts))

    def _scores(self, images: Encoded, texts: Encoded) -> Tensor:
        scores: Tensor = self.compare(images, texts)
        return scores.float().cpu()

    def _attended(
        self, seen: EncodedImage, text: str, asked: Encoded, reading: Reading
    ) -> tuple[SideAttention, SideAttention]:
        """Over the cells of the picture and over the words."""
        words = cast(Any, self.network.text).backbone(self.model.texts.tokens([text]))
        heard = self.model.texts.words(text)
        return attention_of(
            self.network, self.compare, (detail_of(seen.image), asked), (seen.features, words), reading, heard
        )

    def _known(self, reading: Reading) -> tuple[bool, ...]:
        unknown = set(self.model.texts.unknown_words(" ".join(reading.words)))
        return tuple(not unknown.intersection(self.model.texts.words(word) or ()) for word in reading.words)

    def _chance(self, score: float, text: str) -> Chance:
        """As a search shows it; where the calibration is relative to a query's best hit, a pair alone has none."""
        calibrators, notes = read_calibrators(self.model.folder)
        if calibrators is None:
            return Chance(None, notes[0] if notes else _NOT_CALIBRATED)
        calibrator, search = calibrators.t2i, self.search
        if search is not None:
            gallery, best = len(search.indexes["images"]), search.text(text, 1, "images").hits
            top = max([score, *(hit.score for hit in best)])
            found = calibrator.probability([top, score], gallery)[1]
            return Chance(float(found), f"as a hit among {gallery:,} pictures")
        if calibrator.probability_map.best_weight > 0:
            return Chance(None, _RELATIVE)
        return Chance(
            float(calibrator.probability([score])[0]), f"as a hit among {calibrator.probability_map.gallery:,} pictures"
        )

    def _joined(self, image: Encoded, said: Encoded) -> JoinedScore | None:
        join = self.network.compare
        if not (isinstance(join, SoftMaximum) and isinstance(image, Gisted) and isinstance(said, Gisted)):
            return None
        return joined(join, image, said)

    def _view(self, picture: Image.Image, looked: bool) -> tuple[float, float, float, float]:
        width, height = map(float, picture.size)
        view = (
            getattr(self.model.images.network, "view", None) if looked else None
        )  # a network of one's own need not say
        found: tuple[float, float, float, float] = view(*picture.size) if view else (0.0, 0.0, width, height)
        return found


def joined(join: SoftMaximum, image: Gisted, text: Gisted) -> JoinedScore:
    """The two scores a soft maximum joins, of one image and one text, on its scale."""
    detail = (join.detail(image, text) - join.median) / join.reach
    gist = join.floor + (1 - join.floor) * (1 + (image.gist.mean * text.gist.mean).sum()) / 2
    share = torch.sigmoid((detail - gist) / join.temperature)
    return JoinedScore(float(join(image, text)), float(detail), float(gist), float(share))


def _bounds(reading: Reading, seen: EncodedImage) -> Iterator[str]:
    """What was not looked at, because looking at everything has no end."""
    if len(reading.words) > MOST_WORDS:
        yield (
            f"of the {len(reading.words)} words the first {MOST_WORDS} were left out, one at a time; what the others "
            "do was not looked at (the score is that of the whole text)"
        )
    side = 0 if seen.features is None else cells_per_row(seen.features.local) or _CELLS
    if side and (across := parts_per_row(side)) < side:
        yield f"the picture's {side} × {side} cells were left out in {across} × {across} larger parts"


def _array(values: Tensor) -> FloatArray:
    array: FloatArray = values.double().cpu().numpy() + 0.0  # no negative zero
    return array


def _chance_of_hit(search: Search, id: str, text: str) -> Chance:  # noqa: A002
    if search.calibrators is None:
        return Chance(None, _NOT_CALIBRATED)
    top = search.calibrators.t2i.top
    answer = search.text(text, top, "images")
    found = [hit.probability for hit in answer.hits if hit.id == id]
    if not found or found[0] is None:
        return Chance(None, f"probabilities were calibrated on the {top} best hits, and this is none of them")
    return Chance(found[0], f"as a hit of this search, among {len(search.indexes['images']):,} pictures")
