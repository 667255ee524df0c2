"""Image files, opened when they are asked for."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from halation._arrays import Array, as_indices
from halation._errors import InputError

__all__ = ["BROKEN", "Photos", "as_rgb", "open_photo"]


# what decoders raise on broken files
BROKEN = (
    UnidentifiedImageError, OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError,
    struct.error,
)  # fmt: skip


class Photos:
    """The image files of a dataset, one for each image: `photos[i]` opens the i-th as an upright RGB picture.

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
        return Photos([self.paths[place] for place in as_indices(index, len(self), "photos")])

    def __repr__(self) -> str:
        return f"Photos({len(self):,} files)"


def open_photo(path: Path) -> Image.Image:
    """A picture in RGB as its camera held it: turned as EXIF says, transparency laid on white, 16 bits cut to 8."""
    try:
        with Image.open(path) as image:
            return as_rgb(ImageOps.exif_transpose(image))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; was the dataset unpacked completely?") from None
    except Image.DecompressionBombError as error:
        raise InputError(f"{path} is too large a picture ({error}); make it smaller") from None
    except BROKEN as error:
        raise InputError(
            f"{path} is not a readable picture ({error}); fetch it again, or leave it out (halation data check "
            "lists such)"
        ) from None


def as_rgb(image: Image.Image) -> Image.Image:
    """In RGB: transparency laid on white, 16 bits cut to 8."""
    if image.mode.startswith("I"):  # 16 bits a pixel: convert() would clip all above 255 to white
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        below = Image.new("RGBA", image.size, "white")
        below.alpha_composite(image.convert("RGBA"))
        image = below
    return image.convert("RGB")
