"""Embedding a collection: the folder holds the model's output, however often it is interrupted."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from halation import Gaussian, InputError
from halation.encoders import Encoded, Model, load
from halation.search import Embeddings, _embed, _manifest, embed, make_index, open_search
from halation.search._journal import JournalWriter, read_journal
from halation.search._open_source import open_source
from layouts import draw
from runs import write_run


def by_id(embeddings: Embeddings, side: str = "images") -> dict[str, Gaussian]:
    embedded = embeddings.sides[side]  # type: ignore[index]
    return dict(zip(embedded.ids, map(embedded.gaussians().__getitem__, range(len(embedded))), strict=True))


def assert_same(a: Embeddings, b: Embeddings, side: str = "images") -> None:
    one, two = by_id(a, side), by_id(b, side)
    assert one.keys() == two.keys()
    for name, gaussian in one.items():
        assert torch.allclose(gaussian.mean, two[name].mean, atol=1e-5), name
        assert torch.allclose(gaussian.log_var, two[name].log_var, atol=1e-5), name  # type: ignore[arg-type]


class PictureCounter:
    """Counts the pictures that went through the network."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen, original = 0, Model.encode_images

        def encode_images(model: Model, pixels: torch.Tensor, **options: Any) -> Encoded:
            self.seen += len(pixels) if isinstance(pixels, torch.Tensor) else 0
            return original(model, pixels, **options)

        monkeypatch.setattr(Model, "encode_images", encode_images)


def test_a_dataset_is_embedded_as_the_model_encodes_it(run: Path, flickr: Path, tmp_path: Path) -> None:
    embeddings = embed(run, flickr, tmp_path / "emb", split="test", batch_size=3)
    model = load(run)
    dataset = model.open_dataset(flickr, "test")
    for side, encoded in zip(("images", "captions"), model.encode_dataset(dataset), strict=True):
        assert isinstance(encoded, Gaussian) and encoded.log_var is not None
        kept = embeddings.sides[side].gaussians()  # type: ignore[index]
        assert torch.allclose(kept.mean, encoded.mean, atol=1e-5)
        assert torch.allclose(kept.log_var, encoded.log_var, atol=1e-5)  # type: ignore[arg-type]
    records = list(embeddings.sides["images"].items())
    assert [record.id for record in records] == list(dataset.truth.image_ids)
    assert records[0].captions == dataset.captions[:5] and records[0].location is not None
    assert embeddings.sides["captions"].ids == list(dataset.truth.caption_ids)
    assert len(embed(run, flickr, tmp_path / "all").sides["images"]) == 16  # every split, unless one is named
    only = embed(run, flickr, tmp_path / "only", split="dev", side="captions")
    assert list(only.sides) == ["captions"] and len(only.sides["captions"]) == 20


def test_blocks_give_every_row_once_in_order(run: Path, photos: Path, tmp_path: Path) -> None:
    side = embed(run, photos, tmp_path / "emb", batch_size=7).sides["images"]
    blocks = list(side.blocks(9))
    assert [len(records) for records, _ in blocks] == [9, 9, 9, 9, 4]
    assert [record.id for records, _ in blocks for record in records] == side.ids == sorted(side.ids, key=_walked)
    assert torch.equal(Gaussian.cat([gaussians for _, gaussians in blocks]).mean, side.gaussians().mean)


def _walked(name: str) -> tuple[bool, str]:
    return "/" in name, name


