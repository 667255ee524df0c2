"""Features computed once: complete or resumable, whatever happens in between."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from halation import InputError
from halation._storage import exclusive
from halation.data import Photos, cache_features, check, open_dataset, open_features
from halation.data._feature_journal import FeatureJournal
from killed import Killed, cut_short
from layouts import draw as draw_picture
from tiny_backbones import Patches


@pytest.mark.parametrize("local", [True, False])
def test_what_is_kept_is_what_the_backbone_saw(scenes_folder: Path, tmp_path: Path, local: bool) -> None:
    data, backbone = open_dataset(scenes_folder, "dev"), Patches(local=local)
    store = cache_features(data, backbone, tmp_path / "f", batch_size=7)
    assert backbone.training and data.photos is not None
    backbone.eval()
    with torch.no_grad():
        seen = backbone(torch.stack([backbone.preprocess(data.photos[k]) for k in range(60)]))
    assert torch.equal(store.rows(np.arange(60)).pooled, seen.pooled.half().float())
    assert (store.local_dim, store.cells) == ((3, 4) if local else (0, 0))
    (files,) = (tmp_path / "f").glob("data-*")
    assert {path.name for path in (tmp_path / "f").iterdir()} == {"meta.json", files.name}
    assert sorted(path.name for path in files.iterdir()) == sorted(
        ["corrupt.txt", "images.txt", "pooled.npy", *(["local.npy"] if local else [])]
    )
    again = open_dataset(scenes_folder, "dev", features=tmp_path / "f")
    assert again.features is not None and torch.equal(again.features.rows([3]).pooled, store.rows([3]).pooled)


def test_a_folder_is_seen_once_for_all_its_splits(flickr8k: Path) -> None:
    backbone = Patches()
    assert len(cache_features(flickr8k, backbone, flickr8k / "features" / "patches")) == 8 == backbone.seen
    for split, count in (("train", 4), ("dev", 2), ("all", 8)):
        data = open_dataset(flickr8k, split, features="features/patches")
        assert data.features is not None and len(data.features) == count
    assert check(flickr8k).ok
    assert len(cache_features(flickr8k / "images", Patches(), flickr8k / "bare")) == 8  # no dataset: every picture
    cache_features(flickr8k, backbone, flickr8k / "features" / "patches")
    assert backbone.seen == 8  # finished: nothing to do


def test_broken_pictures_are_listed_and_left_out(flickr8k: Path) -> None:
    for k in (1, 6):
        (flickr8k / "images" / f"p{k}.jpg").write_bytes(b"broken")
    store = cache_features(flickr8k, Patches(), flickr8k / "f", batch_size=2)
    assert store.corrupt == ("p1.jpg", "p6.jpg") and len(store) == 6
    assert "is not a readable picture" in next((flickr8k / "f").glob("data-*/corrupt.txt")).read_text()
    train = open_dataset(flickr8k, "train", features="f")
    assert train.truth.image_ids == ("p0.jpg", "p2.jpg", "p3.jpg") and train.n_captions == 15
    assert "1 images that could not be read" in train.truth.notes[0]
    assert train.features is not None and train.features.names == ("p0.jpg", "p2.jpg", "p3.jpg")
    for k in range(8):
        (flickr8k / "images" / f"p{k}.jpg").write_bytes(b"broken")
    with pytest.raises(InputError, match="not one of 8 pictures could be read"):
        cache_features(flickr8k, Patches(), flickr8k / "g", batch_size=3)


@pytest.mark.parametrize("broken", [False, True])
def test_cut_short_anywhere_the_same_call_does_the_rest(
    flickr8k: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    """Stopped before each single step to the disk in turn, with and without a picture that cannot be read."""
    if broken:
        (flickr8k / "images" / "p3.jpg").write_bytes(b"broken")
    whole = cache_features(flickr8k, Patches(), flickr8k / "whole", batch_size=3)
    for cut in range(80):
        out, finished = flickr8k / f"cut{cut}", True
        with monkeypatch.context() as context:
            cut_short(context, after=cut)
            try:
                cache_features(flickr8k, Patches(), out, batch_size=3)
            except Killed:
                finished = False
        published = (out / "meta.json").is_file()
        assert published or not finished
        if not published:
            with pytest.raises(InputError, match=r"not finished|does not exist|holds no \.npy"):
                open_features(out)
        done = 8 - broken if published else len(journalled(out))
        backbone = Patches()
        store = cache_features(flickr8k, backbone, out, batch_size=5)
        assert backbone.seen == 8 - broken - done
        assert {path.name for path in out.iterdir() if path.name[0] != "."} == {"meta.json", *data_folders(out)}
        assert store.names == whole.names
        every = np.arange(len(whole))
        assert torch.equal(store.rows(every).pooled, whole.rows(every).pooled)
        assert torch.equal(store.rows(every).local, whole.rows(every).local)  # type: ignore[arg-type]
        if finished:
            break
    assert finished and cut > 20


def journalled(out: Path) -> list[str]:
    """The pictures whose rows are on the disk but not published."""
    path = out / "partial" / "journal.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.is_file() else []
    return [name for line in lines for name, _ in json.loads(line)["pictures"]]


def data_folders(out: Path) -> list[str]:
    (folder,) = (path.name for path in out.glob("data-*"))
    return [folder]


SLOW = """
import sys, time, torch
sys.path.insert(0, sys.argv[3])
from tiny_backbones import Patches
from halation.data import cache_features
class Slow(Patches):
    def forward(self, images):
        time.sleep(0.02)
        with open(sys.argv[2] + ".log", "a") as log:
            log.write(f"{len(images)}\\n")
        return super().forward(images)
