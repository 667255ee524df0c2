"""The galleries: queries with what was found, what it means, and what annotators had marked."""

from __future__ import annotations

import math

from halation._web import Markup, plain, tag
from halation.data import Direction
from halation.report._facts import Absent, Certain, Facts, Gallery, Mark, Placed, Query
from halation.report._figures import absent, agreement
from halation.report._head import WAYS
from halation.report._marks import marks
from halation.report._picks import DISAGREE

__all__ = ["certain_items", "disagreements", "galleries", "picture"]

_STRIP = 5
_BEST: tuple[Mark, ...] = ("own", "right", "")
_ORDER: tuple[Direction, Direction] = ("t2i", "i2t")  # pictures as answers first


def disagreements(facts: Facts) -> Markup:
    """Queries of which the measures say different things."""
    kept = [one for one in facts.galleries if one.key in DISAGREE]
    why = (
        "R@1 asks whether the first answer is one of those counted right; ASP whether the whole ranking is in the "
        "order of relevance, which is tf-idf here: the words that captions share, rare ones more; R-Precision whether "
        "all that is counted right comes first. Here they part: look, and judge."
    )
    return tag(
        "section",
        tag("h2", "Where the measures disagree"),
        tag("p", why, class_="why"),
        agreement(facts),
        _browser(facts, kept, "disagree"),
        id="disagreement",
    )


def galleries(facts: Facts) -> Markup:
    """The best, the worst, and what another run changes."""
    kept = [one for one in facts.galleries if one.key not in DISAGREE]
    changed = " With another run beside it: what one has first and the other has not." if facts.comparison else ""
    why = f"The queries answered best and worst.{changed}"
    head = (tag("h2", "Best and worst"), tag("p", why, class_="why"))
    return tag("section", head, _browser(facts, kept, "queries"), id="galleries")


def _browser(facts: Facts, kept: list[Gallery], name: str) -> Markup:
    """Tabs of galleries and a direction to choose; all is in the page, so that it prints."""
    known = {(query.direction, query.item): query for query in facts.queries}
    kinds = list(dict.fromkeys((one.key, one.title) for one in kept))
    tabs = [
        tag("button", title, type="button", data_key=key, aria_pressed=str(not k).lower())
        for k, (key, title) in enumerate(kinds)
    ]
    ways = [
        tag("button", WAYS[direction], type="button", data_way=direction, aria_pressed=str(not k).lower())
        for k, direction in enumerate(_ORDER)
    ]
    sorts = [tag("option", text, value=value) for value, text in _sorts(facts)]
    tools = tag(
        "div",
        tag("div", ways, class_="segments", role="group", aria_label="Direction"),
        tag("div", tabs, class_="tabs", role="group", aria_label="Gallery"),
        tag(
            "label",
            "Filter ",
            tag("input", type="search", class_="filter", placeholder="a word, image →", autocomplete="off"),
        ),
        tag("label", "Order ", tag("select", sorts, class_="order")),
        class_="tools",
    )
    first = (_ORDER[0], kinds[0][0])
    shown = [_gallery(facts, one, known, away=(one.direction, one.key) != first) for one in kept]
    return tag("div", tools, tag("p", "", role="status", class_="count"), shown, class_="browser", id=f"browser-{name}")


def _sorts(facts: Facts) -> list[tuple[str, str]]:
    found = [("", "as chosen"), ("asp", "ASP"), ("rp", "R-Precision"), ("rank", "first right answer")]
    return [*found, ("sigma", "σ")] if facts.sigma else found


def _gallery(facts: Facts, one: Gallery, known: dict[tuple[Direction, int], Query], *, away: bool) -> Markup:
    cards = [_card(facts, known[one.direction, item]) for item in one.queries]
    empty = None
    if not cards:
        empty = tag("p", f"There is no such query from {WAYS[one.direction].replace('→', 'to')}.", class_="absent")
    count = f"{len(cards)} of {one.of:,}" if one.of > len(cards) else f"{one.of:,}"
    head = tag("h3", f"{one.title} ", tag("small", f"{WAYS[one.direction]}, {count}"))
    body = [head, tag("p", one.why, class_="why"), empty, tag("div", cards, class_="cards")]
    return tag("div", body, class_="gallery away" if away else "gallery", data_key=one.key, data_way=one.direction)


def _card(facts: Facts, query: Query) -> Markup:
    values, items = query.values, facts.items
    if query.direction == "t2i":
        asked = items.captions[query.item]
        head: tuple[Markup, ...] = (tag("p", f"“{asked}”", class_="asked"), _chips(query))
        strip = _pictures_found(facts, query, asked)
    else:
        own = items.caption_of(query.item, {items.captions[one.item] for one in query.by_score[:_STRIP]})
        asked = f"{items.names[query.item]} {own}"
        words = tag("p", own, tag("small", items.names[query.item]), class_="asked")
        head = (picture(facts, query.item), tag("div", words, _chips(query)))
        strip = _captions_found(facts, query)
    return tag(
        "article",
        tag("header", head),
        tag("ol", strip, class_=f"strip {query.direction}"),
        tag("button", "Both rankings", type="button", class_="open", data_open=f"{query.direction}-{query.item}"),
        class_=f"card {query.direction}",
        data_words=f"{asked} {WAYS[query.direction]}".lower(),
        data_asp=_short(values.get("ASP(tfidf)")),
        data_rp=_short(values.get("R-P")),
        data_rank=int(values["rank"]),
        data_sigma=_short(query.sigma),
    )


