"""The page's files, read once from the package: a table of names, so that no path is ever put together."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Request, Response

from halation._web import SHARED, shared
from halation.serve._pictures import Rendered
from halation.serve._refusals import Refusal

__all__ = ["page_router"]

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


def page_router() -> APIRouter:
    """`/` and `/static/NAME`."""
    own = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in files("halation.serve").joinpath("static").iterdir()
        if entry.name.rsplit(".", 1)[-1] in _TYPES
    }
    texts = own | {name: shared(name) for name in SHARED}
    kept = {name: Rendered(text.encode(), _TYPES[name.rsplit(".", 1)[1]]) for name, text in texts.items()}

    def send(name: str, request: Request) -> Response:
        if name not in kept:
            raise Refusal(404, f"there is no file {name} here", "not_found")
        headers = {"etag": kept[name].etag, "cache-control": "no-cache"}
        if kept[name].etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(kept[name].body, media_type=kept[name].media_type, headers=headers)

    async def index(request: Request) -> Response:
        return send("index.html", request)

    async def static(name: str, request: Request) -> Response:
        return send(name, request)

    router = APIRouter(include_in_schema=False)
    router.add_api_route("/", index, methods=["GET"], response_class=Response)
    router.add_api_route("/static/{name}", static, methods=["GET"], response_class=Response)
    return router
