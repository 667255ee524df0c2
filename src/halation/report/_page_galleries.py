"""The galleries of the page: queries with their first answers, each with its relevance and annotation."""

from __future__ import annotations

import math

from halation._web import Markup, plain, tag
from halation.data import Direction
from halation.report._facts import CertaintyExtremes, Facts, Gallery, Mark, Missing, Query, RankedItem
from halation.report._galleries import DISAGREEMENTS, mark_words
from halation.report._page_figures import asp_figures, missing_note
from halation.report._page_head import DIRECTION_NAMES

__all__ = ["best_and_worst", "certainty", "disagreements"]

_SHOWN = 5  # answers on a card
_BEST_FIRST: tuple[Mark, ...] = ("written", "right", "")
_DIRECTIONS: tuple[Direction, Direction] = ("t2i", "i2t")  # images as answers first


def disagreements(facts: Facts) -> Markup:
    """The section of queries on which the measures disagree."""
    galleries = [gallery for gallery in facts.galleries if gallery.key in DISAGREEMENTS]
    why = (
        "R@1 asks whether the first answer is right. R-Precision asks whether all right answers come first. ASP asks "
        "whether the whole ranking follows relevance, which is tf-idf here: the words that captions share, rare words "
        "counting more. These are the queries on which they differ most: look at them, and judge for yourself."
    )
    return tag(
        "section",
        tag("h2", "Where the measures disagree"),
        tag("p", why, class_="why"),
        asp_figures(facts),
        _browser(facts, galleries, "disagree"),
        id="disagreement",
    )


def best_and_worst(facts: Facts) -> Markup:
    """The section of the best and the worst queries, and of those that only one of two runs gets right."""
    galleries = [gallery for gallery in facts.galleries if gallery.key not in DISAGREEMENTS]
    changed = " Won and lost: only one of the two runs puts a right answer first." if facts.comparison else ""
    head = (
        tag("h2", "Best and worst"),
        tag("p", f"The queries that are answered best and worst.{changed}", class_="why"),
    )
    return tag("section", head, _browser(facts, galleries, "queries"), id="galleries")


def _browser(facts: Facts, galleries: list[Gallery], name: str) -> Markup:
    """Galleries to choose from by kind and direction; all of them are in the page, so that it prints."""
    queries = {(query.direction, query.item): query for query in facts.queries}
    kinds = list(dict.fromkeys((gallery.key, gallery.title) for gallery in galleries))
    tabs = [
        tag("button", title, type="button", data_key=key, aria_pressed=str(not k).lower())
        for k, (key, title) in enumerate(kinds)
    ]
    directions = [
        tag("button", DIRECTION_NAMES[direction], type="button", data_way=direction, aria_pressed=str(not k).lower())
        for k, direction in enumerate(_DIRECTIONS)
    ]
    orders = [tag("option", text, value=value) for value, text in _orders(facts)]
    tools = tag(
        "div",
        tag("div", directions, class_="segments", role="group", aria_label="Direction"),
        tag("div", tabs, class_="tabs", role="group", aria_label="Gallery"),
        tag(
            "label",
            "Filter ",
            tag("input", type="search", class_="filter", placeholder="a word, image →", autocomplete="off"),
        ),
        tag("label", "Sort by ", tag("select", orders, class_="order")),
        class_="tools",
    )
    first = (_DIRECTIONS[0], kinds[0][0])
    shown = [_gallery(facts, one, queries, hidden=(one.direction, one.key) != first) for one in galleries]
    return tag("div", tools, tag("p", "", role="status", class_="count"), shown, class_="browser", id=f"browser-{name}")


def _orders(facts: Facts) -> list[tuple[str, str]]:
    orders = [("", "default"), ("asp", "ASP"), ("rp", "R-Precision"), ("rank", "first right answer")]
    return [*orders, ("sigma", "σ")] if facts.sigma else orders


def _gallery(facts: Facts, one: Gallery, queries: dict[tuple[Direction, int], Query], *, hidden: bool) -> Markup:
    name = DIRECTION_NAMES[one.direction]
    cards = [_card(facts, queries[one.direction, item]) for item in one.queries]
    empty = None if cards else tag("p", f"No {name} query is of this kind.", class_="missing")
    count = f"{len(cards)} of {one.candidates:,}" if one.candidates > len(cards) else f"{one.candidates:,}"
    head = tag("h3", f"{one.title} ", tag("small", f"{name}, {count}"))
    body = [head, tag("p", one.why, class_="why"), empty, tag("div", cards, class_="cards")]
    return tag(
        "div", body, class_="gallery inactive" if hidden else "gallery", data_key=one.key, data_way=one.direction
    )


def _card(facts: Facts, query: Query) -> Markup:
    values, items = query.values, facts.items
    if query.direction == "t2i":
        text = items.captions[query.item]
        head: tuple[Markup, ...] = (tag("p", f"“{text}”", class_="query-text"), _chips(query))
        answers = _image_answers(facts, query, text)
    else:
        caption = items.caption_of(query.item, {items.captions[one.item] for one in query.by_score[:_SHOWN]})
        text = f"{items.names[query.item]} {caption}"
        words = tag("p", caption, tag("small", items.names[query.item]), class_="query-text")
        head = (_picture(facts, query.item), tag("div", words, _chips(query)))
        answers = _caption_answers(facts, query)
    return tag(
        "article",
        tag("header", head),
        tag("ol", answers, class_=f"strip {query.direction}"),
        tag("button", "Compare rankings", type="button", class_="open", data_open=f"{query.direction}-{query.item}"),
        class_=f"card {query.direction}",
        data_words=f"{text} {DIRECTION_NAMES[query.direction]}".lower(),
        data_asp=_short(values.get("ASP(tfidf)")),
        data_rp=_short(values.get("R-P")),
        data_rank=int(values["rank"]),
        data_sigma=_short(query.sigma),
    )


