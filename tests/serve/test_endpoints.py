"""What each endpoint answers: the search's own answer, and nothing about the server's disk."""

from __future__ import annotations

import io
import re
import threading
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from halation._errors import HalationError, InputError
from halation.search import Answer
from halation.serve._schemas import answer_schema
from serving import Client, WordSearch, png, scenes


def test_how_many_hold_a_match_goes_over_the_wire() -> None:
    reply = answer_schema(Answer("a dog", within=3, coverage=0.9))
    assert (reply.within, reply.coverage) == (3, 0.9) and "among the first 3" in str(reply.promise)


def test_words_find_what_the_search_finds(client: Client, search: WordSearch) -> None:
    words = search.captions[search.items[7]][0]
    response = client().post("/search", json={"text": words, "k": 5})
    answer, reply = search.text(words, 5), response.json()
    assert response.status_code == 200
    assert [hit["id"] for hit in reply["hits"]] == [hit.id for hit in answer.hits]
    assert [hit["probability"] for hit in reply["hits"]] == [hit.probability for hit in answer.hits]
    assert [hit["captions"] for hit in reply["hits"]] == [hit.captions for hit in answer.hits]
    assert (reply["verdict"], reply["ambiguity"], reply["side"]) == ("matches", answer.ambiguity, "images")
    assert (
        reply["expected_matches"]
        == answer.expected_matches
        == pytest.approx(sum(hit["probability"] for hit in reply["hits"]))
    )
    assert reply["expectation"] == answer.expectation
    assert reply["encode_ms"] > 0 and reply["search_ms"] > 0


def test_words_true_of_nothing_are_said_to_match_nothing(client: Client) -> None:
    reply = client().post("/search", json={"text": "elephants on bicycles", "k": 3}).json()
    assert reply["verdict"] == "nothing" and len(reply["hits"]) == 3
    assert reply["expected_matches"] < 0.1 and reply["expectation"] is None


def test_words_half_true_are_not_sure(client: Client) -> None:
    reply = client().post("/search", json={"text": "an elephant star", "k": 3}).json()
    assert reply["verdict"] == "unsure" and len(reply["hits"]) == 3
    assert reply["expectation"] == "perhaps 1 of these 3 matches"


def test_without_a_calibration_nothing_is_claimed(drawn: Path, client: Client) -> None:
    one = client(scenes(drawn, calibrated=False))
    reply = one.post("/search", json={"text": "elephants on bicycles", "k": 3}).json()
    assert (reply["verdict"], reply["expected_matches"], reply["expectation"]) == (None, None, None)
    assert one.get("/about").json()["judge"] is None


def test_a_picture_finds_itself_and_its_captions(client: Client, search: WordSearch) -> None:
    name = search.items[4]
    file = (search.folder / name).read_bytes()
    alike = client().post("/search/image", files={"image": (name, file)}, data={"k": 3, "want": "images"}).json()
    assert alike["hits"][0]["id"] == name and alike["side"] == "images" and len(alike["hits"]) == 3
    described = client().post("/search/image", files={"image": (name, file)}, data={"k": 2}).json()
    assert described["side"] == "captions" and described["hits"][0]["captions"] == [search.captions[name][0]]
    assert described["hits"][0]["image"] is None


def test_the_name_of_an_upload_is_repeated_only_as_far_as_it_can_be(client: Client) -> None:
    one, long = client(), "n" * 500 + ".png"
    for name, repeated in ((r"a\ud800.png", "a?.png"), (long, "n" * 200)):
        head = f'--b\r\nContent-Disposition: form-data; name="image"; filename="{name}"\r\n\r\n'.encode()
        kind = {"content-type": "multipart/form-data; boundary=b; charset=raw_unicode_escape"}
        reply = one.post("/search/image", content=head + png(9, 9) + b"\r\n--b--\r\n", headers=kind)
        assert reply.status_code == 200 and reply.json()["query"] == repeated


