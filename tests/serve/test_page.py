"""The page in a real browser: what a person sees, types, drops and hears."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from serving import TOKEN, WordSearch, png
from serving_process import Server

pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
from playwright.sync_api import Browser, Page, Route, expect

expect.set_options(timeout=20_000)
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}
Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Open]:
    """`opened("/?q=…", …)`: a page; a script error or a violation of the content policy fails the test."""
    contexts, complaints = [], []

    def show(path: str = "/", address: str = server.address, **options: Any) -> Page:
        context = browser.new_context(**options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda message: complaints.append(message.text) if "Content Security" in message.text else None
        )
        page.goto(address + path)
        return page

    yield show
    for context in contexts:
        context.close()
    assert not complaints


def cards(page: Page) -> list[str]:
    return [str(card.get_attribute("data-id")) for card in page.locator(".card[data-id]").all()]


def test_typing_shows_pictures_with_captions_probabilities_and_ambiguity(opened: Open, search: WordSearch) -> None:
    page = opened()
    expect(page.locator(".tile").first).to_be_visible()  # something to look at before the first search
    words = search.captions[search.items[5]][0]
    page.get_by_role("searchbox", name="What to look for").type(words)
    expect(page.locator(".card[data-id]")).to_have_count(24)
    answer = search.text(words, 24)
    assert cards(page) == [hit.id for hit in answer.hits]
    first = page.locator(".card").first
    expect(first.locator(".caption")).to_have_text(answer.hits[0].captions[0])
    assert answer.hits[0].probability is not None
    expect(first.locator(".percent")).to_have_text(f"{100 * answer.hits[0].probability:.0f} %")
    shown, whole = (first.locator(part).bounding_box() for part in (".fill", ".bar"))
    assert shown is not None and whole is not None
    assert shown["width"] / whole["width"] == pytest.approx(answer.hits[0].probability, abs=0.02)
    assert first.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    expect(page.locator(f"[data-ambiguity={answer.ambiguity}]")).to_contain_text(f"{answer.ambiguity} query")
    assert answer.expectation is not None
    expect(page.locator(".expectation")).to_have_text(f"{answer.expectation.capitalize()}.")
    expect(page.get_by_role("status")).to_contain_text(
        f"24 pictures. {answer.expectation.capitalize()}. The best matches with a probability of"
    )
    expect(page.locator(".unsure")).to_have_count(0)
    assert page.title() == f"{words} · halation"


@pytest.mark.parametrize("can_abort", [True, False])
def test_an_answer_that_comes_late_does_not_replace_a_newer_one(
    opened: Open, search: WordSearch, can_abort: bool
) -> None:
    page = opened()
    if not can_abort:  # the request cannot be taken back: its answer comes, and must not be shown
        page.evaluate("AbortController.prototype.abort = () => {}")
    with page.expect_request("**/search"):
        page.fill("#query", "slowly, a red star")
    page.fill("#query", "blue circle")
    expected = [hit.id for hit in search.text("blue circle", 24).hits]
    assert expected != [hit.id for hit in search.text("slowly, a red star", 24).hits]
    expect(page.locator(".card[data-id]").first).to_have_attribute("data-id", expected[0])
    page.wait_for_timeout(900)
    assert cards(page) == expected


def test_the_address_can_be_shared_and_the_way_back_works(opened: Open, search: WordSearch) -> None:
    page = opened("/?q=a+red+star")
    expect(page.locator("#query")).to_have_value("a red star")
    expect(page.locator(".card[data-id]").first).to_have_attribute("data-id", search.text("a red star", 1).hits[0].id)
    page.fill("#query", "")
    expect(page.locator(".tile").first).to_be_visible()
    assert "q=" not in page.url
    page.type("#query", "blue circle", delay=30)
    page.wait_for_url("**/?q=blue+circle")
    page.go_back()
    expect(page.locator(".tile").first).to_be_visible()
    page.go_back()
    expect(page.locator("#query")).to_have_value("a red star")


def test_the_page_says_that_nothing_matches(opened: Open) -> None:
    page = opened("/?q=elephants+on+bicycles")
    expect(page.get_by_role("heading", name="Nothing here matches “elephants on bicycles”.")).to_be_visible()
    expect(page.locator(".nothing")).to_contain_text("probability below 1 %")
    expect(page.locator(".grid.faint .card")).to_have_count(24)
    expect(page.get_by_role("status")).to_contain_text("Nothing here matches")
    expect(page.locator(".expectation")).to_have_count(0)


def test_the_page_says_that_it_is_not_sure_and_shows_the_nearest(opened: Open, search: WordSearch) -> None:
    page, answer = opened("/?q=an+elephant+star"), search.text("an elephant star", 24)
    expect(page.locator(".unsure")).to_have_text("Not sure that anything here matches. These are the nearest.")
    expect(page.locator(".grid .card")).to_have_count(24)
    expect(page.locator(".grid.faint")).to_have_count(0)  # they may well match
    expect(page.locator(".nothing")).to_have_count(0)
    assert answer.expectation is not None and answer.expectation.startswith("perhaps ")
    expect(page.locator(".expectation")).to_have_text(f"{answer.expectation.capitalize()}.")
    expect(page.get_by_role("status")).to_contain_text(
        "Not sure that anything here matches. Showing the nearest 24 pictures. Perhaps "
    )
    above, below = (page.locator(part).bounding_box() for part in (".unsure", ".grid"))
    assert above is not None and below is not None and above["y"] + above["height"] <= below["y"]


@pytest.mark.parametrize(
    ("judge", "meaning"),
    [
        ("people", "probability that a person would accept it"),
        ("people-strict", "probability that a person would accept it"),
        ("annotations", "probability that it was annotated as a match"),
        ("exact", "probability that it matches"),
        (None, "probability that it matches"),
    ],
)
def test_a_percentage_says_what_it_predicts(opened: Open, judge: str | None, meaning: str) -> None:
    page = opened()
    page.route("**/about", lambda route: route.fulfill(json={**route.fetch().json(), "judge": judge}))
    page.goto(page.url + "?q=star")
    first = page.locator(".card").first
    expect(first.locator(".chance")).to_have_attribute("title", f"{meaning.capitalize()}.")
    expect(first).to_have_attribute("aria-label", re.compile(f"\\d %.* {meaning}$"))
    first.click()
    expect(page.get_by_role("dialog").locator("dd").first).to_have_attribute("title", f"{meaning.capitalize()}.")


def test_the_keyboard_reaches_everything(opened: Open) -> None:
    page = opened("/?q=star")
    expect(page.locator(".card[data-id]")).to_have_count(24)
    focused = "document.activeElement.dataset.id || document.activeElement.id"
    page.keyboard.press("/")
    assert page.evaluate(focused) == "query"
    ids = cards(page)
    columns = page.evaluate("getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ').length")
    moves = {"ArrowDown": 0, "ArrowRight": 1, "End": 23, "Home": 0}
    for key, position in moves.items():
        page.keyboard.press(key)
        assert page.evaluate(focused) == ids[position], key
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == ids[columns]
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text(ids[columns])
    page.keyboard.press("ArrowRight")
    expect(dialog).to_contain_text(ids[columns + 1])
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator(f'.card[data-id="{ids[columns + 1]}"]')).to_be_focused()  # a moment after it has closed
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "query" and page.input_value("#query") == "star"
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_have_value("")
    expect(page.locator(".tile").first).to_be_visible()


def test_a_picture_is_chosen_dropped_or_pasted(opened: Open, search: WordSearch) -> None:
    name = search.items[11]
    content = (search.folder / name).read_bytes()
    page = opened()
    expect(page.locator(".tile").first).to_be_visible()
    page.locator("#file").set_input_files({"name": name, "mimeType": "image/png", "buffer": content})
    check_picture_results(page, search, name)

    hand_over = """([kind, bytes, name]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
        const made = kind === "paste" ? new ClipboardEvent(kind, {clipboardData: data, bubbles: true, cancelable: true})
                                      : new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true});
        document.body.dispatchEvent(made);
    }"""
    page = opened("/?q=star")
    page.evaluate(hand_over, ["dragenter", list(content), name])
    expect(page.get_by_text("Drop the picture to search with it")).to_be_visible()
    page.evaluate(hand_over, ["drop", list(content), name])
    expect(page.locator("#drop")).to_be_hidden()
    check_picture_results(page, search, name)
    page.get_by_role("button", name="Clear the search").click()
    expect(page.locator(".tile").first).to_be_visible()
    page.evaluate(hand_over, ["paste", list(content), name])
    check_picture_results(page, search, name)


def check_picture_results(page: Page, search: WordSearch, name: str) -> None:
    expect(page.get_by_role("heading", name="Captions that fit it")).to_be_visible()
    expect(page.locator(".line .caption-text").first).to_have_text(search.captions[name][0])
    expect(page.get_by_role("meter").first).to_have_attribute("aria-valuenow", "100")
    expect(page.locator(".card[data-id]").first).to_have_attribute("data-id", name)
    expect(page.locator("#query-name")).to_have_text(name)
    assert page.locator("#query-picture").evaluate("image => image.decode().then(() => image.naturalWidth)") == 64


def test_more_like_a_picture_that_was_found_has_an_address(opened: Open, search: WordSearch) -> None:
    page = opened("/?q=star")
    page.locator(".card[data-id]").nth(2).click()
    wanted = cards(page)[2]
    page.get_by_role("button", name="Find similar pictures").click()
    page.wait_for_url(f"**/?like={wanted}")
    alike = [hit.id for hit in search.like(wanted, 25, "images").hits if hit.id != wanted]
    for one in (page, opened(f"/?like={wanted}")):
        expect(one.get_by_role("heading", name="Similar pictures")).to_be_visible()
        expect(one.locator(".line .caption-text").first).to_have_text(search.captions[wanted][0])
        assert cards(one) == alike


def test_show_more_adds_to_what_is_there(opened: Open) -> None:
    page = opened("/?q=star")
    expect(page.locator(".card[data-id]")).to_have_count(24)
    before = cards(page)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".card[data-id]")).to_have_count(48)
    assert cards(page)[:24] == before
    assert page.evaluate("document.activeElement.dataset.id") == cards(page)[24]


def test_the_page_explains_errors_and_recovers(opened: Open) -> None:
    page = opened()
    page.locator("#file").set_input_files({"name": "notes.jpg", "mimeType": "image/jpeg", "buffer": b"no picture"})
    expect(page.get_by_role("alert").filter(has_text="This is not a picture that can be read")).to_be_visible()
    page.get_by_role("button", name="Clear the search").click()
    expect(page.get_by_role("alert").filter(has_text="no picture")).to_be_hidden()

    page.route("**/search", lambda route: route.abort())
    page.route("**/health", lambda route: route.abort())
    page.fill("#query", "a red star")
    expect(page.get_by_role("heading", name="The server does not answer")).to_be_visible()
    page.unroute("**/search")
    page.unroute("**/health")
    expect(page.locator(".card[data-id]")).to_have_count(24)  # by itself
    expect(page.get_by_role("heading", name="The server does not answer")).to_be_hidden()

    busy = {"status": 503, "headers": {"retry-after": "3"}, "json": {"error": "the server is busy: try again"}}
    page.route("**/search", lambda route: route.fulfill(**busy), times=1)
    page.fill("#query", "a blue star")
    expect(page.get_by_role("heading", name="The server is busy")).to_be_visible()
    expect(page.get_by_role("heading", name="The server is busy")).to_be_hidden()


def test_waiting_is_shown_when_it_takes_long(opened: Open) -> None:
    page = opened("/?q=star")
    expect(page.locator(".card[data-id]")).to_have_count(24)
    page.evaluate(
        """() => {
            const [waiting, results] = ["waiting", "results"].map(id => document.getElementById(id));
            window.seen = [];
            const look = () => window.seen.push(waiting.hidden ? "still" : `waiting, busy ${results.ariaBusy}`);
            new MutationObserver(look).observe(results, {attributes: true});
        }"""
    )
    page.fill("#query", "slowly, a star")
    for _ in range(200):
        page.wait_for_timeout(100)
        if len(page.evaluate("window.seen")) == 2:
            break
    assert page.evaluate("window.seen") == ["waiting, busy true", "still"]


def answer_with(page: Page, **changes: Any) -> None:
    """Let the server's answers come with other values."""

    def change(route: Route) -> None:
        answer = route.fetch().json()
        for hit in answer["hits"]:
            hit.update({key: value for key, value in changes.items() if key in hit})
        answer.update({key: value for key, value in changes.items() if key in answer})
        route.fulfill(json=answer)

    page.route("**/search", change)


