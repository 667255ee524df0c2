"""`Search`: an index and the model that made it, ready for questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from halation.search._answers import Answer, Item, Side

__all__ = ["Search"]


class Search:
    """Ask by words or by a picture. Safe to use from several threads. (The methods are fixed; the insides follow.)"""

    def text(self, query: str, k: int = 10, want: Side | str = "auto") -> Answer:
        """The k items nearest to these words: images where there are any, else captions."""
        raise NotImplementedError

    def image(self, picture: Image.Image, k: int = 10, want: Side | str = "auto", name: str = "image") -> Answer:
        """The k items nearest to a picture: captions where there are any ("auto"), its like with want="images"."""
        raise NotImplementedError

    def item(self, id: str) -> Item:  # noqa: A002
        """One item; `UnknownItem` (an InputError) if there is none."""
        raise NotImplementedError

    def picture(self, id: str) -> Path | None:  # noqa: A002
        """The file of an item's picture: inside the indexed roots, links followed; None if gone or never there."""
        raise NotImplementedError

    def picture_bytes(self, id: str, limit: int = 1 << 26) -> bytes | None:  # noqa: A002
        """The picture's file as it is, also from inside a tar shard; None if gone, never there or above the limit."""
        raise NotImplementedError

    @property
    def items(self) -> Sequence[str]:
        """The ids, images before captions."""
        raise NotImplementedError

    @property
    def about(self) -> dict[str, Any]:
        """For JSON: images, captions (counts), run, fingerprint, similarity, backend, calibrated, source."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError
