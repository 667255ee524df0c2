"""Who comes in, how often, with how much; and what every answer carries."""

from __future__ import annotations

import re
import struct
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from halation._errors import InputError
from halation.search import Answer
from halation.serve import ServeSettings
from serving import TOKEN, Client, WordSearch, png

PATHS = [
    ("POST", "/search"), ("POST", "/search/image"), ("GET", "/items"), ("GET", "/items/a"), ("GET", "/items/a/image"),
    ("GET", "/about"), ("GET", "/metrics"), ("POST", "/reload"), ("GET", "/no-such-path"),
]  # fmt: skip
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Bearer {TOKEN[:-1]}"},
        {"authorization": f"Basic {TOKEN}"},
        {"cookie": f"halation_session={TOKEN}"},
        {"cookie": "halation_session=é; other"},
    ],
)
def test_without_the_token_nothing_of_the_index_is_given(client: Client, headers: dict[str, str]) -> None:
    one, sent = client(token=TOKEN), {name: value.encode("latin-1") for name, value in headers.items()}
    for method, path in PATHS:
        response = one.request(method, path, headers=sent)
        assert response.status_code == 401 and "token" in response.json()["error"], path
        assert response.headers["www-authenticate"] == "Bearer"


def test_with_the_token_in_a_header_everything_is_given(client: Client, search: WordSearch) -> None:
    one = client(token=TOKEN)
    assert one.post("/search", json={"text": "a"}, headers=BEARER).status_code == 200
    assert one.get(f"/items/{search.items[0]}/image", headers=BEARER).status_code == 200
    assert "securitySchemes" in one.get("/openapi.json").json()["components"]


def test_the_page_exchanges_the_token_for_a_cookie_that_scripts_cannot_read(client: Client, search: WordSearch) -> None:
    one = client(token=TOKEN)
    assert one.get("/").status_code == one.get("/static/app.js").status_code == one.get("/health").status_code == 200
    assert one.post("/session", json={"token": "wrong, and long enough"}).status_code == 401
    assert not one.cookies
    given = one.post("/session", json={"token": TOKEN})
    cookie = given.headers["set-cookie"]
    assert given.status_code == 204 and TOKEN not in cookie
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert one.get(f"/items/{search.items[0]}/image").status_code == 200
    other = client(token="another token than that")  # whose cookie is worth nothing elsewhere
    other.cookies = one.cookies
    assert other.get("/about").status_code == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.org", "::", ""])
def test_listening_to_other_machines_needs_a_token_that_cannot_be_guessed(host: str) -> None:
    with pytest.raises(InputError, match="token"):
        ServeSettings(host=host)
    with pytest.raises(InputError, match="at least 16"):
        ServeSettings(host=host, token="short")
    assert ServeSettings(host=host, token=TOKEN).token == TOKEN


@pytest.mark.parametrize("name", ["max_k", "max_body", "queue", "workers", "timeout", "max_pixels"])
def test_settings_that_cannot_work_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0"):
        ServeSettings(**{name: 0})


HOSTS = [
        ("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:8000", 200), ("127.0.0.1", 200),
        ("evil.example", 421), ("localhost.evil.example:8000", 421), ("[::2]", 421), ("", 421), ("192.168.0.1", 421),
    ]  # fmt: skip


def test_a_name_that_somebody_else_points_here_is_not_answered(client: Client) -> None:
    """DNS rebinding: a page of evil.example makes its own name mean 127.0.0.1 and would read the answers."""
    one = client()
    for host, status in HOSTS:
        assert one.get("/health", headers={"host": host}).status_code == status, host


def test_the_name_of_a_proxy_is_answered_when_it_is_allowed(client: Client) -> None:
    one = client(allowed_hosts=("Search.example.org", "other.example"))
    for host, status in (*HOSTS, ("search.example.org", 200), ("SEARCH.example.org:443", 200), ("other.example", 200)):
        assert one.get("/health", headers={"host": host}).status_code == status, host
    assert "must be among the allowed hosts" in one.get("/health", headers={"host": "evil.example"}).json()["error"]
    for name in ("", "*", "https://search.example.org", "search.example.org:443"):
        with pytest.raises(InputError, match="is not a host name"):
            ServeSettings(allowed_hosts=(name,))


