"""The documentation's site builds without a warning or the network; its pages fetch nothing from outside."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import halation

ROOT = Path(__file__).resolve().parents[1]
PAGE_OF = {"index": "index_room"}  # rooms/index.md is the list of rooms


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


class Fetched(HTMLParser):
    """What a browser would fetch to show the page; links in prose are not fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag != "a":
            self.urls += [given[name] for name in ("src", "href", "srcset", "poster", "data") if name in given]


def test_no_page_fetches_anything_from_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        found = Fetched()
        found.feed(page.read_text(encoding="utf-8"))
        assert found.urls
        outside = [url for url in found.urls if re.match(r"(?:[a-z]+:)?//", url)]
        assert not outside, f"{page.name} fetches {outside}"
    for style in site.rglob("*.css"):
        urls = re.findall(r"(?:url\(|@import )[\"']?([^\"')]+)", style.read_text(encoding="utf-8"))
        assert not [url for url in urls if re.match(r"(?:https?:)?//", url)], style.name


def test_every_page_of_docs_can_be_reached(site: Path) -> None:
    menu = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert f'href="{name}"' in menu, f"{name} is in no menu: add it to nav in mkdocs.yml"


def test_benchmarks_and_examples_are_pages_too(site: Path) -> None:
    assert "ratio" in (site / "benchmarks.html").read_text(encoding="utf-8")
    for script in (ROOT / "examples").glob("*.py"):
        assert (site / "examples" / f"{script.stem}.html").is_file()


def test_the_search_works_without_a_server(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = ") and "halation" in index
    assert "assets/iframe-worker.js" in (site / "index.html").read_text(encoding="utf-8")


def test_the_search_box_answers_from_the_disk_and_asks_nobody(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.append(request.url) if not request.url.startswith("file:") else None)
    page.goto((site / "index.html").as_uri())
    page.click("input.md-search__input")
    page.keyboard.type("conformal")
    page.wait_for_selector(".md-search-result__item")
    assert "trust" in page.locator(".md-search-result__list").inner_text().lower()
    assert not errors
    page.close()


@pytest.mark.parametrize("room", sorted(m.name for m in pkgutil.iter_modules(halation.__path__) if m.name[0] != "_"))
def test_every_public_name_of_a_room_is_on_its_page_with_a_sentence(room: str, site: Path) -> None:
    page = (site / "rooms" / f"{PAGE_OF.get(room, room)}.html").read_text(encoding="utf-8")
    rows = dict(re.findall(r'<tr>\s*<td><a href="#[^"]*"><code>(\w+)</code></a></td>\s*<td>(.*?)</td>', page, re.S))
    assert set(rows) == set(importlib.import_module(f"halation.{room}").__all__)
    assert all(len(sentence.split()) >= 2 for sentence in rows.values()), rows


def test_every_public_name_of_the_package_is_on_the_page_of_rooms() -> None:
    page = (ROOT / "docs" / "rooms" / "index.md").read_text(encoding="utf-8")
    assert not [name for name in halation.__all__ if f"`{name}`" not in page]
