"""`report_run`: a run and data in, a folder with one page out."""

from __future__ import annotations

import os
from pathlib import Path

from halation._errors import InputError
from halation._files import write_text
from halation._progress import Progress, silent
from halation.data import Photos
from halation.report._data import pictures_wanted
from halation.report._facts import Facts
from halation.report._gather import gather_facts
from halation.report._page import page
from halation.report._thumbnails import thumbnails

__all__ = ["report_run", "write_page"]


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
    """Measure a run on a split and write `out/index.html`, one page that needs nothing but a browser.

    against    another run to compare with, on the same split
    queries    of so many queries both rankings are kept (at most 5,000), half of each direction; those of the galleries
               come first
    Returns the page's path.
    """
    folder = _folder(out)  # before the work: a folder that cannot be made is known at once
    facts, dataset = gather_facts(
        run, data, split=split, against=against, queries=queries, seed=seed, progress=progress
    )
    return write_page(facts, dataset.photos, folder, progress=progress)


def write_page(
    facts: Facts, photos: Photos | None, out: str | os.PathLike[str], *, progress: Progress = silent
) -> Path:
    """Facts and pictures as `out/index.html`, whole or not at all."""
    target = _folder(out) / "index.html"
    pictures, notes = thumbnails(photos, pictures_wanted(facts), progress=progress)
    write_text(target, page(facts, pictures, tuple(notes)))
    return target


def _folder(out: str | os.PathLike[str]) -> Path:
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; name a folder for the report", path=folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
