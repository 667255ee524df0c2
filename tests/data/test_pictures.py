"""Pictures of strangers: what is none, what is too large, what only looks like one."""

from __future__ import annotations

import io
import struct
import threading
import tracemalloc
import warnings
import zlib
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from halation import InputError
from halation.data import read_picture
from halation.data._pictures import MAX_PIXELS


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def claiming(width: int, height: int) -> bytes:
    """A PNG of a few bytes that says it is large."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    packed = [struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF"])
def test_every_usual_kind_is_read_whatever_it_is_called(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(saved(Image.new("RGB", (6, 4), (200, 10, 10)), kind))
    picture = read_picture(tmp_path / "a.jpg")
    assert picture.mode == "RGB" and picture.size == (6, 4)


def test_a_picture_is_turned_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90°
    assert read_picture(saved(Image.new("RGB", (6, 4)), "JPEG", exif=exif)).size == (4, 6)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello, I am text", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\xff\xd8\xff\xe0 cut", claiming(10, 10)[:40]],
)
def test_a_file_that_is_not_a_picture_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(InputError, match=r"a.jpg is not a readable picture"):
        read_picture(tmp_path / "a.jpg")
    with pytest.raises(InputError, match=r"^upload is not a readable picture"):
        read_picture(content, "upload")


def test_a_picture_that_claims_to_be_huge_is_refused_before_it_is_decoded() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tracemalloc.start()
        with pytest.raises(InputError, match=r"bomb has 10000 × 10000 = 100 million pixels, and at most 64 million"):
            read_picture(claiming(10_000, 10_000), "bomb")
        with pytest.raises(InputError, match="more pixels than can be decoded safely"):
            read_picture(claiming(60_000, 60_000), "bomb")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
        tracemalloc.stop()


def test_a_jpeg_above_the_limit_is_decoded_smaller() -> None:
    """Phones take such photographs; JPEG can be decoded at a fraction of its size."""
    large = saved(Image.new("RGB", (800, 600), (10, 200, 10)), "JPEG")
    small = read_picture(large, limit=100_000)
    assert small.size == (200, 150) and small.getpixel((100, 100))[1] > 190
    assert read_picture(large).size == (800, 600)
    with pytest.raises(InputError, match="at most 0 million"):
        read_picture(large, limit=1000)
    assert MAX_PIXELS < 100_000_000


def test_a_missing_or_forbidden_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone.jpg does not exist"):
        read_picture(tmp_path / "gone.jpg")


def test_threads_that_decode_leave_the_filters_of_warnings_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that are inside at once, the first leaving first."""
    inside, first_has_left, opened = threading.Barrier(2), threading.Event(), Image.open
    data = saved(Image.new("RGB", (9, 9)), "PNG")

    def together(*arguments: Any, **options: Any) -> Image.Image:
        if inside.wait(10):
            assert first_has_left.wait(10)
        return opened(*arguments, **options)

    read_picture(data)
    before = list(warnings.filters)
    monkeypatch.setattr(Image, "open", together)
    with ThreadPoolExecutor(2) as pool:
        reading = [pool.submit(read_picture, data) for _ in range(2)]
        wait(reading, return_when=FIRST_COMPLETED)
        first_has_left.set()
        assert [each.result().size for each in reading] == [(9, 9)] * 2
    assert list(warnings.filters) == before
