"""Errors as a client sees them: a status, what is wrong, and what to do."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as RoutingError

from halation._errors import HalationError, InputError
from halation.search import UnknownItem
from halation.serve._server_metrics import ServerMetrics

__all__ = ["Refusal", "add_error_handlers", "message_for_client", "refusal_response"]

_log = logging.getLogger("halation.serve")


class Refusal(HTTPException):
    """A request that is not served, answered as JSON `{"error": message}`; `reason` is one word for the metrics.

    An HTTPException, because FastAPI wraps every other error that is raised while it reads a request.
    """

    def __init__(self, status: int, message: str, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.reason = reason

    def __str__(self) -> str:
        return str(self.detail)


def refusal_response(refusal: Refusal, metrics: ServerMetrics) -> JSONResponse:
    """The JSON response for a refusal; also counts it."""
    metrics.refused.labels(refusal.reason).inc()
    return JSONResponse({"error": refusal.detail}, refusal.status_code, refusal.headers)


def message_for_client(error: HalationError | OSError, folders: Iterable[Path]) -> str:
    """The message of an error, without the server's folders.

    A path inside one of `folders` is shown from that folder's name on. Of any other path, only the last name is shown.

    >>> message_for_client(InputError("is damaged", path="/my photos/idx/a.json"), [Path("/my photos/idx")])
    'idx/a.json is damaged'
    >>> message_for_client(InputError("is not there", path="/srv/runs/mine", remedy="copy it", argument="run"), [])
    'mine is not there; copy it'
    """
    known = [base for folder in folders for base in (folder.absolute(), folder.resolve())]

    def show(path: Path) -> str:
        inside = next((base for base in known if path.absolute().is_relative_to(base)), None)
        return path.name if inside is None else str(path.absolute().relative_to(inside.parent))

    if isinstance(error, HalationError):
        return error.render(show, lambda name, value: None)
    reason = error.strerror or "it cannot be read"
    return reason if error.filename is None else f"{show(Path(os.fsdecode(error.filename)))}: {reason}"


def add_error_handlers(app: FastAPI, folders: Callable[[], list[Path]], metrics: ServerMetrics) -> None:
    """Answer every error of the application with `{"error": message}`; `folders` are hidden from clients."""

    async def on_http_error(_: Request, error: Exception) -> JSONResponse:
        if isinstance(error, Refusal):
            return refusal_response(error, metrics)
        assert isinstance(error, RoutingError)  # unknown paths and methods
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    async def on_invalid_request(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return refusal_response(Refusal(422, _validation_message(error), "invalid"), metrics)

    async def on_library_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HalationError)
        return refusal_response(_as_refusal(error, folders()), metrics)

    app.add_exception_handler(RoutingError, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid_request)
    app.add_exception_handler(HalationError, on_library_error)


def _as_refusal(error: HalationError, folders: list[Path]) -> Refusal:
    if isinstance(error, UnknownItem):
        return Refusal(404, message_for_client(error, folders), "unknown_item")
    if isinstance(error, InputError):
        return Refusal(422, message_for_client(error, folders), "input")
    # such as a vector database that is down. Its message may hold anything, so it goes to the log only
    _log.error("a request could not be served: %s", error)
    message = "the index is not available at the moment; the server's log says why. Try again later"
    return Refusal(503, message, "unavailable", {"retry-after": "5"})


def _validation_message(error: RequestValidationError) -> str:
    """The message for an invalid request; it does not repeat the request.

    >>> _validation_message(RequestValidationError([{"loc": ("body", "k"), "msg": "Input should be greater than 0"}]))
    'k: input should be greater than 0'
    """
    parts = []
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"][1:]) or str(problem["loc"][0])
        message = str(problem["msg"]).removeprefix("Value error, ")
        parts.append(f"{field}: {message[:1].lower()}{message[1:]}")
    return "; ".join(parts)
