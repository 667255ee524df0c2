"""Pictures as people have them: grey, transparent, turned, broken."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from halation import InputError
from halation.data import Photos


@pytest.mark.parametrize(
    ("mode", "colour", "suffix", "seen"),
    [
        ("RGB", (10, 20, 30), "png", (10, 20, 30)),
        ("L", 77, "png", (77, 77, 77)),
        ("1", 1, "png", (255, 255, 255)),
        ("P", 0, "png", (0, 0, 0)),
        ("LA", (0, 0), "png", (255, 255, 255)),
        ("RGBA", (255, 0, 0, 0), "png", (255, 255, 255)),
        ("RGBA", (255, 0, 0, 255), "webp", (255, 0, 0)),
        ("I;16", 128 * 256, "png", (128, 128, 128)),
    ],
)
def test_every_kind_of_picture_becomes_rgb(
    tmp_path: Path, mode: str, colour: int, suffix: str, seen: tuple[int, int, int]
) -> None:
    Image.new(mode, (9, 7), colour).save(tmp_path / f"x.{suffix}", lossless=True)
    image = Photos([tmp_path / f"x.{suffix}"])[0]
    assert (image.mode, image.size) == ("RGB", (9, 7))
    assert np.abs(np.array(image.getpixel((3, 3))) - np.array(seen)).max() <= 1


def test_a_cmyk_jpeg_keeps_its_colour(tmp_path: Path) -> None:
    Image.new("RGB", (16, 16), (220, 30, 40)).convert("CMYK").save(tmp_path / "x.jpg", quality=95)
    red, green, blue = Photos([tmp_path / "x.jpg"])[0].getpixel((8, 8))  # type: ignore[misc]
    assert red > 180 and green < 70 and blue < 80


def test_a_picture_taken_sideways_stands_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = 6  # turned by 90°
    Image.new("RGB", (30, 20)).save(tmp_path / "x.jpg", exif=exif)
    assert Photos([tmp_path / "x.jpg"])[0].size == (20, 30)


def test_a_truncated_jpeg_is_named(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "cut.jpg"
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(InputError, match=r"cut\.jpg is not a readable picture .*fetch it again"):
        Photos([path])[0]


def test_a_missing_file_and_one_that_is_no_picture_are_named(tmp_path: Path) -> None:
    (tmp_path / "page.jpg").write_text("<html>404</html>")
    with pytest.raises(InputError, match=r"page\.jpg is not a readable picture"):
        Photos([tmp_path / "page.jpg"])[0]
    with pytest.raises(InputError, match=r"gone\.jpg does not exist"):
        Photos([tmp_path / "gone.jpg"])[0]


@pytest.mark.parametrize("suffix", ["jpg", "png", "gif", "tif", "webp", "bmp"])
def test_damaged_bytes_give_a_picture_or_a_clear_error(tmp_path: Path, suffix: str, rng: np.random.Generator) -> None:
    path = tmp_path / f"x.{suffix}"
    Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(path)
    whole = path.read_bytes()
    for _ in range(60):
        damaged = bytearray(whole)
        for position in rng.integers(0, min(len(whole), 200), 6):
            damaged[position] = rng.integers(256)
        path.write_bytes(bytes(damaged))
        with warnings.catch_warnings(), contextlib.suppress(InputError):
            warnings.simplefilter("ignore")  # Pillow's, of odd headers
            assert Photos([path])[0].mode == "RGB"