def test_done_is_done_and_what_is_new_is_added(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, out = PictureCounter(monkeypatch), tmp_path / "emb"
    first = by_id(embed(run, photos, out, batch_size=8))
    embed(run, photos, out)
    assert watch.seen == 40  # the second call had nothing to do
    draw(photos / "new.png", 77)
    draw(photos / "p00.png", 78)  # another picture of the old name
    (photos / "p03.png").unlink()
    again = by_id(embed(run, photos, out))
    assert watch.seen == 42
    assert again.keys() == first.keys() - {"p03.png"} | {"new.png"}
    assert not torch.equal(again["p00.png"].mean, first["p00.png"].mean)
    assert torch.equal(again["p06.png"].mean, first["p06.png"].mean)
    fresh = tmp_path / "fresh"
    assert_same(embed(run, photos, fresh), Embeddings.open(out))


def test_a_collection_that_moved_is_not_computed_again(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed(run, photos, tmp_path / "emb")
    moved = photos.rename(tmp_path / "moved")
    watch = PictureCounter(monkeypatch)
    embeddings = embed(run, moved, tmp_path / "emb")
    assert watch.seen == 0 and embeddings.roots == (moved.resolve(),) and len(embeddings.sides["images"]) == 40


def test_what_cannot_be_read_is_listed_and_left_out(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (photos / "p00.png").write_text("not a picture")
    (photos / "p03.png").write_bytes((photos / "p03.png").read_bytes()[:60])
    (photos / "empty.jpg").touch()
    embeddings = embed(run, photos, tmp_path / "emb", batch_size=4)
    assert sorted(name for name, _ in embeddings.corrupt) == ["empty.jpg", "p00.png", "p03.png"]
    assert all("is not a readable picture" in why for _, why in embeddings.corrupt)
    assert len(embeddings.sides["images"]) == 38
    listed = (tmp_path / "emb" / "corrupt.tsv").read_text().splitlines()
    assert sorted(line.split("\t")[0] for line in listed) == ["empty.jpg", "p00.png", "p03.png"]
    watch = PictureCounter(monkeypatch)
    draw(photos / "p03.png", 3)  # mended
    assert len(embed(run, photos, tmp_path / "emb").corrupt) == 2 and watch.seen == 1
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.jpg").write_text("not a picture")
    with pytest.raises(InputError, match=r"no item could be read \(a.jpg is not a readable picture"):
        embed(run, broken, tmp_path / "none")


def fail_to_locate(patch: pytest.MonkeyPatch, broken: Any, failing: set[str], problem: Exception) -> None:
    """Reading the location `broken` raises the problem, as long as `failing` holds something."""

    def read_location(roots: Any, location: Any, original: Any = _embed.read_location) -> Any:
        if failing and location == broken:
            raise problem
        return original(roots, location)

    patch.setattr(_embed, "read_location", read_location)


def fail_to_open(patch: pytest.MonkeyPatch, broken: str, failing: set[str], problem: Exception) -> None:
    """Opening the picture `broken` raises the problem, as long as `failing` holds something."""

    def opened(fp: Any, original: Any = Image.open, **more: Any) -> Any:
        if failing and Path(fp).name == broken:
            raise problem
        return original(fp, **more)

    patch.setattr(Image, "open", opened)


@pytest.mark.parametrize("kind", ["rights", "disk", "memory", "gone", "tar"])
def test_what_could_not_be_read_this_time_is_tried_again(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source, out = photos, tmp_path / "emb"
    if kind == "tar":
        source = tmp_path / "s.tar"
        with tarfile.open(source, "w") as file:
            file.add(photos, "")
    (broken,) = failing = {"s.tar/p03.png" if kind == "tar" else "p03.png"}
    problem = {"rights": PermissionError(errno.EACCES, "no"), "memory": MemoryError()}.get(
        kind, OSError(errno.EIO, "Input/output error")
    )

    if kind in ("tar", "gone"):
        items = open_source(source, load(run)).sides["images"]
        location = next(item.location for item in items if item.id == broken)
        fail_to_locate(
            monkeypatch, location, failing, InputError("p03.png does not exist") if kind == "gone" else problem
        )
    else:
        fail_to_open(monkeypatch, "p03.png", failing, problem)
    for _ in range(2):
        embeddings = embed(run, source, out, batch_size=8)
        assert [name for name, _ in embeddings.corrupt] == [broken] and len(embeddings.sides["images"]) == 39
    journal = embeddings.sides["images"].folder / embeddings.sides["images"].parts[0] / "journal.jsonl"
    assert journal.read_text().count('"missed"') == 1  # the same again is no news
    for shard in range(3):  # whoever comes last knows what the others could not read
        embeddings = embed(run, source, tmp_path / "shards", shard=(shard, 3))
    assert embeddings.complete and [name for name, _ in embeddings.corrupt] == [broken]
    failing.clear()
    watch = PictureCounter(monkeypatch)
    embeddings = embed(run, source, out)
    assert not embeddings.corrupt and len(embeddings.sides["images"]) == 40 and watch.seen == 1


def test_captions_added_later_leave_the_pictures_where_they_are(run: Path, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    source = tmp_path / "lists" / "list.jsonl"
    source.write_text("".join(f'{{"image": "p0{n}.png", "captions": ["a dog"]}}\n' for n in (0, 3, 6)))
    out = tmp_path / "emb"
    embed(run, source, out, side="captions")
    assert embed(run, source, out, side="images", root=photos).roots == (photos.resolve(),)
    embeddings = embed(run, source, out, side="captions")
    assert list(embeddings.sides) == ["captions", "images"] and embeddings.roots == (photos.resolve(),)
    answer = open_search(make_index(out, tmp_path / "idx")).text("a dog")
    assert all(hit.path is not None for hit in answer.hits) and not answer.notes


def test_shards_make_what_one_process_makes(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = embed(run, photos, tmp_path / "whole")
    watch, out = PictureCounter(monkeypatch), tmp_path / "emb"
    (photos / "bad.png").write_text("bad")
    for index in range(3):
        part = embed(run, photos, out, shard=(index, 3), batch_size=4)
        assert part.complete == (index == 2)
        if index < 2:
            with pytest.raises(InputError, match="is not finished; run the same"):
                Embeddings.open(out)
    assert watch.seen == 40 and [name for name, _ in part.corrupt] == ["bad.png"]
    assert_same(part, whole)
    assert part.sides["images"].ids == whole.sides["images"].ids  # the order does not tell how many there were
    embed(run, photos, out)  # another number of processes finds everything there
    assert watch.seen == 40
    with pytest.raises(InputError, match=r"shard \(3, 3\) does not exist"):
        embed(run, photos, out, shard=(3, 3))


def test_more_processes_with_nothing_left_to_do_leave_what_an_index_can_read(
    run: Path, photos: Path, tmp_path: Path
) -> None:
    whole, out = embed(run, photos, tmp_path / "whole"), tmp_path / "emb"
    embed(run, photos, out)
    for index in range(2):
        again = embed(run, photos, out, shard=(index, 2))
        assert again.complete and again.sides["images"].parts == ("part-00000-of-00001",)  # the others are empty
    assert_same(again, whole)
    assert len(open_search(make_index(out, tmp_path / "idx")).text("a dog", 3).hits) == 3


def test_parts_without_rows_in_a_manifest_do_no_harm(run: Path, photos: Path, tmp_path: Path) -> None:
    side = embed(run, photos, tmp_path / "emb").sides["images"]
    with JournalWriter(side.folder / "part-00000-of-00002"):
        pass
    manifest = json.loads((tmp_path / "emb" / "manifest.json").read_text())
    manifest["sides"]["images"]["parts"] += ["part-00000-of-00002"]  # as this program wrote them once
    (tmp_path / "emb" / "manifest.json").write_text(json.dumps(manifest))
    make_index(tmp_path / "emb", tmp_path / "idx")


def test_a_shard_that_could_read_nothing_leaves_what_an_index_can_read(run: Path, tmp_path: Path) -> None:
    names = [f"p{number}.png" for number in range(12)]
    for name in names:
        if zlib.crc32(name.encode()) % 2:
            draw(tmp_path / "photos" / name, 1)
        else:
            (tmp_path / "photos").mkdir(exist_ok=True)
            (tmp_path / "photos" / name).write_text("not a picture")
    embeddings = [embed(run, tmp_path / "photos", tmp_path / "emb", shard=(index, 2)) for index in range(2)][-1]
    assert 0 < len(embeddings.corrupt) < 12
    make_index(embeddings, tmp_path / "idx")


def test_shards_end_one_after_the_other(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sees a picture that the other could not read: whoever writes last, the list it speaks of is there."""
    inside, most = 0, 0
    gate, listed = threading.Barrier(2, timeout=0.5), _manifest._write_listing

    def watched(folder: Path, entries: Any) -> Any:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        with contextlib.suppress(threading.BrokenBarrierError):
            gate.wait()  # lets both in at once, where nothing keeps one of them out
        listing = listed(folder, entries)
        inside -= 1
        return listing

    embed(run, photos, tmp_path / "emb")
    monkeypatch.setattr(_manifest, "_write_listing", watched)
    with ThreadPoolExecutor(2) as pool:
        ended = [pool.submit(embed, run, photos, tmp_path / "emb", shard=(index, 2)) for index in range(2)]
        assert all(one.result().complete for one in ended)
    assert most == 1


def test_two_processes_as_torchrun_starts_them(run: Path, photos: Path, tmp_path: Path) -> None:
    whole = embed(run, photos, tmp_path / "whole")
    command = [sys.executable, "-m", "halation", "embed", str(run), str(photos), "-o", str(tmp_path / "emb")]
    processes = [
        subprocess.Popen(
            command, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert_same(Embeddings.open(tmp_path / "emb"), whole)
    assert sum("next: halation index" in text for text in outputs) >= 1  # whoever ends last says what comes next


class Killed(BaseException):
    pass


def tear_write(patch: pytest.MonkeyPatch, cut: int, torn: int) -> None:
    """Of the journal's write number `cut`, only `torn` percent arrive; then the process is `Killed`."""
    calls, append = 0, JournalWriter._append

    def failing(writer: JournalWriter, name: str, offset: int, content: bytes) -> None:
        nonlocal calls
        if calls == cut:
            append(writer, name, offset, content[: torn * len(content) // 100])
            raise Killed
        calls += 1
        append(writer, name, offset, content)

    patch.setattr(JournalWriter, "_append", failing)


@pytest.mark.parametrize("torn", [0, 50, 99, 100])
@pytest.mark.parametrize("cut", range(15))
def test_cut_short_within_any_write_nothing_is_lost_or_done_twice(
    cut: int, torn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever write ends in its middle: what the journal lists is there, and nothing else."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    rng = np.random.default_rng(0)
    values = Gaussian(
        torch.from_numpy(rng.normal(size=(20, 3)).astype(np.float32)),
        torch.from_numpy(rng.normal(size=(20, 3))).float(),
    )
    folder = tmp_path / "part"
    computed = [0] * 20

    def work() -> None:
        with JournalWriter(folder) as writer:
            have = {name for name, _ in writer.journal.rows} | set(writer.journal.corrupt)
            todo = [n for n in range(20) if str(n) not in have]
            for batch in (todo[start : start + 4] for start in range(0, len(todo), 4)):
                kept = [n for n in batch if n != 7]
                before = {name for name, _ in writer.journal.rows}
                writer.add([(str(n), "s") for n in kept], values[kept], [("7", "s", "bad")] if 7 in batch else [])
                for n in kept:
                    assert str(n) not in before
                    computed[n] += 1

    with contextlib.suppress(Killed), pytest.MonkeyPatch.context() as patch:
        tear_write(patch, cut, torn)
        work()
    work()
    journal = read_journal(folder)
    journal.check()
    order = [int(name) for name, _ in journal.rows]
    assert sorted(order) == [n for n in range(20) if n != 7] and journal.corrupt == {"7": ("s", "bad")}
    assert max(computed) == 1
    mean, log_var = journal.arrays()
    assert np.array_equal(mean, values.mean[order].numpy()) and np.array_equal(log_var, values.log_var[order].numpy())  # type: ignore[index, arg-type]


SLOW = """
import sys, time
from halation.search import _embed
from halation.encoders import Model
original, log = Model.encode_images, open(sys.argv[4], "a")
def encode_images(self, pixels, **options):
    time.sleep(0.03)
    return original(self, pixels, **options)
sort = _embed._collected
def sorted_out(batch, futures):
    result = sort(batch, futures)
    log.write("".join(entry.id + "\\n" for entry in result[0]))
    log.flush()
    return result
Model.encode_images, _embed._collected = encode_images, sorted_out
_embed.embed(sys.argv[1], sys.argv[2], sys.argv[3], batch_size=2)
"""


def test_files_that_killed_processes_left_are_swept(run: Path, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "emb"
    embed(run, photos, out)
    left = [out / ".halation-partial-0a1b2c3d.json", out / "images" / ".halation-partial-0a1b2c3d.jsonl"]
    for path in left:
        path.touch()
    embed(run, photos, out)
    assert not any(path.exists() for path in left)


def test_kill_nine_loses_no_row_and_repeats_none(
    run: Path, photos: Path, tmp_path: Path, rng: np.random.Generator
) -> None:
    out, journal = tmp_path / "emb", tmp_path / "emb" / "images" / "part-00000-of-00001" / "journal.jsonl"
    marked: set[str] = set()
    for attempt in range(2):
        log = tmp_path / f"log{attempt}"
        process = subprocess.Popen([sys.executable, "-c", SLOW, str(run), str(photos), str(out), str(log)])
        deadline = time.monotonic() + 240
        while process.poll() is None and time.monotonic() < deadline:
            if journal.is_file() and journal.read_bytes().count(b"\n") > 6 * (attempt + 1):
                break
            time.sleep(0.002)
        time.sleep(float(rng.uniform(0, 0.04)))
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not marked & set(log.read_text().split())  # nothing that was on disk went through the network again
        now = {name for name, _ in read_journal(journal.parent).rows}
        assert marked < now
        marked = now
    assert 12 < len(marked) < 40
    with pytest.MonkeyPatch.context() as patch:
        watch = PictureCounter(patch)
        embeddings = embed(run, photos, out)
        assert watch.seen == 40 - len(marked)
    assert_same(embeddings, embed(run, photos, tmp_path / "whole"))


@pytest.mark.parametrize("cut", range(5))
def test_stopped_in_its_last_steps_the_same_call_does_the_rest(
    run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """Before each file of the end in turn, in a folder that was complete before and has grown since."""
    out = tmp_path / "emb"
    before = set(embed(run, photos, out).sides["images"].ids)
    draw(photos / "new.png", 77)
    calls, write = 0, Path.replace

    def stopping(path: Path, target: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls > cut:
            raise Killed
        return write(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping)  # how every file takes its place
        with contextlib.suppress(Killed):
            embed(run, photos, out)
    assert set(Embeddings.open(out).sides["images"].ids) in (before, before | {"new.png"})  # never without an answer
    watch = PictureCounter(monkeypatch)
    assert set(embed(run, photos, out).sides["images"].ids) == before | {"new.png"} and watch.seen == 0


class TestMistakes:
    @pytest.mark.parametrize("options", [{"workers": -1}, {"workers": 0}, {"batch_size": 0}, {"shard": ("a", 2)}])
    def test_numbers_that_make_no_sense_are_refused_before_anything_is_written(
        self, run: Path, photos: Path, tmp_path: Path, options: dict[str, Any]
    ) -> None:
        with pytest.raises(InputError, match=r"must be 1 or more|is not two whole numbers"):
            embed(run, photos, tmp_path / "emb", **options)
        assert not (tmp_path / "emb").exists()

    def test_another_model_or_collection_does_not_go_on_with_these(
        self, run: Path, other_run: Path, photos: Path, flickr: Path, tmp_path: Path
    ) -> None:
        embed(run, photos, tmp_path / "emb")
        with pytest.raises(InputError, match="holds embeddings by another model"):
            embed(other_run, photos, tmp_path / "emb")
        with pytest.raises(InputError, match=r"holds embeddings of .*photos, not .*data; name another folder"):
            embed(run, flickr, tmp_path / "emb")
        with pytest.raises(InputError, match=r"holds other files \(.*\); name a new or empty folder"):
            embed(run, photos, photos)

    def test_another_split_or_root_does_not_go_on_with_these(self, run: Path, flickr: Path, tmp_path: Path) -> None:
        embed(run, flickr, tmp_path / "emb", split="dev", side="captions")
        embed(run, flickr, tmp_path / "emb", split="dev")  # the other side of the same may come later
        with pytest.raises(InputError, match=r"of the split dev of .*data, not of the split test; name another"):
            embed(run, flickr, tmp_path / "emb", split="test")
        with pytest.raises(InputError, match=r"of the split dev of .*data, not of all splits"):
            embed(run, flickr, tmp_path / "emb")
        for root in ("one", "two"):
            draw(tmp_path / root / "a.png", 1)
        (tmp_path / "l.jsonl").write_text('{"image": "a.png"}')
        embed(run, tmp_path / "l.jsonl", tmp_path / "list", root=tmp_path / "one")
        with pytest.raises(
            InputError, match=r"holds embeddings of pictures below .*one, not .*two; name another folder"
        ):
            embed(run, tmp_path / "l.jsonl", tmp_path / "list", root=tmp_path / "two")

    def test_a_folder_in_use_is_left_alone(self, run: Path, photos: Path, tmp_path: Path) -> None:
        embed(run, photos, tmp_path / "emb")
        with (
            JournalWriter(tmp_path / "emb" / "images" / "part-00000-of-00001"),
            pytest.raises(InputError, match="is being written by another process"),
        ):
            embed(run, photos, tmp_path / "emb")

    def test_a_full_disk_is_named_and_nothing_is_lost(
        self, run: Path, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append, calls = JournalWriter._append, iter(range(100))

        def full(writer: JournalWriter, *write: object) -> None:
            if next(calls) > 7:
                raise OSError(errno.ENOSPC, "No space left on device")
            append(writer, *write)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            patch.setattr(JournalWriter, "_append", full)
            with pytest.raises(InputError, match="the disk is full; make room"):
                embed(run, photos, tmp_path / "emb", batch_size=4)
        watch = PictureCounter(monkeypatch)
        assert len(embed(run, photos, tmp_path / "emb").sides["images"]) == 40 and watch.seen == 40 - 8

    @pytest.mark.parametrize("name", ["mean.f32", "log_var.f32"])
    def test_a_damaged_or_missing_part_is_named(self, run: Path, photos: Path, tmp_path: Path, name: str) -> None:
        side = embed(run, photos, tmp_path / "emb", batch_size=16).sides["images"]
        side.check()
        path = side.folder / side.parts[0] / name
        content = bytearray(path.read_bytes())
        content[700] ^= 1
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"rows 16 to 31 are damaged"):
            side.check()
        path.write_bytes(content[:100])
        with pytest.raises(InputError, match=rf"{name} has 100 bytes, and the journal expects 1280; delete"):
            side.gaussians()
        shutil.rmtree(path.parent)
        with pytest.raises(InputError, match="is missing; run the same"):
            Embeddings.open(tmp_path / "emb")
        assert_same(embed(run, photos, tmp_path / "emb"), embed(run, photos, tmp_path / "whole"))  # the way out works

    def test_a_damaged_list_or_manifest_is_named(self, run: Path, photos: Path, tmp_path: Path) -> None:
        out = tmp_path / "emb"
        listing = embed(run, photos, out).sides["images"].listing
        listing.write_text(listing.read_text().replace("p01", "p99"))
        with pytest.raises(InputError, match="is damaged"):
            Embeddings.open(out)
        embed(run, photos, out)
        assert "holiday/p01.png" in Embeddings.open(out).sides["images"].ids
        manifest = json.loads((out / "manifest.json").read_text())
        (out / "manifest.json").write_text(json.dumps({**manifest, "format": "halation embeddings 9"}))
        with pytest.raises(InputError, match=r"says \"format\": 'halation embeddings 9', this halation reads"):
            Embeddings.open(out)
        with pytest.raises(InputError, match="it is not a folder that `halation embed` made"):
            Embeddings.open(photos)
        with pytest.raises(InputError, match="does not exist; make it with `halation embed`"):
            Embeddings.open(tmp_path / "nowhere")

    def test_a_journal_that_is_damaged_is_named(self, run: Path, photos: Path, tmp_path: Path) -> None:
        side = embed(run, photos, tmp_path / "emb", batch_size=8).sides["images"]
        journal = side.folder / side.parts[0] / "journal.jsonl"
        lines = journal.read_bytes().split(b"\n")
        for damage in (b"\0" * 50, b"{}", b'{"rows": 3}'):
            journal.write_bytes(b"\n".join([lines[0], damage, *lines[2:]]))
            with pytest.raises(InputError, match=r"journal.jsonl line 2 is damaged .*; delete .* and embed again"):
                embed(run, photos, tmp_path / "emb")

    def test_models_that_no_index_can_store_are_refused_in_words(self, photos: Path, tmp_path: Path) -> None:
        write_run(tmp_path / "pvse", "model.head=pvse")
        with pytest.raises(InputError, match="is a pvse model: it compares by several vectors per item"):
            embed(tmp_path / "pvse", photos, tmp_path / "emb")
