"""The report in a real browser: what a person sees, sorts, filters, asks and prints; nothing leaves the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halation.data import Dataset
from halation.report import Facts, write_page

pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
from playwright.sync_api import Browser, Page, expect

expect.set_options(timeout=20_000)
Open = Callable[..., Page]
Gathered = tuple[Facts, Dataset]
OPTIONS = "#query-list [role=option]"
INKED = """canvas => {
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const pen = copy.getContext("2d", {willReadFrequently: true});
    pen.drawImage(canvas, 0, 0);
    return pen.getImageData(0, 0, copy.width, copy.height).data.filter((value, k) => k % 4 === 3 && value > 0).length;
}"""
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def opened(browser: Browser, written: Path) -> Iterator[Open]:
    """`opened(…)`: the page; an error, a word of the content policy, or a request that leaves it fails the test."""
    contexts, complaints = [], []

    def show(path: Path = written, where: str = "", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.on(
            "request",
            lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else None,
        )
        page.goto(path.as_uri() + where)
        return page

    yield show
    for context in contexts:
        context.close()
    assert not complaints


def column(page: Page, number: int) -> list[str]:
    return page.locator(f"#measures-table tbody tr:visible > :nth-child({number})").evaluate_all(
        "cells => cells.map(cell => cell.dataset.value)"
    )


def test_the_table_sorts_by_every_column_and_filters_by_words(opened: Open, gathered: Gathered) -> None:
    page = opened()
    rows = column(page, 1)
    assert (
        rows.count("R@1") == 2 and len(rows) == len(gathered[0].report.i2t) * 2 - 2 * 2 * 5
    )  # without ASP's companions
    newer = page.get_by_role("columnheader", name="newer")
    newer.get_by_role("button").click()
    values = [float(value) for value in column(page, 3)]
    assert values == sorted(values, reverse=True)
    expect(newer).to_have_attribute("aria-sort", "descending")
    newer.get_by_role("button").press("Enter")  # by the keyboard too
    assert [float(value) for value in column(page, 3)] == sorted(values)
    page.get_by_role("columnheader", name="Measure").get_by_role("button").click()
    names = column(page, 1)
    assert names.index("R@5") < names.index("R@10")  # numbers in names count as numbers
    expect(newer).to_have_attribute("aria-sort", "none")
    for typed, way in (
        ("asp text →", "text → image"),
        ("→ text asp", "image → text"),
        ("image->t asp", "image → text"),
    ):
        page.get_by_label("Filter").first.fill(typed)
        assert set(column(page, 2)) == {way} and all("ASP" in name for name in column(page, 1))
    page.get_by_label("Filter").first.fill("R@ ASP")
    assert column(page, 1) == []
    expect(page.locator("#measures-count")).to_have_text(f"0 of {len(rows)} measures")


def test_galleries_are_chosen_filtered_and_ordered(opened: Open, gathered: Gathered) -> None:
    facts, _ = gathered
    page = opened()
    browser = page.locator("#browser-disagree")
    cards = browser.locator(".card:visible")
    for direction, way in (("image → text", "i2t"), ("text → image", "t2i")):
        browser.get_by_role("button", name=direction).click()
        for key, title in (("hit_low_asp", "R@1 hit, low ASP"), ("miss_high_asp", "R@1 miss, high ASP")):
            browser.get_by_role("button", name=title).click()
            (gallery,) = [one for one in facts.galleries if (one.key, one.direction) == (key, way)]
            expect(cards).to_have_count(len(gallery.queries))
            shown = cards.locator(".open").evaluate_all("buttons => buttons.map(button => button.dataset.open)")
            assert shown == [f"{way}-{item}" for item in gallery.queries]
    expect(browser.get_by_role("button", name="R@1 miss, high ASP")).to_have_attribute("aria-pressed", "true")
    first = cards.first
    (query,) = [one for one in facts.queries if (one.direction, one.item) == ("t2i", gallery.queries[0])]
    expect(first.locator(".query-text")).to_have_text(f"“{facts.items.captions[query.item]}”")
    expect(first).to_contain_text("R@1 miss")
    for answer, one in zip(first.locator(".answer").all(), query.by_score, strict=False):
        expect(answer).to_contain_text(f"relevance {one.relevance:.2f}")
        expect(answer).to_contain_text({"written": "written for it", "right": "also right", "": "no match"}[one.mark])
    assert first.locator("img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    browser.get_by_label("Sort by").select_option("rank")
    ranks = [int(rank) for rank in cards.evaluate_all("all => all.map(one => one.dataset.rank)")]
    assert ranks == sorted(ranks, reverse=True)
    word = facts.items.captions[query.item].split()[-1]
    browser.get_by_label("Filter").fill(word)
    texts = cards.locator(".query-text").all_inner_texts()
    assert texts and all(word in text for text in texts)
    browser.get_by_label("Filter").fill("no such word")
    expect(cards).to_have_count(0)


def test_a_filter_tells_the_directions_apart(opened: Open, gathered: Gathered) -> None:
    facts, _ = gathered
    page = opened()
    browser = page.locator("#browser-disagree")
    cards, box, count = browser.locator(".card:visible"), browser.get_by_label("Filter"), browser.locator(".count")
    sizes = {one.direction: len(one.queries) for one in facts.galleries if one.key == "hit_low_asp"}
    box.fill("text → image")
    expect(cards).to_have_count(sizes["t2i"])
    expect(count).to_have_text(
        f"text → image: {sizes['t2i']} of {sizes['t2i']} queries; image → text: 0 of {sizes['i2t']}"
    )
    browser.get_by_role("button", name="image → text").click()
    expect(cards).to_have_count(0)
    box.fill("→ text")
    expect(cards).to_have_count(sizes["i2t"])
    (gallery,) = [one for one in facts.galleries if (one.key, one.direction) == ("hit_low_asp", "i2t")]
    box.fill(facts.items.names[gallery.queries[0]])  # pictures are found by their names, and by the words beside them
    expect(cards).to_have_count(1)
    words = cards.locator("p.query-text").evaluate("node => node.firstChild.textContent")
    box.fill(words)
    expect(cards.first.locator("small")).to_have_text(facts.items.names[gallery.queries[0]])


def test_no_caption_stands_twice_on_a_card(opened: Open, gathered: Gathered, tmp_path: Path) -> None:
    facts, dataset = gathered
    captions = tuple(f"{caption[:12]} …" for caption in facts.items.captions)  # many are the same now
    twins = replace(facts, items=replace(facts.items, captions=captions))
    for path in (write_page(facts, dataset.photos, tmp_path / "a"), write_page(twins, dataset.photos, tmp_path / "b")):
        page = opened(path)
        cards = page.locator(".card").evaluate_all(
            """cards => cards.map(card => [...card.querySelectorAll("p.query-text, .answer .words")]
                .map(one => one.firstChild?.nodeType === 3 ? one.firstChild.textContent.replace(/[“”]/g, "") : ""))"""
        )
        assert len(cards) == sum(len(one.queries) for one in facts.galleries)
        for card in cards:
            shown = [text for text in card if text]
            assert len(shown) == len(set(shown)), shown
    places = page.locator(".card.i2t").evaluate_all(
        "cards => cards.map(card => [...card.querySelectorAll('.rank')].map(one => one.textContent).join(', '))"
    )
    ends = [[part.split("–") for part in one.split(", ")] for one in places]
    every = [sorted(rank for part in one for rank in range(int(part[0]), int(part[-1]) + 1)) for one in ends]
    assert all(one == [1, 2, 3, 4, 5] for one in every)  # none of the places is lost
    assert any(one != "1, 2, 3, 4, 5" for one in places)  # and some share their words


def test_equal_curves_are_both_seen(gathered: Gathered, opened: Open, tmp_path: Path) -> None:
    facts, dataset = gathered
    line, other = facts.recall["i2t"]
    equal = replace(facts, recall={**facts.recall, "i2t": (line, replace(line, name=other.name, run=1))})
    figure = opened(write_page(equal, dataset.photos, tmp_path / "equal")).locator("#curves .figure").first
    below, above = figure.locator(".line").evaluate_all("all => all.map(one => one.getAttribute('d'))")
    assert below == above  # one lies on the other, and through its gaps the one below is seen
    dashes, colours = (
        figure.locator(".line").evaluate_all(f"all => all.map(one => getComputedStyle(one).{style})")
        for style in ("strokeDasharray", "stroke")
    )
    assert dashes[0] == "none" and dashes[1] != "none" and colours[0] != colours[1]


def test_one_query_is_found_by_the_keyboard_and_shows_both_rankings(opened: Open, gathered: Gathered) -> None:
    facts, _ = gathered
    page = opened()
    box = page.get_by_role("combobox", name="Find a query")
    box.scroll_into_view_if_needed()
    expect(page.locator(OPTIONS)).to_have_count(len(facts.queries))
    query = next(one for one in reversed(facts.queries) if one.direction == "t2i")
    box.fill(facts.items.captions[query.item])
    box.press("ArrowDown")
    active = str(box.get_attribute("aria-activedescendant"))
    expect(page.locator(f"[id='{active}']")).to_contain_text(facts.items.captions[query.item])
    box.press("Enter")
    shown = page.locator("#query-shown")
    expect(shown.locator(".query-text")).to_have_text(f"“{facts.items.captions[query.item]}”")
    match = re.search(r"#ask-t2i-(\d+)$", page.url)
    assert match is not None
    (query,) = [one for one in facts.queries if (one.direction, one.item) == ("t2i", int(match[1]))]
    expect(shown).to_contain_text(f"ASP {100 * query.values['ASP(tfidf)']:.1f}")
    for title, ranking in (
        ("By score of newer", query.by_score),
        ("By relevance", query.by_relevance),
        ("By score of older", query.by_other_score),
    ):
        rows = shown.locator(".column", has=page.get_by_role("heading", name=title)).locator(".ranked")
        expect(rows).to_have_count(len(ranking))
        assert [int(str(row.get_attribute("data-item"))) for row in rows.all()] == [one.item for one in ranking]
        for row, one in zip(rows.all()[:3], ranking, strict=False):
            ends = [f"{a}" if a == b else f"{a}–{b}" for a, b in (one.score_ranks, one.relevance_ranks)]
            assert row.locator("dd").all_inner_texts()[:2] == ends
            expect(row.locator("dd").last).to_have_text(f"{one.ratio:.2f}")
            bar = row.locator(".ratio").evaluate("bar => bar.firstChild.offsetWidth / bar.offsetWidth")
            assert bar == pytest.approx(one.ratio, abs=0.03)
    first = shown.locator(".ranked").first
    first.focus()
    lit = shown.locator(".highlighted").evaluate_all("all => all.map(one => one.dataset.item)")
    assert lit and set(lit) == {str(query.by_score[0].item)}
    box.fill("no such words")
    expect(page.locator(OPTIONS)).to_have_count(0)
    box.press("Escape")
    expect(page.locator(OPTIONS)).to_have_count(len(facts.queries))


def test_a_query_can_be_opened_from_a_gallery_and_by_its_address(opened: Open, gathered: Gathered) -> None:
    facts, _ = gathered
    page = opened()
    button = page.locator("#browser-disagree .open:visible").first
    name = str(button.get_attribute("data-open"))
    button.click()
    expect(page.locator("#query-shown .query-text")).to_be_visible()
    assert page.url.endswith(f"#ask-{name}")
    picture = next(one for one in facts.queries if one.direction == "i2t")
    shared = opened(where=f"#ask-i2t-{picture.item}")
    expect(shared.locator("#query-shown small").first).to_have_text(facts.items.names[picture.item])
    expect(shared.locator("#query-shown")).to_be_in_viewport()


def test_the_map_tells_what_is_under_the_pointer_and_moves_by_keys(opened: Open, gathered: Gathered) -> None:
    facts, _ = gathered
    page = opened()
    canvas, card = page.locator("#map-canvas"), page.locator("#map-card")
    canvas.scroll_into_view_if_needed()
    expect(card).to_be_hidden()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(card).to_be_visible()
    seen = {card.inner_text()}
    for key in ("ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        seen.add(card.inner_text())
    assert len(seen) > 2
    expect(card).to_contain_text("σ")
    assert card.locator("img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 64
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    whole = canvas.evaluate(INKED)
    page.get_by_label("Uncertainty").uncheck()
    page.wait_for_timeout(200)
    points = canvas.evaluate(INKED)
    assert points < 0.7 * whole  # the clouds are gone, the points are not
    page.get_by_role("checkbox", name="Captions").uncheck()
    page.wait_for_timeout(200)
    assert 0 < canvas.evaluate(INKED) < points
    page.get_by_role("checkbox", name="Captions").check()
    page.locator("#map-filter").fill(facts.items.captions[3])
    expect(page.locator("#map-count")).to_contain_text("items")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(card).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Reset").click()


def test_captions_and_names_never_become_html(gathered: Gathered, opened: Open, tmp_path: Path) -> None:
    facts, dataset = gathered
    bad = '</script><script>window.hit=1</script><img src=x onerror="window.hit=2"> "it\'s" &amp; {no} '
    captions = tuple(bad + caption for caption in facts.items.captions)
    items = replace(facts.items, captions=captions, names=tuple(bad + name for name in facts.items.names))
    named = tuple(replace(run, name=bad + run.name) for run in facts.runs)
    page = opened(write_page(replace(facts, items=items, runs=named), dataset.photos, tmp_path / "bad"))
    for section in ("certain", "query", "map"):
        page.evaluate(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
        page.wait_for_timeout(150)
    page.locator("#map-canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#map-card")).to_contain_text("<script>window.hit=1</script>")
    assert page.evaluate("window.hit") is None
    assert page.locator("img:not([src^='data:image/webp'])").count() == 0
    assert page.locator("script").count() == 4  # two of the page, two blocks of data
    expect(page.locator("#browser-disagree .card:visible .query-text").first).to_contain_text(bad.strip())
    expect(page.locator(OPTIONS).first).to_contain_text("&amp;")


FORBIDDEN = {  # what is tried: the directive that forbids it, what the browser says was blocked
    "const made = document.createElement('script'); made.textContent = 'window.hit = 3'; document.body.append(made)": (
        "script-src-elem",
        "inline",
    ),
    "document.body.setAttribute('onclick', 'window.hit = 4'); document.body.click()": ("script-src-attr", "inline"),
    "fetch('https://example.org/sent').catch(() => 0)": ("connect-src", "https://example.org/sent"),
    "new Image().src = 'https://example.org/seen.png'": ("img-src", "https://example.org/seen.png"),
    "const s = document.createElement('script'); s.src = 'https://example.org/x.js'; document.body.append(s)": (
        "script-src-elem",
        "https://example.org/x.js",
    ),
    "const f = document.createElement('iframe'); f.src = 'https://example.org/f'; document.body.append(f)": (
        "frame-src",
        "https://example.org",  # of frames browsers tell the origin alone
    ),
    "const s = document.createElement('style'); s.textContent = 'body { color: red }'; document.body.append(s)": (
        "style-src-elem",
        "inline",
    ),
}


@pytest.mark.parametrize("tried", FORBIDDEN)
def test_the_content_policy_stops_what_would_leave_the_page_or_run_in_it(
    browser: Browser, written: Path, tried: str
) -> None:
    page = browser.new_page()
    page.goto(written.as_uri())
    blocked = page.evaluate(
        """() => new Promise((tell, fail) => {
            document.addEventListener("securitypolicyviolation", (event) =>
                tell([event.effectiveDirective, event.blockedURI, event.disposition]));
            setTimeout(() => fail(new Error("the browser blocked nothing")), 15000);
            tried();
        })""".replace("tried();", f"{tried};")
    )
    assert tuple(blocked) == (*FORBIDDEN[tried], "enforce")
    assert page.evaluate("window.hit") is None
    page.close()


def test_dark_light_and_as_the_system_says(opened: Open) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    page = opened(color_scheme="dark")
    dark = page.evaluate(paper)
    line = "getComputedStyle(document.querySelector('.figure .line.s0')).stroke"
    dark_line = page.evaluate(line)
    page.get_by_role("button", name="Colours: as in the system").click()
    assert page.evaluate(paper) != dark and page.evaluate(line) != dark_line  # figures follow
    page.get_by_role("button", name="Colours: light").click()
    assert page.evaluate(paper) == dark
    assert opened(color_scheme="light").evaluate(paper) != dark


def test_the_page_fits_a_phone(opened: Open) -> None:
    page = opened(**PHONE)
    for section in ("measures", "curves", "disagreement", "query", "map"):
        page.evaluate(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
        page.wait_for_timeout(100)
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [360, 360]
    assert page.evaluate("document.querySelector('.bar').getBoundingClientRect().top") == 0
    small = page.locator(".figure text").evaluate_all(
        "all => Math.min(...all.map(one => one.getBoundingClientRect().height).filter(Boolean))"
    )
    assert small > 8  # figures can be read


def test_paper_shows_every_gallery_and_no_tools(opened: Open, gathered: Gathered) -> None:
    page = opened(color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    filled = [one for one in gathered[0].galleries if one.queries]
    expect(page.locator(".gallery:visible")).to_have_count(len(filled))
    expect(page.locator(".card:visible")).to_have_count(sum(len(one.queries) for one in filled))
    expect(page.locator(".tools:visible, .bar:visible, .chooser:visible, .open:visible")).to_have_count(0)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator(".picture:visible:not([data-filled])").count() == 0
    expect(page.locator("#query-shown .ranked").first).to_be_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(page.pdf()) > 50_000


def test_paper_cuts_no_words_and_lets_none_run_into_others(opened: Open) -> None:
    page = opened(viewport={"width": 690, "height": 975})  # A4 within its margins
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    wider = page.locator(".card .mark, .card .details, .chips li, td, .rank").evaluate_all(
        """all => all.filter(one => one.offsetParent).filter(one => {
            const [text, box] = [one, one.closest("li, tr, ul")].map(part => part.getBoundingClientRect());
            return text.right > box.right + 2 || one.scrollWidth > one.clientWidth + 2 && one.clientWidth > 0;
        }).map(one => one.textContent)"""
    )
    assert wider == []
    paper, canvas = (
        page.locator(one).evaluate("one => one.getBoundingClientRect().height") for one in (".paper", "canvas")
    )
    assert paper - canvas < 8  # no empty paper below the map


def test_without_scripts_words_figures_and_every_gallery_are_there(
    browser: Browser, written: Path, gathered: Gathered
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(written.as_uri())
    expect(page.get_by_role("heading", level=1)).to_contain_text("newer")
    assert page.locator(".figure:visible").count() > 8
    expect(page.locator(".gallery:visible")).to_have_count(len(gathered[0].galleries))
    expect(page.get_by_text("This part needs JavaScript")).to_be_visible()
    context.close()


def test_what_is_far_down_is_made_when_it_comes_near(opened: Open, written: Path) -> None:
    page = opened()
    assert page.locator(OPTIONS).count() == 0  # the list of queries is not built before it is needed
    filled, places = page.locator(".picture[data-filled]").count(), page.locator(".picture").count()
    assert filled < places / 2
    text = written.read_text(encoding="utf-8")
    block = re.search(r'id="pictures">(.*?)</script>', text)
    assert block is not None
    pictures = json.loads(block[1])
    assert all(text.count(code) == 1 for code in list(pictures.values())[:20])  # each picture once
