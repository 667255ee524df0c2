"""The endpoints. Each works in a thread, on the index that is in use when the work begins, and answers."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile

import halation
from halation._errors import HalationError, InputError
from halation.search import Answer, UnknownItem
from halation.serve import _schemas as schemas
from halation.serve._gate import COOKIE, same_secret, session_value
from halation.serve._live import Live, Searcher
from halation.serve._measures import CONTENT_TYPE
from halation.serve._pictures import Rendered, Thumbnails, decode, original
from halation.serve._refusals import Refusal, message_for_client
from halation.serve._server_metrics import ServerMetrics
from halation.serve._settings import ServeSettings
from halation.serve._why import Why, WhyQuery, explained
from halation.serve._workers import Room, Workers

__all__ = ["Service", "in_words"]

_PAGE = 100  # items of one listing at most
_NAME = 200  # characters of an upload's name that an answer repeats
_MONTH = 30 * 24 * 3600
_PICTURE: dict[int, dict[str, Any]] = {
    200: {"content": {"image/*": {}}, "description": "The picture."},
    304: {"description": "Unchanged."},
}


class Service:
    """What the endpoints share. `searchers` encode and search, `painters` decode and shrink pictures, `explainers`
    explain: a search need not wait for them.
    """

    def __init__(self, live: Live, settings: ServeSettings, observed: ServerMetrics) -> None:
        self.live, self.settings, self.observed = live, settings, observed
        self.searchers = Workers(settings.workers, settings.queue, settings.timeout, "search")
        self.painters = Workers(2, 4 * settings.queue, settings.timeout, "pictures")
        self.explainers = Workers(1, max(1, settings.queue // 16), settings.timeout, "explain")  # seconds each
        self.room = Room(settings.uploads, settings.queue, settings.timeout)
        self.thumbnails = Thumbnails(settings.thumbnail, settings.thumbnail_cache, settings.max_pixels)

    def router(self) -> APIRouter:
        router = APIRouter()
        add = router.add_api_route
        add("/search", self.search, methods=["POST"], response_model=schemas.Found, **_errors())
        add("/search/image", self.search_image, methods=["POST"], response_model=schemas.Found, **_errors(415))
        add("/explain", self.explain, methods=["POST"], response_model=Why, **_errors(404, 415))
        add("/items", self.list_items, methods=["GET"], response_model=schemas.Listing, **_errors())
        add("/items/{id}", self.item, methods=["GET"], response_model=schemas.Shown, **_errors(404))
        add(
            "/items/{id}/image",
            self.image,
            methods=["GET"],
            response_class=Response,
            **_errors(404, 415, more=_PICTURE),
        )
        add("/items/{id}/alike", self.alike, methods=["GET"], response_model=schemas.Found, **_errors(404))
        add("/about", self.about, methods=["GET"], response_model=schemas.About, **_errors())
        add("/health", self.health, methods=["GET"], response_model=schemas.Health, **_errors())
        add("/health", self.health, methods=["HEAD"], include_in_schema=False)  # load balancers ask so
        add("/metrics", self.metrics, methods=["GET"], response_class=Response, **_errors(more=_TEXT))
        add("/session", self.session, methods=["POST"], status_code=204, **_errors())
        add("/reload", self.reload, methods=["POST"], response_model=schemas.Reloaded, **_errors(409))
        return router

    async def search(self, query: schemas.TextQuery, request: Request) -> Response:
        """Find pictures (or captions) by words."""
        k = self._within(query.k)
        return await self._answer("text", lambda search: search.text(query.text, k, query.want), request)

    async def search_image(
        self,
        request: Request,
        image: Annotated[UploadFile, File(description="A JPEG, PNG, WebP, GIF, BMP or TIFF file.")],
        k: Annotated[int, Form(ge=1)] = 10,
        want: Annotated[schemas.Want, Form()] = "auto",
    ) -> Response:
        """Find captions of a picture (or its like, with want=images)."""
        k, name = self._within(k), _called(image)
        async with self.room.place(_gone(request)):  # before it is read: an upload that waits lies on the disk
            data, limit = await image.read(), self.settings.max_pixels
            picture = await self.painters.run(decode, data, limit, gone=_gone(request))
            return await self._answer("image", lambda search: search.image(picture, k, want, name), request)

    async def explain(self, query: WhyQuery, request: Request) -> Response:
        """Why a picture was found by these words: parts of the score, what mattered, where the model looked."""
        limit, over = self.settings.max_pixels, threading.Event()

        def is_wanted() -> bool:
            return not over.is_set()

        try:
            told = await self.explainers.run(
                self.live.run,
                lambda search: explained(search, query, limit, is_wanted),
                gone=_gone(request),
            )
        finally:
            over.set()  # answered, gone or out of time: the thread stops before it looks again
        return Response(told.model_dump_json(), media_type="application/json")

    async def list_items(
        self, offset: Annotated[int, Query(ge=0, le=2**53)] = 0, limit: Annotated[int, Query(ge=1, le=_PAGE)] = 24
    ) -> schemas.Listing:
        """Items in the index's own order, a part at a time."""

        def listed(search: Searcher) -> schemas.Listing:
            items = [schemas.shown(search.item(name)) for name in search.items[offset : offset + limit]]
            return schemas.Listing(total=len(search), items=items)

        return await self.searchers.run(self.live.run, listed)

    async def item(self, id: str) -> schemas.Shown:  # noqa: A002
        """One item."""
        name = _decoded(id)
        return schemas.shown(await self.searchers.run(self.live.run, lambda search: search.item(name)))

    async def image(
        self,
        id: str,  # noqa: A002
        request: Request,
        size: Literal["thumbnail", "original"] = "thumbnail",
    ) -> Response:
        """The picture of an item."""
        name, made = _decoded(id), self._thumbnail if size == "thumbnail" else self._original
        picture = await self.painters.run(self.live.run, lambda search: made(search, name), gone=_gone(request))
        # always asked again, seldom sent again: an index may be reloaded, a file replaced
        headers = {"etag": picture.etag, "cache-control": "private, no-cache"}
        if picture.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(picture.body, media_type=picture.media_type, headers=headers)

    async def alike(
        self,
        id: str,  # noqa: A002
        request: Request,
        k: Annotated[int, Query(ge=1)] = 10,
        want: schemas.Want = "auto",
    ) -> Response:
        """What is nearest to an item: a picture's captions, or with want=images its like. Nothing is uploaded."""
        k, name = self._within(k), _decoded(id)
        return await self._answer("item", lambda search: search.like(name, k, want), request)

    async def about(self) -> schemas.About:
        """What is being served, and what may be asked of it."""
        told = self.live.current.about
        return schemas.About(
            images=int(told.get("images", 0)),
            captions=int(told.get("captions", 0)),
            calibrated=bool(told.get("calibrated", False)),
            similarity=str(told.get("similarity", "")),
            notes=[str(note) for note in told.get("notes", ())],
            generation=self.live.generation,
            version=halation.__version__,
            max_k=self.settings.max_k,
            max_upload=self.settings.max_upload,
            max_pixels=self.settings.max_pixels,
        )

    async def health(self) -> schemas.Health:
        """Whether the server answers; never asks for a token."""
        return schemas.Health(items=len(self.live.current), generation=self.live.generation)

    async def metrics(self) -> Response:
        """Counters and times, as Prometheus reads them."""
        return Response(self.observed.text(), media_type=CONTENT_TYPE)

    async def session(self, given: schemas.Token, request: Request) -> Response:
        """Exchange the token for a cookie: an <img> cannot send a header."""
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
        """Read the index again and use the new one; searches under way end on the old one, which is then closed."""
        if self.settings.token is None:
            raise Refusal(403, "start the server with a token to reload over HTTP, or send it SIGHUP", "reload")
        generation = await self.live.reload()
        return schemas.Reloaded(generation=generation, items=len(self.live.current))

    def close(self) -> None:
        """End the threads."""
        self.searchers.close()
        self.painters.close()
        self.explainers.close()

    def _within(self, k: int) -> int:
        if k > self.settings.max_k:
            raise Refusal(422, f"k is {k}; this server gives at most {self.settings.max_k} hits", "k")
        return k

    async def _answer(self, kind: str, ask: Callable[[Searcher], Answer], request: Request) -> Response:
        answer = await self.searchers.run(self.live.run, ask, gone=_gone(request))
        self.observed.encode.add(answer.encode_ms / 1000, kind)
        self.observed.search.add(answer.search_ms / 1000, kind)
        if answer.nothing:
            self.observed.nothing.add()
        # written here: what FastAPI is given it checks and converts once more, a millisecond for a full page of hits
        return Response(schemas.found(answer).model_dump_json(), media_type="application/json")

    def _thumbnail(self, search: Searcher, item: str) -> Rendered:
        made, kept = self.thumbnails.of(_file(search, item))
        self.observed.thumbnails.add("memory" if kept else "file")
        return made

    def _original(self, search: Searcher, item: str) -> Rendered:
        return original(_file(search, item), self.settings.max_pixels)


