"""`report_run` and `write_page`: write the report of a run as one HTML page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import halation
from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation._web import Markup, data_block, document, sentence, shared, tag
from halation.data import Photos
from halation.report._facts import Facts
from halation.report._gather_facts import gather_facts
from halation.report._page_explorer import embedding_map, images_needed, one_query, script_data
from halation.report._page_figures import curves, probabilities
from halation.report._page_galleries import best_and_worst, certainty, disagreements
from halation.report._page_head import headline, measures
from halation.report._pictures import thumbnails

__all__ = ["report_run", "write_page"]

_STYLES = ("base.css", "parts.css", "print.css")
_SCRIPTS = ("page.js", "table.js", "gallery.js", "query.js", "sky.js", "map.js")
_NAVIGATION = (
    ("top", "Summary"),
    ("measures", "Measures"),
    ("curves", "Curves"),
    ("probabilities", "Probabilities"),
    ("disagreement", "Disagreements"),
    ("galleries", "Best and worst"),
    ("certain", "Certainty"),
    ("query", "One query"),
    ("map", "Map"),
)
_SECTIONS = (
    headline,
    measures,
    curves,
    probabilities,
    disagreements,
    best_and_worst,
    certainty,
    one_query,
    embedding_map,
)


def report_run(
    run: str | os.PathLike[str],
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    split: str = "test",
    against: str | os.PathLike[str] | None = None,
    queries: int = 300,
    seed: int = 0,
    progress: Progress = silent,
) -> Path:
    """Measure a run on a split and write `out/index.html`, a page that needs only a browser. Returns its path.

    against    another run to compare with, on the same split
    queries    for how many queries both rankings are kept, half in each direction, those of the galleries first;
               at most 5,000
    """
    folder = _folder(out)  # first, so that a folder that cannot be made fails before the work
    facts, dataset = gather_facts(
        run, data, split=split, against=against, queries=queries, seed=seed, progress=progress
    )
    return write_page(facts, dataset.photos, folder, progress=progress)


def write_page(
    facts: Facts, photos: Photos | None, out: str | os.PathLike[str], *, progress: Progress = silent
) -> Path:
    """Write facts and pictures as `out/index.html`, completely or not at all. Returns the page's path."""
    target = _folder(out) / "index.html"
    pictures, notes = thumbnails(photos, images_needed(facts), progress=progress)
    write_text(target, _page(facts, pictures, notes))
    return target


def _folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file", path=folder, remedy="name a folder for the report")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _page(facts: Facts, pictures: Mapping[int, str], notes: list[str]) -> str:
    """The whole page. pictures: WebP in base64, by image."""
    script = '"use strict";\n(() => {\n' + "\n".join(map(_static, _SCRIPTS)) + "\n})();\n"
    body = [
        tag("a", "Skip to the report", href="#main", class_="skip"),
        _top(),
        tag("main", [section(facts) for section in _SECTIONS], id="main"),
        _foot([*facts.notes, *notes]),
        data_block("data", script_data(facts)),
        data_block("pictures", {str(image): text for image, text in pictures.items()}),
    ]
    return document(
        f"{facts.runs[0].name} on {facts.data} · halation",
        body,
        styles=[_static(name) for name in _STYLES],
        head_scripts=[shared("theme.js")],
        scripts=[script],
    )


def _top() -> Markup:
    links = [tag("li", tag("a", name, href=f"#{section}")) for section, name in _NAVIGATION]
    return tag(
        "header",
        tag("a", tag("span", "", class_="spark", aria_hidden="true"), "halation", href="#top", class_="brand"),
        tag("nav", tag("ul", links), aria_label="Sections"),
        tag("button", "◐", type="button", id="theme", class_="theme"),
        class_="bar",
    )


def _foot(notes: list[str]) -> Markup:
    return tag(
        "footer",
        tag("h2", "Notes"),
        tag("ul", [tag("li", sentence(note)) for note in notes]),
        tag("p", f"Made by halation {halation.__version__}. This page loads nothing from the network."),
    )


def _static(name: str) -> str:
    return files("halation.report").joinpath("static").joinpath(name).read_text(encoding="utf-8")
