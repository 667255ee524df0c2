"""The endpoints. Each does its work in a thread, with the index that is in use when the work begins."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile

import halation
from halation.search import Answer, UnknownItem
from halation.serve import _schemas as schemas
from halation.serve._gate import COOKIE, same_secret, session_value
from halation.serve._pictures import Content, Thumbnails, decode, original
from halation.serve._refusals import Refusal
from halation.serve._schemas import answer_schema, item_schema
from halation.serve._served_index import Searcher, ServedIndex
from halation.serve._server_metrics import CONTENT_TYPE, ServerMetrics
from halation.serve._settings import ServeSettings
from halation.serve._workers import UploadSlots, WorkerPool

__all__ = ["Service"]

_PAGE_SIZE = 100  # items of one page at most
_NAME_LENGTH = 200  # characters of an upload's name that an answer repeats
_MONTH = 30 * 24 * 3600


class Service:
    """The endpoints and what they share.

    Searches, pictures and explanations have threads of their own, so that a search never waits for the others.
    """

    def __init__(self, index: ServedIndex, settings: ServeSettings, metrics: ServerMetrics) -> None:
        self.index, self.settings, self.metrics = index, settings, metrics
        self.search_pool = WorkerPool(settings.workers, settings.queue, settings.timeout, "search")
        self.picture_pool = WorkerPool(2, 4 * settings.queue, settings.timeout, "pictures")
        # an explanation takes seconds
        self.explain_pool = WorkerPool(1, max(1, settings.queue // 16), settings.timeout, "explain")
        self.upload_slots = UploadSlots(settings.uploads, settings.queue, settings.timeout)
        self.thumbnails = Thumbnails(settings.thumbnail, settings.thumbnail_cache, settings.max_pixels)

    def router(self) -> APIRouter:
        """The endpoints, each with the errors it can answer."""
        router = APIRouter()

        def add(path: str, endpoint: Callable[..., Any], method: str, *statuses: int, **options: Any) -> None:
            responses = _error_responses(*statuses) | options.pop("responses", {})
            router.add_api_route(path, endpoint, methods=[method], responses=responses, **options)

        add("/search", self.search, "POST", response_model=schemas.Answer)
        add("/search/image", self.search_image, "POST", 415, response_model=schemas.Answer)
        add("/explain", self.explain, "POST", 404, 415, response_model=schemas.Explanation)
        add("/items", self.list_items, "GET", response_model=schemas.ItemPage)
        add("/items/{id}", self.item, "GET", 404, response_model=schemas.Item)
        add("/items/{id}/image", self.image, "GET", 404, 415, response_class=Response, responses=_PICTURE)
        add("/items/{id}/alike", self.alike, "GET", 404, response_model=schemas.Answer)
        add("/about", self.about, "GET", response_model=schemas.About)
        add("/health", self.health, "GET", response_model=schemas.Health)
        add("/health", self.health, "HEAD", include_in_schema=False)  # some load balancers use HEAD
        add("/metrics", self.metrics_text, "GET", response_class=Response, responses=_TEXT)
        add("/session", self.session, "POST", status_code=204)
        add("/reload", self.reload, "POST", 409, response_model=schemas.Reloaded)
        return router

    async def search(self, query: schemas.TextQuery, request: Request) -> Response:
        """Find pictures (or captions) by words."""
        k = self._check_k(query.k)
        return await self._answer("text", lambda search: search.text(query.text, k, query.want), request)

    async def search_image(
        self,
        request: Request,
        image: Annotated[UploadFile, File(description="A JPEG, PNG, WebP, GIF, BMP or TIFF file.")],
        k: Annotated[int, Form(ge=1)] = 10,
        want: Annotated[schemas.Want, Form()] = "auto",
    ) -> Response:
        """Find captions of a picture, or with want=images pictures that look alike."""
        k, name = self._check_k(k), _upload_name(image)
        async with self.upload_slots.slot(
            _disconnected(request)
        ):  # before reading it: while it waits, an upload stays on disk
            data, limit = await image.read(), self.settings.max_pixels
            picture = await self.picture_pool.run(decode, data, limit, gone=_disconnected(request))
            return await self._answer("image", lambda search: search.image(picture, k, want, name), request)

    async def explain(self, query: schemas.ExplainQuery, request: Request) -> Response:
        """Why these words found a picture: the parts of the score, what mattered, where the model looked."""
        limit, is_over = self.settings.max_pixels, threading.Event()

        def work(search: Searcher) -> schemas.Explanation:
            from halation.report import explain_hit  # loads torch, which a search has loaded already

            def is_wanted() -> bool:
                return not is_over.is_set()

            explanation = explain_hit(search, query.id, query.text, max_pixels=limit, is_wanted=is_wanted)
            return schemas.Explanation(**explanation.to_dict())

        try:
            explanation = await self.explain_pool.run(self.index.call, work, gone=_disconnected(request))
        finally:
            is_over.set()  # answered, disconnected or timed out: the thread stops before its next batch
        return _json(explanation)

    async def list_items(
        self, offset: Annotated[int, Query(ge=0, le=2**53)] = 0, limit: Annotated[int, Query(ge=1, le=_PAGE_SIZE)] = 24
    ) -> schemas.ItemPage:
        """Items in the order of the index, one page at a time."""

        def page(search: Searcher) -> schemas.ItemPage:
            items = [item_schema(search.item(name)) for name in search.items[offset : offset + limit]]
            return schemas.ItemPage(total=len(search), items=items)

        return await self.search_pool.run(self.index.call, page)

    async def item(self, id: str) -> schemas.Item:  # noqa: A002
        """One item."""
        name = _decoded_id(id)
        return item_schema(await self.search_pool.run(self.index.call, lambda search: search.item(name)))

    async def image(
        self,
        id: str,  # noqa: A002
        request: Request,
        size: Literal["thumbnail", "original"] = "thumbnail",
    ) -> Response:
        """The picture of an item."""
        name, make = _decoded_id(id), self._thumbnail if size == "thumbnail" else self._original
        content: Content = await self.picture_pool.run(
            self.index.call, lambda search: make(search, name), gone=_disconnected(request)
        )
        # browsers must ask again, because an index may be reloaded or a file replaced; mostly the answer is 304
        return content.response(request, "private, no-cache")

    async def alike(
        self,
        id: str,  # noqa: A002
        request: Request,
        k: Annotated[int, Query(ge=1)] = 10,
        want: schemas.Want = "auto",
    ) -> Response:
        """The nearest to an item: captions of a picture, or with want=images pictures that look alike."""
        k, name = self._check_k(k), _decoded_id(id)
        return await self._answer("item", lambda search: search.like(name, k, want), request)

    async def about(self) -> schemas.About:
        """What is being served, and the limits of a request."""
        about = self.index.current.about
        return schemas.About(
            images=int(about.get("images", 0)),
            captions=int(about.get("captions", 0)),
            calibrated=bool(about.get("calibrated", False)),
            judge=about.get("judge"),
            similarity=str(about.get("similarity", "")),
            notes=[str(note) for note in about.get("notes", ())],
            generation=self.index.generation,
            version=halation.__version__,
            max_k=self.settings.max_k,
            max_upload=self.settings.max_upload,
            max_pixels=self.settings.max_pixels,
        )

    async def health(self) -> schemas.Health:
        """Whether the server answers. Needs no token."""
        return schemas.Health(items=len(self.index.current), generation=self.index.generation)

    async def metrics_text(self) -> Response:
        """Counters and times in Prometheus' text format."""
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    async def session(self, given: schemas.SessionToken, request: Request) -> Response:
        """Exchange the token for a cookie, because an <img> cannot send a header."""
        token = self.settings.token
        if token is not None and not same_secret(given.token, token):
            raise Refusal(401, "this is not the server's token", "token", {"www-authenticate": "Bearer"})
        response = Response(status_code=204)
        if token is not None:
            secure = request.url.scheme == "https"
            response.set_cookie(
                COOKIE, session_value(token), max_age=_MONTH, httponly=True, samesite="strict", secure=secure
            )
        return response

    async def reload(self) -> schemas.Reloaded:
        """Reload the index. Searches under way finish on the old one, which is then closed."""
        if self.settings.token is None:
            raise Refusal(403, "start the server with a token to reload over HTTP, or send it SIGHUP", "reload")
        generation = await self.index.reload()
        return schemas.Reloaded(generation=generation, items=len(self.index.current))

    def close(self) -> None:
        """End the threads."""
        for pool in (self.search_pool, self.picture_pool, self.explain_pool):
            pool.close()

    def _check_k(self, k: int) -> int:
        if k > self.settings.max_k:
            raise Refusal(422, f"k is {k}; this server gives at most {self.settings.max_k} hits", "k")
        return k

    async def _answer(self, kind: str, query: Callable[[Searcher], Answer], request: Request) -> Response:
        """Run a query on the index in use, record how long it took, and answer with JSON."""
        answer = await self.search_pool.run(self.index.call, query, gone=_disconnected(request))
        self.metrics.encode.labels(kind).observe(answer.encode_ms / 1000)
        self.metrics.search.labels(kind).observe(answer.search_ms / 1000)
        if answer.verdict == "nothing":
            self.metrics.nothing.inc()
        elif answer.verdict == "unsure":
            self.metrics.unsure.inc()
        return _json(answer_schema(answer))

    def _thumbnail(self, search: Searcher, item: str) -> Content:
        thumbnail, from_memory = self.thumbnails.of(_picture_file(search, item))
        self.metrics.thumbnails.labels("memory" if from_memory else "file").inc()
        return thumbnail

    def _original(self, search: Searcher, item: str) -> Content:
        return original(_picture_file(search, item), self.settings.max_pixels)