def _file(search: Searcher, item: str) -> bytes:
    """A picture's file, which the search reads from inside the indexed roots only."""
    if search.item(item).side != "images":
        raise Refusal(404, f"{item} is a caption; it has no picture", "no_picture")
    data = search.picture_bytes(item)
    if data is None:
        raise Refusal(404, f"the picture of {item} is gone from the disk (or too large); embed the folder anew", "gone")
    return data


def _decoded(segment: str) -> str:
    """An id from its path segment, which comes as it was sent."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise UnknownItem("no item has this id: it is not UTF-8") from None


def _called(image: UploadFile) -> str:
    """An upload's name as an answer can repeat it: a form may come in an encoding that knows half characters."""
    return (image.filename or "picture").encode("utf-8", "replace").decode()[:_NAME]


def _gone(request: Request) -> Callable[[], Awaitable[None]]:
    """Something to wait for: it ends when the client has closed the connection."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone


_TEXT = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}}
_WORDS = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    403: "Not allowed.",
    404: "There is no such item, or its picture is gone.",
    408: "The request came in too slowly.",
    409: "The index was not reloaded; the old one stays in use.",
    413: "Too many bytes or pixels.",
    415: "Not a picture that can be read.",
    421: "Asked by a name that is not this server's.",
    422: "The request does not fit; the answer says what.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "Too many requests are waiting; try again in a moment.",
    504: "No answer in time.",
}
_EVERYWHERE = (400, 401, 403, 408, 413, 421, 422, 429, 503, 504)


def _errors(*statuses: int, more: dict[int, dict[str, Any]] | None = None) -> dict[str, Any]:
    # one schema by reference: FastAPI would make a validator of its own for each of a hundred models
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    all_of_them = sorted({*_EVERYWHERE, *statuses})
    said: dict[int, dict[str, Any]] = {s: {"description": _WORDS[s], "content": problem} for s in all_of_them}
    return {"responses": {**said, **(more or {})}}


def in_words(error: HalationError, live: Live) -> Refusal:
    """What the search could not do, as an answer: without the folders of the server's disk."""
    said = message_for_client(error, live.folders)
    if isinstance(error, UnknownItem):
        return Refusal(404, said, "unknown_item")
    if isinstance(error, InputError):
        return Refusal(422, said, "input")
    return Refusal(503, said, "unavailable", {"retry-after": "5"})  # a vector database that has gone away, say