Slow.__name__ = "Patches"
cache_features(sys.argv[1], Slow(), sys.argv[2], batch_size=4)
"""


def test_kill_nine_at_any_moment_loses_nothing_that_was_marked(
    scenes_folder: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    out, source = tmp_path / "f", scenes_folder / "images"
    command = [sys.executable, "-c", SLOW, str(source), str(out), str(Path(__file__).parents[1])]
    for _ in range(2):
        process = subprocess.Popen(command, start_new_session=True)
        deadline, before = time.monotonic() + 60, len(journalled(out))
        while process.poll() is None and time.monotonic() < deadline:
            if len(journalled(out)) > before + 20:
                break
            time.sleep(0.005)
        time.sleep(float(rng.uniform(0, 0.05)))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    done = len(journalled(out))
    assert done > 40
    backbone = Patches()
    store = cache_features(source, backbone, out)
    assert backbone.seen == 380 - done
    whole = cache_features(source, Patches(), tmp_path / "whole")
    assert torch.equal(store.rows(np.arange(380)).pooled, whole.rows(np.arange(380)).pooled)


def test_another_backbone_or_other_pictures_do_not_go_on_with_these(flickr8k: Path) -> None:
    out = flickr8k / "f"
    cache_features(flickr8k, Patches(), out)
    with pytest.raises(InputError, match="holds other features: they were computed by another backbone"):
        cache_features(flickr8k, Patches(seed=1), out)
    with pytest.raises(InputError, match="features of other pictures"):
        cache_features(Photos([draw_picture(flickr8k / "elsewhere" / "cat.jpg", 5)]), Patches(), out)
    with pytest.raises(InputError, match=r"holds other files"):
        cache_features(flickr8k, Patches(), flickr8k)


def test_a_full_disk_is_reported_and_nothing_is_lost(flickr8k: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, append = flickr8k / "f", FeatureJournal._append

    def full(self: FeatureJournal, kind: str, values: object) -> None:
        if len(journalled(out)) >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, kind, values)

    monkeypatch.setattr(FeatureJournal, "_append", full)
    with pytest.raises(InputError, match="disk is full; make room"):
        cache_features(flickr8k, Patches(), out, batch_size=2)
    monkeypatch.undo()
    backbone = Patches()
    assert len(cache_features(flickr8k, backbone, out)) == 8 and backbone.seen == 4


def test_features_too_large_for_half_precision_are_refused(flickr8k: Path) -> None:
    backbone = Patches()
    with torch.no_grad():
        backbone.linear.weight.fill_(1e6)
    with pytest.raises(InputError, match="not finite in float16"):
        cache_features(flickr8k, backbone, flickr8k / "f")


def test_progress_says_how_far_it_is(flickr8k: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    cache_features(flickr8k, Patches(), flickr8k / "f", batch_size=3, progress=lambda *now: reports.append(now))
    assert reports == [("features", done, 8) for done in (0, 3, 6, 8)]
    meta = json.loads((flickr8k / "f" / "meta.json").read_text())
    assert meta["complete"] and meta["backbone"] == "Patches" and meta["shapes"] == {"pooled": [5], "local": [4, 3]}


def grow(root: Path, *numbers: int) -> None:
    """More pictures to train on."""
    for k in numbers:
        draw_picture(root / "images" / f"p{k}.jpg", k)
    with (root / "Flickr8k.token.txt").open("a", encoding="utf-8") as file:
        file.write("".join(f"\np{k}.jpg#0\tcaption of picture {k} ." for k in numbers))
    with (root / "Flickr_8k.trainImages.txt").open("a", encoding="utf-8") as file:
        file.write("".join(f"\np{k}.jpg" for k in numbers))


@pytest.mark.parametrize("batch_size", [1, 64])
def test_pictures_that_are_added_are_looked_at_and_the_others_are_not(flickr8k: Path, batch_size: int) -> None:
    before = cache_features(flickr8k, Patches(), flickr8k / "f")
    grow(flickr8k, 20, 21, 22)
    backbone = Patches()
    cache_features(flickr8k, backbone, flickr8k / "f", batch_size=batch_size)
    assert backbone.seen == 3
    whole = cache_features(flickr8k, Patches(), flickr8k / "whole")
    grown = open_dataset(flickr8k, "train", features="f").features
    fresh = open_dataset(flickr8k, "train", features="whole").features
    assert grown is not None and fresh is not None and grown.names == fresh.names and len(grown) == 7
    assert torch.equal(grown.rows(np.arange(7)).pooled, fresh.rows(np.arange(7)).pooled)
    assert torch.equal(grown.rows(np.arange(7)).local, fresh.rows(np.arange(7)).local)  # type: ignore[arg-type]
    assert grown.origin == fresh.origin == whole.origin
    assert torch.equal(before.rows([0]).pooled, grown.rows([0]).pooled)  # what was open still is
    cache_features(flickr8k, backbone, flickr8k / "f")
    assert backbone.seen == 3 and check(flickr8k).ok


def test_pictures_that_are_removed_or_reordered_cost_nothing(flickr8k: Path) -> None:
    every = sorted((flickr8k / "images").glob("*.jpg"))
    cache_features(Photos(every), Patches(), flickr8k / "f")
    backbone = Patches()
    store = cache_features(Photos([every[5], every[2], every[7]]), backbone, flickr8k / "f")
    assert store.names == ("p5.jpg", "p2.jpg", "p7.jpg") and backbone.seen == 0
    alone = cache_features(Photos([every[5], every[2], every[7]]), Patches(), flickr8k / "alone")
    assert torch.equal(store.rows([0, 1, 2]).pooled, alone.rows([0, 1, 2]).pooled)


def test_a_picture_that_has_changed_is_looked_at_again(flickr8k: Path) -> None:
    (flickr8k / "images" / "p2.jpg").write_bytes(b"broken")
    before = cache_features(flickr8k, Patches(), flickr8k / "f")
    draw_picture(flickr8k / "images" / "p2.jpg", 50)  # mended
    Image.new("RGB", (90, 50), (1, 2, 3)).save(flickr8k / "images" / "p4.jpg")
    backbone = Patches()
    store = cache_features(flickr8k, backbone, flickr8k / "f")
    assert backbone.seen == 2 and before.corrupt == ("p2.jpg",) and store.corrupt == ()
    fresh = cache_features(flickr8k, Patches(), flickr8k / "fresh")
    assert store.names == fresh.names and torch.equal(store.rows([2, 4]).pooled, fresh.rows([2, 4]).pooled)


def test_growing_that_was_cut_short_anywhere_goes_on_with_any_pictures(
    flickr8k: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_features(flickr8k, Patches(), flickr8k / "first")
    grow(flickr8k, 20, 21, 22)
    after = Path(shutil.copytree(flickr8k, flickr8k.parent / "after"))
    grow(after, 23)
    whole = cache_features(after, Patches(), after / "whole")
    for cut in range(80):
        out = Path(shutil.copytree(flickr8k / "first", flickr8k.parent / f"cut{cut}"))
        finished = True
        with monkeypatch.context() as context:
            cut_short(context, after=cut)
            try:
                cache_features(flickr8k, Patches(), out, batch_size=2)
            except Killed:
                finished = False
        assert len(open_features(out)) in (8, 11)  # whole at any moment
        store = cache_features(after, Patches(), out)  # a picture more than when it was begun
        assert store.names == whole.names
        assert torch.equal(store.rows(np.arange(12)).pooled, whole.rows(np.arange(12)).pooled)
        if finished:
            break
    assert finished and cut > 20


def test_features_of_the_first_version_open_and_grow(flickr8k: Path) -> None:
    """Version 0.1 kept the arrays beside meta.json, and no sizes."""
    out = flickr8k / "f"
    cache_features(flickr8k, Patches(), out)
    (data,) = out.glob("data-*")
    for path in data.iterdir():
        path.rename(out / path.name)
    data.rmdir()
    (out / "images.txt").write_text("".join(f"p{k}.jpg\n" for k in range(8)))
    meta = json.loads((out / "meta.json").read_text())
    old = {"backbone": "Patches", "weights": meta["weights"], "images": 8, "source": "ab", "dtype": "float16"}
    (out / "meta.json").write_text(json.dumps({**old, "shapes": meta["shapes"], "block": 64, "complete": True}))
    assert len(open_features(out)) == 8
    backbone = Patches()
    cache_features(flickr8k, backbone, out)
    assert backbone.seen == 0
    grow(flickr8k, 20)
    assert len(cache_features(flickr8k, backbone, out)) == 9 and backbone.seen == 1
    assert not (out / "pooled.npy").exists()
    (out / "meta.json").write_text(json.dumps({**old, "complete": False}))
    with pytest.raises(InputError, match="was begun by an older version; delete it"):
        cache_features(flickr8k, Patches(), out)


def test_two_processes_do_not_fill_one_folder(flickr8k: Path) -> None:
    (flickr8k / "f" / "partial").mkdir(parents=True)
    with exclusive(flickr8k / "f" / "partial"), pytest.raises(InputError, match="is being filled by another process"):
        cache_features(flickr8k, Patches(), flickr8k / "f")