def _chips(query: Query) -> Markup:
    hit = query.values["R@1"] > 0
    chips = [tag("li", "R@1 hit" if hit else "R@1 miss", class_="hit" if hit else "miss")]
    if not hit:
        chips.append(tag("li", f"first right answer at {int(query.values['rank']):,}"))
    for name, text in (("ASP(tfidf)", "ASP"), ("R-P", "R-P"), ("PMRP", "PMRP")):
        value = query.values.get(name, math.nan)
        if not math.isnan(value):
            chips.append(tag("li", f"{text} {plain(100 * value)}"))
    chips.append(tag("li", answers(query.right)))
    if query.sigma is not None:
        chips.append(tag("li", f"σ {query.sigma:.3g}"))
    return tag("ul", chips, class_="chips")


def _pictures_found(facts: Facts, query: Query, asked: str) -> list[Markup]:
    """The first pictures, each with a caption of its own that the card does not show yet."""
    shown, found = {asked}, []
    for place, one in enumerate(query.by_score[:_STRIP], start=1):
        words = facts.items.caption_of(one.item, shown)
        shown.add(words)
        what = [picture(facts, one.item), tag("p", words, class_="words") if words else None]
        found.append(_found(facts, str(place), what, [one]))
    return found


def _captions_found(facts: Facts, query: Query) -> list[Markup]:
    """The first captions; one that was written of several pictures stands once, with all its places."""
    places: dict[str, list[int]] = {}
    for place, one in enumerate(query.by_score[:_STRIP]):
        places.setdefault(facts.items.captions[one.item], []).append(place)
    return [
        _found(
            facts,
            _places([place + 1 for place in own]),
            [tag("p", words, class_="words")],
            [query.by_score[place] for place in own],
        )
        for words, own in places.items()
    ]


def _places(places: list[int]) -> str:
    """Ascending places in short.

    >>> _places([1, 3, 4, 5])
    '1, 3–5'
    """
    parts: list[list[int]] = []
    for place in places:
        if parts and parts[-1][-1] == place - 1:
            parts[-1].append(place)
        else:
            parts.append([place])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}–{part[-1]}" for part in parts)


def _found(facts: Facts, place: str, what: list[Markup | None], equals: list[Placed]) -> Markup:
    """One entry; of several items with the same words the most that is known of one, and all their relevances."""
    known, best = marks(facts.knows), min(equals, key=lambda one: _BEST.index(one.mark))
    sign, words, title = known[best.mark]
    values = sorted({f"{one.relevance:.2f}" for one in equals})
    relevance = values[0] if len(values) == 1 else f"{values[0]}–{values[-1]}"
    first, last = min(one.by_meaning[0] for one in equals), max(one.by_meaning[1] for one in equals)
    rank = f"{first:,}" if first == last else f"{first:,}–{last:,}"
    return tag(
        "li",
        tag("span", place, class_="place"),
        what,
        tag(
            "p",
            tag("span", f"{sign} {words}".strip(), class_="mark", title=title),
            tag("span", f"relevance {relevance}", title=f"rank {rank} by tf-idf"),
            class_="told",
        ),
        class_=f"found {best.mark or 'unmarked'}",
    )


def picture(facts: Facts, image: int) -> Markup:
    """A place for a picture, which the script fills from the one copy in the page; until then its name."""
    return tag("span", tag("span", facts.items.names[image], class_="name"), class_="picture", data_picture=image)


def certain_items(facts: Facts) -> Markup:
    """The items of the largest and the smallest clouds."""
    parts: list[Markup] = []
    if not facts.certain:
        assert isinstance(facts.spread, Absent)
        parts.append(absent("", facts.spread))
    for one in facts.certain:
        parts += [_rows(facts, one, "Most certain", one.most), _rows(facts, one, "Least certain", one.least)]
    why = "The smallest and the largest clouds. A vague caption is true of many pictures, and should have a large σ."
    return tag("section", tag("h2", "Most and least certain"), tag("p", why, class_="why"), parts, id="certain")


def _rows(facts: Facts, one: Certain, title: str, items: tuple[int, ...]) -> Markup:
    cards = []
    for item in items:
        told = tag("p", _told(facts, one.kind, item), class_="told")
        if one.kind == "images":
            cards.append(tag("li", picture(facts, item), told, class_="found"))
        else:
            cards.append(tag("li", tag("p", facts.items.captions[item], class_="words"), told, class_="found"))
    return tag("div", tag("h3", f"{title} ", tag("small", one.kind)), tag("ol", cards, class_=f"certain {one.kind}"))


def _told(facts: Facts, kind: str, item: int) -> str:
    return f"σ {facts.sigma[kind][item]:.3g} · {answers(int(facts.right[kind][item]))}"


def answers(count: int) -> str:
    """How many right answers there are, in words."""
    return f"{count:,} right answer{'' if count == 1 else 's'}"


def _short(value: float | None) -> str | None:
    return None if value is None or math.isnan(value) else f"{value:.4g}"
