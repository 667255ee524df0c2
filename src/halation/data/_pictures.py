"""Pictures: the files of a dataset, and files from strangers, which are decoded within limits."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from halation._arrays import Array, as_indices
from halation._errors import InputError

__all__ = ["PICTURE_SUFFIXES", "Photos", "UnreadablePicture", "as_rgb", "open_photo", "read_picture"]

PICTURE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))
"""The suffixes of picture files, in lower case."""

MAX_PIXELS = 64_000_000  # above this a picture is decoded smaller (JPEG can), or refused: 3 bytes a pixel and more
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF")  # no PostScript, no video, nothing that runs
_DECODER_ERRORS = (
    UnidentifiedImageError, OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError,
    struct.error,
)  # fmt: skip


class UnreadablePicture(InputError):
    """The decoder rejects these bytes, and always will. Other errors (rights, disks, memory) may pass."""


class Photos:
    """The image files of a dataset, one per image: `photos[i]` opens the i-th as an upright RGB picture.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "grey.png"
    >>> Image.new("L", (4, 3), 128).save(path)
    >>> Photos([path])[0].getpixel((0, 0))
    (128, 128, 128)
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Image.Image:
        return open_photo(self.paths[index])

    def take(self, index: Array) -> Photos:
        """The photos at these indices, in this order."""
        return Photos([self.paths[row] for row in as_indices(index, len(self), "photos")])

    def __repr__(self) -> str:
        return f"Photos({len(self):,} files)"


def open_photo(path: Path) -> Image.Image:
    """A dataset's picture in RGB, upright as EXIF requires; transparency becomes white, 16 bits become 8."""
    try:
        with Image.open(path) as image:
            return as_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError:
        raise InputError("does not exist", path=path, remedy="was the dataset unpacked completely?") from None
    except Image.DecompressionBombError as error:
        raise InputError(f"is too large a picture ({error})", path=path, remedy="make it smaller") from None
    except _DECODER_ERRORS as error:
        remedy = "fetch it again, or leave it out (halation data check lists such pictures)"
        raise InputError(f"is not a readable picture ({error})", path=path, remedy=remedy) from None


@dataclass(frozen=True)
class _Subject:
    """What an error is about: a file, or bytes under the caller's name for them."""

    path: Path | None
    name: str

    def refuse(self, problem: str, remedy: str | None = None) -> InputError:
        """The error about a picture that may be readable another time."""
        return InputError(self._sentence(problem), path=self.path, remedy=remedy)

    def unreadable(self, problem: str, remedy: str) -> UnreadablePicture:
        """The error about bytes that will never be readable."""
        return UnreadablePicture(self._sentence(problem), path=self.path, remedy=remedy)

    def _sentence(self, problem: str) -> str:
        return f"{self.name} {problem}" if self.path is None else problem


def read_picture(source: Path | bytes, name: str | None = None, *, limit: int | None = None) -> Image.Image:
    """An upright RGB picture from a file or its bytes; InputError if it cannot be read or is too large.

    name    the picture's name in errors; None = its path
    limit   pixels; None = 64 million

    The size is looked at before anything is decoded. A JPEG above the limit is decoded at a half, a quarter or an
    eighth of its size, which its format allows without the memory for the whole.

    >>> read_picture(b"not a picture", "a.jpg")
    Traceback (most recent call last):
    ...
    halation.data._pictures.UnreadablePicture: a.jpg is not a readable picture (JPEG, PNG, WebP, BMP, GIF or TIFF); ...
    """
    path = source if isinstance(source, Path) and not name else None
    subject = _Subject(path, name or "the picture")
    try:
        _ignore_size_warnings()
        image = Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS)
        with image:
            _shrink_to(image, MAX_PIXELS if limit is None else limit, subject)
            return as_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError:
        raise subject.refuse("does not exist") from None
    except PermissionError:
        raise subject.refuse("may not be read by this user", "change its permissions") from None
    except Image.DecompressionBombError:
        raise subject.unreadable("has more pixels than can be decoded safely", "make it smaller") from None
    except InputError:
        raise
    except MemoryError:
        raise subject.refuse("needs more memory than there is", "make it smaller") from None
    except _DECODER_ERRORS as error:
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # an error of the system; Pillow's errors have no number
            raise subject.refuse(f"could not be read ({error.strerror})", "try again") from None
        reason = "" if isinstance(error, UnidentifiedImageError) else f": {str(error).splitlines()[0][:120]}"
        problem = f"is not a readable picture (JPEG, PNG, WebP, BMP, GIF or TIFF{reason})"
        raise subject.unreadable(problem, "fetch it again, or leave it out") from None


def as_rgb(image: Image.Image) -> Image.Image:
    """The picture in RGB; transparency becomes white, 16 bits become 8."""
    if image.mode.startswith("I"):  # 16 bits a pixel: convert() would clip all above 255 to white
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image.convert("RGB")


def _ignore_size_warnings() -> None:
    """Silence Pillow's warnings about large pictures: our limit is lower, and its error has a remedy.

    They stay silent, because `warnings.catch_warnings` is for one thread: of two that decode, the later one would
    restore the filters that the earlier one had set.
    """
    if ("ignore", None, Image.DecompressionBombWarning, None, 0) not in warnings.filters:
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def _shrink_to(image: Image.Image, limit: int, subject: _Subject) -> None:
    width, height = image.size
    if width * height <= limit:
        return
    size = f"{width} × {height} = {width * height / 1e6:.0f} million pixels"
    if image.format in ("JPEG", "MPO"):
        for scale in (2, 4, 8):
            if width * height <= limit * scale**2:
                image.draft(None, (width // scale, height // scale))
                break
    if image.size[0] * image.size[1] > limit:
        problem = f"has {size}, and at most {limit / 1e6:.0f} million are decoded"
        raise subject.unreadable(problem, "make it smaller")
