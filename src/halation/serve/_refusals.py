"""A request that is not served: a status and a sentence that says what was wrong and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from fastapi.exceptions import HTTPException
from fastapi.responses import JSONResponse

from halation.serve._server_metrics import ServerMetrics

__all__ = ["Refusal", "refused", "without_folders"]


class Refusal(HTTPException):
    """Answered as JSON `{"error": message}` with this status; `reason` is one word for the metrics.

    An HTTPException, so that frameworks which catch everything else while they read a request let it through.
    """

    def __init__(self, status: int, message: str, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.reason = reason

    def __str__(self) -> str:
        return str(self.detail)


def refused(refusal: Refusal, observed: ServerMetrics) -> JSONResponse:
    """A refusal as the client sees it, counted."""
    observed.refused.add(refusal.reason)
    return JSONResponse({"error": refusal.detail}, refusal.status_code, refusal.headers)


def without_folders(words: str, known: Iterable[Path] = ()) -> str:
    """Absolute paths cut to their last name, or to what is inside a known folder.

    Names of folders may hold spaces, and nothing says where a path ends in a sentence. So a slash further on is still
    the path's, unless a verb that errors go on with after a path (is, holds, …) or a mark stands before it: where that
    is not clear, too much is hidden rather than too little.

    >>> without_folders("/home/ann/runs/pcme was trained on features (features/lite); a/b and 1/2 stay")
    'pcme was trained on features (features/lite); a/b and 1/2 stay'
    >>> without_folders("/my photos/idx/a.json is damaged; not there: '/the other/b c.json'", [Path("/my photos/idx")])
    "idx/a.json is damaged; not there: 'b c.json'"
    >>> without_folders("made by /home/My Runs (2)/of Ann's/pcme, which is gone; copy /old disk/x to /new disk/y")
    'made by pcme, which is gone; copy x to y'
    """
    parents = {str(way.parent) for folder in known for way in (folder.absolute(), folder.resolve())} - {"/"}
    for parent in sorted(parents, key=len, reverse=True):
        words = re.sub(rf"(?<![\w.~/-]){re.escape(parent)}/", "", words)
    for mark in ("'", '"'):
        words = re.sub(rf"{mark}/(?:[^{mark}/\n]+/)+([^{mark}/\n]+){mark}", rf"{mark}\1{mark}", words)
    return _PATH.sub("", words)


_GOES_ON = "are|can|cannot|could|does|gives|has|have|holds|is|lacks|leaves|line|must|needs|says|speaks|was|were"
_NAME = r"""(?:[^\s/,;:()'"]|(?<=\w)'(?=\w)|\([^()/\n]*\))+"""
_PATH = re.compile(rf"(?<![\w.~/-])/(?:{_NAME}(?:\ (?!(?:{_GOES_ON})\b){_NAME})*/)+(?=[^\s/])")
