"""The real thing: `halation serve` on an index that `embed` and `index` made, asked over HTTP and in the browser."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from halation.search import Search, embed, make_index, open_search
from layouts import draw
from runs import write_run
from serving import TOKEN, png

QUERIES = ("a dog", "two red cats by the sea", "zebra", "🐕 dog ❄️")


class Served:
    """`halation serve INDEX` in a process of its own."""

    def __init__(self, index: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HALATION_TOKEN": TOKEN}
        command = [sys.executable, "-m", "halation", "serve", str(index), "--port", "0", "--rate", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.printed = [self.process.stdout.readline().strip() for _ in range(3)]
        self.address = self.printed[1].removeprefix("open ").partition("/#")[0]
        self.client = httpx.Client(
            base_url=self.address, timeout=60, headers={"authorization": f"Bearer {TOKEN}"}, follow_redirects=False
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pictures/ with forty of them, one more beside it, run/, index/."""
    folder = tmp_path_factory.mktemp("real")
    for number in range(40):
        draw(folder / "pictures" / ("a b" if number % 3 else "") / f"p{number:02d}.png", number)
    draw(folder / "secret.png", 99)
    with (folder / "pictures" / "all.jsonl").open("w", encoding="utf-8") as out:
        for path in sorted((folder / "pictures").rglob("*.png")):
            name = str(path.relative_to(folder / "pictures"))
            out.write(json.dumps({"image": name, "captions": [f"a dog called {path.stem}", "a picture"]}) + "\n")
    run = write_run(folder / "run")
    embed(run, folder / "pictures" / "all.jsonl", folder / "embedded", side="both")
    make_index(folder / "embedded", folder / "index")
    return folder


@pytest.fixture(scope="module")
def served(world: Path) -> Iterator[Served]:
    running = Served(world / "index")
    yield running
    running.client.close()
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(timeout=60) == 0  # it ended when it was asked to


@pytest.fixture(scope="module")
def search(world: Path) -> Search:
    return open_search(world / "index")


def test_http_gives_what_python_gives(served: Served, search: Search, world: Path) -> None:
    assert served.printed[0].startswith("serving 40 images and 80 captions (no calibration")
    for query in QUERIES:
        for want in ("images", "captions"):
            reply = served.client.post("/search", json={"text": query, "k": 7, "want": want}).json()
            answer = search.text(query, 7, want)
            assert [hit["id"] for hit in reply["hits"]] == [hit.id for hit in answer.hits]
            scores = [hit.score for hit in answer.hits]
            assert [hit["score"] for hit in reply["hits"]] == pytest.approx(scores, abs=1e-5)
            assert (reply["side"], reply["notes"]) == (answer.side, answer.notes)
    item = search.items[3]
    content = search.picture_bytes(item)
    assert content is not None
    uploaded = served.client.post("/search/image", files={"image": content}, data={"k": 3, "want": "images"}).json()
    assert uploaded["hits"][0]["id"] == item
    stored = served.client.get(f"/items/{httpx.URL(path=item).raw_path.decode().replace('/', '%2F')}/alike?want=images")
    assert stored.json()["hits"][0]["id"] == item


def test_bad_input_is_answered_and_the_server_stays(served: Served) -> None:
    ask = served.client.post
    assert ask("/search", json={"text": "  "}).status_code == 422
    long = ask("/search", json={"text": "dog " * 10_000, "k": 100}).json()
    assert "only the first" in long["notes"][0] and len(long["hits"]) == 40
    assert ask("/search/image", files={"image": ("a.jpg", b"text")}).status_code == 415
    assert ask("/search/image", files={"image": ("a.png", png(9000, 9000, 1, "1"))}).status_code == 413
    assert served.client.get("/health").json()["items"] == 120


def test_pictures_come_from_the_indexed_folders_only(served: Served, world: Path) -> None:
    """Every way out: names that climb, a picture replaced by a link, a folder replaced by a link, a deleted file."""
    get, pictures = served.client.get, world / "pictures"
    hits = served.client.post("/search", json={"text": "a dog", "k": 40}).json()["hits"]
    by_name = {hit["id"].rsplit("/", 1)[-1]: hit["image"] for hit in hits}
    assert get(f"/{by_name['p00.png']}").status_code == get(f"/{by_name['p01.png']}?size=original").status_code == 200
    for name in ("..%2Fsecret.png", "..%2f..%2f..%2fetc%2fpasswd", "%2Fetc%2Fpasswd", "p00.png%00", "..", "%ff"):
        assert get(f"/items/{name}/image").status_code == 404, name
    kept = (pictures / "p03.png").read_bytes()
    try:
        (pictures / "p03.png").unlink()
        assert get(f"/{by_name['p03.png']}").status_code == 404
        (pictures / "p03.png").symlink_to("../secret.png")
        assert get(f"/{by_name['p03.png']}").status_code == 404
        assert served.client.post("/search", json={"text": "a dog", "k": 40}).json()["notes"][-1].startswith("1 of the")
    finally:
        (pictures / "p03.png").unlink()
        (pictures / "p03.png").write_bytes(kept)
    shutil.copytree(pictures / "a b", world / "elsewhere" / "a b")
    (pictures / "a b").rename(world / "moved")
    try:
        (pictures / "a b").symlink_to(world / "elsewhere" / "a b")
        assert get(f"/{by_name['p01.png']}").status_code == 404
    finally:
        (pictures / "a b").unlink()
        (world / "moved").rename(pictures / "a b")
    assert get(f"/{by_name['p03.png']}").status_code == get(f"/{by_name['p01.png']}").status_code == 200


