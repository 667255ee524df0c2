"""The drawn world: every caption is true of its picture, and known to be true or false of every other."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from halation import InputError
from halation.data import Object, Scene, draw_scene, draw_scenes, open_dataset, read_scenes, true_of, vagueness
from halation.data._scenes_words import TEMPLATES


def test_every_caption_is_true_of_its_own_image(scenes_folder: Path) -> None:
    for split, count in (("train", 200), ("dev", 60), ("test", 120)):
        world = read_scenes(scenes_folder, split)
        assert world.true.shape == (count, 5 * count)
        assert world.true[world.image_of, np.arange(5 * count)].all()


def test_truth_of_many_pairs_at_once_is_truth_of_each_pair(scenes_folder: Path) -> None:
    world = read_scenes(scenes_folder, "test")
    slow = [[true_of(predicate, scene) for predicate in world.predicates] for scene in world.scenes[:40]]
    assert np.array_equal(np.array(slow), world.true[:40])


def test_equal_captions_are_true_of_the_same_images(scenes_folder: Path) -> None:
    world = read_scenes(scenes_folder, "test")
    for text in set(world.captions):
        columns = [k for k, caption in enumerate(world.captions) if caption == text]
        assert (world.true[:, columns] == world.true[:, columns[:1]]).all()


def test_statements_mean_what_they_say() -> None:
    scene = Scene("pink", (Object("star", "red", "large", 0, 0), Object("star", "blue", "small", 2, 0)))
    true = [
        [{"some": {"shape": "star", "colour": "blue"}}],
        [{"pair": [{"shape": "star"}, {"shape": "star"}], "where": None}],
        [{"pair": [{"colour": "blue"}, {"colour": "red"}], "where": "below"}],
        [{"count": 2, "of": {"column": 0}}, {"background": "pink"}],
        [{"count": 0, "of": {"shape": "cross"}}],
    ]
    false = [
        [{"some": {"shape": "star", "colour": "blue", "size": "large"}}],  # blue is one, large the other
        [{"pair": [{"colour": "red"}, {"size": "large"}], "where": None}],  # the same star cannot be both
        [{"pair": [{"colour": "blue"}, {"colour": "red"}], "where": "left"}],  # in one column
        [{"count": 1, "of": {"shape": "star"}}],
        [{"some": {"colour": "red"}}, {"background": "white"}],
    ]
    assert all(true_of(predicate, scene) for predicate in true)
    assert not any(true_of(predicate, scene) for predicate in false)


def test_the_same_seed_draws_the_same_bytes(scenes_folder: Path, tmp_path: Path) -> None:
    def digest(folder: Path) -> str:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()

    arguments = {"train": 20, "dev": 5, "test": 5, "size": 32}
    first = digest(draw_scenes(tmp_path / "a", **arguments, seed=9))
    assert first == digest(draw_scenes(tmp_path / "b", **arguments, seed=9))
    assert first != digest(draw_scenes(tmp_path / "c", **arguments, seed=10))


def test_no_scene_is_drawn_twice(scenes_folder: Path) -> None:
    scenes = [scene.essence for split in ("train", "dev", "test") for scene in read_scenes(scenes_folder, split).scenes]
    assert len(set(scenes)) == len(scenes) == 380


def test_training_never_sees_the_forms_held_out_but_all_their_words(scenes_folder: Path) -> None:
    train, test = read_scenes(scenes_folder, "train"), read_scenes(scenes_folder, "test")
    held_out = {form.name for form in TEMPLATES if form.held_out}
    assert not train.held_out.any() and not held_out & set(train.templates)
    assert 0.3 < test.held_out.mean() < 0.5
    assert [name in held_out for name in test.templates] == test.held_out.tolist()
    words = {word for caption in train.captions for word in caption.split()}
    assert {word for caption in test.captions for word in caption.split()} <= words


def test_vague_captions_are_true_of_more_images_than_precise_ones(scenes_folder: Path) -> None:
    world = read_scenes(scenes_folder, "test")
    level = {form.name: form.level for form in TEMPLATES}
    levels = np.array([level[name] for name in world.templates])
    spread = vagueness(world.truth())
    assert np.array_equal(spread, world.true.sum(axis=0))
    for form in (world.held_out, ~world.held_out):
        precise, middling, vague = (
            np.median(spread[form & (levels == name)]) for name in ("precise", "middling", "vague")
        )
        assert precise * 4 < middling < vague / 2


def test_open_dataset_knows_all_that_is_true_but_trains_on_what_was_annotated(scenes_folder: Path) -> None:
    test, train = open_dataset(scenes_folder, "test"), open_dataset(scenes_folder, "train")
    world = read_scenes(scenes_folder, "test")
    assert test.truth.kind == "pairs" and np.array_equal(test.truth.positives("i2t"), world.true)
    assert np.array_equal(test.truth.positives("t2i"), world.true.T)
    assert test.image_of.tolist() == np.repeat(np.arange(120), 5).tolist()
    assert train.truth.kind == "captions" and train.truth.n_positives("i2t").tolist() == [5] * 200
    assert test.photos is not None and test.photos[0].size == (32, 32)


def test_the_picture_shows_the_scene() -> None:
    scene = Scene("black", (Object("square", "red", "large", 0, 0), Object("circle", "yellow", "small", 2, 1)))
    image = draw_scene(scene, 63)
    assert image.getpixel((10, 10)) == (222, 38, 42) and image.getpixel((31, 52)) == (250, 215, 40)
    assert image.getpixel((52, 31)) == (18, 18, 20) == image.getpixel((31, 31))


def test_finished_scenes_are_left_alone_and_other_folders_too(scenes_folder: Path, tmp_path: Path) -> None:
    before = (scenes_folder / "scenes.json").stat().st_mtime_ns
    draw_scenes(scenes_folder, train=200, dev=60, test=120, size=32, seed=3)
    assert (scenes_folder / "scenes.json").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="other arguments"):
        draw_scenes(scenes_folder, seed=4)
    (tmp_path / "thesis.txt").write_text("all of it")
    with pytest.raises(InputError, match=r"holds other files \(thesis\.txt\)"):
        draw_scenes(tmp_path)
    with pytest.raises(InputError, match="16 or more"):
        draw_scenes(tmp_path / "new", size=4)


def test_half_drawn_scenes_are_drawn_again(tmp_path: Path) -> None:
    arguments = {"train": 6, "dev": 2, "test": 2, "size": 32}

    def stop(what: str, done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        draw_scenes(tmp_path / "s", **arguments, progress=stop)
    with pytest.raises(InputError, match="not recognised"):
        open_dataset(tmp_path / "s", "train")
    draw_scenes(tmp_path / "s", **arguments)
    assert len(open_dataset(tmp_path / "s", "test")) == 2


def test_a_damaged_file_of_scenes_is_refused_with_its_line(tmp_path: Path) -> None:
    root = draw_scenes(tmp_path / "s", train=3, dev=1, test=1, size=32)
    path = root / "train_scenes.jsonl"
    lines = path.read_text().splitlines()
    row = json.loads(lines[1])
    for change in ({"background": "plaid"}, {"objects": []}, {"captions": [{"text": "a"}]}, {"objects": [{"x": 1}]}):
        path.write_text("\n".join([lines[0], json.dumps(row | change), lines[2]]))
        with pytest.raises(InputError, match=r"train_scenes\.jsonl line 2: .*draw the scenes anew"):
            read_scenes(root, "train")
