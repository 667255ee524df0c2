"""The pictures of pages in docs/: what `make demo` left, seen in a browser.

make demo                                # draws scenes, trains two runs, indexes what it drew
python docs/pictures.py [DEMO [OUT]]     # explaining.png, report*.png and serving.png into docs/ (make pictures)

Needs Chromium (apt-get install chromium) and the extra `dev`. Nothing leaves this machine.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from queue import Queue
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from halation import HalationError, InputError
from halation._storage import publish_file
from halation.report import explain, report_run
from halation.serve import ServeSettings, serve
from halation.training import read_recipe, to_toml

PICTURE, WORDS = "test_00046.png", "a crimson star right of a golden star"
SEARCHED = "two green shapes on a pink background"
WIDE = 1280
LOADED = "[...document.images].every(image => image.loading === 'lazy' || image.complete)"


def main(demo: Path, out: Path) -> None:
    """All pictures of a demo's folder into a folder."""
    for name in ("scenes", "scenes_pcme", "scenes_pcme_daa", "index"):
        if not (demo / name).is_dir():
            raise InputError(f"{demo} holds no {name}; make it with: halation demo --out {demo}")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, _browser() as browser:
        _explaining(browser, demo, Path(name), out / "explaining.png")
        page = report_run(
            demo / "scenes_pcme_daa", demo / "scenes", Path(name) / "report", against=demo / "scenes_pcme"
        )
        _head(browser, page, out / "report.png")
        _disagreement(browser, page, out / "report_disagreement.png")
        _map(browser, page, out / "report_map.png")
        _serving(browser, demo / "index", out / "serving.png")


def _explaining(browser: Browser, demo: Path, room: Path, out: Path) -> None:
    """The demo's PCME compared by CSD, whose score has parts that differ."""
    run = Path(shutil.copytree(demo / "scenes_pcme", room / "scenes_pcme"))
    (run / "calibration.json").unlink(missing_ok=True)  # of another similarity
    recipe = read_recipe(run / "config.toml")
    compared = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, similarity="csd"))
    (run / "config.toml").write_text(to_toml(compared), encoding="utf-8")
    explain(run, demo / "scenes" / "images" / PICTURE, WORDS).to_html(room / "why.html")
    with _page(browser, (room / "why.html").as_uri(), height=400) as page:
        page.wait_for_function(LOADED)
        _keep(page.screenshot(full_page=True), out, colours=0)


def _head(browser: Browser, report: Path, out: Path) -> None:
    with _page(browser, report.as_uri(), height=700) as page:
        _keep(page.screenshot(), out)


def _disagreement(browser: Browser, report: Path, out: Path) -> None:
    with _page(browser, report.as_uri(), height=908) as page:
        part = page.locator("#browser-disagree")
        part.get_by_role("button", name="text → image").click()
        part.get_by_role("button", name="R@1 miss, high ASP").click()
        page.evaluate("document.querySelector('header').style.display = 'none'")  # it stays at the top, over the part
        part.evaluate("part => scrollTo({top: part.getBoundingClientRect().top + scrollY - 15, behavior: 'instant'})")
        page.wait_for_function(LOADED)
        _keep(page.screenshot(), out)


def _map(browser: Browser, report: Path, out: Path) -> None:
    """In the dark, with a picture near the middle chosen: by the keyboard, while captions are out of the way."""
    with _page(browser, report.as_uri(), height=900, color_scheme="dark") as page:
        canvas = page.locator("#map-canvas")
        canvas.scroll_into_view_if_needed()
        page.locator("#map-captions").uncheck()
        canvas.press("ArrowRight")
        page.locator("#map-captions").check()
        page.locator("#map-card img").wait_for()
        page.wait_for_timeout(300)
        _keep(page.locator("#map .paper").screenshot(), out, colours=0)


def _serving(browser: Browser, index: Path, out: Path) -> None:
    """The search page with an answer; the server ends with this program."""
    address: Queue[str] = Queue()
    options = {"settings": ServeSettings(port=0), "ready": lambda where, _: address.put(where)}
    threading.Thread(target=serve, args=(index,), kwargs=options, daemon=True).start()
    with _page(browser, address.get(timeout=120), height=860) as page:
        page.locator("#query").fill(SEARCHED)
        page.locator("#results img").first.wait_for()
        page.locator("#query").blur()
        page.wait_for_load_state("networkidle")
        page.wait_for_function(LOADED)
        _keep(page.screenshot(), out)


def _keep(picture: bytes, out: Path, colours: int = 256) -> None:
    """As PNG, with few colours where these are enough: pages are text on paper."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    with publish_file(out) as temporary:
        (image.quantize(colours) if colours else image).save(temporary, optimize=True)


@contextmanager
def _browser() -> Iterator[Browser]:
    found = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
    if found is None:
        raise InputError("the pictures are taken by Chromium, which is not here: apt-get install chromium")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def _page(browser: Browser, address: str, height: int, **options: Any) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDE, "height": height}, reduced_motion="reduce", **options)
    page = context.new_page()
    page.goto(address)
    yield page
    context.close()


if __name__ == "__main__":
    demo, out, *_ = [*map(Path, sys.argv[1:3]), *[Path("demo"), Path(__file__).parent][len(sys.argv[1:3]) :]]
    try:
        main(demo, out)
    except HalationError as error:
        sys.exit(f"error: {error}")