def test_what_is_like_an_item_needs_no_upload(client: Client, search: WordSearch) -> None:
    name, one = search.items[9], client()
    alike = one.get(f"/items/{name}/alike?k=4&want=images").json()
    assert [hit["id"] for hit in alike["hits"]] == [hit.id for hit in search.like(name, 4, "images").hits]
    assert one.get(f"/items/{name}/alike").json()["side"] == "captions"
    assert one.get("/items/nobody/alike").status_code == 404
    assert one.get(f"/items/{name}/alike?k=101").status_code == 422


def test_an_answer_says_nothing_about_the_disk(client: Client, search: WordSearch) -> None:
    folder = str(search.folder)
    with client() as one:
        for response in (
            one.post("/search", json={"text": "a red star"}),
            one.get("/items"),
            one.get(f"/items/{search.items[0]}"),
            one.get("/about"),
        ):
            assert response.status_code == 200 and folder not in response.text


def test_an_item_and_its_picture(client: Client, search: WordSearch) -> None:
    name, one = search.items[2], client()
    item = one.get(f"/items/{name}").json()
    assert item["captions"] == search.captions[name] and item["side"] == "images"
    for size in ("", "?size=original", "?size=thumbnail"):
        picture = one.get(f"/{item['image']}{size}")
        assert picture.headers["content-type"] == "image/png"
        assert picture.content == (search.folder / name).read_bytes()  # small already: its own thumbnail
        again = one.get(f"/{item['image']}{size}", headers={"if-none-match": picture.headers["etag"]})
        assert again.status_code == 304 and not again.content


def test_ids_may_hold_slashes_spaces_and_the_word_image(client: Client, tmp_path: Path) -> None:
    names = ["2021/at the sea.png", "2021/image", "image", "ünï/100%.png", "a?b#c"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), "red").save(tmp_path / name, "PNG")
    one = client(WordSearch(tmp_path, {name: ["a red picture"] for name in names}))
    for hit in one.post("/search", json={"text": "a red picture"}).json()["hits"]:
        assert one.get(f"/items/{quote(hit['id'], safe='')}").json()["id"] == hit["id"]
        assert one.get(f"/{hit['image']}").headers["content-type"] == "image/png"


def test_a_large_picture_becomes_a_small_upright_jpeg(client: Client, tmp_path: Path) -> None:
    picture = Image.new("RGB", (1600, 900), "white")
    picture.paste((255, 0, 0), (0, 0, 800, 900))  # red on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: what is on the left belongs on top
    picture.save(tmp_path / "turned.jpg", exif=exif, quality=95)
    one = client(WordSearch(tmp_path, {"turned.jpg": ["half red"]}), thumbnail=200)
    first = one.get("/items/turned.jpg/image")
    with Image.open(io.BytesIO(first.content)) as small:
        assert small.format == "JPEG" and small.size == (112, 200)
        assert small.getpixel((56, 20))[1] < 80 and small.getpixel((56, 180))[1] > 200
    assert one.get("/items/turned.jpg/image").content == first.content
    assert 'halation_thumbnails_total{from="memory"} 1' in one.get("/metrics").text


def test_a_picture_browsers_cannot_show_is_sent_as_one_they_can(client: Client, tmp_path: Path) -> None:
    Image.new("L", (5000, 4000), 90).save(tmp_path / "scan.tiff")
    one = client(WordSearch(tmp_path, {"scan.tiff": ["green"]}))
    whole = one.get("/items/scan.tiff/image?size=original")
    assert whole.headers["content-type"] == "image/png"
    with Image.open(io.BytesIO(whole.content)) as shown:
        assert shown.size == (5000, 4000)


