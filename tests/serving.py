"""A search without a model, for tests of what is built on searches: words in common, colours alike."""

from __future__ import annotations

import asyncio
import io
import json
import math
import re
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from halation._errors import InputError
from halation.calibration import Verdict
from halation.report import Attention, Explanation, ExplanationCancelled, Part
from halation.search import Answer, Hit, Item, UnknownItem

T = TypeVar("T")
Client = Callable[..., Any]
"""The fixture `client` of tests/serve: settings in, a test client out."""

TOKEN = "a token of some length"
_NOTE = "a note on all answers"
_EMPTY = {"a", "an", "and", "at", "in", "is", "it", "of", "on", "one", "that", "the", "there", "to", "with"}


class WordSearch:
    """Finds pictures whose captions share the query's words. The interface of `halation.search.Search`.

    `slow` seconds are slept in every search (half a second more for queries with the word "slowly"); `fails` is raised.
    """

    def __init__(self, folder: Path, captions: dict[str, list[str]], *, calibrated: bool = True, slow: float = 0.0):
        self.folder, self.captions, self.calibrated, self.slow = folder, captions, calibrated, slow
        self.judge = "people" if calibrated else None
        self.fails: Exception | None = None
        self.queries: list[str] = []

    @property
    def items(self) -> Sequence[str]:
        return list(self.captions)

    @property
    def about(self) -> dict[str, Any]:
        sizes = {"images": len(self.captions), "captions": sum(map(len, self.captions.values()))}
        return {**sizes, "similarity": "csd", "calibrated": self.calibrated, "notes": [_NOTE], "judge": self.judge}

    def text(self, query: str, k: int = 10, want: str = "auto") -> Answer:
        self._work(query)
        began, wanted, notes = time.perf_counter(), _words(query), []
        if not query.strip():
            raise InputError("the query is empty; say what to look for")
        if len(query.split()) > 256:
            notes.append("the query was cut to its first 256 words")
        scores = {name: _overlap(wanted, captions) for name, captions in self.captions.items()}
        ambiguity = "broad" if len(wanted) < 3 else "ordinary" if len(wanted) < 6 else "specific"
        return self._answer(query, scores, k, ambiguity, began, notes)

    def image(self, picture: Image.Image, k: int = 10, want: str = "auto", name: str = "image") -> Answer:
        self._work(name)
        began, colour = time.perf_counter(), _colour(picture)
        scores = {item: 1.0 - _distance(colour, _colour(self._open(item))) for item in self.captions}
        if want != "images":
            best = sorted(scores, key=lambda item: -scores[item])
            pairs = [(item, caption) for item in best for caption in self.captions[item]][:k]
            hits = [
                Hit(f"{item}#{n}", scores[item], scores[item], [caption]) for n, (item, caption) in enumerate(pairs)
            ]
            expected = sum(hit.probability or 0 for hit in hits)
            return Answer(
                name, hits, "matches", "specific", 0.1, 1.0, _ms(began), [], "captions", expected_matches=expected
            )
        return self._answer(name, scores, k, "specific", began, [])

    def like(self, id: str, k: int = 10, want: str = "auto") -> Answer:  # noqa: A002
        return self.image(self._open(self.item(id).id), k, want, id)

    def warm(self) -> None:
        """There is nothing to load."""

    def __len__(self) -> int:
        return len(self.captions)

    def item(self, id: str) -> Item:  # noqa: A002
        if id not in self.captions:
            raise UnknownItem(f"no item {id!r} is in the index")
        return Item(id, "images", self.captions[id], self.folder / id, 0.1)

    def picture_bytes(self, id: str, limit: int = 1 << 26) -> bytes | None:  # noqa: A002
        path = self.folder / id
        return path.read_bytes() if path.is_file() and path.stat().st_size <= limit else None

    def _open(self, item: str) -> Image.Image:
        with Image.open(self.folder / item) as picture:
            return picture.copy()

    def _work(self, query: str) -> None:
        self.queries.append(query)
        time.sleep(self.slow + 0.5 * ("slowly" in query))
        if self.fails is not None:
            raise self.fails

    def _answer(
        self, query: str, scores: dict[str, float], k: int, ambiguity: Any, began: float, notes: list[str]
    ) -> Answer:
        ranked = sorted(scores, key=lambda item: -scores[item])[:k]
        hits = [Hit(i, scores[i], self._probability(scores[i]), self.captions[i], self.folder / i) for i in ranked]
        if not self.calibrated:
            return Answer(query, hits, None, None, 0.1, 0.8, _ms(began), notes)
        best = hits[0].score if hits else 0.0
        verdict: Verdict = "nothing" if best < 0.4 else "unsure" if best < 0.6 else "matches"
        expected = sum(hit.probability or 0 for hit in hits)
        return Answer(query, hits, verdict, ambiguity, 0.1, 0.8, _ms(began), notes, expected_matches=expected)

    def _probability(self, score: float) -> float | None:
        return 1.0 / (1.0 + math.exp(-9.0 * (score - 0.6))) if self.calibrated else None


def explained(
    search: WordSearch,
    id: str,  # noqa: A002
    text: str,
    *,
    max_pixels: int,
    is_wanted: Callable[[], bool],
) -> Explanation:
    """An explanation without a model: a word found in the captions speaks for the picture, another against it.

    The word "slowly" makes it look again for five minutes, or until nobody waits for it.
    """
    for _ in range(3000 * ("slowly" in text)):
        time.sleep(0.1)
        if not is_wanted():
            raise ExplanationCancelled("nobody waits")
    item, words = search.item(id), tuple(text.split())
    if not words:
        raise InputError("the query is empty; say what to look for")
    known = set().union(*(_words(caption) for caption in item.captions))
    influence = np.array([0.25 if _words(word) & known else -0.125 for word in words])
    cells = np.zeros((4, 4))
    cells[1, 2], cells[3, 0] = 0.5, -0.25
    parts = (Part("distance of the means", -0.5, "−d²"), Part("spread of the image", -0.25, "−Σσ²"))
    attention = Attention("mean", ("",), np.full((1, 4, 4), 1 / 16)), Attention("mean", ("",), np.eye(1, len(words)))
    return Explanation(
        id, text, "csd", -0.75, parts, {"σ of the image (geometric mean)": 0.1}, 0.5, "of a test", words,
        (*(True for _ in words[1:]), False), (attention[0],), (attention[1],), cells, influence,
        search._open(id).convert("RGB"), (16.0, 0.0, 48.0, 64.0), notes=(f"seen in {search.folder}",),
    )  # fmt: skip


def awaited(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, in a thread of its own: playwright leaves an event loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def png(width: int, height: int, colour: str | int = "red", mode: str = "RGB") -> bytes:
    """A picture of one colour, as a file's content."""
    out = io.BytesIO()
    Image.new(mode, (width, height), colour).save(out, "PNG")
    return out.getvalue()


def scenes(folder: Path, split: str = "test", **options: Any) -> WordSearch:
    """A search over drawn scenes."""
    captions = {}
    for line in (folder / f"{split}_scenes.jsonl").read_text(encoding="utf-8").splitlines():
        scene = json.loads(line)
        captions[scene["image"]] = [caption["text"] for caption in scene["captions"]]
    return WordSearch(folder / "images", captions, **options)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - _EMPTY


def _overlap(wanted: set[str], captions: list[str]) -> float:
    known = set().union(*(_words(caption) for caption in captions)) if captions else set()
    return len(wanted & known) / max(1, len(wanted))


def _colour(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB").resize((8, 8)), dtype=np.float64).reshape(-1) / 255


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).mean())


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1000
