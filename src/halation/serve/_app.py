"""The application: gate, endpoints, page, and the index behind them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

import halation
from halation._errors import HalationError
from halation.serve._gate import Gate
from halation.serve._live import Live, Searcher, opener
from halation.serve._measures import Gauge
from halation.serve._page import page_router
from halation.serve._refusals import Refusal, refused
from halation.serve._routes import Service, in_words
from halation.serve._schemas import Problem
from halation.serve._server_metrics import ServerMetrics
from halation.serve._settings import ServeSettings

__all__ = ["create_app"]


def create_app(
    search: Searcher | str | os.PathLike[str],
    *,
    settings: ServeSettings | None = None,
    run: str | os.PathLike[str] | None = None,
) -> FastAPI:
    """An application that serves an index: a folder (which can then be reloaded), or a search that is open already.

    `run` is the model's folder, where it is not where the index says. Any ASGI server can run the result; `serve`
    does it with timeouts, signals and a graceful end.
    """
    settings, observed = settings or ServeSettings(), ServerMetrics()
    if isinstance(search, str | os.PathLike):
        folders = [Path(folder) for folder in (search, run) if folder is not None]
        reopen = opener(folders[0], None if run is None else Path(run))
        live = Live(reopen(), reopen, observed, folders)
    else:
        live = Live(search, None, observed)
    service = Service(live, settings, observed)
    observed.gauges += [
        Gauge("halation_items", "Items in the index.", lambda: len(live.current)),
        Gauge("halation_index_generation", "Counts the reloads of the index.", lambda: live.generation),
        Gauge("halation_searches_held", "Searches waiting or under way.", lambda: service.searchers.held),
        Gauge("halation_explanations_held", "Explanations waiting or under way.", lambda: service.explainers.held),
        Gauge("halation_pictures_held", "Pictures waiting or under way.", lambda: service.painters.held),
    ]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    # no /docs: its scripts come from elsewhere; the document itself is at /openapi.json
    app = FastAPI(
        title="halation", summary="Find pictures by words, with a probability.", version=halation.__version__,
        docs_url=None, redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    app.state.live, app.state.service = live, service
    app.include_router(service.router())
    app.include_router(page_router())
    _answer_errors(app, live, observed)
    app.add_middleware(Gate, settings=settings, observed=observed)
    _describe(app, settings)
    return app


def _answer_errors(app: FastAPI, live: Live, observed: ServerMetrics) -> None:
    """Every error is `{"error": a sentence}`."""

    async def turned_away(_: Request, error: Exception) -> JSONResponse:
        if isinstance(error, Refusal):
            return refused(error, observed)
        assert isinstance(error, HTTPException)  # unknown paths and methods, from the router
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    async def unfit(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return refused(Refusal(422, _sentence(error), "invalid"), observed)

    async def bad_input(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HalationError)
        return refused(in_words(error, live), observed)

    app.add_exception_handler(HTTPException, turned_away)
    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HalationError, bad_input)


def _sentence(error: RequestValidationError) -> str:
    """What is wrong with a request, without repeating it.

    >>> _sentence(RequestValidationError([{"loc": ("body", "k"), "msg": "Input should be greater than 0"}]))
    'k: input should be greater than 0'
    """
    parts = []
    for found in error.errors():
        place = ".".join(str(part) for part in found["loc"][1:]) or str(found["loc"][0])
        said = str(found["msg"]).removeprefix("Value error, ")
        parts.append(f"{place}: {said[:1].lower()}{said[1:]}")
    return "; ".join(parts)


def _describe(app: FastAPI, settings: ServeSettings) -> None:
    """OpenAPI with this server's own limits and its token."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = plain()
        parts = document["components"]["schemas"]
        parts["Problem"] = Problem.model_json_schema()
        for part in parts.values():
            if "k" in part.get("properties", {}):
                part["properties"]["k"]["maximum"] = settings.max_k
        for path in document["paths"].values():
            for operation in path.values():
                for parameter in operation.get("parameters", ()):
                    if parameter["name"] == "k":
                        parameter["schema"]["maximum"] = settings.max_k
        for unused in ("HTTPValidationError", "ValidationError"):
            parts.pop(unused, None)
        if settings.token is not None:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
