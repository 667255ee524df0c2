"""A request that is not served: a status and a sentence that says what was wrong and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from fastapi.exceptions import HTTPException
from fastapi.responses import JSONResponse

from halation._errors import HalationError
from halation.serve._server_metrics import ServerMetrics

__all__ = ["Refusal", "message_for_client", "refused"]


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


def message_for_client(error: HalationError | OSError, folders: Iterable[Path]) -> str:
    """What went wrong, without telling a client where things are on the server's disk.

    A path inside one of `folders` is shown from that folder's name on; of any other only the last name is left.

    >>> from halation import InputError
    >>> message_for_client(InputError("is damaged", path="/my photos/idx/a.json"), [Path("/my photos/idx")])
    'idx/a.json is damaged'
    >>> message_for_client(InputError("is not there", path="/srv/runs/mine", remedy="copy it", argument="run"), [])
    'mine is not there; copy it'
    """
    known = [Path(base) for folder in folders for base in (folder.absolute(), folder.resolve())]

    def show(path: Path) -> str:
        inside = next((base for base in known if path.absolute().is_relative_to(base)), None)
        return path.name if inside is None else str(path.absolute().relative_to(inside.parent))

    if isinstance(error, HalationError):
        return error.render(show, lambda name, value: None)
    reason = error.strerror or "it cannot be read"
    return reason if error.filename is None else f"{show(Path(os.fsdecode(error.filename)))}: {reason}"
