"""Embed, index and search as a person types them; and what each mistake looks like."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from halation.calibration import Calibrators, Verdict, fit_calibrator
from halation.cli._search import _show
from halation.encoders import RunFolder
from halation.search import Answer, Hit
from judged_worlds import points
from layouts import draw, write_flickr8k
from runs import halation, write_run


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, a dataset, its embeddings and its index."""
    folder = tmp_path_factory.mktemp("world")
    write_run(folder / "run")
    write_flickr8k(folder / "data")
    assert halation("embed", folder / "run", folder / "data", "-o", folder / "emb") == 0
    assert halation("index", folder / "emb", "-o", folder / "idx") == 0
    return folder


def one_line(captured: pytest.CaptureFixture[str]) -> str:
    """The message a mistake printed: a single line, no traceback."""
    message = captured.readouterr().err.strip()
    assert message.startswith("halation: ") and len(message.splitlines()) == 1, message
    return message


def test_each_verb_says_what_it_made_and_what_comes_next(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    for number in range(5):
        draw(photos / f"{number}.png", number)
    for name in ("bad.jpg", "worse.png", "worst.gif", "hopeless.bmp"):
        (photos / name).write_text("no picture")
    assert halation("embed", world / "run", photos, "-o", tmp_path / "emb") == 0
    printed = capsys.readouterr()
    assert (
        f"{tmp_path / 'emb'}: 5 images (" in printed.out and f"next: halation index {tmp_path / 'emb'}" in printed.out
    )
    assert "left out: bad.jpg is not a readable picture" in printed.err
    assert f"left out: 4 in all, see {tmp_path / 'emb' / 'corrupt.tsv'}" in printed.err
    assert halation("index", tmp_path / "emb", "-o", tmp_path / "idx", "--backend", "exact") == 0
    assert f'next: halation search {tmp_path / "idx"} "what to look for"' in capsys.readouterr().out


def test_a_search_shows_pictures_with_their_captions(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert halation("search", world / "idx", "a red dog", "-k", 3) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert len(lines) == 5 and lines[0].split()[0] == "1" and "/images/p" in lines[0]
    assert lines[-1].startswith("3 images; encoded in ")
    assert "for match probabilities: halation calibrate" in printed.err
    assert halation("search", world / "idx", "a red zebra") == 0
    assert "note: words the model does not know: zebra" in capsys.readouterr().err
    assert halation("search", world / "idx", "🦓") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("nothing here matches; the nearest:") and "knows none of these words" in printed.err


def test_a_picture_finds_captions_or_similar_pictures(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = world / "data" / "images" / "p3.jpg"
    assert halation("search", world / "idx", "--image", picture, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["side"] == "captions" and answer["query"] == str(picture) and len(answer["hits"]) == 10
    assert halation("search", world / "idx", "--image", picture, "--want", "images", "-k", 1, "--json") == 0
    assert json.loads(capsys.readouterr().out)["hits"][0]["id"] == "p3.jpg"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("search", "IDX"), "give either words"),
        (("search", "IDX", "a dog", "--image", "x.jpg"), "give either words"),
        (("search", "IDX", ""), "the query is empty; write what to look for"),
        (("search", "IDX", "a dog", "-k", "0"), "k is 0; ask for 1 or more"),
        (("search", "IDX", "a dog", "--want", "picture"), "unknown kind of item 'picture'"),
        (("search", "IDX", "a dog", "--run", "OTHER"), "was made by another model than"),
        (("search", "IDX", "--image", "text.jpg"), "text.jpg is not a readable picture"),
        (("search", "IDX", "--image", "gone.jpg"), "gone.jpg does not exist"),
        (("search", "EMB", "a dog"), "it is not a folder that `halation index` made"),
        (("index", "IDX", "-o", "new"), "it is not a folder that `halation embed` made"),
        (("index", "EMB", "-o", "DATA"), "exists and is not an index of halation"),
        (("index", "EMB", "-o", "new", "--backend", "fais"), "did you mean 'faiss'"),
        (("index", "EMB", "-o", "new", "--uri", "http://localhost:1"), "a uri is for the backend milvus"),
        (("embed", "OTHER", "DATA", "-o", "EMB"), "holds embeddings by another model"),
        (("embed", "RUN", "nowhere", "-o", "new"), "nowhere does not exist; name a folder of pictures"),
        (("embed", "DATA", "DATA", "-o", "new"), "has no model.safetensors; is it a run's folder"),
        (("embed", "RUN", "DATA", "-o", "new", "--side", "words"), "unknown side 'words'"),
        (("embed", "RUN", "DATA", "-o", "new", "--split", "tset"), "has no split 'tset'"),
        (("embed", "RUN", "text.jpg", "-o", "new"), "is a single picture; name its folder"),
    ],
)
def test_every_mistake_is_one_line(
    world: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    what: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.jpg").write_text("I am text")
    folders = {name: world / name.lower() for name in ("IDX", "EMB", "RUN", "DATA")}
    if "OTHER" in arguments:
        folders["OTHER"] = write_run(tmp_path / "other", "train.seed=1")
    assert halation(*(folders.get(word, word) for word in arguments)) == 2
    assert what in one_line(capsys)
    assert not (tmp_path / "new").exists()


def test_embedding_again_adds_new_pictures_and_the_index_follows(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    draw(photos / "a.png", 1)
    for expected in (1, 2):
        assert halation("embed", world / "run", photos, "-o", tmp_path / "emb") == 0
        assert halation("index", tmp_path / "emb", "-o", tmp_path / "idx") == 0
        capsys.readouterr()
        assert halation("search", tmp_path / "idx", "a dog", "--json") == 0
        assert len(json.loads(capsys.readouterr().out)["hits"]) == expected
        draw(photos / "b.png", 2)
    shutil.rmtree(photos)
    assert halation("search", tmp_path / "idx", "a dog") == 0  # found all the same, with a note that they are gone
    assert "note: 2 of these pictures are no longer on disk" in capsys.readouterr().err


def test_the_ambiguity_of_a_query_is_named_in_english(capsys: pytest.CaptureFixture[str]) -> None:
    _show(Answer("a dog", [], "matches", "ordinary", 0.1, 1.0, 1.0))
    _show(Answer("a dog", [], "matches", "broad", 0.1, 1.0, 1.0))
    printed = capsys.readouterr().out
    assert "\nan ordinary query; " in printed and "\na broad query; " in printed


@pytest.mark.parametrize(
    ("verdict", "first", "expectation"),
    [
        ("matches", "something here matches:", "about 1 of these 2 matches"),
        ("unsure", "not sure that anything here matches; the nearest:", "perhaps 1 of these 2 matches"),
        ("nothing", "nothing here matches; the nearest:", None),
        (None, "  1 ", None),
    ],
)
def test_a_search_prints_its_verdict_and_how_many_matches_to_expect(
    capsys: pytest.CaptureFixture[str], verdict: Verdict | None, first: str, expectation: str | None
) -> None:
    hits = [Hit("a.jpg", 0.9, verdict and 0.7), Hit("b.jpg", 0.1, verdict and 0.4)]
    _show(Answer("a dog", hits, verdict, expected_matches=verdict and 1.1))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(first) and len([line for line in lines if ".jpg" in line]) == 2
    assert [line for line in lines if " of these " in line] == ([expectation] if expectation else [])


def test_the_answer_as_json_has_the_verdict_and_the_expected_number(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halation("search", world / "idx", "a red dog", "--json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["verdict"] is None is plain["expected_matches"]
    run = Path(shutil.copytree(world / "run", tmp_path / "run"))
    calibrator = fit_calibrator(points(np.random.default_rng(0), images=40)).calibrator
    Calibrators(calibrator, calibrator, RunFolder(run).fingerprint()).save(run / "calibration.json")
    assert halation("search", world / "idx", "a red dog", "-k", 3, "--run", run, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] in ("matches", "unsure", "nothing")
    assert answer["expected_matches"] == pytest.approx(sum(hit["probability"] for hit in answer["hits"]))
