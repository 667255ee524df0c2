"""`Search`: an index and the model that made it, ready for questions."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, cast, overload

import numpy as np
from PIL import Image

from halation._errors import InputError, MissingExtra, one_of
from halation.calibration import Calibrator, Calibrators
from halation.encoders import Encoded, Model
from halation.index import Index
from halation.search._answers import Answer, Hit, Item, Side, UnknownItem
from halation.search._entries import file_of, plain, read_place
from halation.search._items import Items, Known
from halation.search._query import read_query
from halation.search._verdict import judged
from halation.similarity import Gaussian

__all__ = ["Search"]

_WANT = ("auto", "images", "captions")
_REORDERED = "hubs are corrected in the order alone: scores are the model's own and need not fall with it"
_WIDER = 4  # times as many are looked at where hubs are corrected: the best by score may stand further down


@dataclass(frozen=True)
class Search:
    """Ask a collection by words or by a picture; made by `open_search`. Safe to use from several threads.

    indexes   by side, "images", "captions" or both
    known     captions and places of the items
    roots     folders the pictures lie below: nothing outside them is ever opened
    trusts    probabilities and thresholds, where the run was calibrated
    about     for JSON: images and captions (counts), sides (backend, recall), run, fingerprint, similarity, source,
              notes (what to know of all answers), …
    """

    model: Model
    indexes: dict[Side, Index]
    known: Items
    roots: tuple[Path, ...]
    calibrators: Calibrators | None
    about: dict[str, Any]

    def text(self, query: str, k: int = 10, want: str = "auto") -> Answer:
        """The k items nearest to these words: images where there are any, else captions of a like meaning."""
        read = read_query(query, self.model)
        side = self._side(want, first="images")
        start = time.perf_counter()
        encoded = _gaussian(self.model.encode_texts(read.text))
        if read.understood:
            return self._answer(query, encoded, "captions", side, k, read.notes, start)
        unjudged = replace(
            self, calibrators=None, about={**self.about, "notes": []}
        )  # nothing was fitted on such words
        answer = unjudged._answer(query, encoded, "captions", side, k, read.notes, start)
        return replace(answer, nothing_matches=True)

    def image(
        self, picture: str | os.PathLike[str] | Image.Image, k: int = 10, want: str = "auto", name: str = "image"
    ) -> Answer:
        """The k items nearest to a picture (or its file): captions where there are any, else similar pictures."""
        side = self._side(want, first="captions")
        start = time.perf_counter()
        encoded = _gaussian(self.model.encode_images(picture))
        return self._answer(name, encoded, "images", side, k, [], start)

    def like(self, id: str, k: int = 10, want: str = "auto") -> Answer:  # noqa: A002
        """The k items nearest to one of the index (a picture's captions, or with `want` its like), by what is stored.

        Nothing is encoded, so this also answers where the run cannot look at pictures.
        """
        asked = self._known(id)[0]
        side = self._side(want, first="captions" if asked == "images" else "images")
        start = time.perf_counter()
        encoded = self.indexes[asked].gaussians(self.indexes[asked].rows([id]))
        return self._answer(id, encoded, asked, side, k, [], start)

    def warm(self) -> None:
        """Load what looks at pictures now, so that the first picture need not wait for it; nothing if it cannot."""
        with suppress(InputError, MissingExtra):
            _ = self.model.images.network

    def item(self, id: str) -> Item:  # noqa: A002
        """One item; `UnknownItem` (an InputError) where there is none."""
        side, known = self._known(id)
        return Item(id, side, list(known.captions), self._path(known), known.uncertainty)

    def picture(self, id: str) -> Path | None:  # noqa: A002
        """The file of an item's picture, links resolved, inside the indexed roots; None if gone or never there."""
        return self._path(self._known(id)[1])

    def picture_bytes(self, id: str, limit: int = 1 << 26) -> bytes | None:  # noqa: A002
        """The picture's file as it is, also from inside a tar shard; None if gone, never there or above the limit."""
        place = self._known(id)[1].place
        if place is None:
            return None
        try:
            if place.offset >= 0:
                content = read_place(self.roots, place) if place.size <= limit else None
            else:
                path = file_of(self.roots, place)
                content = path.read_bytes() if path.stat().st_size <= limit else None
        except (InputError, OSError):
            return None
        return content if isinstance(content, bytes) else None

    @property
    def items(self) -> Sequence[str]:
        """The ids, images before captions; a part of them costs what it holds, however large the index is."""
        return _Ids(tuple(self.indexes.values()))

    def __len__(self) -> int:
        return sum(len(index) for index in self.indexes.values())

    def close(self) -> None:
        """Let go of the files."""
        self.known.close()
        for index in self.indexes.values():
            index.close()

    def _side(self, want: str, first: Side) -> Side:
        one_of(want, _WANT, "kind of item")
        if want == "auto":
            return first if first in self.indexes else next(iter(self.indexes))
        if want not in self.indexes:
            have = next(iter(self.indexes))
            raise InputError(f"this index holds {have}, no {want}; embed {want} too (side='both') and index them")
        return want

    def _answer(
        self, query: str, encoded: Gaussian, asked: Side, side: Side, k: int, notes: list[str], start: float
    ) -> Answer:
        if k < 1:
            raise InputError(f"k is {k}; ask for 1 or more")
        encoded_at = time.perf_counter()
        uncertainty = None if encoded.is_point else float(encoded.uncertainty()[0])
        index, calibrator = self.indexes[side], self._trust(asked, side)
        ids, scores = _nearest(
            index, encoded, max(k, 0 if calibrator is None else calibrator.depth), by_own=asked == side
        )
        said = judged(calibrator, scores, len(index), uncertainty, k, reordered=index.hubness is not None)
        if not ids:
            notes = [*notes, "the index is empty"]
        if self.calibrators is None and asked != side:
            notes = [*notes, *self.about.get("notes", ())]  # why there are no probabilities
        if calibrator is None and any(later > score for score, later in pairwise(scores[:k])):
            notes = [*notes, _REORDERED]
        hits, more = self._hits(side, ids[:k], scores, said.probabilities)
        done = time.perf_counter()
        return Answer(
            query,
            hits,
            said.nothing_matches,
            self._ambiguity(asked, uncertainty),
            uncertainty,
            encode_ms=1000 * (encoded_at - start),
            search_ms=1000 * (done - encoded_at),
            notes=[*notes, *said.notes, *more],
            side=side,
            within=said.within,
            coverage=said.coverage,
        )

    def _hits(
        self, side: Side, ids: Sequence[str], scores: Sequence[float], probabilities: Sequence[float | None]
    ) -> tuple[list[Hit], list[str]]:
        known = self.known.find(side, ids)
        hits, gone = [], 0
        for place, name in enumerate(ids):
            one = known.get(name, Known(name))
            path = self._path(one)
            gone += one.place is not None and one.place.offset < 0 and path is None
            hits.append(Hit(name, scores[place], probabilities[place], list(one.captions), path))
        said = f"{gone} of the pictures found {'is' if gone == 1 else 'are'} no longer on disk, or outside the roots"
        return hits, [said] if gone else []

    def _path(self, known: Known) -> Path | None:
        if known.place is None or known.place.offset >= 0:
            return None
        try:
            return file_of(self.roots, known.place)
        except InputError:
            return None

    def _known(self, id: str) -> tuple[Side, Known]:  # noqa: A002
        for side in self.indexes:
            if plain(id) == id and (known := self.known.find(side, [id]).get(id)):
                return side, known
        raise UnknownItem(f"there is no item {id!r} in this index")

    def _trust(self, asked: Side, side: Side) -> Calibrator | None:
        if self.calibrators is None or asked == side:
            return None  # how alike two pictures are was never judged
        return self.calibrators.t2i if asked == "captions" else self.calibrators.i2t

    def _ambiguity(self, asked: Side, uncertainty: float | None) -> Literal["specific", "ordinary", "broad"] | None:
        if self.calibrators is None:
            return None
        calibrator = self.calibrators.t2i if asked == "captions" else self.calibrators.i2t
        word = None if calibrator.ambiguity is None else calibrator.ambiguity(uncertainty)
        return cast(Literal["specific", "ordinary", "broad"] | None, word)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(index):,} {side}" for side, index in self.indexes.items())
        return f"Search({counts}, {self.about.get('run')})"