def test_captions_are_text_whatever_they_say(opened: Open) -> None:
    page, hostile = opened(), '<img src=x onerror="window.broken = 1"><script>window.broken = 1</script>'
    answer_with(page, captions=[hostile, hostile], notes=[hostile])
    page.fill("#query", f"star {hostile}")
    expect(page.locator(".card .caption").first).to_have_text(hostile)
    expect(page.locator(".notes")).to_contain_text(hostile)
    page.locator(".card").first.click()
    expect(page.get_by_role("dialog").get_by_role("heading")).to_have_text(hostile)
    assert page.evaluate("window.broken") is None


def test_without_a_calibration_there_are_no_probabilities(opened: Open, server: Server) -> None:
    page = opened("about:blank", address="")
    page.route("**/about", lambda route: route.fulfill(json={**route.fetch().json(), "calibrated": False}))
    page.goto(server.address)
    answer_with(page, probability=None, ambiguity=None)
    page.fill("#query", "star")
    expect(page.locator(".ambiguity")).to_have_text("No probabilities: the model is not calibrated.")
    assert page.locator(".bar").count() == 0 and page.locator(".card").count() == 24


def test_a_quiet_line_says_how_many_hits_contain_a_match(opened: Open) -> None:
    page = opened()
    answer_with(page, promise="if anything here matches, a match is among the first 7", notes=["a note"])
    page.fill("#query", "star")
    expect(page.locator(".notes li")).to_have_text(
        ["If anything here matches, a match is among the first 7.", "A note."]
    )


