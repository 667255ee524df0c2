"""Uploaded pictures, decoded within limits, and pictures to send: originals and thumbnails."""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from io import BytesIO

from fastapi import Request, Response
from PIL import Image, ImageOps

from halation._errors import InputError
from halation.serve._refusals import Refusal

__all__ = ["Content", "Thumbnails", "decode", "original"]

# formats that browsers show; the content of a file decides, not its name
_SHOWN = {"JPEG": "image/jpeg", "MPO": "image/jpeg", "PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp"}
_DECODED = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")  # "JPEG" includes MPO
_MAX_WAITING_PIXELS = 16_000_000  # of an upload that waits for the model, which uses less than one million
_SMALL_FILE = 200_000  # bytes: a smaller file with a thumbnail's dimensions is its own thumbnail


@dataclass(frozen=True)
class Content:
    """A file ready to send."""

    body: bytes
    media_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.blake2b(self.body, digest_size=12).hexdigest()}"'

    def response(self, request: Request, cache_control: str) -> Response:
        """The response that sends it, or 304 if the client already has it."""
        headers = {"etag": self.etag, "cache-control": cache_control}
        if self.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)


def decode(data: bytes, max_pixels: int) -> Image.Image:
    """Decode an upload into an upright RGB picture; its size is checked before its pixels are decoded.

    A picture of more than 16 million pixels is reduced by a whole factor, so that it takes 48 MB while it waits, not
    150.

    >>> decode(b"not a picture", 100)
    Traceback (most recent call last):
    ...
    halation.serve._refusals.Refusal: this is not a picture that can be read; send a JPEG, PNG, ...
    """
    return _reduced(_whole(data, max_pixels))


def _whole(data: bytes, max_pixels: int) -> Image.Image:
    with _opened(data) as image:
        width, height = image.size
    if width * height > max_pixels:
        raise Refusal(
            413,
            f"the picture has {width:,} × {height:,} pixels; this server takes at most {max_pixels / 1e6:g} million; "
            "make it smaller",
            "pixels",
        )
    return _read(data, max_pixels)


def original(data: bytes, max_pixels: int) -> Content:
    """A file unchanged if browsers can show it, otherwise as PNG."""
    with _opened(data) as image:
        kind = image.format or ""
    if kind in _SHOWN:
        return Content(data, _SHOWN[kind])
    out = BytesIO()
    _whole(data, max_pixels).save(out, "PNG")
    return Content(out.getvalue(), "image/png")


class Thumbnails:
    """Makes small pictures, and keeps the most recently used in memory, up to `capacity` bytes."""

    def __init__(self, side: int, capacity: int, max_pixels: int) -> None:
        self.side, self.capacity, self.max_pixels = side, capacity, max_pixels
        self._kept: OrderedDict[bytes, Content] = OrderedDict()
        self._bytes, self._lock = 0, threading.Lock()

    def of(self, data: bytes) -> tuple[Content, bool]:
        """The thumbnail of a file's content, and whether it came from memory."""
        key = hashlib.blake2b(data, digest_size=16).digest()  # by content, so that a replaced file gets a new thumbnail
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key], True
        thumbnail = self._make(data)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = thumbnail
                self._bytes += len(thumbnail.body)
            while self._bytes > self.capacity and self._kept:
                self._bytes -= len(self._kept.popitem(last=False)[1].body)
        return thumbnail, False

    def _make(self, data: bytes) -> Content:
        with _opened(data) as image:
            kind = image.format or ""
            if kind in _SHOWN and max(image.size) <= self.side and len(data) <= _SMALL_FILE:
                return Content(data, _SHOWN[kind])
            image.draft("RGB", (2 * self.side, 2 * self.side))  # JPEG decodes at a fraction of its size
            if image.size[0] * image.size[1] > self.max_pixels:
                raise Refusal(422, "the picture is too large for a thumbnail; ask for the original", "pixels")
            picture = _loaded(image)
        picture.thumbnail((self.side, self.side), Image.Resampling.LANCZOS, reducing_gap=2.0)
        out = BytesIO()
        picture.save(out, "JPEG", quality=85, optimize=True)
        return Content(out.getvalue(), "image/jpeg")


def _opened(data: bytes) -> Image.Image:
    try:
        return Image.open(BytesIO(data), formats=_DECODED)
    except Image.DecompressionBombError as error:
        raise Refusal(413, f"the picture is too large: {error}; make it smaller", "pixels") from None
    except Exception:  # decoders raise anything on hostile bytes
        raise _unreadable() from None


def _read(data: bytes, max_pixels: int) -> Image.Image:
    """Read an upload as halation reads every picture, so that a file gets the same answers here and at the prompt."""
    from halation.data import read_picture  # not at the top: a server may never get a picture

    try:
        return read_picture(data, "this file", limit=max_pixels)
    except InputError as error:
        raise Refusal(415, str(error), "undecodable") from None


def _reduced(picture: Image.Image) -> Image.Image:
    """A picture of at most `_MAX_WAITING_PIXELS` pixels, each the mean of a square of the old ones.

    >>> _reduced(Image.new("RGB", (8000, 3000))).size, _reduced(Image.new("RGB", (4000, 4000))).size
    ((4000, 1500), (4000, 4000))
    """
    factor = math.ceil(math.sqrt(picture.width * picture.height / _MAX_WAITING_PIXELS))
    return picture if factor <= 1 else picture.reduce(factor)


def _loaded(image: Image.Image) -> Image.Image:
    """An open image as an upright RGB picture; JPEG may be decoded at a fraction of its size."""
    from halation.data import as_rgb

    try:
        return as_rgb(ImageOps.exif_transpose(image))
    except Exception:  # decoders raise anything on hostile bytes
        raise _unreadable() from None


def _unreadable() -> Refusal:
    message = "this is not a picture that can be read; send a JPEG, PNG, WebP, GIF, BMP or TIFF file"
    return Refusal(415, message, "undecodable")