def test_a_file_is_sent_as_what_it_is_not_as_what_it_is_called(client: Client, tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("<script>alert(1)</script>")
    (tmp_path / "drawing.png").write_text('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>')
    Image.new("RGB", (9, 9)).save(tmp_path / "gif.jpg", "GIF")
    one = client(WordSearch(tmp_path, {name: ["x"] for name in ("page.png", "drawing.png", "gif.jpg")}))
    for name in ("page.png", "drawing.png"):
        for size in ("thumbnail", "original"):
            refused = one.get(f"/items/{name}/image?size={size}")
            assert refused.status_code == 415 and refused.headers["content-type"] == "application/json"
    assert one.get("/items/gif.jpg/image?size=original").headers["content-type"] == "image/gif"


def test_a_picture_deleted_from_disk_is_said_to_be_gone(client: Client, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9), "red").save(tmp_path / "a.png")
    one = client(WordSearch(tmp_path, {"a.png": ["red"]}))
    assert one.get("/items/a.png/image").status_code == 200
    (tmp_path / "a.png").unlink()
    gone = one.get("/items/a.png/image")
    assert gone.status_code == 404 and "gone" in gone.json()["error"]
    assert one.post("/search", json={"text": "red"}).status_code == 200


def test_the_listing_goes_through_the_index_in_order(client: Client, search: WordSearch) -> None:
    one, seen = client(), []
    for offset in range(0, 70, 20):
        listing = one.get(f"/items?offset={offset}&limit=20").json()
        assert listing["total"] == len(search.items)
        seen += [item["id"] for item in listing["items"]]
    assert seen == list(search.items)
    assert one.get("/items?limit=101").status_code == 422