def test_a_picture_that_is_gone_says_so(opened: Open) -> None:
    page = opened()
    page.route("**/image*", lambda route: route.fulfill(status=404, json={"error": "gone"}))
    page.fill("#query", "star")
    expect(page.locator(".card .gone").first).to_have_text("This picture is no longer on the disk")


def test_colours_follow_the_system_until_they_are_chosen(opened: Open) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(color_scheme="light").evaluate(background), opened(color_scheme="dark").evaluate(background)
    assert light != dark
    page = opened(color_scheme="light")
    switch = page.locator("#theme")
    expect(switch).to_have_attribute("aria-label", re.compile("as in the system"))
    switch.click()
    switch.click()
    expect(switch).to_have_attribute("aria-label", re.compile("Colours: dark"))
    assert page.evaluate(background) == dark
    page.reload()
    assert page.evaluate(background) == dark


def test_a_phone_shows_two_columns_and_nothing_beyond_its_edge(opened: Open) -> None:
    page = opened("/?q=a+big+red+star+in+the+upper+left+corner+on+a+white+background", **PHONE)
    expect(page.locator(".card[data-id]")).to_have_count(24)
    width = "[document.documentElement.scrollWidth, visualViewport.width]"
    assert page.evaluate(width) == [360, 360]
    columns = "getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ').length"
    assert page.evaluate(columns) == 2
    for box in page.evaluate("[...document.querySelectorAll('button')].filter(b => b.offsetWidth)"
                             ".map(b => [b.offsetWidth, b.offsetHeight])"):  # fmt: skip
        assert min(box) >= 40  # a finger hits it
    page.locator(".card").first.tap()
    inside = page.get_by_role("dialog").bounding_box()
    assert inside is not None and inside["x"] >= 0 and inside["x"] + inside["width"] <= 360
    assert page.evaluate(width) == [360, 360]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(opened: Open, scheme: str) -> None:
    page = opened("/?q=star", color_scheme=scheme)
    expect(page.locator(".card[data-id]")).to_have_count(24)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, a, img, dialog, section")].filter(node =>
            node.checkVisibility() && !(node.getAttribute("aria-label") || node.getAttribute("aria-labelledby") ||
            node.textContent.trim() || node.labels?.length || (node.tagName === "IMG" && node.closest("[aria-label]"))))
            .map(node => node.outerHTML)"""
    )
    assert nameless == []
    for part in (".facts", ".ambiguity", ".caption", ".percent", ".collection", ".bottom p"):
        assert contrast(page, part) >= 4.5, part
    page.goto(page.url.split("?")[0])
    for part in (".hint", ".headline", ".chip", ".divider"):
        assert contrast(page, part) >= 4.5, part


def contrast(page: Page, part: str) -> float:
    """WCAG's ratio of a text's colour to the colour behind it."""
    page.locator(part).first.wait_for()
    colours = page.locator(part).first.evaluate(
        """node => {
            let behind = node;
            while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
            return [getComputedStyle(node).color, getComputedStyle(behind).backgroundColor];
        }"""
    )
    first, second = sorted((luminance(colour) for colour in colours), reverse=True)
    return (first + 0.05) / (second + 0.05)


def luminance(colour: str) -> float:
    parts = [float(value) / 255 for value in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_server_with_a_token_asks_for_it_once(opened: Open, server: Server) -> None:
    """The page's side; tests of the gate check that the server means it."""
    page = opened()
    state = {"open": False}

    def guard(route: Route) -> None:
        path = route.request.url.removeprefix(server.address)
        if path == "/session":
            state["open"] = json.loads(route.request.post_data or "{}")["token"] == TOKEN
            route.fulfill(status=204) if state["open"] else route.fulfill(status=401, json={"error": "wrong token"})
        elif state["open"] or path.startswith(("/?", "/static")) or path == "/":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": "this server needs a token"})

    page.route("**/*", guard)
    page.goto(f"{server.address}/?q=star")
    dialog = page.get_by_role("dialog", name="This collection needs a token")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Token").fill("wrong")
    dialog.get_by_role("button", name="Open").click()
    expect(dialog.get_by_role("alert")).to_have_text("Wrong token.")
    dialog.get_by_label("Token").fill(TOKEN)
    dialog.get_by_role("button", name="Open").click()
    expect(page.locator(".card[data-id]")).to_have_count(24)
    state["open"] = False
    page.goto("about:blank")
    page.goto(f"{server.address}/?q=star#token={TOKEN.replace(' ', '%20')}")  # the line the server prints
    expect(page.locator(".card[data-id]")).to_have_count(24)
    assert "token" not in page.url


