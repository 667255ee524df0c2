"""`Search`: an index and the model that made it, ready for queries."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, overload

from PIL import Image

from halation._errors import InputError, MissingExtra, one_of
from halation.calibration import Calibrator, Calibrators
from halation.encoders import Encoded, Model
from halation.index import Index
from halation.search._answers import Answer, Hit, Item, Side, UnknownItem
from halation.search._items import ItemRecord, ItemTable
from halation.search._query import read_query
from halation.search._source import location_file, read_location, to_utf8
from halation.search._verdict import judge_hits
from halation.similarity import Gaussian

__all__ = ["Search"]

_WANT = ("auto", "images", "captions")
_REORDERED = "the order is corrected for hubs, the scores are not: they need not fall from hit to hit"
_WIDER = 4  # with corrected hubs, fetch this many times k: the best by score may rank further down
_BLOCK = 1000  # ids read at a time


class _EncodedQuery(NamedTuple):
    """A query, ready to be compared with the items.

    name        the words, or the picture's name
    side        "captions" for words, "images" for a picture
    understood  False: the model knows none of the words
    """

    name: str
    gaussian: Gaussian
    side: Side
    encode_ms: float
    notes: Sequence[str] = ()
    understood: bool = True


@dataclass(frozen=True)
class Search:
    """Search a collection by words or by a picture. `open_search` makes it; several threads may use it.

    indexes       by side, "images", "captions" or both; their ids are the rows of the table
    table         ids, captions and locations of the items
    roots         folders that hold the pictures: nothing outside them is ever opened
    calibrators   probabilities and thresholds, where the run was calibrated
    about         for JSON: images and captions (counts), sides (backend, recall), run, fingerprint, similarity, source,
                  notes that hold for every answer, …
    """

    model: Model
    indexes: dict[Side, Index]
    table: ItemTable
    roots: tuple[Path, ...]
    calibrators: Calibrators | None
    about: dict[str, Any]

    def text(self, query: str, k: int = 10, want: str = "auto") -> Answer:
        """The k items nearest to a text: images if the index has any, else captions of similar meaning.

        want   "images" or "captions", to choose
        """
        read = read_query(query, self.model)
        side = self._side(want, first="images")
        start = time.perf_counter()
        encoded = _gaussian(self.model.encode_texts(read.text))
        return self._answer(
            _EncodedQuery(query, encoded, "captions", _ms_since(start), read.notes, read.understood), side, k
        )

    def image(
        self, picture: str | os.PathLike[str] | Image.Image, k: int = 10, want: str = "auto", name: str = "image"
    ) -> Answer:
        """The k items nearest to a picture (or its file): captions if the index has any, else similar pictures."""
        side = self._side(want, first="captions")
        start = time.perf_counter()
        encoded = _gaussian(self.model.encode_images(picture))
        return self._answer(_EncodedQuery(name, encoded, "images", _ms_since(start)), side, k)

    def like(self, id: str, k: int = 10, want: str = "auto") -> Answer:  # noqa: A002
        """The k items nearest to an item of the index: captions for a picture, images for a caption.

        It compares stored embeddings, so it also works where the run cannot look at pictures.
        """
        query_side, _ = self._locate(id)
        side = self._side(want, first="captions" if query_side == "images" else "images")
        start = time.perf_counter()
        gaussian = self.gaussian(id)
        return self._answer(_EncodedQuery(id, gaussian, query_side, _ms_since(start)), side, k)

    def gaussian(self, id: str) -> Gaussian:  # noqa: A002
        """The stored Gaussian of an item, (1, d)."""
        side, row = self._locate(id)
        index = self.indexes[side]
        return index.gaussians(index.rows([row]))

    def warm(self) -> None:
        """Load the image network now, so that the first picture need not wait. A run without one is left as it is."""
        with suppress(InputError, MissingExtra):
            _ = self.model.images.network

    def item(self, id: str) -> Item:  # noqa: A002
        """The item with this id; `UnknownItem` (an InputError) if there is none."""
        side, row = self._locate(id)
        record = self.table.records(side, [row])[0]
        return Item(id, side, list(record.captions), self._path(record), record.uncertainty)

    def picture(self, id: str) -> Path | None:  # noqa: A002
        """The file of an item's picture, links resolved; None if it is gone, outside the roots or never was a file."""
        return self._path(self._record(id))

    def picture_bytes(self, id: str, limit: int = 1 << 26) -> bytes | None:  # noqa: A002
        """The bytes of an item's picture, also from inside a tar shard; None if it is gone or larger than `limit`."""
        location = self._record(id).location
        if location is None:
            return None
        try:
            if location.offset >= 0:
                content = read_location(self.roots, location) if location.size <= limit else None
            else:
                path = location_file(self.roots, location)
                content = path.read_bytes() if path.stat().st_size <= limit else None
        except (InputError, OSError):
            return None
        return content if isinstance(content, bytes) else None

    @property
    def items(self) -> Sequence[str]:
        """The ids, images before captions. A slice reads only the ids it holds."""
        return _Ids(self.table, {side: len(index) for side, index in self.indexes.items()})

    def __len__(self) -> int:
        return sum(len(index) for index in self.indexes.values())

    def close(self) -> None:
        """Close the files."""
        self.table.close()
        for index in self.indexes.values():
            index.close()

    def _side(self, want: str, first: Side) -> Side:
        one_of(want, _WANT, "kind of item")
        if want == "auto":
            return first if first in self.indexes else next(iter(self.indexes))
        if want not in self.indexes:
            have = next(iter(self.indexes))
            raise InputError(
                f"this index holds {have} but no {want}",
                remedy=f"embed the {want} of the collection too, and index again",
            )
        return want

    def _answer(self, query: _EncodedQuery, side: Side, k: int) -> Answer:
        """The k items of a side that are nearest to a query."""
        if k < 1:
            raise InputError(f"k is {k}; ask for 1 or more")
        start, index, same_side = time.perf_counter(), self.indexes[side], query.side == side
        uncertainty = None if query.gaussian.is_point else float(query.gaussian.uncertainty()[0])
        fitted = self._calibrator(query)
        calibrator = None if same_side else fitted  # calibration is about images and texts, not about two of a kind
        fetched = max(k, 0 if calibrator is None else calibrator.depth)
        rows, scores = _nearest(index, query.gaussian, fetched, by_score=same_side)
        judged = judge_hits(calibrator, scores, len(index), uncertainty, k, reordered=index.hubness is not None)
        notes = list(query.notes)
        if not rows:
            notes.append("the index is empty")
        if self.calibrators is None and query.understood and not same_side:
            notes += self.about.get("notes", ())  # why there are no probabilities
        if calibrator is None and any(later > score for score, later in pairwise(scores[:k])):
            notes.append(_REORDERED)
        hits, hit_notes = self._hits(side, rows[:k], scores, judged.probabilities)
        return Answer(
            query.name,
            hits,
            judged.verdict if query.understood else "nothing",
            _ambiguity(fitted, uncertainty),
            uncertainty,
            encode_ms=query.encode_ms,
            search_ms=_ms_since(start),
            notes=[*notes, *judged.notes, *hit_notes],
            side=side,
            within=judged.within,
            coverage=judged.coverage,
            expected_matches=judged.expected_matches,
        )

    def _hits(
        self, side: Side, rows: Sequence[int], scores: Sequence[float], probabilities: Sequence[float | None]
    ) -> tuple[list[Hit], list[str]]:
        hits, gone = [], 0
        for rank, record in enumerate(self.table.records(side, rows)):
            path = self._path(record)
            gone += record.location is not None and record.location.offset < 0 and path is None
            hits.append(Hit(record.id, scores[rank], probabilities[rank], list(record.captions), path))
        note = f"{gone} of these pictures {'is' if gone == 1 else 'are'} no longer on disk, or outside the roots"
        return hits, [note] if gone else []

    def _path(self, record: ItemRecord) -> Path | None:
        if record.location is None or record.location.offset >= 0:
            return None
        try:
            return location_file(self.roots, record.location)
        except InputError:
            return None

    def _record(self, id: str) -> ItemRecord:  # noqa: A002
        side, row = self._locate(id)
        return self.table.records(side, [row])[0]

    def _locate(self, id: str) -> tuple[Side, int]:  # noqa: A002
        location = self.table.locate(id) if to_utf8(id) == id else None
        if location is None:
            raise UnknownItem(f"there is no item {id!r} in this index")
        return location

    def _calibrator(self, query: _EncodedQuery) -> Calibrator | None:
        if self.calibrators is None or not query.understood:  # it was fitted on words that the model knows
            return None
        return self.calibrators.t2i if query.side == "captions" else self.calibrators.i2t

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(index):,} {side}" for side, index in self.indexes.items())
        return f"Search({counts}, {self.about.get('run')})"


