"""The page of a report: its size, and how long a browser takes to show it.

The run has random weights and its pictures are soft noise of the size of a photograph. Neither changes much about the
size of a page of 1,000 images and 5,000 captions, or about how it opens.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from bench.results import Row
from bench.serve import write_run
from halation.data import Photos, draw_scenes
from halation.report import gather_facts, write_page

PICTURES, MOST_MB, MOST_MS = 1000, 20.0, 2000.0
_TIMES = """() => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    return [performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd, paint ? paint.startTime : 0];
}"""


def run(pictures: int = PICTURES) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        draw_scenes(folder / "scenes", train=1, dev=1, test=pictures)
        run_folder, _ = write_run(folder)
        facts, _ = gather_facts(run_folder, folder / "scenes")
        page = write_page(facts, _photographs(folder / "photographs", pictures), folder / "report")
        size, shape = page.stat().st_size / 1e6, f"{pictures:,} × {5 * pictures:,}"
        yield Row(
            "report", f"page of {shape}, pictures inside", f"{size:.1f} MB", f"{MOST_MB:g} MB", MOST_MB / size, 1.0
        )
        opened = _opened(page)
        if opened is not None:
            ready, painted = opened
            times = f"DOMContentLoaded {ready:.0f} ms, first paint {painted:.0f} ms"
            yield Row("report", f"opening the page of {shape}", times, f"{MOST_MS / 1000:g} s", MOST_MS / ready, 1.0)


def _photographs(folder: Path, count: int) -> Photos:
    """Soft noise, 500 × 375, whose files are about as large as photographs."""
    folder.mkdir()
    generator, paths = np.random.default_rng(0), []
    for number in range(count):
        noise = generator.integers(0, 256, (48, 64, 3), dtype=np.uint8)
        paths.append(folder / f"{number}.jpg")
        Image.fromarray(noise).resize((500, 375), Image.Resampling.BICUBIC).save(paths[-1], quality=90)
    return Photos(paths)


def _opened(page: Path, times: int = 5) -> tuple[float, float] | None:
    """Milliseconds until the page is ready and painted, the best of some openings; None without a browser."""
    browser_path = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser_path = None
    if browser_path is None:
        return None
    openings = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for _ in range(times):
            context = browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
            tab = context.new_page()
            tab.goto(page.as_uri())
            tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
            openings.append(tuple(tab.evaluate(_TIMES)))
            context.close()
        browser.close()
    ready, painted = min(openings)
    return float(ready), float(painted)