def test_a_new_index_is_taken_up_and_a_wrong_one_is_not(served: Served, world: Path, tmp_path: Path) -> None:
    index, run, client = world / "index", world / "run", served.client
    kept, fewer = tmp_path / "index", world / "pictures" / "fewer.jsonl"
    shutil.copytree(index, kept)
    lines = (world / "pictures" / "all.jsonl").read_text(encoding="utf-8").splitlines()
    fewer.write_text("\n".join(lines[:10]) + "\n", encoding="utf-8")

    def hits() -> list[dict[str, Any]]:
        return list(client.post("/search", json={"text": "a dog", "k": 40}).json()["hits"])

    def refused(words: str) -> None:
        answer = client.post("/reload")
        assert answer.status_code == 409 and "the old one stays" in answer.json()["error"]
        assert words in answer.json()["error"]
        assert len(hits()) == 10

    try:
        embed(run, fewer, tmp_path / "fewer", side="images")
        make_index(tmp_path / "fewer", index)  # over the one that is being served
        assert len(hits()) == 40 and all(hit["captions"] for hit in hits())
        assert client.post("/reload").json() == {"generation": 2, "items": 10}
        weights = (run / "model.safetensors").read_bytes()
        other = write_run(tmp_path / "other", "train.seed=1") / "model.safetensors"
        (run / "model.safetensors").write_bytes(other.read_bytes()[:-4] + b"\0\0\0\0")
        refused("another model")
        (run / "model.safetensors").write_bytes(weights)
        items = next(index.rglob("items.sqlite"))
        items.unlink()  # the server holds the old file open, as it would if a copy had ended early
        items.write_bytes(b"damaged")
        refused("damaged")
        shutil.rmtree(index)
        refused("does not exist")
    finally:
        shutil.rmtree(index, ignore_errors=True)
        shutil.copytree(kept, index)
    assert client.post("/reload").json() == {"generation": 3, "items": 120}


def test_the_page_on_the_real_thing(served: Served, search: Search, browser: Any) -> None:
    from playwright.sync_api import expect

    page = browser.new_context().new_page()
    page.set_default_timeout(20_000)
    page.goto(f"{served.address}/#token={TOKEN.replace(' ', '%20')}")
    expect(page.locator(".tile").first).to_be_visible(timeout=20_000)
    page.fill("#query", "a dog by the sea")
    expect(page.locator(".card[data-id]")).to_have_count(24, timeout=20_000)
    ids = [card.get_attribute("data-id") for card in page.locator(".card[data-id]").all()]
    assert ids == [hit.id for hit in search.text("a dog by the sea", 24).hits]
    expect(page.locator(".ambiguity")).to_have_text("No probabilities: the model is not calibrated.")
    size = page.locator(".card img").first.evaluate("image => image.decode().then(() => image.naturalWidth)")
    with Image.open(io.BytesIO(search.picture_bytes(ids[0]) or b"")) as picture:
        assert size == picture.width
    content = search.picture_bytes(ids[5])
    page.locator("#file").set_input_files({"name": "mine.png", "mimeType": "image/png", "buffer": content})
    expect(page.get_by_role("heading", name="Captions that fit it")).to_be_visible(timeout=20_000)
    expect(page.locator(".card[data-id]").first).to_have_attribute("data-id", ids[5], timeout=20_000)
    page.context.close()


PHOTOGRAPHS = """
name = "on features"
[data]
features = "features/efflite0"
[text]
dim = 8
hidden = 8
min_count = 1
[model]
head = "pcme"
dim = 8
[loss.infonce]
weight = 1.0
"""


def test_the_page_on_photographs(shared_data: Path, browser: Any, tmp_path: Path) -> None:
    """A run on features, which cannot look at new pictures: the page shows the photographs, and says what it cannot."""
    from playwright.sync_api import expect

    run = write_run(tmp_path / "run", recipe=PHOTOGRAPHS, dims=(1280, 128))
    embed(run, shared_data / "flickr8k", tmp_path / "embedded", split="test", side="both")
    running = Served(make_index(tmp_path / "embedded", tmp_path / "index"))
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(30_000)
    try:
        page.goto(f"{running.address}/?q=a+dog#token={TOKEN.replace(' ', '%20')}")
        expect(page.locator(".card[data-id]")).to_have_count(24, timeout=30_000)
        decoded = (
            "images => Promise.all(images.map(async image => { await image.decode(); return image.naturalWidth; }))"
        )
        for card in page.locator(".card img").all():
            card.scroll_into_view_if_needed()
        widths = page.locator(".card img").evaluate_all(decoded)
        assert len(widths) == 24 and min(widths) > 0
        page.locator(".card").first.click()
        assert page.locator("dialog .whole img").evaluate_all(decoded)[0] > 0
        page.get_by_role("button", name="Find similar pictures").click()  # from what the index has stored
        expect(page.get_by_role("heading", name="Captions that fit it")).to_be_visible(timeout=30_000)
        expect(page.locator(".line")).to_have_count(5)
        page.locator("#file").set_input_files({"name": "new.png", "mimeType": "image/png", "buffer": png(64, 64)})
        expect(page.get_by_role("alert").first).to_contain_text("cannot look at new pictures", timeout=30_000)
        assert str(tmp_path) not in page.content()
    finally:
        page.context.close()
        running.process.kill()
        running.process.wait()
