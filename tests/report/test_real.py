"""The report of a thousand photographs and five thousand captions: whole, small enough, and it opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from halation.report import gather_facts, write_page
from runs import TINY, write_run

LIMIT = 20_000_000


@pytest.fixture(scope="module")
def photographs(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a model as it is drawn, on Flickr8k's test split; nothing of it is kept."""
    data, folder = shared_data / "flickr8k", tmp_path_factory.mktemp("photographs")
    recipe = TINY.replace('backbone = "small_conv"', 'backbone = "precomputed"\nlocal = false')
    run = write_run(folder / "run", "data.features='features/efflite0'", recipe=recipe, dims=(1280, 0))
    facts, dataset = gather_facts(run, data)
    assert (len(dataset), dataset.n_captions) == (1000, 5000)
    return write_page(facts, dataset.photos, folder / "report")


def test_the_page_of_a_thousand_photographs_is_small_and_opens(photographs: Path, browser: Any) -> None:
    assert 1_000_000 < photographs.stat().st_size < LIMIT
    complaints: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(photographs.as_uri())
    assert page.locator("body *").count() < 9_000  # no list of thousands is built to be looked at
    first = page.locator("#browser-disagree .card:visible .picture").first
    first.scroll_into_view_if_needed()
    size = first.locator("img").evaluate(
        "image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])"
    )
    assert max(size) == 192
    page.locator("#map-canvas").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#map-card img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 90
    page.close()
    assert not complaints
