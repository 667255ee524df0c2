"""`explain`: a run, a picture and a text in, an `Explanation` out."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch import Tensor

from halation._arrays import FloatArray
from halation._errors import InputError
from halation.build import Trained, open_run
from halation.encoders import Encoded, Features, Gisted, SoftMaximum, detail_of
from halation.explain._explanation import Attention, Explanation, Joined
from halation.explain._influence import cell_influence, word_influence
from halation.explain._parts import facts_of, name_of, parts_of
from halation.explain._reading import Reading, read_words
from halation.search import MAX_PIXELS, Search, UnknownItem, read_picture
from halation.search._eyes import Eyes, device_here
from halation.search._query import read_query
from halation.search._reader import Reader
from halation.search._trusts import read_trusts

__all__ = ["Explainer", "explain", "explain_hit"]

_CELLS = 7  # rows and columns of the influence where a model has no cells of its own
_NOT_CALIBRATED = "the run was not calibrated: halation calibrate RUN --data DATA"
_NOT_UNDERSTOOD = "the model knows none of these words"


class Chance(NamedTuple):
    """A match probability and what it refers to, or None and why."""

    probability: float | None
    about: str


def explain(
    run: Trained | str | os.PathLike[str],
    image: Image.Image | str | os.PathLike[str],
    text: str,
    *,
    backbone: str | None = None,
) -> Explanation:
    """Why a picture scores as it does for a text.

    run        a trained run, or its folder
    image      a picture, or its file
    backbone   what computed the features, for a run trained on features whose name does not tell
    """
    explainer = Explainer(run if isinstance(run, Trained) else open_run(run), backbone=backbone)
    picture = image if isinstance(image, Image.Image) else read_picture(Path(image))
    return explainer(picture, text, name="picture" if isinstance(image, Image.Image) else Path(image).name)


def explain_hit(search: Any, id: str, text: str, *, max_pixels: int = MAX_PIXELS) -> Explanation:  # noqa: A002
    """Why a search ranks one of its pictures as it does for these words, with the probability its answer has."""
    if not isinstance(search, Search):
        raise InputError("this search has no model that could explain what it finds")
    item = search.item(id)
    if item.side != "images":
        raise InputError(f"{id} is a caption; only pictures are explained")
    content = search.picture_bytes(id)
    if content is None:
        raise UnknownItem(f"the picture of {id} is gone from the disk (or too large)")
    picture = read_picture(content, id, limit=max_pixels)
    towers = search.towers
    explainer = Explainer(towers.trained, eyes=towers.eyes, reader=towers.reader)
    return explainer(picture, text, name=id, chance=_chance_of_hit(search, id, text))


class Explainer:
    """A run that explains, for many pairs: what it needs is loaded once. Safe to use from several threads."""

    def __init__(
        self,
        trained: Trained,
        *,
        backbone: str | None = None,
        eyes: Eyes | None = None,
        reader: Reader | None = None,
    ) -> None:
        self.trained, self.model = trained, trained.model.to(device_here()).eval()
        self.eyes, self.reader = eyes or Eyes(trained, backbone), reader or Reader(trained)
        compare = self.model.compare
        self.compare: Any = compare.compare if isinstance(compare, SoftMaximum) else compare

    @torch.no_grad()  # SGRAF's products refuse tensors of inference mode
    def __call__(
        self, picture: Image.Image, text: str, *, name: str = "picture", chance: Chance | None = None
    ) -> Explanation:
        """Of one picture and one text; `chance` where a search knows better what it may claim."""
        query = read_query(text, self.reader)
        reading = read_words(query.text, self.reader)
        picture = picture.convert("RGB")
        pixels = self.eyes.preprocess(picture)
        side: Any = self.model.image
        seen: Features = side.backbone(self.eyes.look(pixels[None]))
        image, said = self._looked(pixels[None]), self._read([query.text])
        detail, asked = detail_of(image), detail_of(said)
        parts = parts_of(self.compare, detail, asked)
        score = math.fsum(part.value for part in parts)
        on_cells, on_words = self._attentions(seen, query.text, detail, asked, reading)
        grid = on_cells[0].weights.shape[1:] if on_cells else _square(seen.local) or (_CELLS, _CELLS)
        cells = cell_influence(
            pixels, grid[0], grid[1], score, lambda filled: self._scores(detail_of(self._looked(filled)), asked)[:, 0]
        )
        words = word_influence(
            score, reading.without, lambda texts: self._scores(detail, detail_of(self._read(texts)))[0]
        )
        given = chance or self._chance(score)
        if not query.understood:
            given = Chance(None, _NOT_UNDERSTOOD)
        return Explanation(
            name,
            query.text,
            name_of(self.compare),
            score,
            parts,
            facts_of(self.compare, detail, asked, self.trained.recipe),
            given.probability,
            given.about,
            reading.words,
            self._known(reading),
            on_cells,
            on_words,
            _array(cells),
            _array(words),
            picture,
            self._view(picture),
            self._joined(image, said),
            tuple(query.notes),
        )

    def _looked(self, pixels: Tensor) -> Encoded:
        return self.model.images(self.eyes.look(pixels))

    def _read(self, texts: Sequence[str]) -> Encoded:
        return self.model.captions(self.reader.tokens(texts))

    def _scores(self, images: Encoded, texts: Encoded) -> Tensor:
        scores: Tensor = self.compare(images, texts)
        return scores.float().cpu()

    def _attentions(
        self, seen: Features, text: str, image: Encoded, said: Encoded, reading: Reading
    ) -> tuple[tuple[Attention, ...], tuple[Attention, ...]]:
        """Over the cells of the picture and over the words, of the heads or of the scorer."""
        sides: Any = (self.model.image, self.model.text)
        if hasattr(self.compare, "attentions"):
            on_cells, on_words = self.compare.attentions(image, said)
        else:
            read = sides[1].backbone(self.reader.tokens([text]))
            on_cells, on_words = sides[0].head.attentions(seen), sides[1].head.attentions(read)
        heads = {"each word": self._tokens_said(text)}
        grid = _square(seen.local)
        cells = [_attention(of, weights[0], heads.get(of)) for of, weights in on_cells.items()] if grid else []
        words = [_attention(of, weights[0]) for of, weights in on_words.items()] if reading.tokens is not None else []
        return (
            tuple(Attention(a.of, a.heads, a.weights.reshape(-1, *(grid or ()))) for a in cells),
            tuple(Attention(a.of, a.heads, reading.gathered(a.weights)) for a in words),
        )

    def _tokens_said(self, text: str) -> list[str] | None:
        return self.reader.words(text) or None

    def _known(self, reading: Reading) -> tuple[bool, ...]:
        unknown = set(self.reader.unknown_words(" ".join(reading.words)))
        return tuple(not unknown.intersection(self.reader.words(word) or ()) for word in reading.words)

    def _chance(self, score: float) -> Chance:
        trusts, notes = read_trusts(self.trained.folder)
        if trusts is None:
            return Chance(None, notes[0] if notes else _NOT_CALIBRATED)
        size = trusts.t2i.calibration.gallery
        about = f"for words whose best hit this is, among {size:,} pictures, every second such query having a match"
        return Chance(float(trusts.t2i.probability([score])[0]), about)

    def _joined(self, image: Encoded, said: Encoded) -> Joined | None:
        join = self.model.compare
        if not (isinstance(join, SoftMaximum) and isinstance(image, Gisted) and isinstance(said, Gisted)):
            return None
        return joined(join, image, said)

    def _view(self, picture: Image.Image) -> tuple[float, float, float, float]:
        width, height = picture.size
        view = getattr(self.eyes.network, "view", None)  # a backbone of somebody's own need not say
        found: tuple[float, float, float, float] = view(width, height) if view else (0, 0, width, height)
        return found


def joined(join: SoftMaximum, image: Gisted, text: Gisted) -> Joined:
    """The two scores a soft maximum joins, of one image and one text, on its scale."""
    detail = (join.detail(image, text) - join.median) / join.reach
    gist = join.floor + (1 - join.floor) * (1 + (image.gist.mean * text.gist.mean).sum()) / 2
    share = torch.sigmoid((detail - gist) / join.temperature)
    return Joined(float(join(image, text)), float(detail), float(gist), float(share))


def _attention(of: str, weights: Tensor, heads: Sequence[str] | None = None) -> Attention:
    """weights (heads, cells)."""
    count = len(weights)
    names = tuple(heads) if heads and len(heads) == count else tuple(str(n + 1) for n in range(count))
    return Attention(of, ("",) if count == 1 and not heads else names, _array(weights))


def _square(local: Tensor | None) -> tuple[int, int] | None:
    """Rows and columns of the cells, where they are those of a square picture."""
    side = 0 if local is None else math.isqrt(local.shape[1])
    return (side, side) if local is not None and side > 1 and side * side == local.shape[1] else None


def _array(values: Tensor) -> FloatArray:
    array: FloatArray = values.double().cpu().numpy()
    return array


def _chance_of_hit(search: Search, id: str, text: str) -> Chance:  # noqa: A002
    if search.trusts is None:
        return Chance(None, _NOT_CALIBRATED)
    top = search.trusts.t2i.top
    answer = search.text(text, top, "images")
    found = [hit.probability for hit in answer.hits if hit.id == id]
    if not found or found[0] is None:
        return Chance(None, f"probabilities were calibrated on the {top} best hits, and this is none of them")
    return Chance(found[0], f"as a hit of this search, among {len(search.indexes['images']):,} pictures")