def test_large_uploads_are_stopped_before_they_are_sent(opened: Open, server: Server) -> None:
    page = opened("about:blank", address="")
    page.route("**/about", lambda route: route.fulfill(json={**route.fetch().json(), "max_upload": 2**20}))
    page.goto(server.address)
    expect(page.locator(".tile").first).to_be_visible()
    content = png(10, 10) + bytes(2**21)
    page.locator("#file").set_input_files({"name": "huge.png", "mimeType": "image/png", "buffer": content})
    expect(page.get_by_role("alert").first).to_contain_text("huge.png has 2.0 MB; this server takes at most 1.0 MB.")


def test_why_a_picture_was_found_is_shown_over_it_and_beside_it(opened: Open, search: WordSearch) -> None:
    page = opened("/?q=red+star+zebras")
    page.locator(".card[data-id]").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Why this picture?").press("Enter")
    panel = dialog.get_by_role("region", name="Why this picture?")
    expect(panel.locator(".chip-word > span:first-child")).to_have_text(["red", "star", "zebras"])
    expect(panel.locator(".chip-word.for small").first).to_have_text("0.250")
    expect(panel.locator(".chip-word.against").last).to_contain_text("zebras−0.125 (not known to the model)")
    expect(panel.get_by_role("list", name="Parts of the score").locator("li")).to_have_text(
        ["distance of the means−0.500", "spread of the image−0.250", "score−0.750"]
    )
    chosen = panel.get_by_role("button", name="Influence")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(chosen).to_be_focused()
    inside = """() => {
        const box = part => document.querySelector(part).getBoundingClientRect();
        const [sheet, image] = [box(".heat"), box(".whole img")];
        return [(sheet.left - image.left) / image.width, sheet.width / image.width, sheet.height / image.height];
    }"""
    assert page.evaluate(inside) == pytest.approx([0.25, 0.5, 1.0], abs=0.01)  # what the model sees: the middle half
    colour = """([x, y]) => {
        const canvas = document.querySelector(".heat");
        return [...canvas.getContext("2d").getImageData(x * canvas.width, y * canvas.height, 1, 1).data];
    }"""
    red, blue = page.evaluate(colour, [0.625, 0.375]), page.evaluate(colour, [0.125, 0.875])
    assert red[0] > 150 > red[2] and blue[2] > 120 > blue[0] and red[3] > blue[3] > 40
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_timeout(200)
    assert page.evaluate(inside) == pytest.approx([0.25, 0.5, 1.0], abs=0.01)
    panel.get_by_role("button", name="Mean").click()
    expect(panel.locator(".chip-word small")).to_have_text(["100 %", "0 %", "0 %"])
    page.keyboard.press("ArrowRight")  # the next picture has not been asked about
    expect(page.locator(".heat")).to_have_count(0)
    expect(dialog.get_by_role("button", name="Why this picture?")).to_be_visible()