class _Ids(Sequence[str]):
    """The names in some indexes, one index after the other, made when they are asked for."""

    def __init__(self, indexes: tuple[Index, ...]) -> None:
        self._indexes = indexes

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return self._named(range(len(self))[place])
        return self._named([range(len(self))[place]])[0]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(index.ids for index in self._indexes)

    def _named(self, places: Sequence[int]) -> list[str]:
        wanted, names, first = np.asarray(places, np.int64), [""] * len(places), 0
        for index in self._indexes:
            here = np.flatnonzero((wanted >= first) & (wanted < first + len(index)))
            for spot, name in zip(here.tolist(), index.ids_of(wanted[here] - first), strict=True):
                names[spot] = name
            first += len(index)
        return names


def _gaussian(encoded: Encoded) -> Gaussian:
    assert isinstance(encoded, Gaussian)  # `open_search` refuses models that give anything else
    return encoded


def _nearest(index: Index, query: Gaussian, k: int, *, by_own: bool) -> tuple[list[str], list[float]]:
    """Ids and the model's own scores of the k nearest or more, best first.

    by_own   in the order of those scores although hubs are corrected: that was measured on queries of the other kind
    """
    ranking = index.search(query, k if index.hubness is None else _WIDER * k)
    ids, own = ranking.ids[0], ranking.uncorrected[0].tolist()
    if by_own:
        order = sorted(range(len(ids)), key=lambda place: -own[place])
        ids, own = [ids[place] for place in order], [own[place] for place in order]
    return ids, own[: len(ids)]