def test_the_names_of_a_listing_are_made_off_the_event_loop(
    client: Client, search: WordSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def items(self: WordSearch) -> list[str]:
        made.append(threading.current_thread().name)
        return list(self.captions)

    monkeypatch.setattr(WordSearch, "items", property(items))
    assert len(client().get("/items?offset=50").json()["items"]) == 10
    assert made and all(name.startswith("halation-search") for name in made)


def test_an_empty_index_answers(client: Client, tmp_path: Path) -> None:
    one = client(WordSearch(tmp_path, {}))
    assert one.post("/search", json={"text": "a dog"}).json()["hits"] == []
    assert one.get("/items").json() == {"total": 0, "items": []}
    assert one.get("/health").json()["items"] == 0


def test_about_and_health(client: Client, search: WordSearch) -> None:
    one = client(max_k=7)
    about = one.get("/about").json()
    assert about["images"] == 60 and about["calibrated"] is True and about["max_k"] == 7
    assert about["notes"] == ["a note on all answers"] and about["judge"] == "people"
    assert one.get("/health").json() == {"status": "ok", "items": 60, "generation": 1}
    assert one.head("/health").status_code == 200


def test_metrics_are_prometheus_text_and_count_what_happened(client: Client, search: WordSearch) -> None:
    one = client()
    for text in ("a red star", "elephants", "an elephant star", "a bicycle circle"):
        one.post("/search", json={"text": text})
    one.get("/items/nothing-of-that-name")
    one.post("/search/image", files={"image": ("a.png", png(20, 20))})
    reply = one.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = parse(reply.text)
    assert values['halation_requests_total{method="POST",route="/search",status="200"}'] == 4
    assert values['halation_requests_total{method="GET",route="/items/{id}",status="404"}'] == 1
    assert values["halation_nothing_matches_total"] == 1 and values["halation_unsure_total"] == 2
    assert values['halation_encode_seconds_count{kind="text"}'] == 4
    assert values['halation_search_seconds_count{kind="image"}'] == 1
    assert values['halation_request_seconds_bucket{le="+Inf",route="/search"}'] == 4
    assert values["halation_items"] == 60 and values["halation_searches_held"] == 0
    assert values["process_resident_memory_bytes"] > 1e6


def parse(text: str) -> dict[str, float]:
    """Every sample; a line that is not in the format fails."""
    sample = re.compile(r'([a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)+\})?) (-?[0-9.]+(?:e[+-]?\d+)?|\+Inf|NaN)')
    values, declared = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            declared.add(line.split()[2])
        elif not line.startswith("# HELP "):
            match = sample.fullmatch(line)
            assert match, line
            name = re.sub(r"_(bucket|sum|count)$", "", match[1].split("{")[0])
            assert name in declared or match[1].split("{")[0] in declared, line
            assert match[1] not in values, f"{match[1]} twice"
            values[match[1]] = float(match[2])
    return values


WRONG = [
    ({}, "text: field required"),
    ({"text": ""}, "text: string should have at least 1 character"),
    ({"text": " "}, "the query is empty"),
    ({"text": "a", "k": 0}, "k: input should be greater than or equal to 1"),
    ({"text": "a", "k": "5"}, "k: input should be a valid integer"),
    ({"text": "a", "k": 101}, "this server gives at most 100 hits"),
    ({"text": "a", "want": "sounds"}, "want: input should be 'auto', 'images' or 'captions'"),
    ({"text": "a", "kk": 5}, "kk: extra inputs are not permitted"),
    ({"text": 5}, "text: input should be a valid string"),
]


def test_a_query_that_does_not_fit_is_told_what_is_wrong(client: Client) -> None:
    one = client()
    for body, words in WRONG:
        response = one.post("/search", json=body)
        assert response.status_code == 422 and words in response.json()["error"]


def test_a_body_that_is_no_json_is_refused_in_words(client: Client) -> None:
    one, kind = client(), {"content-type": "application/json"}
    for body in (b"", b"{", b"[1]", b"\xff\xfe", b'{"text": "\\ud800"}', b"null", b"9" * 5000, b"[" * 20_000):
        response = one.post("/search", content=body, headers=kind)
        assert response.status_code in (400, 422) and response.json()["error"], body[:20]


def test_ten_thousand_words_emoji_and_control_characters_are_answered(client: Client) -> None:
    one = client()
    reply = one.post("/search", json={"text": "star " * 10_000}).json()
    assert "cut" in reply["notes"][0]
    for text in ("🐕🐕 ❄️", "a\x00b", "\u202edlrow", "ﷺ" * 500, "<script>alert(1)</script>"):
        assert one.post("/search", json={"text": text}).json()["query"] == text


def test_an_input_error_of_the_search_is_an_answer_and_a_bug_is_not_a_crash(
    client: Client, search: WordSearch, caplog: pytest.LogCaptureFixture
) -> None:
    one = client()
    search.fails = InputError("this model cannot read Klingon; ask in English")
    reply = one.post("/search", json={"text": "qapla"})
    assert reply.status_code == 422 and "Klingon" in reply.json()["error"]
    search.fails = HalationError("Milvus at /home/ann/all.db does not answer")
    reply = one.post("/search", json={"text": "a"})
    assert reply.status_code == 503 and "the index is not available at the moment" in reply.json()["error"]
    assert "ann" not in reply.text and "/home/ann/all.db does not answer" in caplog.text
    search.fails = ZeroDivisionError("secret detail")
    reply = one.post("/search", json={"text": "a"})
    assert reply.status_code == 500 and "secret" not in reply.text and "content-security-policy" in reply.headers
    assert "secret detail" in caplog.text  # in the log, for whoever runs it
    search.fails = None
    assert one.post("/search", json={"text": "a"}).status_code == 200


def test_paths_and_methods_that_do_not_exist_say_so(client: Client) -> None:
    one = client()
    assert one.get("/nope").json() == {"error": "Not Found"}
    refused = one.delete("/search")
    assert refused.status_code == 405 and refused.headers["allow"] == "POST"
    assert one.get("/static/..%2f_app.py").status_code == 404


def test_the_page_and_its_files(client: Client) -> None:
    one = client()
    page = one.get("/")
    assert page.headers["content-type"].startswith("text/html")
    named = re.findall(r'(?:href|src)="(static/[^"]+)"', page.text)
    assert {"static/app.js", "static/style.css", "static/theme.js"} <= set(named)
    for name in named:
        file = one.get(f"/{name}")
        assert file.status_code == 200 and file.headers["x-content-type-options"] == "nosniff"
        assert one.get(f"/{name}", headers={"if-none-match": file.headers["etag"]}).status_code == 304