def test_only_text_queries_are_explained_and_errors_are_shown(opened: Open) -> None:
    page = opened()
    page.locator(".tile").first.click()
    expect(page.get_by_role("button", name="Find similar pictures")).to_be_visible()
    assert page.get_by_role("button", name="Why this picture?").count() == 0
    page.keyboard.press("Escape")
    page.fill("#query", "star")
    page.route("**/explain", lambda route: route.fulfill(status=503, json={"error": "the server is busy"}), times=1)
    page.locator(".card[data-id]").first.click()
    page.get_by_role("button", name="Why this picture?").click()
    expect(page.get_by_role("alert").filter(has_text="The server is busy.")).to_be_visible()
    page.get_by_role("button", name="Why this picture?").click()
    expect(page.locator(".chip-word")).to_have_count(1)


def test_unmeasured_words_differ_from_words_without_influence(opened: Open) -> None:
    page = opened("/?q=red+star+here")

    def partly(route: Route) -> None:
        answer = route.fetch().json()
        answer["words"][1]["influence"], answer["words"][2]["influence"] = -0.0001, None
        answer["text_attention"] = []
        answer |= {"about_image_attention": "", "about_text_attention": "this text head does not say where it looks"}
        route.fulfill(json=answer)

    page.route("**/explain", partly)
    page.locator(".card[data-id]").first.click()
    page.get_by_role("button", name="Why this picture?").click()
    chips = page.locator(".chip-word")
    expect(chips.locator("small")).to_have_text(["0.250", "0.000", "–"])  # no minus before zero
    expect(chips.nth(1)).to_have_attribute("title", "star: changes nothing, 0.000")
    expect(chips.nth(2)).to_have_attribute("title", "here: not measured")
    expect(page.locator(".why .legend").last).to_have_text("This text head does not say where it looks.")
    page.get_by_role("button", name="Mean").click()  # of the picture alone
    expect(chips.first).to_have_attribute("title", "red: not measured")
    assert chips.locator("small").count() == 0


def test_leaving_a_picture_cancels_its_explanation(opened: Open) -> None:
    page = opened("/?q=slowly+star")
    page.locator(".card[data-id]").first.click()
    with page.expect_request("**/explain"):
        page.get_by_role("button", name="Why this picture?").click()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/explain")):
        page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "options", "focused"),
    [
        ("/", {}, "query"),
        ("/#token=none%20is%20asked%20for%20here", {}, "query"),  # the line a server with a token prints
        ("/#results", {}, "results"),  # somebody was sent to another part of the page
        ("/?q=star", {}, ""),  # the answer is what is wanted; / goes to the box
        ("/", PHONE, ""),  # its keyboard would cover the page
    ],
)
def test_the_search_box_has_the_focus_on_the_start_page(
    opened: Open, path: str, options: dict[str, Any], focused: str
) -> None:
    page = opened(path, **options)
    expect(page.locator(".tile, .card[data-id]").first).to_be_visible()
    assert page.evaluate("document.activeElement.id") == focused
    if focused == "query":
        page.keyboard.type("blue star")
        expect(page.locator("#query")).to_have_value("blue star")
        expect(page.locator(".card[data-id]")).to_have_count(24)