def _chips(query: Query) -> Markup:
    hit = query.values["R@1"] > 0
    chips = [tag("li", "R@1 hit" if hit else "R@1 miss", class_="hit" if hit else "miss")]
    if not hit:
        chips.append(tag("li", f"first right answer: rank {int(query.values['rank']):,}"))
    for name, text in (("ASP(tfidf)", "ASP"), ("R-P", "R-P"), ("PMRP", "PMRP")):
        value = query.values.get(name, math.nan)
        if not math.isnan(value):
            chips.append(tag("li", f"{text} {plain(100 * value)}"))
    chips.append(tag("li", _right_answers(query.right_count)))
    if query.sigma is not None:
        chips.append(tag("li", f"σ {query.sigma:.3g}"))
    return tag("ul", chips, class_="chips")


def _image_answers(facts: Facts, query: Query, text: str) -> list[Markup]:
    """The first images, each with one of its captions that the card does not show yet."""
    shown, answers = {text}, []
    for rank, one in enumerate(query.by_score[:_SHOWN], start=1):
        caption = facts.items.caption_of(one.item, shown)
        shown.add(caption)
        content = [_picture(facts, one.item), tag("p", caption, class_="words") if caption else None]
        answers.append(_answer(facts, str(rank), content, [one]))
    return answers


def _caption_answers(facts: Facts, query: Query) -> list[Markup]:
    """The first captions; a text that was written for several images is shown once, with all its ranks."""
    ranks: dict[str, list[int]] = {}
    for rank, one in enumerate(query.by_score[:_SHOWN], start=1):
        ranks.setdefault(facts.items.captions[one.item], []).append(rank)
    return [
        _answer(
            facts,
            _rank_ranges(of_text),
            [tag("p", text, class_="words")],
            [query.by_score[rank - 1] for rank in of_text],
        )
        for text, of_text in ranks.items()
    ]


def _rank_ranges(ranks: list[int]) -> str:
    """Ascending ranks in short.

    >>> _rank_ranges([1, 3, 4, 5])
    '1, 3–5'
    """
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and parts[-1][-1] == rank - 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)


def _answer(facts: Facts, rank: str, content: list[Markup | None], items: list[RankedItem]) -> Markup:
    """One answer. Several items with the same text share it: with the best of their marks, and all their relevances."""
    best = min(items, key=lambda one: _BEST_FIRST.index(one.mark))
    sign, words, title = mark_words(facts.coverage)[best.mark]
    values = sorted({f"{one.relevance:.2f}" for one in items})
    relevance = values[0] if len(values) == 1 else f"{values[0]}–{values[-1]}"
    first, last = min(one.relevance_ranks[0] for one in items), max(one.relevance_ranks[1] for one in items)
    relevance_rank = f"{first:,}" if first == last else f"{first:,}–{last:,}"
    return tag(
        "li",
        tag("span", rank, class_="rank"),
        content,
        tag(
            "p",
            tag("span", f"{sign} {words}".strip(), class_="mark", title=title),
            tag("span", f"relevance {relevance}", title=f"rank {relevance_rank} by tf-idf"),
            class_="details",
        ),
        class_=f"answer {best.mark or 'unmarked'}",
    )


def _picture(facts: Facts, image: int) -> Markup:
    """An image's name, which the script replaces by the one copy of the picture in the page."""
    return tag("span", tag("span", facts.items.names[image], class_="name"), class_="picture", data_picture=image)


def certainty(facts: Facts) -> Markup:
    """The section of the items with the smallest and the largest σ."""
    parts: list[Markup] = []
    if isinstance(facts.sigma_histograms, Missing):
        parts.append(missing_note("", facts.sigma_histograms))
    for one in facts.certainty:
        parts += [
            _extremes(facts, one, "Most certain", one.most_certain),
            _extremes(facts, one, "Least certain", one.least_certain),
        ]
    why = "The items with the smallest and the largest σ. A vague caption fits many images and should have a large σ."
    return tag("section", tag("h2", "Most and least certain"), tag("p", why, class_="why"), parts, id="certain")


def _extremes(facts: Facts, one: CertaintyExtremes, title: str, items: tuple[int, ...]) -> Markup:
    cards = []
    for item in items:
        count = _right_answers(int(facts.right_counts[one.kind][item]))
        numbers = tag("p", f"σ {facts.sigma[one.kind][item]:.3g} · {count}", class_="details")
        if one.kind == "images":
            cards.append(tag("li", _picture(facts, item), numbers, class_="answer"))
        else:
            cards.append(tag("li", tag("p", facts.items.captions[item], class_="words"), numbers, class_="answer"))
    return tag("div", tag("h3", f"{title} ", tag("small", one.kind)), tag("ol", cards, class_=f"certain {one.kind}"))


def _right_answers(count: int) -> str:
    return f"{count:,} right answer{'' if count == 1 else 's'}"


def _short(value: float | None) -> str | None:
    return None if value is None or math.isnan(value) else f"{value:.4g}"
