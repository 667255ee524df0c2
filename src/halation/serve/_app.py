"""The application: gate, endpoints, page, and the index behind them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response

import halation
from halation._web import SHARED, shared
from halation.serve._gate import Gate
from halation.serve._pictures import Content
from halation.serve._refusals import Refusal, add_error_handlers
from halation.serve._routes import Service
from halation.serve._schemas import ErrorMessage
from halation.serve._served_index import Searcher, ServedIndex, opener
from halation.serve._server_metrics import ServerMetrics
from halation.serve._settings import ServeSettings

__all__ = ["create_app"]

_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def create_app(
    search: Searcher | str | os.PathLike[str],
    *,
    settings: ServeSettings | None = None,
    run: str | os.PathLike[str] | None = None,
) -> FastAPI:
    """A FastAPI application that serves an index.

    search   the index's folder, which can then be reloaded; or a search that is already open
    run      the model's folder, if it has moved since the index was made

    Any ASGI server can run it. `serve` runs it with timeouts, signal handling and a graceful shutdown.
    """
    settings, metrics = settings or ServeSettings(), ServerMetrics()
    if isinstance(search, str | os.PathLike):
        folders = [Path(folder) for folder in (search, run) if folder is not None]
        reopen = opener(folders[0], None if run is None else Path(run))
        index = ServedIndex(reopen(), reopen, metrics, folders)
    else:
        index = ServedIndex(search, None, metrics)
    service = Service(index, settings, metrics)
    _add_gauges(metrics, index, service)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    # no /docs: that page loads scripts from other servers. The document itself is at /openapi.json
    app = FastAPI(
        title="halation", summary="Find pictures by words, with match probabilities.", version=halation.__version__,
        docs_url=None, redoc_url=None, lifespan=lifespan,
    )  # fmt: skip
    app.state.index, app.state.service = index, service
    app.include_router(service.router())
    app.include_router(_page_router())
    add_error_handlers(app, index.folders, metrics)
    app.add_middleware(Gate, settings=settings, metrics=metrics)
    _complete_openapi(app, settings)
    return app


def _add_gauges(metrics: ServerMetrics, index: ServedIndex, service: Service) -> None:
    for name, help_text, value in (
        ("items", "Items in the index.", lambda: len(index.current)),
        ("index_generation", "Counts the reloads of the index.", lambda: index.generation),
        ("searches_held", "Searches waiting or under way.", lambda: service.search_pool.held),
        ("explanations_held", "Explanations waiting or under way.", lambda: service.explain_pool.held),
        ("pictures_held", "Pictures waiting or under way.", lambda: service.picture_pool.held),
    ):
        metrics.gauge(f"halation_{name}", help_text, value)


def _page_router() -> APIRouter:
    """The routes `/` and `/static/NAME`. Files are read once, by name; a request never forms a path."""
    page_files = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in files("halation.serve").joinpath("static").iterdir()
        if entry.name.rsplit(".", 1)[-1] in _MEDIA_TYPES
    }
    texts = page_files | {name: shared(name) for name in SHARED}
    contents = {name: Content(text.encode(), _MEDIA_TYPES[name.rsplit(".", 1)[1]]) for name, text in texts.items()}

    async def page(request: Request) -> Response:
        return contents["index.html"].response(request, "no-cache")

    async def static(name: str, request: Request) -> Response:
        if name not in contents:
            raise Refusal(404, f"there is no file {name}", "not_found")
        return contents[name].response(request, "no-cache")

    router = APIRouter(include_in_schema=False)
    router.add_api_route("/", page, methods=["GET"], response_class=Response)
    router.add_api_route("/static/{name}", static, methods=["GET"], response_class=Response)
    return router


def _complete_openapi(app: FastAPI, settings: ServeSettings) -> None:
    """Add this server's limits and its token to the OpenAPI document."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = generate()
        schemas = document["components"]["schemas"]
        schemas["ErrorMessage"] = ErrorMessage.model_json_schema()
        for schema in schemas.values():
            if "k" in schema.get("properties", {}):
                schema["properties"]["k"]["maximum"] = settings.max_k
        for path in document["paths"].values():
            for operation in path.values():
                for parameter in operation.get("parameters", ()):
                    if parameter["name"] == "k":
                        parameter["schema"]["maximum"] = settings.max_k
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        if settings.token is not None:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
