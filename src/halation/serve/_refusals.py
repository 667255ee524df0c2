"""A request that is not served: a status and a sentence that says what was wrong and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi.exceptions import HTTPException
from fastapi.responses import JSONResponse

from halation.serve._observed import Observed

__all__ = ["Refusal", "refused"]


class Refusal(HTTPException):
    """Answered as JSON `{"error": message}` with this status; `reason` is one word for the metrics.

    An HTTPException, so that frameworks which catch everything else while they read a request let it through.
    """

    def __init__(self, status: int, message: str, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.reason = reason

    def __str__(self) -> str:
        return str(self.detail)


def refused(refusal: Refusal, observed: Observed) -> JSONResponse:
    """A refusal as the client sees it, counted."""
    observed.refused.add(refusal.reason)
    return JSONResponse({"error": refusal.detail}, refusal.status_code, refusal.headers)