def _json(model: schemas.Answer | schemas.Explanation) -> Response:
    """A JSON response. FastAPI would validate the model again, which takes a millisecond for a full page of hits."""
    return Response(model.model_dump_json(), media_type="application/json")


def _picture_file(search: Searcher, item: str) -> bytes:
    """The bytes of a picture's file. The search reads files in the indexed folders only."""
    if search.item(item).side != "images":
        raise Refusal(404, f"{item} is a caption; it has no picture", "no_picture")
    data = search.picture_bytes(item)
    if data is None:
        raise Refusal(
            404, f"the picture of {item} is gone from the disk (or too large); embed the folder again", "gone"
        )
    return data


def _decoded_id(segment: str) -> str:
    """The id in a path segment, which the gate leaves percent-encoded."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise UnknownItem("no item has this id: it is not UTF-8") from None


def _upload_name(image: UploadFile) -> str:
    """An upload's name, as valid Unicode and not too long."""
    return (image.filename or "picture").encode("utf-8", "replace").decode()[:_NAME_LENGTH]


def _disconnected(request: Request) -> Callable[[], Awaitable[None]]:
    """A coroutine function that returns when the client has closed the connection."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return disconnected


_PICTURE: dict[int, dict[str, Any]] = {
    200: {"content": {"image/*": {}}, "description": "The picture."},
    304: {"description": "Unchanged."},
}
_TEXT: dict[int, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}
}
_DESCRIPTIONS = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "Not allowed.",
    404: "There is no such item, or its picture is gone.",
    408: "The request came in too slowly.",
    409: "The index was not reloaded; the old one stays in use.",
    413: "Too many bytes or pixels.",
    415: "Not a picture that can be read.",
    421: "The host name is not one of this server's.",
    422: "The request is not valid; the answer says why.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "Too many requests are waiting; try again in a moment.",
    504: "No answer in time.",
}
_EVERYWHERE = (400, 401, 403, 408, 413, 421, 422, 429, 503, 504)


def _error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of an endpoint, for OpenAPI: those of every endpoint, and these."""
    # by reference: otherwise FastAPI makes a validator for each of a hundred error models
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorMessage"}}}
    return {
        status: {"description": _DESCRIPTIONS[status], "content": content}
        for status in sorted({*_EVERYWHERE, *statuses})
    }