def test_other_peoples_pages_cannot_post(client: Client) -> None:
    one = client()
    sent = {"json": {"text": "a"}}
    assert one.post("/search", **sent, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert one.post("/search", **sent, headers={"sec-fetch-site": "same-origin"}).status_code == 200
    preflight = one.options(
        "/search", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )
    assert "access-control-allow-origin" not in preflight.headers


def test_every_answer_carries_the_security_headers(client: Client) -> None:
    one = client()
    for path in ("/", "/health", "/nope", "/static/app.js", "/search", "/items/x/image"):
        check_headers(one.get(path).headers)


def check_headers(headers: Mapping[str, str]) -> None:
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin" and "server" not in headers
    assert headers["cache-control"] in ("no-store", "no-cache")


def test_the_page_has_no_inline_script_or_style() -> None:
    from importlib.resources import files

    page = files("halation.serve").joinpath("static/index.html").read_text(encoding="utf-8")
    assert " style=" not in page and "<style" not in page and "onclick" not in page and "<script>" not in page
    for script in files("halation.serve").joinpath("static").iterdir():
        text = script.read_text(encoding="utf-8")
        assert "innerHTML" not in text and "eval(" not in text
        assert "//cdn" not in text and "https://" not in text.replace("http://www.w3.org", "")


def test_bodies_beyond_the_limit_are_refused_announced_or_not(client: Client, search: WordSearch) -> None:
    one = client(max_body=1000, max_upload=5000)
    announced = one.post("/search", json={"text": "a" * 2000})
    assert announced.status_code == 413 and "1,000 bytes" in announced.json()["error"]

    def stream() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(100):
            yield b"a" * 100

    sent = one.post("/search", content=stream(), headers={"content-type": "application/json"})
    assert sent.status_code == 413
    assert one.post("/search/image", files={"image": ("a.png", b"0" * 6000)}).status_code == 413
    assert one.post("/search/image", files={"image": ("a.png", png(10, 10))}).status_code == 200
    assert search.queries == ["a.png"]


def test_a_length_that_is_no_number_is_refused(client: Client) -> None:
    response = client().post("/search", content=b"{}", headers={"content-length": "-1"})
    assert response.status_code == 413


def bomb(width: int, height: int) -> bytes:
    """A PNG of many pixels in few bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(1 + width // 8)) for _ in range(height)) + rows.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_picture_of_a_hundred_megapixels_is_refused_before_it_is_decoded(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = client()
    monkeypatch.setattr("halation.data.read_picture", lambda *_, **options: pytest.fail("the pixels were decoded"))
    for width, height in ((12_000, 9_000), (40_000, 20_000)):  # the second is beyond Pillow's own limit
        file = bomb(width, height)
        assert len(file) < 200_000
        refused = one.post("/search/image", files={"image": ("bomb.png", file)})
        assert refused.status_code == 413 and "make it smaller" in refused.json()["error"]


def test_the_limit_of_pixels_is_the_servers_and_what_is_wrong_with_a_file_is_said(client: Client) -> None:
    one = client(max_pixels=80_000_000)
    assert one.post("/search/image", files={"image": ("big.png", bomb(9_000, 8_000))}).status_code == 200
    cut = one.post("/search/image", files={"image": ("cut.png", png(50, 50)[:80])})
    assert cut.status_code == 415 and "(JPEG, PNG, WebP, BMP, GIF or TIFF: " in cut.json()["error"]
    with pytest.raises(InputError, match="Pillow does not decode pictures of more than 178,956,970"):
        ServeSettings(max_pixels=200_000_000)


def test_few_uploads_are_in_memory_at_once_and_none_at_its_full_size(
    search: WordSearch, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from halation.serve import _routes

    release, decoded, sizes = threading.Event(), list[int](), list[int]()
    ask, decode = search.image, _routes.decode

    def slowly(picture: Image.Image, *others: Any) -> Answer:
        sizes.append(picture.width * picture.height)
        assert release.wait(30)
        return ask(picture, *others)

    def counted(data: bytes, limit: int) -> Image.Image:
        decoded.append(len(data))
        return decode(data, limit)

    monkeypatch.setattr(search, "image", slowly)
    monkeypatch.setattr(_routes, "decode", counted)
    one, file = client(uploads=2, queue=7), bomb(7000, 7000)
    with ThreadPoolExecutor(12) as pool:
        posts = [pool.submit(one.post, "/search/image", files={"image": ("big.png", file)}) for _ in range(12)]
        while sum(post.done() for post in posts) < 3:  # two are inside, seven wait
            time.sleep(0.01)
        time.sleep(0.3)
        assert len(decoded) == 2
        release.set()
        statuses = sorted(post.result().status_code for post in posts)
    assert statuses == [200] * 9 + [503] * 3
    assert len(sizes) == 9 and max(sizes) <= 16_000_000
    assert one.post("/search/image", files={"image": ("a.png", png(10, 10))}).status_code == 200


def test_a_file_that_is_no_picture_is_refused_whatever_its_name(client: Client) -> None:
    one, magic = client(), b"\x89PNG\r\n\x1a\n"
    for content in (b"just text", b"", magic + b"\x00" * 50, png(50, 50)[:80], b"GIF89a", b"\xff\xd8\xff\xe0"):
        refused = one.post("/search/image", files={"image": ("photo.jpg", content, "image/jpeg")})
        assert refused.status_code == 415 and re.search("not a (readable )?picture", refused.json()["error"])


def test_one_client_asks_only_so_often(client: Client) -> None:
    one = client(rate=0.5, burst=3)
    statuses = [one.post("/search", json={"text": "a"}).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    refused = one.post("/search", json={"text": "a"})
    assert refused.headers["retry-after"] == "2" and "0.5 per second" in refused.json()["error"]
    assert one.get("/health").status_code == 200  # what costs little is counted apart


def test_when_too_many_wait_the_next_is_told_at_once_and_the_others_are_answered(drawn: Path, client: Client) -> None:
    from serving import scenes

    one = client(scenes(drawn, slow=0.15), queue=3)
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(lambda n: one.post("/search", json={"text": f"star {n}"}), range(10)))
    statuses = sorted(response.status_code for response in responses)
    assert statuses.count(200) >= 4 and set(statuses) == {200, 503}
    busy = next(response for response in responses if response.status_code == 503)
    assert "busy" in busy.json()["error"] and busy.headers["retry-after"] == "1"
    assert one.post("/search", json={"text": "later"}).status_code == 200
    assert "halation_searches_held 0" in one.get("/metrics").text


def test_an_answer_that_takes_too_long_is_given_up_and_what_waits_behind_it_too(drawn: Path, client: Client) -> None:
    from serving import scenes

    slow = scenes(drawn, slow=1.5)
    one = client(slow, timeout=0.2)
    with ThreadPoolExecutor(3) as pool:
        began = time.perf_counter()
        responses = list(pool.map(lambda n: one.post("/search", json={"text": f"star {n}"}), range(3)))
        assert time.perf_counter() - began < 1.4
    assert {response.status_code for response in responses} == {504}
    slow.slow = 0.0
    assert len(slow.queries) == 1  # the two that waited never began
    time.sleep(1.5)
    assert len(slow.queries) == 1
    assert one.post("/search", json={"text": "a"}).status_code == 200


def test_searches_go_on_while_pictures_are_made(client: Client, tmp_path: Path) -> None:
    """Pictures have threads of their own: a page of thumbnails does not stop a search."""
    begun, release = threading.Event(), threading.Event()

    class Stuck(WordSearch):
        def picture_bytes(self, id: str, limit: int = 1 << 26) -> bytes | None:  # noqa: A002
            begun.set()
            release.wait(10)
            return super().picture_bytes(id, limit)

    (tmp_path / "a.png").write_bytes(png(9, 9))
    one = client(Stuck(tmp_path, {"a.png": ["red"]}))
    with ThreadPoolExecutor(3) as pool:
        pictures = [pool.submit(one.get, "/items/a.png/image") for _ in range(3)]
        assert begun.wait(5)
        assert one.post("/search", json={"text": "red"}).status_code == 200
        assert one.get("/health").status_code == 200
        release.set()
        assert [picture.result().status_code for picture in pictures] == [200] * 3
