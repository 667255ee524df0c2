"""What a report says of real runs: gathered from models of every kind, on data of every kind."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from halation import InputError, metrics
from halation._tensors import load_tensors, save_tensors
from halation.data import Dataset, Photos, draw_scenes, read_scenes
from halation.encoders import load
from halation.evaluation import evaluate
from halation.report import Facts, gather_facts, report_run, write_page
from halation.report._facts import Map, Missing, ReliabilityFacts, Training
from halation.report._pictures import thumbnails
from halation.search import calibrate_run
from halation.semantics import MiniLM, caption_relevance
from halation.similarity import Gaussian
from halation.training import read_recipe, train
from layouts import write_cub, write_flickr8k, write_precomp
from runs import TINY, halation, write_run
from worlds import RECIPE, write_world

Gathered = tuple[Facts, Dataset]


def test_the_measures_are_those_of_evaluate(gathered: Gathered, runs: tuple[Path, Path], world: Path) -> None:
    facts, _ = gathered
    model = load(runs[1])
    dataset = model.open_dataset(world, "test")
    expected = evaluate(model.scores(dataset), dataset.truth)
    assert facts.other is not None and facts.comparison is not None
    assert dict(facts.other.t2i) == pytest.approx(dict(expected.t2i))
    row = facts.comparison.t2i["R@1"]
    assert row.difference == pytest.approx(facts.report.t2i["R@1"] - expected.t2i["R@1"])


def test_recall_over_k_meets_the_table_at_1_5_and_10(gathered: Gathered) -> None:
    facts, _ = gathered
    for direction, lines in facts.recall.items():
        for line, report in zip(lines, (facts.report, facts.other), strict=True):
            assert report is not None
            at = dict(zip(line.x, line.y, strict=True))
            for k in (1, 5, 10):
                assert at[k] == pytest.approx(report.results(direction)[f"R@{k}"])
            assert at[max(at)] == pytest.approx(100)


def test_every_query_kept_has_the_rankings_of_the_run(gathered: Gathered, runs: tuple[Path, Path], world: Path) -> None:
    facts, dataset = gathered
    relevance = caption_relevance(dataset.captions, dataset.image_of, metric="tfidf")
    scores = [load(run).scores(dataset) for run in runs]
    true = read_scenes(world, "test").true
    for query in facts.queries:
        text = query.direction == "t2i"
        row, other, meaning, right = ((m[:, query.item] if text else m[query.item]) for m in (*scores, relevance, true))
        value = metrics.asp([row], [meaning])[0]
        assert query.values["ASP(tfidf)"] == pytest.approx(value)
        assert [one.score for one in query.by_score] == pytest.approx(sorted(row, reverse=True)[:10])
        assert [one.score for one in query.by_other_score] == pytest.approx(sorted(other, reverse=True)[:10])
        assert [one.relevance for one in query.by_relevance] == pytest.approx(sorted(meaning, reverse=True)[:10])
        for one in (*query.by_score, *query.by_relevance):
            image, caption = (one.item, query.item) if text else (query.item, one.item)
            is_own = dataset.image_of[caption] == image
            assert one.mark == ("written" if is_own else "right" if right[one.item] else "")
        assert (query.by_score[0].mark != "") == bool(query.values["R@1"])
        assert query.right_count == right.sum()


def test_queries_are_those_of_the_galleries_and_others_up_to_the_bound(gathered: Gathered) -> None:
    facts, _ = gathered
    kept = {(query.direction, query.item) for query in facts.queries}
    shown = {(one.direction, item) for one in facts.galleries for item in one.queries}
    assert shown <= kept and len(kept) == len(facts.queries)
    for direction in ("i2t", "t2i"):
        count = sum(way == direction for way, _ in kept)
        assert count == max(20, sum(way == direction for way, _ in shown))  # of 40


def test_found_positives_are_those_nobody_wrote(gathered: Gathered, world: Path) -> None:
    facts, dataset = gathered
    true = read_scenes(world, "test").true
    unwritten = int(true.sum()) - dataset.n_captions
    assert f"{unwritten:,} pairs" in facts.precision_note
    assert [line.run for line in facts.precision] == [0, 1, 2]  # both runs, and caption semantics
    assert all(line.x[-1] == unwritten for line in facts.precision)
    last = facts.precision[0]
    assert last.y[-1] >= 100 * unwritten / true.size - 1e-9  # at worst all pairs are called


def test_sigma_is_the_models_own(gathered: Gathered, runs: tuple[Path, Path]) -> None:
    facts, dataset = gathered
    images, captions = load(runs[0]).encode_dataset(dataset)
    assert isinstance(images, Gaussian) and isinstance(captions, Gaussian)
    np.testing.assert_allclose(facts.sigma["images"], images.uncertainty().numpy())
    assert isinstance(facts.map, Map) and facts.map.shapes is not None
    assert len(facts.map.items) == len(images) + len(captions)
    assert not isinstance(facts.recall_by_sigma, Missing)
    assert [bars.run for bars in facts.recall_by_sigma["t2i"]] == [0, 1]


def test_runs_of_the_same_name_are_told_apart(runs: tuple[Path, Path], world: Path, tmp_path: Path) -> None:
    copies = [shutil.copytree(run, tmp_path / run.name / "best") for run in runs]
    facts, _ = gather_facts(copies[0], world, against=copies[1], queries=0)
    assert [run.name for run in facts.runs] == ["newer/best", "older/best"]


def test_training_is_read_from_what_the_run_wrote(gathered: Gathered) -> None:
    facts, _ = gathered
    training, none = (run.training for run in facts.runs)
    assert isinstance(training, Training) and isinstance(none, Missing)  # the other run wrote nothing
    losses = {line.name: (line.x, line.y) for line in training.losses}
    assert losses == {"loss": ((0.0,), (3.5,)), "infonce": ((0.0, 9.0), (3.5, 2.5))}  # NaN leaves a gap
    assert {line.name: line.y for line in training.validation} == {"R@1 i2t": (4.0,), "rsum": (60.5,)}
    assert training.kept_epoch == 1


def test_the_same_run_gives_the_same_page(
    gathered: Gathered, written: Path, runs: tuple[Path, Path], world: Path, tmp_path: Path
) -> None:
    again = report_run(runs[0], world, tmp_path / "new" / "folder", against=runs[1], queries=40)
    assert again.read_bytes() == written.read_bytes()


def test_a_calibrated_run_shows_both_lines_and_another_models_calibration_is_not_believed(
    runs: tuple[Path, Path], world: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(runs[0], tmp_path / "run"))
    calibrate_run(run, world, split="test")
    facts, _ = gather_facts(run, world, queries=0)
    measured = facts.reliability["t2i"]
    assert isinstance(measured, ReliabilityFacts) and [line.name for line in measured.lines] == [
        "uncalibrated",
        "calibrated",
    ]
    errors = {line.name: line.ece for line in measured.lines}
    assert errors["calibrated"] < errors["uncalibrated"]  # it was fitted here
    assert measured.missing is None and "Every match is known." in measured.note
    document = json.loads((run / "calibration.json").read_text(encoding="utf-8"))
    (run / "calibration.json").write_text(json.dumps(document | {"fingerprint": "0" * 64}), encoding="utf-8")
    foreign = gather_facts(run, world, queries=0)[0].reliability["t2i"]
    assert isinstance(foreign, ReliabilityFacts) and len(foreign.lines) == 1
    assert foreign.missing is not None and "another model" in foreign.missing.why


@pytest.fixture
def calibrated(runs: tuple[Path, Path], world: Path, tmp_path: Path) -> Path:
    """A run calibrated on the test split."""
    run = Path(shutil.copytree(runs[0], tmp_path / "run"))
    calibrate_run(run, world, split="test")
    return run


def seen(run: Path, world: Path) -> ReliabilityFacts:
    measured = gather_facts(run, world, queries=0)[0].reliability
    assert isinstance(measured["t2i"], ReliabilityFacts) and isinstance(measured["i2t"], ReliabilityFacts)
    assert measured["t2i"].fitted_here == measured["i2t"].fitted_here
    return measured["t2i"]


def test_a_calibration_that_was_fitted_on_what_is_shown_is_named_as_such(
    calibrated: Path, world: Path, tmp_path: Path
) -> None:
    assert seen(calibrated, world).fitted_here.startswith("Fitted on these images")
    text = report_run(calibrated, world, tmp_path / "out", queries=0).read_text(encoding="utf-8")
    assert text.count("<strong>Fitted on these images") == 2  # beside each of the two plots
    assert text.count("calibrated (fitted on these images), ECE") > 0
    path = calibrated / "calibration.json"
    damaged = json.loads(path.read_text(encoding="utf-8"))
    del damaged["images"]  # nobody could tell where it was fitted
    path.write_text(json.dumps(damaged), encoding="utf-8")
    unknown = seen(calibrated, world)
    assert len(unknown.lines) == 1 and not unknown.fitted_here
    assert unknown.missing is not None and unknown.missing.remedy.startswith("halation calibrate ")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A data set of captions, which miss most matches, and a run that is calibrated on its dev split."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "data").mkdir()
    data = write_world(folder / "data", {"train": 40, "dev": 60, "test": 60})
    (folder / "toy.toml").write_text(RECIPE)
    train(read_recipe(folder / "toy.toml", ["train.epochs=1"]), data, folder / "run")
    calibrate_run(folder / "run", data)
    return folder / "run", data


def test_a_run_calibrated_to_people_is_measured_by_people_and_by_annotations(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    run, data = photos
    measured = seen(run, data)
    assert [line.name for line in measured.lines] == ["uncalibrated", "calibrated", "calibrated, against annotations"]
    errors = {line.name: line.ece for line in measured.lines}
    assert errors["calibrated"] < errors["calibrated, against annotations"]
    assert max(measured.lines[2].observed) < max(measured.lines[1].observed)  # fewer are annotated than people accept
    assert "A match is judged by people: a person says yes" in measured.note
    assert "against them the same probabilities look too high" in measured.note
    page = report_run(run, data, tmp_path / "out", queries=0).read_text(encoding="utf-8")
    assert page.count("calibrated, against annotations, ECE") > 0 and "swatch s2" in page


def test_by_annotations_there_are_two_lines(photos: tuple[Path, Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(photos[0], tmp_path / "run"))
    calibrate_run(run, photos[1], judge="annotations")
    measured = seen(run, photos[1])
    assert [line.name for line in measured.lines] == ["uncalibrated", "calibrated"]
    assert "A match is an annotated pair. Annotations miss most matches." in measured.note


def test_without_the_extra_a_run_calibrated_to_people_is_not_measured(
    photos: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MiniLM, "is_installed", lambda: False)
    facts, _ = gather_facts(*photos, queries=0)
    for missing in facts.reliability.values():
        assert isinstance(missing, Missing) and "the judge people" in missing.why
        assert missing.remedy == 'pip install "halation[pretrained]"'


def test_a_calibration_of_other_images_of_the_same_names_is_none_of_these(
    calibrated: Path, world: Path, tmp_path: Path
) -> None:
    draw_scenes(tmp_path / "other", train=2, dev=2, test=40, seed=6)
    assert [p.name for p in sorted((tmp_path / "other").rglob("test_*"))] == [
        p.name for p in sorted(world.rglob("test_*"))
    ]
    measured = seen(calibrated, tmp_path / "other")
    assert not measured.fitted_here and "fitted on 40 images of scenes-test, none of them shown here" in measured.note


def test_a_calibration_of_some_of_the_images_says_of_how_many(world: Path, tmp_path: Path) -> None:
    captions = read_scenes(world, "test").captions
    run = write_run(tmp_path / "run", "data.dev='test'", "data.dev_images=15", captions=captions)
    calibrate_run(run, world)  # on the 25 that early stopping would not have looked at
    assert seen(run, world).fitted_here.startswith("Fitted on 25 of these 40 images")


def test_before_is_at_what_the_run_learnt(runs: tuple[Path, Path], world: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(runs[0], tmp_path / "run"))
    weights = load_tensors(run / "model.safetensors")
    notes, errors = [], []
    for kept in (None, 0.07, 3.0):
        note = None if kept is None else json.dumps({"learnt": {"infonce": {"temperature": kept}}})
        save_tensors(run / "model.safetensors", weights, note)
        measured = gather_facts(run, world, queries=0)[0].reliability["t2i"]
        assert isinstance(measured, ReliabilityFacts)
        notes.append(measured.note)
        errors.append(measured.lines[0].ece)
    assert "temperature 0.07, the recipe's first (the run did not keep what it learnt)" in notes[0]
    assert "temperature 0.07, as the run learnt it" in notes[1]
    assert "temperature 3, as the run learnt it" in notes[2]
    assert errors[0] == errors[1] != errors[2]


KINDS = {
    "point": ("model.head='point'",),
    "several": ("model.head='pvse'",),
    "scorer": ("model.head='sgr'", "model.sim_dim=4", "model.steps=1"),
    "Gaussian": ("loss.daa.weight=1",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_a_report(kind: str, world: Path, tmp_path: Path) -> None:
    captions = read_scenes(world, "test").captions
    run = write_run(tmp_path / kind, *KINDS[kind], captions=captions)
    facts, dataset = gather_facts(run, world, queries=0)
    text = write_page(facts, dataset.photos, tmp_path / "out").read_text(encoding="utf-8")
    assert "Give a second run to compare" in text and "Won" not in text
    if kind == "Gaussian":
        assert facts.sigma and isinstance(facts.map, Map) and facts.map.shapes is not None
        return
    assert not facts.sigma and isinstance(facts.recall_by_sigma, Missing) and not facts.certainty
    assert text.count("This model has no σ") == 2
    if kind == "scorer":
        assert isinstance(facts.map, Missing) and "no embeddings to map" in text and "<canvas" not in text
    else:
        assert isinstance(facts.map, Map) and facts.map.shapes is None


def test_data_without_pictures_shows_their_names(tmp_path: Path) -> None:
    data = write_precomp(tmp_path / "data", regions=4, dim=6)
    run = write_run(tmp_path / "run", "image.backbone='precomputed'", "data.features=''", dims=(6, 6))
    facts, dataset = gather_facts(run, data, queries=4)
    assert dataset.photos is None
    text = write_page(facts, None, tmp_path / "out").read_text(encoding="utf-8")
    assert "features, not pictures" in text and '<script type="application/json" id="pictures">{}</script>' in text
    assert f'<span class="name">{facts.items.names[0]}</span>' in text


@pytest.mark.parametrize("layout", [write_flickr8k, write_cub])
def test_other_layouts_have_a_report_too(layout: object, tmp_path: Path) -> None:
    data = layout(tmp_path / "data")  # type: ignore[operator]
    run = write_run(tmp_path / "run")
    facts, dataset = gather_facts(run, data, split="test", queries=0)
    page = write_page(facts, dataset.photos, tmp_path / "out")
    assert page.stat().st_size > 50_000
    assert all(math.isfinite(value) for line in facts.precision for value in line.y)


def test_one_caption_an_image_is_enough(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    lines = [{"image": f"{k}.png", "captions": [f"a red dog on the grass {k}"]} for k in range(6)]
    (tmp_path / "data" / "test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    np.save(tmp_path / "data" / "toy.npy", np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32))
    (tmp_path / "data" / "images.txt").write_text("".join(f"{k}.png\n" for k in range(6)), encoding="utf-8")
    recipe = TINY.replace('backbone = "small_conv"\ndim = 16\nsize = 16', 'backbone = "precomputed"')
    run = write_run(tmp_path / "run", "data.features='toy.npy'", "model.head='point'", recipe=recipe, dims=(5, 0))
    facts, _ = gather_facts(run, tmp_path / "data", queries=0)
    assert facts.report.i2t["R-P"] == facts.report.i2t["R@1"]
    empty = [one for one in facts.galleries if one.key == "miss_high_rp"]
    assert [one.queries for one in empty] == [(), ()]
    assert "query is of this kind" in write_page(facts, None, tmp_path / "out").read_text(encoding="utf-8")


def test_the_verb_says_what_it_wrote_and_what_next(
    runs: tuple[Path, Path], world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halation("report", runs[0], "--data", world, "-o", tmp_path / "out", "--queries", 0) == 0
    printed = capsys.readouterr().out
    page = tmp_path / "out" / "index.html"
    assert page.is_file() and sorted(p.name for p in page.parent.iterdir()) == ["index.html"]
    assert str(page) in printed and "MB" in printed and page.as_uri() in printed
    assert "second run" in printed and "halation calibrate" in printed


def test_mistakes_are_told_before_the_work(
    runs: tuple[Path, Path], world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert halation("report", runs[0], "--data", world, "-o", tmp_path / "file") == 2
    assert "is a file" in capsys.readouterr().err
    assert halation("report", runs[0], "--data", world, "-o", tmp_path / "o", "--split", "tset") == 2
    assert "test" in capsys.readouterr().err
    assert halation("report", tmp_path / "none", "--data", world, "-o", tmp_path / "o") == 2
    assert "does not exist" in capsys.readouterr().err
    with pytest.raises(InputError, match="queries is -1"):
        gather_facts(runs[0], world, queries=-1)
    assert halation("report", runs[0], "--data", world, "-o", tmp_path / "o", "--queries", 5001) == 2
    assert "queries is 5,001; it must be 0 to 5,000" in capsys.readouterr().err


def test_a_picture_that_cannot_be_read_costs_the_page_only_that_picture(gathered: Gathered, tmp_path: Path) -> None:
    _, dataset = gathered
    assert dataset.photos is not None
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    pictures, notes = thumbnails(Photos([broken, *dataset.photos.paths[1:4]]), [2, 0, 2, 1])
    assert list(pictures) == [2, 1] and notes == ["1 pictures could not be read; halation data check names them."]
    few, remarks = thumbnails(Photos(dataset.photos.paths[:8]), range(8), budget=len(pictures[2]) * 2)
    assert 1 <= len(few) < 8 and "shown by name only" in remarks[0]
