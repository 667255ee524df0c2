"""Pictures of strangers: decoded within limits, whatever the file claims to be."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from halation._errors import InputError
from halation.data._photos import BROKEN, as_rgb

__all__ = ["MAX_PIXELS", "PICTURE_SUFFIXES", "UnreadablePicture", "read_picture"]

MAX_PIXELS = 64_000_000
"""Above this a picture is decoded smaller (JPEG can), or refused: decoding takes 3 bytes a pixel and more."""

PICTURE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))

_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")  # no PostScript, no video, nothing that runs


class UnreadablePicture(InputError):
    """The decoder rejects these bytes, today and tomorrow; what else goes wrong (rights, disks, memory) may pass."""


def read_picture(source: Path | bytes, name: str | None = None, *, limit: int = MAX_PIXELS) -> Image.Image:
    """An upright RGB picture; an InputError says what is wrong with a file that is none, or that is too large.

    The size is looked at before anything is decoded. A JPEG above the limit is decoded at a half, a quarter or an
    eighth of its size, which its format allows without the memory for the whole.

    >>> read_picture(b"not a picture", "a.jpg")
    Traceback (most recent call last):
    ...
    halation.data._pictures.UnreadablePicture: a.jpg is not a readable picture (JPEG, PNG, WebP, BMP, GIF or TIFF); ...
    """
    called = name or (str(source) if isinstance(source, Path) else "the picture")
    try:
        _leave_size_to_us()
        image = Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS)
        with image:
            _within(image, limit, called)
            return as_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError:
        raise InputError(f"{called} does not exist") from None
    except PermissionError:
        raise InputError(f"{called} may not be read by this user") from None
    except Image.DecompressionBombError:
        raise UnreadablePicture(f"{called} has more pixels than can be decoded safely; make it smaller") from None
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{called} needs more memory than there is; make it smaller") from None
    except BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system; Pillow's own have no number
            raise InputError(f"{called} could not be read ({error.strerror}); try again") from None
        why = "" if isinstance(error, UnidentifiedImageError) else f": {str(error).splitlines()[0][:120]}"
        raise UnreadablePicture(
            f"{called} is not a readable picture (JPEG, PNG, WebP, BMP, GIF or TIFF{why}); fetch it again, or leave "
            "it out"
        ) from None


def _leave_size_to_us() -> None:
    """No warning of Pillow's about large pictures: the limit here is below, and says what to do.

    For good: `warnings.catch_warnings` is for one thread, and of two that decode the later one would put back the
    filters of the earlier one's inside.
    """
    if ("ignore", None, Image.DecompressionBombWarning, None, 0) not in warnings.filters:
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def _within(image: Image.Image, limit: int, called: str) -> None:
    width, height = image.size
    if width * height <= limit:
        return
    said = f"{called} has {width} × {height} = {width * height / 1e6:.0f} million pixels"
    if image.format in ("JPEG", "MPO"):
        for scale in (2, 4, 8):
            if width * height <= limit * scale**2:
                image.draft(None, (width // scale, height // scale))
                break
    if image.size[0] * image.size[1] > limit:
        raise UnreadablePicture(f"{said}; at most {limit / 1e6:.0f} million are decoded: make it smaller")
