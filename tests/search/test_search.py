"""Searching an index: the hits, how far to trust them, and the message for each mistake."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from halation import Gaussian, InputError, _storage
from halation._storage import sha256_of
from halation.calibration import Calibrators, Verdict, fit_calibrator
from halation.data import read_picture
from halation.encoders import load
from halation.index import Index, Milvus
from halation.search import Answer, Hit, Search, UnknownItem, _make_index, embed, make_index, open_search
from judged_worlds import points
from layouts import draw
from runs import write_run


@pytest.fixture(scope="module")
def index(run: Path, flickr: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    embed(run, flickr, folder / "emb")
    return make_index(folder / "emb", folder / "idx")


@pytest.fixture(scope="module")
def search(index: Path) -> Search:
    return open_search(index)


@pytest.fixture
def own_index(index: Path, tmp_path: Path) -> Path:
    """An index one may break."""
    return Path(shutil.copytree(index, tmp_path / "idx"))


def items_of(index: Path) -> Path:
    return index / str(json.loads((index / "search.json").read_text())["data"]) / "items.sqlite"


def ids(answer: Answer) -> list[str]:
    return [hit.id for hit in answer.hits]


def encoded(run: Path, flickr: Path) -> tuple[list[str], Gaussian, list[str], Gaussian]:
    model = load(run)
    dataset = model.open_dataset(flickr, "all")
    images, captions = model.encode_dataset(dataset)
    assert isinstance(images, Gaussian) and isinstance(captions, Gaussian)
    return [*map(str, dataset.truth.image_ids)], images, [*map(str, dataset.truth.caption_ids)], captions


class TestAnswers:
    def test_words_find_images_as_the_model_ranks_them(self, search: Search, run: Path, flickr: Path) -> None:
        names, images, _, _ = encoded(run, flickr)
        model = load(run)
        query = "a red dog on the grass"
        question = model.network.captions(model.network.text.backbone.tokenize([query]))  # type: ignore[union-attr, operator]
        scores = model.network.scores(images, question)[:, 0]
        answer = search.text(query, k=16)
        assert answer.side == "images" and answer.query == query
        best = scores.argsort(descending=True)
        assert torch.allclose(torch.tensor([hit.score for hit in answer.hits]), scores[best], atol=1e-4)
        assert set(ids(answer)) == set(names) and ids(answer)[0] == names[int(best[0])]
        assert answer.hits[0].captions == [*search.item(ids(answer)[0]).captions]
        assert answer.hits[0].path == (flickr / "images" / ids(answer)[0]).resolve()
        assert answer.uncertainty == pytest.approx(question.uncertainty()[0].item(), rel=1e-4)  # type: ignore[union-attr]
        assert answer.encode_ms > 0 and answer.search_ms > 0
        assert [hit.score for hit in search.text(query, k=3).hits] == [hit.score for hit in answer.hits[:3]]

    def test_a_picture_finds_captions_and_similar_pictures(self, search: Search, run: Path, flickr: Path) -> None:
        picture = read_picture(flickr / "images" / "p3.jpg")
        similar = search.image(picture, k=4, want="images", name="p3.jpg")
        assert (similar.side, similar.query, ids(similar)[0]) == ("images", "p3.jpg", "p3.jpg")
        assert similar.hits[0].score == pytest.approx(0, abs=1e-4)  # minus the squared distance to itself
        search.warm()
        answer = search.image(picture, k=5)
        names, captions = encoded(run, flickr)[2:]
        image = encoded(run, flickr)[1][3:4]
        best = load(run).network.scores(image, captions)[0].argsort(descending=True)
        assert answer.side == "captions" and ids(answer)[0] == names[int(best[0])]
        assert answer.hits[0].captions == search.item(ids(answer)[0]).captions and answer.hits[0].path is None

    def test_without_the_other_side_words_find_words(self, run: Path, flickr: Path, tmp_path: Path) -> None:
        (tmp_path / "words.txt").write_text("a red dog\na blue bus on the street\nthe green cat\n")
        embed(run, tmp_path / "words.txt", tmp_path / "emb")
        search = open_search(make_index(tmp_path / "emb", tmp_path / "idx"))
        answer = search.text("the green cat", k=2)
        assert (answer.side, ids(answer)[0]) == ("captions", "words.txt:3")
        assert search.image(read_picture(flickr / "images" / "p0.jpg"), want="captions").hits
        with pytest.raises(InputError, match="this index holds captions but no images; embed the images of"):
            search.text("a dog", want="images")

    def test_more_than_there_is_gives_all(self, search: Search) -> None:
        assert len(search.text("a dog", k=1000).hits) == 16 == search.about["images"]
        assert len(search) == len(search.items) == 16 + 80 == search.about["captions"] + 16

    def test_an_empty_index_says_so(self, own_index: Path) -> None:
        search = open_search(own_index)
        search.indexes["images"].remove(search.indexes["images"].ids)
        answer = search.text("a dog")
        assert (
            answer.hits == []
            and answer.verdict == "nothing"
            and answer.expected_matches is None
            and answer.notes == ["the index is empty"]
        )

    def test_a_part_of_the_ids_is_made_without_the_others(
        self, search: Search, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sides = [search.table.records(side, range(len(index))) for side, index in search.indexes.items()]
        names = [record.id for records in sides for record in records]
        assert list(search.items) == names
        monkeypatch.setattr(Index, "ids", property(lambda index: pytest.fail("all ids were made")))
        assert search.items[14:19] == names[14:19] and search.items[::-7] == names[::-7]
        assert search.items[90:200] == names[90:] and search.items[2**53 :] == []
        assert search.items[-1] == names[-1]
        with pytest.raises(IndexError):
            search.items[96]

    def test_ids_are_stored_once(self, index: Path) -> None:
        holding = {path.name for path in index.rglob("*") if path.is_file() and b"p2.jpg" in path.read_bytes()}
        assert holding == {"items.sqlite"}

    def test_items_by_id(self, search: Search, flickr: Path) -> None:
        item = search.item("p2.jpg")
        assert item.side == "images" and len(item.captions) == 5 and item.uncertainty is not None
        assert search.picture("p2.jpg") == (flickr / "images" / "p2.jpg").resolve()
        assert search.picture_bytes("p2.jpg") == (flickr / "images" / "p2.jpg").read_bytes()
        assert search.picture_bytes("p2.jpg", limit=10) is None
        caption = search.item("p2.jpg#1")
        assert caption.side == "captions" and caption.path is None and search.picture("p2.jpg#1") is None
        for missing in ("nothing", "", "../../etc/passwd", "p2.jpg' OR 1=1 --", "\0", "p2.jpg\ud800"):
            with pytest.raises(UnknownItem, match="there is no item"):
                search.item(missing)

    def test_an_answer_is_json(self, search: Search) -> None:
        document = json.loads(json.dumps(search.text("a dog", k=2).to_dict(), allow_nan=False))
        assert document["hits"][0].keys() == {"id", "score", "probability", "captions", "path"}
        assert json.loads(json.dumps(search.item("p1.jpg").to_dict()))["side"] == "images"
        json.dumps(search.about)

    def test_threads_get_the_answers_one_would(self, search: Search) -> None:
        queries = [f"a {colour} {thing}" for colour in ("red", "blue", "green") for thing in ("dog", "cat", "bus")] * 3
        expected = [ids(search.text(query)) for query in queries]
        answers: dict[int, list[str]] = {}

        def ask(number: int) -> None:
            answers[number] = ids(search.text(queries[number]))

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(queries))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [answers[number] for number in range(len(queries))] == expected

    def test_a_picture_inside_a_tar_shard_can_be_shown(self, run: Path, tmp_path: Path) -> None:
        import tarfile

        picture = draw(tmp_path / "one" / "x.png", 4)
        with tarfile.open(tmp_path / "s.tar", "w") as tar:
            tar.add(picture, "a/x.png")
        embed(run, tmp_path / "s.tar", tmp_path / "emb")
        search = open_search(make_index(tmp_path / "emb", tmp_path / "idx"))
        assert search.picture("s.tar/a/x.png") is None and not search.text("a dog").notes
        assert search.picture_bytes("s.tar/a/x.png") == picture.read_bytes()
        (tmp_path / "s.tar").unlink()
        assert search.picture_bytes("s.tar/a/x.png") is None


class TestQueries:
    def test_a_very_long_query_is_cut_with_a_note(self, search: Search) -> None:
        query = "a red dog " + "and the snow " * 3333
        answer = search.text(query, k=3)
        assert answer.notes == ["the query has 10,002 words; only the first 256 were read"]
        assert answer.hits == search.text(" ".join(query.split()[:256]), k=3).hits
        assert "characters; only the first 10,000" in search.text("dog" * 1_000_000).notes[0]

    @pytest.mark.parametrize("query", ["", "  \n\t ", "\0"])
    def test_an_empty_query_is_refused(self, search: Search, query: str) -> None:
        with pytest.raises(InputError, match="the query is empty; write what to look for"):
            search.text(query)

    @pytest.mark.parametrize("query", ["🐕❄️", "狗在雪里", "\ud83d", "!?…", "zzzzz", "' OR 1=1; DROP TABLE items --"])
    def test_words_the_model_does_not_know_are_noted(self, search: Search, query: str) -> None:
        answer = search.text(query)
        assert "the model knows none of these words" in answer.notes[0] and len(answer.hits) == 10
        assert answer.verdict == "nothing" and answer.hits[0].probability is None is answer.expected_matches

    def test_unknown_words_among_known_ones_are_named(self, search: Search) -> None:
        assert search.text("a red zebra").notes == ["words the model does not know: zebra"]

    def test_other_mistakes(self, search: Search) -> None:
        with pytest.raises(InputError, match="k is 0; ask for 1 or more"):
            search.text("a dog", k=0)
        with pytest.raises(InputError, match="unknown kind of item 'pictures'"):
            search.text("a dog", want="pictures")


@dataclass(frozen=True)
class Sure:
    """A calibrator to work out by hand: p = σ(2·score + 1); the verdict is by the mean of the three best."""

    nothing_below: float = -1e9
    matches_from: float = -1e9
    ambiguity: Any = None
    depth: int = 3
    tells: bool = True
    top: int = 12
    conformal: Any = field(default_factory=lambda: SimpleNamespace(alpha=0.1))

    def probability(self, scores: Any, gallery: int | None = None, uncertainty: float | None = None) -> Any:
        assert uncertainty is not None and gallery in (16, 80)
        return 1 / (1 + np.exp(-2 * np.asarray(scores) - 1))

    def verdict(self, scores: Any, gallery: int | None = None, uncertainty: float | None = None) -> Verdict:
        assert len(scores) >= 3 and uncertainty is not None and gallery in (16, 80)
        mean = np.mean(scores[:3])
        return "nothing" if mean < self.nothing_below else "matches" if mean >= self.matches_from else "unsure"

    def match_within(self, scores: Any, gallery: int, uncertainty: float | None = None) -> int | None:
        return 2 if gallery == 16 else None

    def no_guarantee(self, gallery: int) -> str | None:
        return None if gallery == 16 else "no guarantee here"

    def can_say_nothing(self, given: int | None = None, uncertainty: float | None = None) -> bool:
        return self.tells

    def note(self, gallery: int) -> str | None:
        return "far from the gallery of the fit" if gallery == 80 else None


@dataclass(frozen=True)
class Both:
    t2i: Sure
    i2t: Sure


class TestTrust:
    @pytest.fixture
    def trusted(self, search: Search) -> Search:
        return replace(search, calibrators=Both(Sure(ambiguity=lambda sigma: "broad" if sigma > 0 else None), Sure()))  # type: ignore[arg-type]

    def test_probabilities_and_ambiguity_come_from_the_calibration(self, trusted: Search) -> None:
        answer = trusted.text("a red dog", k=2)
        for hit in answer.hits:
            assert hit.probability == pytest.approx(1 / (1 + np.exp(-2 * hit.score - 1)), rel=1e-5)
        assert answer.ambiguity == "broad" and answer.verdict == "matches" and not answer.notes

    @pytest.mark.parametrize(("low", "high", "verdict"), [(-2, -1, "matches"), (-1, 1, "unsure"), (1, 2, "nothing")])
    def test_the_verdict_looks_at_as_many_as_it_was_fitted_on(
        self, trusted: Search, low: int, high: int, verdict: str
    ) -> None:
        mean = float(np.mean([hit.score for hit in trusted.text("a red dog", k=3).hits]))
        judge = Sure(mean + low * 1e-3, mean + high * 1e-3)
        search = replace(trusted, calibrators=Both(judge, Sure()))  # type: ignore[arg-type]
        for k in (1, 2, 10):  # whatever is shown
            answer = search.text("a red dog", k=k)
            assert answer.verdict == verdict and len(answer.hits) == k

    def test_the_expected_number_of_matches_is_of_the_hits_that_are_shown(self, trusted: Search) -> None:
        for k in (1, 5, 14):
            answer = trusted.text("a red dog", k=k)
            known = [hit.probability for hit in answer.hits if hit.probability is not None]
            assert len(known) == min(k, 12) and answer.expected_matches == pytest.approx(sum(known))
            assert answer.to_dict()["expected_matches"] == answer.expected_matches
            assert answer.to_dict()["expectation"] == answer.expectation

    @pytest.mark.parametrize(
        ("expected", "verdict", "words"),
        [
            (2.6, "matches", "about 3 of these 4 match"),
            (1.4, "matches", "about 1 of these 4 matches"),
            (0.3, "matches", "hardly any of these 4 match"),
            (2.6, "unsure", "perhaps 3 of these 4 match"),
            (0.3, "unsure", "perhaps none of these 4 match"),
            (0.3, "nothing", None),
            (None, None, None),
        ],
    )
    def test_the_expected_number_in_words(self, expected: float | None, verdict: Verdict, words: str | None) -> None:
        hits = [Hit(str(rank), -rank, 0.5) for rank in range(4)]
        assert Answer("a dog", hits, verdict, expected_matches=expected).expectation == words
        below = [*hits, Hit("5", -5.0)]  # no probability at this rank
        assert Answer("a dog", below, verdict, expected_matches=expected).expectation == (
            words and words.replace("these", "the first")
        )

    def test_of_a_single_hit_it_says_whether_it_matches(self) -> None:
        hits = [Hit("a", 1.0, 0.5)]
        assert Answer("a dog", hits, "matches", expected_matches=0.7).expectation == "it probably matches"
        assert Answer("a dog", hits, "unsure", expected_matches=0.2).expectation == "it may not match"

    def test_there_is_no_probability_below_the_rank_it_was_fitted_on(self, trusted: Search) -> None:
        answer = trusted.text("a red dog", k=14)
        assert [hit.probability is None for hit in answer.hits] == [False] * 12 + [True] * 2
        assert answer.notes == ["probabilities were calibrated on the 12 best hits; those below have none"]
        assert not trusted.text("a red dog", k=12).notes

    def test_the_answer_says_how_many_hold_a_match(self, trusted: Search, flickr: Path) -> None:
        answer = trusted.text("a red dog", k=5)
        assert (answer.within, answer.coverage) == (2, 0.9)
        assert answer.promise == answer.to_dict()["promise"] and "among the first 2 (holds for 90 %" in str(
            answer.promise
        )
        picture = read_picture(flickr / "images" / "p0.jpg")
        for other in (trusted.image(picture, want="images"), trusted.image(picture, want="captions")):
            assert other.within is None is other.coverage and other.promise is None
        assert replace(answer, verdict="unsure").promise == answer.promise
        assert replace(answer, verdict="nothing").promise is None

    def test_a_model_that_cannot_tell_when_nothing_matches_says_so(self, trusted: Search) -> None:
        dumb = replace(trusted, calibrators=Both(Sure(tells=False), Sure()))  # type: ignore[arg-type]
        assert dumb.text("a red dog").notes == [
            "this model cannot tell when nothing matches; it shows the nearest in any case"
        ]
        assert not trusted.text("a red dog").notes

    def test_of_words_it_does_not_know_it_says_that_alone(self, trusted: Search) -> None:
        dumb = replace(trusted, calibrators=Both(Sure(tells=False), Sure()))  # type: ignore[arg-type]
        answer = dumb.text("zzzzz", k=14)
        assert answer.verdict == "nothing" and answer.ambiguity is None is answer.within
        assert {hit.probability for hit in answer.hits} == {None}
        assert len(answer.notes) == 1 and "knows none of these words" in answer.notes[0]

    def test_how_alike_two_pictures_are_was_never_judged(self, trusted: Search, flickr: Path) -> None:
        picture = read_picture(flickr / "images" / "p0.jpg")
        similar = trusted.image(picture, want="images")
        assert similar.hits[0].probability is None and not similar.notes
        assert similar.verdict is None is similar.expected_matches
        answer = trusted.image(picture, want="captions")
        assert answer.hits[0].probability is not None and answer.ambiguity is None
        assert answer.notes == ["far from the gallery of the fit", "no guarantee here"]


@pytest.mark.parametrize("change", ["fingerprint", "version", "damage"])
def test_a_calibration_of_another_model_is_left_out_with_a_note(
    run: Path, photos: Path, tmp_path: Path, change: str
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    index = make_index(embed(copy, photos, tmp_path / "emb").folder, tmp_path / "index")
    calibrator = fit_calibrator(points(np.random.default_rng(0), images=40)).calibrator
    Calibrators(calibrator, calibrator, "of another").save(copy / "calibration.json")
    if change == "version":
        (copy / "calibration.json").write_text('{"version": 2}')
    if change == "damage":
        document = json.loads((copy / "calibration.json").read_text())
        del document["judge"], document["t2i"]["abstention"]["nothing_below"]
        (copy / "calibration.json").write_text(json.dumps(document))
    search = open_search(index)
    answer = search.text("a dog", k=3)
    words = {
        "fingerprint": "another model",
        "version": "version 2, not 3",
        "damage": "not a calibration as halation writes it",
    }
    assert not search.about["calibrated"] and search.about["judge"] is None
    assert answer.hits[0].probability is None is answer.verdict
    assert answer.notes == search.about["notes"] and words[change] in answer.notes[0]
    assert "run halation calibrate again" in answer.notes[0] and str(tmp_path) not in answer.notes[0]
    assert not search.like(search.items[0]).notes  # where there never are any
    search.close()


class TestDegraded:
    def test_a_picture_deleted_from_disk_is_still_found_with_a_note(self, run: Path, tmp_path: Path) -> None:
        for number in range(3):
            draw(tmp_path / "photos" / f"{number}.png", number)
        embed(run, tmp_path / "photos", tmp_path / "emb")
        search = open_search(make_index(tmp_path / "emb", tmp_path / "idx"))
        (tmp_path / "photos" / "1.png").unlink()
        answer = search.text("a dog")
        assert {hit.id: hit.path is None for hit in answer.hits} == {"0.png": False, "1.png": True, "2.png": False}
        assert answer.notes[-1].startswith("1 of these pictures is no longer on disk")
        assert search.picture("1.png") is None and search.picture_bytes("1.png") is None

    def test_a_picture_that_became_a_link_outside_is_never_served(self, run: Path, tmp_path: Path) -> None:
        secret = draw(tmp_path / "secret.png", 9)
        draw(tmp_path / "photos" / "a.png", 1)
        draw(tmp_path / "photos" / "sub" / "b.png", 2)
        embed(run, tmp_path / "photos", tmp_path / "emb")
        search = open_search(make_index(tmp_path / "emb", tmp_path / "idx"))
        (tmp_path / "photos" / "a.png").unlink()
        (tmp_path / "photos" / "a.png").symlink_to(secret)
        shutil.rmtree(tmp_path / "photos" / "sub")
        (tmp_path / "elsewhere").mkdir()
        draw(tmp_path / "elsewhere" / "b.png", 3)
        (tmp_path / "photos" / "sub").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
        for name in ("a.png", "sub/b.png"):
            assert (
                search.picture(name) is None and search.picture_bytes(name) is None and search.item(name).path is None
            )

    def test_an_index_that_names_files_outside_its_roots_gives_none(self, own_index: Path, tmp_path: Path) -> None:
        """Somebody else's index: its list of items is not to be believed."""
        with sqlite3.connect(items_of(own_index)) as connection:
            connection.execute("UPDATE items SET name = '../../../../../../../../etc/passwd' WHERE id = 'p1.jpg'")
            connection.execute("UPDATE items SET name = '/etc/passwd' WHERE id = 'p2.jpg'")
            connection.execute("UPDATE items SET root = 7 WHERE id = 'p3.jpg'")
        connection.close()
        head = json.loads((own_index / "search.json").read_text())
        (own_index / "search.json").write_text(json.dumps({**head, "items": sha256_of(items_of(own_index))}))
        search = open_search(own_index)
        for name in ("p1.jpg", "p2.jpg", "p3.jpg"):
            assert search.picture(name) is None and search.picture_bytes(name) is None

    def test_a_new_index_takes_the_place_of_the_old_while_it_is_in_use(
        self, run: Path, flickr: Path, own_index: Path, tmp_path: Path
    ) -> None:
        before = open_search(own_index)
        embed(run, flickr, tmp_path / "emb", split="test")
        make_index(tmp_path / "emb", own_index)
        assert len(before.text("a dog", k=100).hits) == 16 and before.item("p0.jpg").captions
        assert len(open_search(own_index).text("a dog", k=100).hits) == 4
        assert len([path for path in own_index.iterdir() if path.is_dir()]) == 1  # nothing is left of the old one


