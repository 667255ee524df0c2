"""Features computed once: complete or resumable, whatever happens in between."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from halation import InputError
from halation.data import Photos, cache_features, check, open_dataset, open_features
from halation.data._cache_files import Cache
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
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == sorted(
        ["corrupt.txt", "images.txt", "meta.json", "pooled.npy", *(["local.npy"] if local else [])]
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
    assert "is not a readable picture" in (flickr8k / "f" / "corrupt.txt").read_text()
    train = open_dataset(flickr8k, "train", features="f")
    assert train.truth.image_ids == ("p0.jpg", "p2.jpg", "p3.jpg") and train.n_captions == 15
    assert "1 images that could not be read" in train.truth.notes[0]
    assert train.features is not None and train.features.names == ("p0.jpg", "p2.jpg", "p3.jpg")
    for k in range(8):
        (flickr8k / "images" / f"p{k}.jpg").write_bytes(b"broken")
    with pytest.raises(InputError, match="not one of 8 pictures could be read"):
        cache_features(flickr8k, Patches(), flickr8k / "g", batch_size=3)


class Killed(Exception):
    pass


def cut_short(context: pytest.MonkeyPatch, after: int) -> None:
    """Let `after` steps to the disk pass, and stop before the next."""
    calls = itertools.count()

    def stopping(original: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **named: object) -> object:
            if next(calls) >= after:
                raise Killed
            return original(*arguments, **named)

        return step

    for name in ("_lay_out", "_put", "_say", "finish", "_settle"):
        context.setattr(Cache, name, stopping(getattr(Cache, name)))


@pytest.mark.parametrize("broken", [False, True])
def test_cut_short_anywhere_the_same_call_does_the_rest(
    flickr8k: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    """Stopped before each single step to the disk in turn, with and without a picture that cannot be read."""
    if broken:
        (flickr8k / "images" / "p3.jpg").write_bytes(b"broken")
    whole = cache_features(flickr8k, Patches(), flickr8k / "whole", batch_size=3)
    for cut in range(30):
        out, finished = flickr8k / f"cut{cut}", True
        with monkeypatch.context() as context:
            cut_short(context, after=cut)
            try:
                cache_features(flickr8k, Patches(), out, batch_size=3)
            except Killed:
                finished = False
        if not finished and (out / "meta.json").is_file():
            with pytest.raises(InputError, match="not finished"):
                open_features(out)
        marked = len((out / "done.jsonl").read_text().splitlines()) if (out / "done.jsonl").is_file() else 0
        backbone = Patches()
        store = cache_features(flickr8k, backbone, out, batch_size=5)  # blocks stay as they were begun
        assert finished or backbone.seen <= 8 - broken - max(0, 3 * marked - broken - 1)
        assert store.names == whole.names
        every = np.arange(len(whole))
        assert torch.equal(store.rows(every).pooled, whole.rows(every).pooled)
        assert torch.equal(store.rows(every).local, whole.rows(every).local)  # type: ignore[arg-type]
        if finished:
            break
    assert finished and cut > 6


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
        deadline, marks = time.monotonic() + 60, out / "done.jsonl"
        before = marks.read_text().count("\n") if marks.is_file() else 0
        while process.poll() is None and time.monotonic() < deadline:
            if marks.is_file() and marks.read_text().count("\n") > before + 5:
                break
            time.sleep(0.005)
        time.sleep(float(rng.uniform(0, 0.05)))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    marked = (out / "done.jsonl").read_text().count("\n")
    assert marked > 10
    backbone = Patches()
    store = cache_features(source, backbone, out)
    assert backbone.seen == 380 - 4 * marked
    whole = cache_features(source, Patches(), tmp_path / "whole")
    assert torch.equal(store.rows(np.arange(380)).pooled, whole.rows(np.arange(380)).pooled)


def test_another_backbone_or_other_pictures_do_not_go_on_with_these(flickr8k: Path) -> None:
    out = flickr8k / "f"
    cache_features(flickr8k, Patches(), out)
    with pytest.raises(InputError, match="features of another backbone"):
        cache_features(flickr8k, Patches(seed=1), out)
    with pytest.raises(InputError, match="features of other pictures"):
        cache_features(Photos([flickr8k / "images" / "p0.jpg"]), Patches(), out)
    with pytest.raises(InputError, match=r"holds other files"):
        cache_features(flickr8k, Patches(), flickr8k)


def test_a_full_disk_is_said_and_nothing_is_lost(flickr8k: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, put = flickr8k / "f", Cache._put

    def full(self: Cache, path: Path, rows: list[int], values: object) -> None:
        if rows[0] >= 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(self, path, rows, values)

    monkeypatch.setattr(Cache, "_put", full)
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
    said: list[tuple[str, int, int]] = []
    cache_features(flickr8k, Patches(), flickr8k / "f", batch_size=3, progress=lambda *now: said.append(now))
    assert said == [("features", done, 8) for done in (0, 3, 6, 8)]
    meta = json.loads((flickr8k / "f" / "meta.json").read_text())
    assert meta["complete"] and meta["backbone"] == "Patches" and meta["shapes"] == {"pooled": [5], "local": [4, 3]}