class _Ids(Sequence[str]):
    """The ids of all items, one side after the other; each is read when you ask for it."""

    def __init__(self, table: ItemTable, sizes: Mapping[Side, int]) -> None:
        self._table, self._sizes = table, sizes

    def __len__(self) -> int:
        return sum(self._sizes.values())

    @overload
    def __getitem__(self, position: int) -> str: ...

    @overload
    def __getitem__(self, position: slice) -> list[str]: ...

    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return self._at(range(len(self))[position])
        return self._at([range(len(self))[position]])[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]

    def _at(self, positions: Sequence[int]) -> list[str]:
        ids, first = dict[int, str](), 0
        for side, size in self._sizes.items():
            in_side = [position for position in positions if first <= position < first + size]
            records = self._table.records(side, [position - first for position in in_side])
            ids |= {position: record.id for position, record in zip(in_side, records, strict=True)}
            first += size
        return [ids[position] for position in positions]


def _gaussian(encoded: Encoded) -> Gaussian:
    assert isinstance(encoded, Gaussian)  # `embed` refuses models that give anything else
    return encoded


def _ms_since(start: float) -> float:
    return 1000 * (time.perf_counter() - start)


def _ambiguity(
    calibrator: Calibrator | None, uncertainty: float | None
) -> Literal["specific", "ordinary", "broad"] | None:
    if calibrator is None or calibrator.ambiguity is None:
        return None
    return cast(Literal["specific", "ordinary", "broad"] | None, calibrator.ambiguity(uncertainty))


def _nearest(index: Index, query: Gaussian, k: int, *, by_score: bool) -> tuple[list[int], list[float]]:
    """The rows of the k nearest items or more, best first, and their scores without the correction of hubs.

    by_score   order by these scores even where hubs are corrected: the correction was measured on the other side
    """
    ranking = index.search(query, k if index.hubness is None else _WIDER * k)
    rows, scores = ranking.ids[0], ranking.uncorrected[0].tolist()
    if by_score:
        order = sorted(range(len(rows)), key=lambda rank: -scores[rank])
        rows, scores = [rows[rank] for rank in order], [scores[rank] for rank in order]
    return rows, scores[: len(rows)]
