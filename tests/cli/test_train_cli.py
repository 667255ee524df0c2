"""Data, features, training and measuring as a person types them; and what each mistake looks like."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from halation.data import draw_scenes, open_features
from halation.training import Run, read_recipe, train
from halation.training._learner import Learner
from layouts import captions_of, draw, write_flickr8k, write_hub
from runs import halation

RECIPE = """
name = "tiny"
[image]
backbone = "small_conv"
dim = 16
size = 16
[text]
dim = 8
min_count = 1
[model]
dim = 8
[loss.infonce]
weight = 1.0
[train]
epochs = 1
batch_size = 16
warmup = 1
"""


@pytest.fixture(scope="session")
def sound_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_flickr8k(tmp_path_factory.mktemp("sound") / "photos")


@pytest.fixture
def data(sound_data: Path, tmp_path: Path) -> Path:
    """A folder one may break."""
    return Path(shutil.copytree(sound_data, tmp_path / "photos"))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path / "tiny.toml"


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return write_hub(tmp_path_factory.mktemp("hub"), "resnet")


@pytest.fixture(scope="session")
def finished(sound_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that went well."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    assert halation("train", folder / "tiny.toml", "--data", sound_data, "--out", folder / "run") == 0
    return folder / "run"


def interrupt(recipe: Path, data: Path, run: Path, *settings: str) -> None:
    """Leave a run in its second epoch of two."""

    def stop(what: str, done: int, total: int) -> None:
        if what.startswith("epoch 2/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(read_recipe(recipe, ["train.epochs=2", *settings]), data, run, progress=stop)
    assert (run / "checkpoint.safetensors").exists()


def one_line(captured: pytest.CaptureFixture[str]) -> str:
    """What a mistake printed: a single line, no traceback."""
    message = captured.readouterr().err.strip()
    assert message.startswith("halation: ") and len(message.splitlines()) == 1, message
    return message


class TestTraining:
    def test_a_run_is_trained_and_measured(
        self, data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run, report = tmp_path / "run", tmp_path / "report.json"
        settings = ("--set", "train.epochs=2", "--set", "loss.daa.weight=1")
        assert halation("train", recipe, "--data", data, "--out", run, *settings) == 0
        printed = capsys.readouterr().out
        assert "8 images, 40 captions to train on; 4 to validate" in printed
        assert "epoch   2  loss" in printed and f"next: halation evaluate {run}" in printed
        assert halation("evaluate", run, "--data", data, "--split", "test", "--out", report, "--resamples", 20) == 0
        assert "4 images × 20 captions" in capsys.readouterr().out
        assert len(json.loads(report.read_text())["per_query"]["t2i"]["R@1"]) == 20

    def test_the_config_of_a_run_is_a_recipe(self, finished: Path, sound_data: Path, tmp_path: Path) -> None:
        assert halation("train", finished / "config.toml", "--data", sound_data, "--out", tmp_path / "again") == 0
        weights = (path / "model.safetensors" for path in (finished, tmp_path / "again"))
        assert len({path.read_bytes() for path in weights}) == 1

    def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(
        self, data: Path, recipe: Path, tmp_path: Path
    ) -> None:
        interrupt(recipe, data, tmp_path / "two")
        settings = ("--set", "train.epochs=2")
        assert halation("train", recipe, "--data", data, "--out", tmp_path / "one", *settings) == 0
        assert halation("train", "--resume", tmp_path / "two") == 0
        assert len({(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")}) == 1
        assert Run(tmp_path / "two").history() == Run(tmp_path / "one").history()

    def test_the_line_an_interrupted_run_prints_works_when_pasted(
        self, data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = tmp_path / "my run"
        update = Learner.update

        def stop_in_the_second_epoch(learner: Learner) -> float:
            if Run(run).has_weights():
                raise KeyboardInterrupt
            return update(learner)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Learner, "update", stop_in_the_second_epoch)
            settings = ("--set", "train.epochs=3")
            assert halation("train", recipe, "--data", data, "--out", run, *settings) == 130
        line = capsys.readouterr().err.strip().splitlines()[-1]
        assert line == f"interrupted; to continue: halation train --resume '{run}'"
        assert halation(*shlex.split(line.split("halation ", 1)[1])) == 0
        assert Run(run).about()["state"] == "finished"

    def test_a_finished_run_says_so_and_continues_on_request(
        self, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = Path(shutil.copytree(finished, tmp_path / "run"))
        epochs = Run(run).about()["epochs"]
        capsys.readouterr()
        assert halation("train", "--resume", run) == 0
        output = capsys.readouterr().out
        assert f"{run} is finished: {epochs} epochs" in output and "Nothing is left to do." in output
        more = next(line for line in output.splitlines() if line.startswith("more epochs: halation "))
        assert halation(*shlex.split(more.split("halation ", 1)[1])) == 0
        assert Run(run).about()["epochs"] == 2 * epochs
        assert halation("train", "--resume", run, "--set", "train.lr=0.1") == 2
        assert "was begun with another train.lr; only train.epochs can change in a run" in one_line(capsys)

    def test_a_run_is_not_written_over(
        self, finished: Path, data: Path, recipe: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
        assert halation("train", recipe, "--data", data, "--out", finished) == 2
        message = one_line(capsys)
        assert "holds a run already; name another folder, or continue this run (--resume RUN)" in message
        assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


class TestEvaluating:
    """Whatever gives the scores, the same data is measured."""

    def measured(self, *arguments: object, out: Path) -> tuple[str, int, int]:
        assert halation("evaluate", *arguments, "--metric", "R@1", "--resamples", 0, "--out", out) == 0
        report = json.loads(out.read_text(encoding="utf-8"))
        per_query = report["per_query"]
        return report["about"]["fingerprint"], len(per_query["i2t"]["R@1"]), len(per_query["t2i"]["R@1"])

    @pytest.mark.parametrize("file", ["", "captions.jsonl"])
    @pytest.mark.parametrize("split", [(), ("--split", "train"), ("--split", "dev")])
    def test_lines_with_a_split(self, finished: Path, tmp_path: Path, split: tuple[str, ...], file: str) -> None:
        data, part_of = tmp_path / "data", ["train"] * 5 + ["val"] * 4 + ["test"] * 3
        rows = [
            {"image": draw(data / "images" / f"{k}.png", k).name, "captions": captions_of(k, 2), "split": part}
            for k, part in enumerate(part_of)
        ]
        (data / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        n = {(): 3, ("--split", "train"): 5, ("--split", "dev"): 4}[split]
        np.save(tmp_path / "scores.npy", np.random.default_rng(0).normal(size=(n, 2 * n)))
        by_run = self.measured(finished, "--data", data / file, *split, out=tmp_path / "run.json")
        by_scores = self.measured(tmp_path / "scores.npy", "--data", data / file, *split, out=tmp_path / "scores.json")
        assert by_run == by_scores and by_run[1:] == (n, 2 * n)

    def test_drawn_scenes(self, finished: Path, tmp_path: Path) -> None:
        world = draw_scenes(tmp_path / "world", train=6, dev=2, test=4, size=24)
        np.save(tmp_path / "scores.npy", np.random.default_rng(0).normal(size=(4, 20)))
        by_run = self.measured(finished, "--data", world, out=tmp_path / "run.json")
        by_scores = self.measured(tmp_path / "scores.npy", "--data", world, out=tmp_path / "scores.json")
        assert by_run == by_scores and by_run[1:] == (4, 20)


class TestScenes:
    def test_a_world_is_drawn_checked_and_trained_on(
        self, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        world = tmp_path / "world"
        assert halation("data", "scenes", world, "--train", 20, "--dev", 6, "--test", 6) == 0
        assert f"drew 32 pictures into {world}\nnext: halation data check {world}" in capsys.readouterr().out
        assert halation("data", "check", world) == 0
        printed = capsys.readouterr().out
        assert "20 images       100 captions (5 each)  20 pictures" in printed and "nothing to mend" in printed
        assert halation("train", recipe, "--data", world, "--out", tmp_path / "run") == 0

    def test_a_world_is_not_drawn_over_something_else(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert halation("data", "scenes", data, "--train", 5, "--dev", 5, "--test", 5) == 2
        assert str(data) in one_line(capsys)
        assert not (data / "scenes.json").exists()

    def test_a_world_without_pictures_is_refused(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert halation("data", "scenes", tmp_path / "world", "--train", 0) == 2
        one_line(capsys)
        assert not (tmp_path / "world").exists()


class TestCheck:
    def test_sound_data(self, sound_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert halation("data", "check", sound_data) == 0
        printed = capsys.readouterr().out
        assert f"{sound_data}: flickr8k" in printed and "8 images        40 captions (5 each)  8 pictures" in printed

    def test_all_problems_are_reported_at_once(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cut(data / "images" / "p0.jpg")
        (data / "images" / "p9.jpg").unlink()
        (data / "Flickr_8k.testImages.txt").write_text("p14.jpg\np0.jpg\n")
        assert halation("data", "check", data) == 1
        printed = capsys.readouterr().out
        for complaint in (
            "train: 1 pictures cannot be read; the first:",
            "dev: 1 of 4 pictures are missing (p9.jpg); put them into",
            "1 pictures are in more than one split (p0.jpg (train) and p0.jpg (test))",
        ):
            assert complaint in printed, printed

    def test_features_that_do_not_fit(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        features_with_too_few_names(data)
        assert halation("data", "check", data) == 1
        assert "16 rows of features but 15 names in images.txt" in capsys.readouterr().out

    def test_a_folder_of_nothing_known(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert halation("data", "check", tmp_path) == 1
        assert "is not recognised (it holds nothing); halation knows" in capsys.readouterr().out


class TestFeatures:
    def test_they_are_computed_and_trained_on(
        self, data: Path, hub: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert halation("features", data, "--backbone", hub / "resnet", "--batch-size", 5) == 0
        printed = capsys.readouterr()
        assert "16 images, pooled 12, 16 cells of 12" in printed.out and not printed.err
        assert halation("data", "check", data) == 0
        assert "features features/resnet: 16 rows, pooled 12, 16 cells of 12; rows match" in capsys.readouterr().out
        use = ("--set", "image.backbone=precomputed", "--set", "data.features=features/resnet")
        assert halation("train", recipe, "--data", data, "--out", tmp_path / "run", *use) == 0
        assert halation("evaluate", tmp_path / "run", "--data", data, "--metric", "R@1", "--resamples", 0) == 0

    def test_pictures_that_are_added_are_computed_alone(
        self, data: Path, hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert halation("features", data, "--backbone", hub / "resnet", "--cells", 3) == 0
        (before,) = (data / "features" / "resnet").glob("data-*/projection.safetensors")
        projection = before.read_bytes()
        draw(data / "images" / "new.jpg", 77)
        with (data / "Flickr8k.token.txt").open("a", encoding="utf-8") as file:
            file.write("new.jpg#0\tone more .\n")
        assert halation("features", data, "--backbone", hub / "resnet", "--cells", 3) == 0
        assert "17 images" in capsys.readouterr().out
        (after,) = (data / "features" / "resnet").glob("data-*/projection.safetensors")
        assert after.read_bytes() == projection
        other = write_flickr8k(tmp_path / "other", {"train": 4, "test": 2})
        assert halation("features", other, "--backbone", hub / "resnet", "--projection", after) == 0
        first, second = (open_features(folder / "features" / "resnet").origin for folder in (data, other))
        assert first == second

    def test_a_broken_picture_is_listed_and_skipped(
        self, data: Path, hub: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        cut(data / "images" / "p3.jpg")
        assert halation("features", data, "--backbone", hub / "resnet", "--out", tmp_path / "seen") == 0
        printed = capsys.readouterr()
        assert "15 images" in printed.out and printed.err.strip() == "could not be read: p3.jpg"
        assert "not a readable picture" in next((tmp_path / "seen").glob("data-*/corrupt.txt")).read_text()
        use = ("--set", "image.backbone=precomputed", "--set", f"data.features={tmp_path / 'seen'}")
        assert halation("train", recipe, "--data", data, "--out", tmp_path / "run", *use) == 0
        assert "7 images, 35 captions to train on" in capsys.readouterr().out

    def test_cut_short_they_go_on_and_what_is_done_stays(
        self, data: Path, hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from halation.encoders import HubImage

        looked, real = [], HubImage.forward

        def forward(self: HubImage, images):  # type: ignore[no-untyped-def]
            if len(looked) == 2:
                raise KeyboardInterrupt
            looked.append(len(images))
            return real(self, images)

        command = ("features", data, "--backbone", hub / "resnet", "--out", tmp_path / "seen", "--batch-size", 4)
        monkeypatch.setattr(HubImage, "forward", forward)
        assert halation(*command) == 130
        looked.clear()
        assert halation(*command) == 0
        assert looked == [4, 4]  # of four blocks, two were done
        assert halation(*command) == 0 and looked == [4, 4]
        whole = ("features", data, "--backbone", hub / "resnet", "--out", tmp_path / "whole")
        monkeypatch.undo()
        assert halation(*whole) == 0
        one, two = (np.load(next((tmp_path / name).glob("data-*/local.npy"))) for name in ("seen", "whole"))
        np.testing.assert_allclose(one, two, atol=2e-3)

    @pytest.mark.parametrize("backbone", ["efficientnet", "no/such/folder"])
    def test_an_unknown_backbone(
        self, backbone: str, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("transformers")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        assert halation("features", data, "--backbone", backbone) == 2
        assert backbone in one_line(capsys)
        assert not (data / "features").exists()

    def test_pictures_that_are_not_there(self, data: Path, hub: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (data / "images" / "p2.jpg").unlink()
        assert halation("features", data, "--backbone", hub / "resnet") == 2
        assert "images lacks 1 of the 8 pictures" in one_line(capsys)
        assert not (data / "features").exists()


def cut(picture: Path) -> None:
    """Half a file, as an interrupted download leaves it."""
    picture.write_bytes(picture.read_bytes()[: picture.stat().st_size // 2])


def write_features(data: Path, rows: int, names: list[str] | None) -> list[str]:
    folder = data / "features"
    folder.mkdir()
    np.save(folder / "toy.npy", np.ones((rows, 6), dtype=np.float16))
    if names is not None:
        (folder / "images.txt").write_text("\n".join(names), encoding="utf-8")
    return ["image.backbone=precomputed", "data.features=features"]


def missing_images(data: Path) -> list[str]:
    (data / "images" / "p1.jpg").unlink()
    return []


def no_images(data: Path) -> list[str]:
    shutil.rmtree(data / "images")
    return []


def truncated_to_train_on(data: Path) -> list[str]:
    cut(data / "images" / "p2.jpg")
    return ["train.batch_size=40"]  # every caption in the one batch


def truncated_to_validate_on(data: Path) -> list[str]:
    cut(data / "images" / "p9.jpg")
    return []


def wrong_encoding(data: Path) -> list[str]:
    text = (data / "Flickr8k.token.txt").read_text(encoding="utf-8").replace("a red", "a rosé", 1)
    (data / "Flickr8k.token.txt").write_bytes(text.encode("latin-1"))
    return []


def empty_split(data: Path) -> list[str]:
    (data / "Flickr_8k.devImages.txt").write_text("\n")
    return []


def no_split(data: Path) -> list[str]:
    (data / "Flickr_8k.devImages.txt").unlink()
    return []


def listed_twice(data: Path) -> list[str]:
    (data / "Flickr_8k.trainImages.txt").write_text("p0.jpg\np1.jpg\np0.jpg\n")
    return []


def features_of_other_images(data: Path) -> list[str]:
    return write_features(data, 15, [f"p{k}.jpg" for k in range(16) if k != 5])


def features_with_too_few_names(data: Path) -> list[str]:
    return write_features(data, 16, [f"p{k}.jpg" for k in range(15)])


def features_without_names(data: Path) -> list[str]:
    return write_features(data, 16, None)


def no_features(data: Path) -> list[str]:
    return ["image.backbone=precomputed", "data.features=features/efflite0"]


def more_than_a_batch(data: Path) -> list[str]:
    return ["train.batch_size=128"]


BAD: dict[Callable[[Path], list[str]], str] = {
    missing_images: "{data}/images lacks 1 of the 8 pictures of flickr8k-train (p1.jpg)",
    no_images: "flickr8k-train has no pictures, and this backbone needs them; unpack them",
    truncated_to_train_on: "{data}/images/p2.jpg is not a readable picture (",
    truncated_to_validate_on: "{data}/images/p9.jpg is not a readable picture (",
    wrong_encoding: "{data}/Flickr8k.token.txt line 1: not UTF-8 (byte 0xe9); convert the file",
    empty_split: "{data}/Flickr_8k.devImages.txt lists no image",
    no_split: "{data} (flickr8k) has no split 'dev'; it has train, test, all",
    listed_twice: "{data}/Flickr_8k.trainImages.txt line 3: the image id 'p0.jpg' was used already",
    features_of_other_images: "{data}/features has no row for 1 of the 8 images of flickr8k-train (p5.jpg)",
    features_with_too_few_names: "{data}/features: 16 rows of features but 15 names in images.txt",
    features_without_names: "{data}/features has 16 rows for the 8 images of flickr8k-train, and no images.txt",
    no_features: "features/efflite0 does not exist; name a folder, .npy or HDF5 file of features",
    more_than_a_batch: "batch_size is 128 but flickr8k-train has 40 captions; take a smaller one",
}


@pytest.mark.parametrize("breakage", BAD, ids=lambda breakage: breakage.__name__)
def test_data_that_cannot_be_trained_on_is_one_clear_line_and_blocks_no_second_try(
    breakage: Callable[[Path], list[str]],
    data: Path,
    sound_data: Path,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = [part for setting in breakage(data) for part in ("--set", setting)]
    assert halation("train", recipe, "--data", data, "--out", tmp_path / "run", *settings) == 2
    assert BAD[breakage].format(data=data) in one_line(capsys)
    assert not (tmp_path / "run").exists()
    assert halation("train", recipe, "--data", sound_data, "--out", tmp_path / "run") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch_pcme"], "unknown recipe 'nosuch_pcme'; did you mean 'scenes_pcme'?"),
        (["nosuch/recipe.toml"], "nosuch/recipe.toml does not exist"),
        (["RECIPE", "--set", "train.epoch=3"], "there is no train.epoch; did you mean train.epochs?"),
        (["RECIPE", "--set", "train.epochs"], "the setting 'train.epochs' is not of the form section.key=value"),
        (["RECIPE", "--set", "model.head=pmce"], "unknown model.head 'pmce'; did you mean 'pcme'?"),
        (["RECIPE", "--set", "loss.daa.relevance=cidr", "--set", "loss.daa.weight=1"], "did you mean 'cider'?"),
        (["RECIPE", "--set", "model.dropout=1.5"], "model.dropout is 1.5; it must be 0 or more and below 1"),
        (["RECIPE", "--set", "loss.infonce.weight=0"], "the recipe has no loss; give one of infonce, "),
        (["RECIPE", "--data", "no/data"], "no/data does not exist; name the folder or file that holds the dataset"),
    ],
)
def test_a_wrong_command_is_one_clear_line_and_no_folder(
    arguments: list[str],
    message: str,
    sound_data: Path,
    recipe: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    typed = [str(recipe) if argument == "RECIPE" else argument for argument in arguments]
    assert halation("train", "--data", sound_data, "--out", tmp_path / "run", *typed) == 2
    assert message in one_line(capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume", "no/run"], "no/run holds no run to resume; begin a new run"),
        ([], "to begin a run: halation train RECIPE --data FOLDER --out RUN; to continue one"),
        (["RECIPE"], "to begin a run: halation train RECIPE --data FOLDER --out RUN"),
        (["RECIPE", "--resume", "no/run"], "to continue one: halation train --resume RUN"),
    ],
)
def test_missing_arguments_of_train_are_named_in_one_line(
    arguments: list[str], message: str, recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halation("train", *(str(recipe) if part == "RECIPE" else part for part in arguments)) == 2
    assert message in one_line(capsys)


def test_a_run_is_not_written_over_a_file(
    sound_data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").write_text("mine")
    assert halation("train", recipe, "--data", sound_data, "--out", tmp_path / "run") == 2
    assert str(tmp_path / "run") in one_line(capsys)
    assert (tmp_path / "run").read_text() == "mine"


class TestRunsThatAreNotWhatTheySay:
    @pytest.fixture
    def run(self, finished: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(finished, tmp_path / "run"))

    def test_weights_of_another_model(
        self, run: Path, data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = tmp_path / "other"
        assert halation("train", recipe, "--data", data, "--out", other, "--set", "model.dim=4") == 0
        shutil.copy(other / "model.safetensors", run)
        capsys.readouterr()
        assert halation("evaluate", run, "--data", data, "--out", tmp_path / "report.json") == 2
        message = one_line(capsys)
        assert "model.safetensors is of another model: 4 tensors differ from those that config.toml" in message
        assert not (tmp_path / "report.json").exists()

    def test_a_checkpoint_of_another_model(
        self, data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run, other = tmp_path / "run", tmp_path / "other"
        interrupt(recipe, data, run)
        interrupt(recipe, data, other, "model.dim=4")
        shutil.copy(other / "checkpoint.safetensors", run)
        capsys.readouterr()
        files = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file() and path.name != "run.json"}
        assert halation("train", "--resume", run) == 2
        assert "checkpoint.safetensors: the checkpoint is of another model or other settings" in one_line(capsys)
        assert files == {name: (run / name).read_bytes() for name in files}

    def test_half_a_file_of_weights(self, run: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        cut(run / "model.safetensors")
        assert halation("evaluate", run, "--data", data) == 2
        assert "model.safetensors" in one_line(capsys)

    @pytest.mark.parametrize("name", ["model.safetensors", "config.toml", "vocabulary.json"])
    def test_a_run_that_lacks_a_file(
        self, name: str, run: Path, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (run / name).unlink()
        assert halation("evaluate", run, "--data", data) == 2
        assert name in one_line(capsys)

    def test_a_split_that_is_not_there(self, run: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert halation("evaluate", run, "--data", data, "--split", "tset") == 2
        assert "has no split 'tset'; it has train, dev, test, all" in one_line(capsys)

    def test_pictures_that_are_mended_later(
        self, data: Path, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A picture that only the test split has does not stop the training, but the measuring."""
        cut(data / "images" / "p13.jpg")
        assert halation("train", recipe, "--data", data, "--out", tmp_path / "run") == 0
        capsys.readouterr()
        assert halation("evaluate", tmp_path / "run", "--data", data) == 2
        assert "p13.jpg is not a readable picture" in one_line(capsys)
        draw(data / "images" / "p13.jpg", 13)
        assert halation("evaluate", tmp_path / "run", "--data", data, "--metric", "R@1", "--resamples", 0) == 0


def test_recipes_are_listed_one_on_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert halation("recipes") == 0
    printed = capsys.readouterr()
    rows = printed.out.splitlines()
    assert sorted(row.split()[0] for row in rows) == [row.split()[0] for row in rows]
    assert all(len(row.split(maxsplit=1)[1]) > 20 for row in rows) and printed.err.startswith("\nnext: halation train")
    assert {"scenes_pcme", "flickr8k_pcme_daa"} <= {row.split()[0] for row in rows}


def test_an_unknown_recipe_gets_a_suggestion_and_not_a_wall_of_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert halation("train", "scenes_pmce", "--data", tmp_path, "--out", tmp_path / "run") == 2
    message = "unknown recipe 'scenes_pmce'; did you mean 'scenes_pcme'? `halation recipes` lists them"
    assert one_line(capsys) == f"halation: {message}"