class TestReplacing:
    @pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks the system what a handle is of")
    def test_all_is_on_the_disk_before_the_old_index_goes(
        self, index: Path, own_index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        happened: list[tuple[str, str]] = []
        fsync, rename, replaced, rmtree = os.fsync, Path.rename, Path.replace, shutil.rmtree

        def opened(handle: int) -> str:
            return str(Path(f"/proc/self/fd/{handle}").readlink())

        def note(what: str, original: Any, where: Any) -> Any:
            def work(*arguments: Any, **options: Any) -> Any:
                happened.append((what, where(*arguments)))
                return original(*arguments, **options)

            return work

        monkeypatch.setattr(os, "fsync", note("sync", fsync, opened))
        monkeypatch.setattr(Path, "rename", note("rename", rename, lambda path, to: str(to)))
        monkeypatch.setattr(Path, "replace", note("replace", replaced, lambda path, to: str(to)))
        monkeypatch.setattr(shutil, "rmtree", note("remove", rmtree, lambda path, **_: str(path)))
        old = items_of(own_index).parent
        make_index(index.parent / "emb", own_index)
        new = items_of(own_index).parent
        put, named, removed = (
            happened.index(one)
            for one in (("rename", str(new)), ("replace", str(own_index / "search.json")), ("remove", str(old)))
        )
        synced = {path for what, path in happened[:put] if what == "sync"}
        partial = Path(next(path for path in synced if path.endswith("items.sqlite"))).parent
        assert {str(partial / path.relative_to(new)) for path in new.rglob("*")} <= synced
        assert put < named < removed
        assert ("sync", str(own_index)) in happened[put:named] and ("sync", str(own_index)) in happened[named:removed]
        assert any(what == "sync" and path.endswith(".json") for what, path in happened[put:named])

    def test_two_that_index_into_one_folder_leave_a_whole_index(
        self, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The second ends between the moment the first's data is there and the moment search.json names it."""
        out, publish = tmp_path / "idx", _storage._publish_version
        threads: list[threading.Thread] = []

        def slowly(target: Path, head: str, version: _storage.Version) -> None:
            if not threads:
                threads.append(threading.Thread(target=make_index, args=(index.parent / "emb", out)))
                threads[0].start()
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(_storage, "sync", waits)
                    publish(target, head, version)
                return
            publish(target, head, version)

        def waits(path: Path) -> None:
            if path == out and threading.current_thread() is threading.main_thread():
                threads[0].join(timeout=3)

        monkeypatch.setattr(_storage, "_publish_version", slowly)
        make_index(index.parent / "emb", out)
        threads[0].join()
        assert open_search(out).text("a dog").hits
        assert len([path for path in out.iterdir() if path.is_dir()]) == 1

    def test_milvus_keeps_no_collection_of_an_index_that_was_replaced_or_failed(
        self, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pymilvus = pytest.importorskip("pymilvus")
        pytest.importorskip("milvus_lite")
        uri, out = str(tmp_path / "all.db"), tmp_path / "idx"

        def there() -> set[str]:
            client = pymilvus.MilvusClient(uri=uri)
            try:
                return set(client.list_collections())
            finally:
                client.close()

        make_index(index.parent / "emb", out, backend="milvus", uri=uri)
        first = there()
        make_index(index.parent / "emb", out, backend="milvus", uri=uri)
        second = there()
        assert len(first) == len(second) == 2 and not first & second
        monkeypatch.setattr(_make_index, "write_items", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make_index(index.parent / "emb", out, backend="milvus", uri=uri)
        assert there() == second and open_search(out).text("a dog").hits

    def test_milvus_keeps_the_new_collections_when_dropping_the_old_ones_is_interrupted(
        self, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pytest.importorskip("pymilvus")
        pytest.importorskip("milvus_lite")
        uri, out = str(tmp_path / "all.db"), tmp_path / "idx"
        make_index(index.parent / "emb", out, backend="milvus", uri=uri)
        old = items_of(out)

        def interrupted(_: Path) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Milvus, "drop_saved", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_index(index.parent / "emb", out, backend="milvus", uri=uri)
        assert items_of(out) != old
        search = open_search(out)
        assert search.text("a dog").hits
        search.close()

    def test_one_that_fails_leaves_what_another_made_meanwhile(
        self, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write, out = _make_index.write_items, tmp_path / "idx"

        def fails(*arguments: Any) -> None:
            monkeypatch.setattr(_make_index, "write_items", write)
            make_index(index.parent / "emb", out)
            raise OSError("no")

        monkeypatch.setattr(_make_index, "write_items", fails)
        with pytest.raises(OSError, match="no"):
            make_index(index.parent / "emb", out)
        assert open_search(out).text("a dog").hits


class TestMistakes:
    def test_an_index_of_another_model(self, own_index: Path, other_run: Path, run: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"was made by another model than .*other is now"):
            open_search(own_index, other_run)
        moved = Path(shutil.copytree(run, tmp_path / "moved"))
        assert open_search(own_index, moved).text("a dog").hits
        head = json.loads((own_index / "search.json").read_text())
        (own_index / "search.json").write_text(json.dumps({**head, "run": str(tmp_path / "gone")}))
        with pytest.raises(
            InputError, match=r"gone is not there; the index .* was made by this run; say where .* \(run=…\)"
        ):
            open_search(own_index)

    def test_another_version_or_a_damaged_file(self, own_index: Path) -> None:
        head = json.loads((own_index / "search.json").read_text())
        with sqlite3.connect(items_of(own_index)) as connection:
            connection.execute("DELETE FROM items WHERE id = 'p1.jpg'")
        connection.close()
        with pytest.raises(InputError, match=r"items.sqlite is missing or damaged \(its sha256 differs\)"):
            open_search(own_index)
        items_of(own_index).unlink()
        with pytest.raises(InputError, match=r"items.sqlite is missing or damaged"):
            open_search(own_index)
        for change, what in (
            ({"format": "halation search 7"}, "says \"format\": 'halation search 7', this halation reads"),
            ({"format": "halation search 1"}, "index the embeddings again: halation index EMBEDDINGS -o INDEX"),
            ({"roots": None}, "is damaged"),
        ):
            broken = {**head, **change}
            broken = {key: value for key, value in broken.items() if value is not None}
            (own_index / "search.json").write_text(json.dumps(broken))
            with pytest.raises(InputError, match=what):
                open_search(own_index)
        (own_index / "search.json").write_text("{")
        with pytest.raises(InputError, match="not valid JSON"):
            open_search(own_index)

    def test_a_missing_index_file_is_named(self, own_index: Path) -> None:
        data = own_index / json.loads((own_index / "search.json").read_text())["data"]
        file = next((data / "images").rglob("gaussians.safetensors"))
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"gaussians.safetensors is damaged: its checksum differs"):
            open_search(own_index)
        shutil.rmtree(data / "captions")
        (data / "images").rename(data / "captions")
        with pytest.raises(InputError, match=r"images holds no index.json"):
            open_search(own_index)

    def test_folders_that_are_not_an_index(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist; make it with `halation index`"):
            open_search(tmp_path / "nowhere")
        with pytest.raises(InputError, match="it is not a folder that `halation index` made"):
            open_search(run)

    def test_an_index_never_replaces_other_files(self, index: Path, run: Path, tmp_path: Path) -> None:
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "thesis.tex").touch()
        with pytest.raises(InputError, match="exists and is not an index of halation"):
            make_index(index.parent / "emb", precious)
        assert (precious / "thesis.tex").exists()

    def test_damaged_embeddings_are_not_indexed(self, index: Path, tmp_path: Path) -> None:
        emb = Path(shutil.copytree(index.parent / "emb", tmp_path / "emb"))
        path = next((emb / "images").glob("part-*/mean.f32"))
        content = bytearray(path.read_bytes())
        content[5] ^= 4
        path.write_bytes(content)
        with pytest.raises(InputError, match="are damaged"):
            make_index(emb, tmp_path / "idx")
        assert not (tmp_path / "idx").exists()

    def test_an_image_and_a_caption_of_one_id_are_not_indexed(
        self, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        draw(tmp_path / "a.png", 1)
        (tmp_path / "l.jsonl").write_text('{"image": "a.png"}\n{"caption": "a dog", "id": "b"}\n')
        embeddings = embed(run, tmp_path / "l.jsonl", tmp_path / "emb")  # as an older version may have left them
        monkeypatch.setattr(type(embeddings.sides["images"]), "ids", ["b"])
        with pytest.raises(InputError, match="'b' is the id of an image and of a caption; give each"):
            make_index(embeddings, tmp_path / "idx")

    def test_a_picture_that_is_text_is_refused_by_name(self, tmp_path: Path) -> None:
        (tmp_path / "a.jpg").write_text("I am text")
        with pytest.raises(InputError, match=r"a.jpg is not a readable picture"):
            read_picture(tmp_path / "a.jpg")


def test_a_deterministic_model_has_no_uncertainty(flickr: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "point", "model.head=point")
    embed(run, flickr, tmp_path / "emb", split="dev")
    answer = open_search(make_index(tmp_path / "emb", tmp_path / "idx")).text("a dog")
    assert answer.uncertainty is None and answer.ambiguity is None and len(answer.hits) == 4
